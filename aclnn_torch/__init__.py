"""PyTorch operators over CANN's two-stage aclnn API, with a host CANN inside.

``torch.ops.aclnn.*`` holds the operators; :mod:`aclnn_torch.functional` and :mod:`aclnn_torch.nn` offer them with the
interfaces of ``torch.nn``. Every failing call raises :class:`AclnnError`.
"""

from __future__ import annotations

from ._problem import explain, is_command_line

try:
    from . import _torch, functional, nn, ops  # noqa: F401  (_torch first: the extension links against torch)
    from .cann_releases import cann_release, get_cann_release, set_cann_release
    from .conversion import convert, revert
    from .decompositions import decompositions
    from .errors import AclnnError
    from .memory import empty_cache, memory_stats, reset_peak_memory_stats, set_memory_limit
    from .products import get_product, product, set_product
    from .profiling import profile_stages, trace
except (ImportError, OSError) as error:
    if not is_command_line():
        raise ImportError(f"aclnn_torch: {explain(error)}") from error
    problem: str | None = explain(error)  # reported by `aclnn-torch doctor`
else:
    problem = None

__all__ = [
    "AclnnError",
    "cann_release",
    "convert",
    "decompositions",
    "empty_cache",
    "functional",
    "get_cann_release",
    "get_product",
    "memory_stats",
    "nn",
    "ops",
    "product",
    "profile_stages",
    "reset_peak_memory_stats",
    "revert",
    "set_cann_release",
    "set_memory_limit",
    "set_product",
    "trace",
]
__version__ = "0.1.0"
