"""Swapping the modules of a model for this package's, in place, and back."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import functional as F
from . import nn

__all__ = ["convert", "revert"]

# torch's class -> ours, which is its subclass and adds nothing but a forward.
_OURS: dict[type, type] = {cls.__base__: cls for cls in (getattr(nn, name) for name in nn.__all__)}

# What RMSNorm classes of model libraries call their epsilon.
_EPSILONS = ("variance_epsilon", "eps", "epsilon")


def convert(model: torch.nn.Module) -> dict[str, type]:
    """Makes the modules of a model compute through aclnn, in place.

    Swapped are instances of exactly the ``torch.nn`` classes that :mod:`aclnn_torch.nn` has, and of other libraries'
    RMSNorm classes: a class whose name ends in ``RMSNorm``, with a ``weight`` and an epsilon, that is found to compute
    ``x / sqrt(mean(x^2) + eps) * weight`` over the last dimension. (Classes that scale by ``1 + weight``, for instance,
    are left alone.) Parameters, buffers, hooks and the state_dict stay as they are: only the class changes, to a
    subclass of what it was.

    Where the input has 16 bits, libraries' RMSNorms may round before they multiply by the weight; CANN rounds once, at
    the end.

    Args:
        model: a module, itself swapped if its class is one of these.

    Returns:
        The qualified name of each module that was swapped (``""`` for the model itself), and its class before.
    """
    swapped: dict[str, type] = {}
    for name, module in model.named_modules():
        before = type(module)
        after = _OURS.get(before) or _rms_norm_class(module)
        if after is not None:
            module.__class__ = after
            swapped[name] = before
    return swapped


def revert(model: torch.nn.Module) -> dict[str, type]:
    """Undoes :func:`convert`, also for modules that were made from :mod:`aclnn_torch.nn` in the first place.

    Returns:
        The qualified name of each module that was swapped, and its class before.
    """
    swapped: dict[str, type] = {}
    for name, module in model.named_modules():
        before: Any = type(module)
        foreign = issubclass(before, _ForeignRMSNorm)
        after = before._aclnn_torch_original if foreign else before.__base__
        if foreign or _OURS.get(after) is before:
            module.__class__ = after
            swapped[name] = before
    return swapped


class _ForeignRMSNorm:
    """The forward of another library's RMSNorm class."""

    _aclnn_torch_original: type
    weight: Tensor

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Normalises over the last dimension."""
        return F.rms_norm(hidden_states, self.weight.shape, self.weight, _epsilon(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # The class has no name to be found by; its original has.
        return _restore, (self._aclnn_torch_original, self.__dict__.copy())


@functools.cache
def _subclass_of(original: Any) -> Any:
    namespace = {"_aclnn_torch_original": original, "__module__": __name__, "__doc__": original.__doc__}
    return type(original.__name__, (_ForeignRMSNorm, original), namespace)


def _restore(original: type, state: dict[str, Any]) -> Any:
    cls = _subclass_of(original)
    module = cls.__new__(cls)
    module.__dict__.update(state)
    return module


def _epsilon(module: Any) -> float | None:
    return next((getattr(module, name) for name in _EPSILONS if isinstance(getattr(module, name, None), float)), None)


def _rms_norm_class(module: torch.nn.Module) -> type | None:
    """A class of ours for another library's RMSNorm module, if it is one."""
    cls: Any = type(module)
    weight = getattr(module, "weight", None)
    known = cls.__name__.endswith("RMSNorm") and not isinstance(module, (torch.nn.RMSNorm, _ForeignRMSNorm))
    if not known or not isinstance(weight, Tensor) or weight.dim() != 1 or _epsilon(module) is None:
        return None
    return _subclass_of(cls) if _computes_rms_norm(module) else None


def _computes_rms_norm(module: torch.nn.Module) -> bool:
    """Whether a copy of the module, in float32 and with a weight of its own, gives what the formula gives."""
    try:
        with torch.no_grad():
            probe: Any = copy.deepcopy(module).to_empty(device="cpu").float()
            size = probe.weight.shape[0]
            probe.weight.copy_(torch.linspace(-0.5, 1.5, size))
            x = torch.linspace(-3, 2, 2 * size, device="cpu").reshape(1, 2, size).contiguous()
            expected = torch.nn.functional.rms_norm(x, [size], probe.weight, _epsilon(module))
            forward: Callable[[Tensor], Tensor] = probe.forward
            return torch.allclose(forward(x), expected, rtol=1e-5, atol=1e-6)
    except Exception:  # a forward of other arguments, or one that needs what a copy lacks: not ours to replace
        return False
