"""PyTorch operators over CANN's two-stage aclnn API, with a host CANN inside.

``torch.ops.aclnn.*`` holds the operators, :mod:`aclnn_torch.functional` and :mod:`aclnn_torch.nn` their faces in the
style of ``torch.nn``. Every failing call raises :class:`AclnnError`.
"""

from __future__ import annotations

import torch  # noqa: F401  (the extension links against it)

from . import functional, nn, ops
from .conversion import convert, revert
from .errors import AclnnError
from .products import get_product, product, set_product

__all__ = ["AclnnError", "convert", "functional", "get_product", "nn", "ops", "product", "revert", "set_product"]
__version__ = "0.1.0"
