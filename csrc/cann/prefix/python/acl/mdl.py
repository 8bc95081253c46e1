"""Offline models, of which the host CANN has none."""

from ._prototypes import nothing

__getattr__ = nothing(
    __name__,
    "offline models (OM files) are compiled for a device; run the model itself, in PyTorch on torch_npu",
)
