"""Logits that are not computed unless somebody looks at them: a loss can do without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.utils._pytree import tree_map_only

from . import functional as F
from .ops._functions import autocast_dtype
from .ops.linear_cross_entropy import has_functions, loss_of_rows


class WaitingLogits(Tensor):
    """``linear(hidden, weight, bias)``, of which the cross entropy is :func:`functional.linear_cross_entropy`.

    It may be cast to float32, and its rows may be taken, joined and left out; whatever else is done with it is done
    with the logits, which are computed once then, as if they had been at once.
    """

    # What __new__ sets.
    parts: tuple[Tensor, Tensor, Tensor | None]
    versions: list[tuple[Tensor, int]]  # of what the head was called with
    autocast: torch.dtype | None
    whole: Tensor | None

    @staticmethod
    def __new__(
        cls, hidden: Tensor, weight: Tensor, bias: Tensor | None, origin: WaitingLogits | None = None, **changed: Any
    ) -> WaitingLogits:
        """Made by :class:`WaitingHead`, and from another one by what changes it."""
        autocast = autocast_dtype(hidden) if origin is None else origin.autocast
        made: Any = torch.Tensor._make_wrapper_subclass(
            cls,
            (*hidden.shape[:-1], weight.shape[0]),
            dtype=changed.get("dtype", autocast or hidden.dtype),
            device=hidden.device,
        )
        made.parts = hidden, weight, bias
        made.autocast = autocast
        made.whole = None
        if origin is not None:
            made.versions = origin.versions
        else:
            made.versions = [(part, part._version) for part in made.parts if part is not None]
        return made  # type: ignore[no-any-return]

    def like(self, hidden: Tensor, **changed: Any) -> WaitingLogits:
        """The same of other rows, or in another dtype."""
        with torch._C.DisableTorchFunctionSubclass():
            changed.setdefault("dtype", self.dtype)
        _, weight, bias = self.parts
        return WaitingLogits(hidden, weight, bias, self, **changed)

    def context(self) -> Any:
        """Autocast as it was when the head was called, once it is known that nothing has changed since."""
        if any(part._version != version for part, version in self.versions):
            raise RuntimeError(
                "the logits of a converted model are asked for after its head's weight, or what it was called with, "
                "was changed, and were not computed before; look at them before the optimizer's step, or call "
                "aclnn_torch.convert without linear_loss=True"
            )
        kind = self.parts[0].device.type if self.autocast is not None else "cpu"
        return torch.autocast(kind, dtype=self.autocast, enabled=self.autocast is not None)

    def compute(self) -> Tensor:
        """The logits."""
        if self.whole is None:
            with torch._C.DisableTorchFunctionSubclass():
                dtype = self.dtype
            with torch.inference_mode(False), torch.enable_grad(), self.context():
                self.whole = torch.nn.functional.linear(*self.parts).to(dtype)
        return self.whole

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DESCRIPTIONS:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        first = args[0] if args else None
        # Once there are logits, which somebody may have written to, they are what counts.
        if func in _CHANGES and isinstance(first, WaitingLogits) and first.whole is None and torch.is_grad_enabled():
            changed = _CHANGES[func](*args, **kwargs) if func in _LOSSES or not kwargs else None
            if changed is not None:
                return changed
        args, kwargs = tree_map_only(WaitingLogits, WaitingLogits.compute, (args, kwargs))
        return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        args, kwargs = tree_map_only(WaitingLogits, WaitingLogits.compute, (args, kwargs or {}))
        return func(*args, **kwargs)


# What is known without the logits.
_DESCRIPTIONS = {
    *(getattr(Tensor, name).__get__ for name in ("shape", "dtype", "device", "ndim", "is_cpu", "layout")),
    *(Tensor.size, Tensor.dim, Tensor.numel, Tensor.__len__, Tensor.is_floating_point, torch.is_floating_point),
}


def _to_float(logits: WaitingLogits) -> WaitingLogits:
    return logits.like(logits.parts[0], dtype=torch.float32)


def _to(logits: WaitingLogits, *args: Any) -> WaitingLogits | None:
    return _to_float(logits) if args == (torch.float32,) else None


def _itself(logits: WaitingLogits) -> WaitingLogits:
    return logits


def _view(logits: WaitingLogits, *shape: Any) -> WaitingLogits | None:
    """Rows in another arrangement."""
    sizes = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
    hidden, weight, _ = logits.parts
    if len(sizes) < 2 or sizes[-1] != weight.shape[0]:
        return None
    return logits.like(hidden.reshape(*sizes[:-1], hidden.shape[-1]))


def _rows(logits: WaitingLogits, index: Any) -> WaitingLogits | None:
    """Some of the rows: ``[..., :-1, :]``."""
    hidden = logits.parts[0]
    places = index if isinstance(index, tuple) else (index,)
    if not places or not all(place is Ellipsis or isinstance(place, slice) for place in places):
        return None
    if places[-1] != slice(None) or (Ellipsis not in places and len(places) != hidden.dim()):
        return None
    return logits.like(hidden[index])


def _loss(
    logits: WaitingLogits,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor | None:
    """The cross entropy of rows with class indices; None: all else, and what is refused, is for the logits."""
    hidden, matrix, bias = logits.parts
    labels = target.dim() == 1 and target.dtype in (torch.int64, torch.int32)
    if hidden.dim() != 2 or not labels or size_average is not None or reduce is not None:
        return None
    if reduction not in ("mean", "sum", "none") or not 0 <= label_smoothing <= 1:
        return None
    with torch._C.DisableTorchFunctionSubclass():
        dtype = logits.dtype
    if autocast_dtype(hidden) is not None:
        dtype = torch.float32  # in which autocast computes losses
    with logits.context():
        if not has_functions(hidden, label_smoothing):
            return None
        return loss_of_rows(hidden, matrix, target, bias, weight, reduction, ignore_index, label_smoothing).to(dtype)


_LOSSES = (torch.nn.functional.cross_entropy, F.cross_entropy)
_CHANGES: dict[Callable[..., Any], Callable[..., Any]] = {
    Tensor.float: _to_float,
    Tensor.to: _to,
    Tensor.contiguous: _itself,
    Tensor.view: _view,
    Tensor.reshape: _view,
    Tensor.__getitem__: _rows,
    **dict.fromkeys(_LOSSES, _loss),
}


class WaitingHead(torch.nn.Linear):
    """A linear layer that ends a language model. In training its logits wait for somebody who looks at them."""

    def forward(self, input: Tensor) -> Tensor:
        """The logits."""
        everyones = torch.nn.modules.module
        hooks = (
            *(self._forward_hooks, self._forward_pre_hooks, self._backward_hooks, self._backward_pre_hooks),
            *(everyones._global_forward_hooks, everyones._global_forward_pre_hooks),
            *(everyones._global_backward_hooks, everyones._global_backward_pre_hooks),
        )
        plain = {type(tensor) for tensor in (input, self.weight)} <= {Tensor, torch.nn.Parameter}
        traced = is_compiling() or torch._C._is_tracing() or input.is_meta
        # A hook, or what a weight is wrapped in, may put the weight away when this returns.
        if not self.training or not torch.is_grad_enabled() or any(hooks) or not plain or traced:
            return super().forward(input)
        return WaitingLogits(input, self.weight, self.bias)
