"""The exception that every failing aclnn call raises."""

from __future__ import annotations

from typing import Any


class AclnnError(RuntimeError):
    """An aclnn function returned a status other than 0.

    The text names the function, the argument, the expected and the actual value, the product and the remedy.

    Attributes:
        api: the C function that failed, e.g. ``aclnnEluBackwardGetWorkspaceSize``.
        status: its status code, e.g. 161002.
        status_name: the code's name in CANN's headers, e.g. ``ACLNN_ERR_PARAM_INVALID``.
    """

    def __init__(self, message: str, api: str, status: int, status_name: str) -> None:
        super().__init__(message)
        self.api = api
        self.status = status
        self.status_name = status_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.api, self.status, self.status_name)
