"""Swapping the modules of a model for this package's, in place, and back."""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any

import torch
from torch import Tensor

from . import functional as F
from . import nn

__all__ = ["convert", "revert"]

# torch's class -> ours, which is its subclass and adds nothing to an instance.
_OURS: dict[type, type] = {getattr(torch.nn, name): getattr(nn, name) for name in nn.__all__}
_TORCHS = {ours: torchs for torchs, ours in _OURS.items()}

# What RMSNorm classes of model libraries call their epsilon.
_EPSILONS = ("variance_epsilon", "eps", "epsilon")


def convert(model: torch.nn.Module) -> dict[str, type]:
    """Makes the modules of a model compute through aclnn, in place.

    Swapped are instances of exactly the ``torch.nn`` classes that :mod:`aclnn_torch.nn` has, so neither subclasses nor
    modules with parametrizations, and of other libraries' RMSNorm classes: a class whose name ends in ``RMSNorm``, with
    nothing but a ``weight`` and an epsilon and a forward of one argument, that is found to compute
    ``x / sqrt(mean(x^2) + eps) * weight`` over the last dimension. (Classes that scale by ``1 + weight``, for instance,
    are left alone.) Parameters, buffers, hooks and the state_dict stay as they are: only the class changes, to a
    subclass of what it was.

    Where the input has 16 bits, libraries' RMSNorms may round before they multiply by the weight; CANN rounds once, at
    the end. Where the input's dtype is not the weight's, the library's own forward computes, because libraries differ
    in the result's dtype.

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
        after = before._aclnn_torch_original if foreign else _TORCHS.get(before)
        if after is not None:
            module.__class__ = after
            swapped[name] = before
    return swapped


class _ForeignRMSNorm:
    """What a class made from another library's RMSNorm class has of ours."""

    _aclnn_torch_original: Any
    weight: Tensor

    def _aclnn_torch_forward(self, *args: Tensor, **kwargs: Tensor) -> Tensor:
        """The forward, of the one argument that the original's has."""
        (x,) = (*args, *kwargs.values())
        if x.dtype == self.weight.dtype:
            return F.rms_norm(x, self.weight.shape, self.weight, _epsilon(self))
        # Libraries differ in what they make of two dtypes.
        result: Tensor = self._aclnn_torch_original.forward(self, x)
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        # The class has no name to be found by; its original has.
        return _restore, (self._aclnn_torch_original, self.__dict__.copy())


@functools.cache
def _subclass_of(original: Any) -> Any:
    def forward(self: Any, *args: Tensor, **kwargs: Tensor) -> Any:
        return self._aclnn_torch_forward(*args, **kwargs)

    forward.__signature__ = inspect.signature(original.forward)  # type: ignore[attr-defined]
    namespace = {
        "_aclnn_torch_original": original,
        "__module__": __name__,
        "__doc__": original.__doc__,
        "forward": forward,
    }
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
    if not cls.__name__.endswith("RMSNorm") or isinstance(module, (torch.nn.RMSNorm, _ForeignRMSNorm)):
        return None
    tensors = dict([*module.named_parameters(), *module.named_buffers()])
    alone = list(tensors) == ["weight"] and tensors["weight"].dim() == 1 and not list(module.children())
    if not alone or _epsilon(module) is None or len(inspect.signature(module.forward).parameters) != 1:
        return None
    return _subclass_of(cls) if _computes_rms_norm(module) else None


def _computes_rms_norm(module: torch.nn.Module) -> bool:
    """Whether a copy of the module, in float32 and with a weight of its own, gives what the formula gives."""
    float32: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}  # whatever the defaults are
    try:
        with torch.no_grad():
            probe: Any = copy.deepcopy(module).to_empty(device="cpu").float()
            size = probe.weight.shape[0]
            probe.weight.copy_(torch.linspace(-0.5, 1.5, size, **float32))
            x = torch.linspace(-3, 2, 2 * size, **float32).reshape(1, 2, size)
            expected = torch.nn.functional.rms_norm(x, [size], probe.weight, _epsilon(module))
            results = [probe.train(training).forward(x) for training in (True, False)]
            return all(torch.allclose(result, expected, rtol=1e-5, atol=1e-6) for result in results)
    except Exception:  # a forward that needs what a copy lacks: not ours to replace
        return False
