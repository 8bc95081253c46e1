"""The functions of ``triton.language.extra.cann.libdevice``, each on tensors of FP16, BF16, FP32 or FP64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton.language import core, math
from triton.language.math import (  # noqa: F401
    abs,
    ceil,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    fdiv,
    floor,
    fma,
    log,
    log2,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    umulhi,
)

FLOATS = ("fp16", "bf16", "fp32", "fp64")


def _function(name: str, operands: int = 1, result: str | None = None) -> Callable[..., Any]:
    """A function that the library of simulated NPUs computes."""
    kinds = {(core.dtype(kind),) * operands: (name, core.dtype(result or kind)) for kind in FLOATS}

    def function(*arguments: Any, _semantic: Any = None) -> Any:
        if len(arguments) != operands:
            raise TypeError(f"{name} takes {operands} arguments, got {len(arguments)}")
        return core.extern_elementwise("aclnn", "", list(arguments), kinds, is_pure=True, _semantic=_semantic)

    function.__name__ = name
    return core.extern(function)  # type: ignore[no-any-return]


reciprocal = _function("reciprocal")
log1p = _function("log1p")
log10 = _function("log10")
expm1 = _function("expm1")
relu = _function("relu")
tan = _function("tan")
asin = _function("asin")
acos = _function("acos")
atan = _function("atan")
sinh = _function("sinh")
cosh = _function("cosh")
tanh = _function("tanh")
asinh = _function("asinh")
acosh = _function("acosh")
atanh = _function("atanh")
gamma = _function("gamma")
lgamma = _function("lgamma")
trunc = _function("trunc")
round = _function("round")
nearbyint = rint = _function("nearbyint")
pow = _function("pow", 2)
atan2 = _function("atan2", 2)
hypot = _function("hypot", 2)
copysign = _function("copysign", 2)
fmod = _function("remf", 2)
isnan = _function("isnan", result="int1")
isinf = _function("isinf", result="int1")
isfinited = finitef = _function("isfinite", result="int1")
signbit = _function("signbit", result="int1")
math.tanh = tanh
