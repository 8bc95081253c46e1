"""Selects the release of CANN whose public checkers the host CANN follows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import _C
from ._warning import warn

if _problem := _C.cann_release_problem():
    warn(_problem)

CANN_RELEASES = ("8.5", "9.0", "9.1", "later")


def set_cann_release(name: str) -> None:
    """Selects the release of CANN whose checks the operators on CPU tensors make, for the whole process.

    Args:
        name: ``8.5``, ``9.0``, ``9.1`` or ``later``, the newest public source (the default, unless the environment
            variable ``ACLNN_TORCH_CANN`` is set). Few checks differ: docs/fidelity.md lists them.

    Raises:
        AclnnError: status 100000 for another name.
    """
    _C.set_cann_release(name)


def get_cann_release() -> str:
    """The name of the current release."""
    return _C.get_cann_release()


@contextmanager
def cann_release(name: str) -> Iterator[None]:
    """Selects a release for the body of a ``with`` statement, for the whole process."""
    before = get_cann_release()
    set_cann_release(name)
    try:
        yield
    finally:
        set_cann_release(before)
