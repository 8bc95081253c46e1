"""Matrix products compiled into offline models, of which the host CANN has none."""

from ._prototypes import nothing

__getattr__ = nothing(
    __name__,
    "products compiled into offline models (OM files) need a device; call those of torch_npu, or aclnn functions",
)
