"""The module ``triton.language.extra.cann`` of triton-ascend."""

from . import extension, libdevice  # noqa: F401
