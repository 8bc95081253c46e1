"""Logits that are computed on first use: a loss can do without them."""

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
    """``linear(hidden, weight, bias)`` on first use; its cross entropy is :func:`functional.linear_cross_entropy`.

    It may be cast to float32, and its rows may be rearranged, joined and selected. Any other operation uses the logits,
    which are then computed once, as if they had been computed immediately. Once they are computed, views of the logits
    are views of one memory: each sees the writes to the other.
    """

    # Set by __new__.
    parts: tuple[Tensor, Tensor, Tensor | None]
    form: Tensor  # on meta: the shape, strides and dtype of the logits
    # The base, and a function with arguments.
    view_of: tuple[WaitingLogits, Callable[..., Tensor], tuple[Any, ...]] | None
    versions: list[tuple[Tensor, int]]  # of the head's arguments
    autocast: torch.dtype | None
    whole: Tensor | None

    @staticmethod
    def __new__(
        cls, hidden: Tensor, weight: Tensor, bias: Tensor | None, form: Tensor, origin: WaitingLogits | None = None
    ) -> WaitingLogits:
        """Made by :class:`WaitingHead`, and by operations on other instances."""
        made: Any = torch.Tensor._make_wrapper_subclass(
            cls, form.shape, strides=form.stride(), dtype=form.dtype, device=hidden.device
        )
        made.parts = hidden, weight, bias
        made.form = form
        made.view_of = made.whole = None
        if origin is not None:
            made.autocast, made.versions = origin.autocast, origin.versions
        else:
            made.autocast = autocast_dtype(hidden)
            made.versions = [(part, part._version) for part in made.parts if part is not None]
        return made  # type: ignore[no-any-return]

    @classmethod
    def of_head(cls, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> WaitingLogits:
        """The logits of a layer and its input."""
        dtype = autocast_dtype(hidden) or hidden.dtype
        form = torch.empty((*hidden.shape[:-1], weight.shape[0]), dtype=dtype, device="meta")
        return cls(hidden, weight, bias, form)

    def changed(self, function: Callable[..., Tensor], args: tuple[Any, ...]) -> WaitingLogits | None:
        """Applies an operation of _CHANGES; None if it needs the logits."""
        hidden = _CHANGES[function](self.parts[0], self, *args)
        if hidden is None:
            return None
        form = function(self.form, *args)
        if form is self.form:
            return self
        _, weight, bias = self.parts
        made = WaitingLogits(hidden, weight, bias, form, self)
        if form._is_view():
            made.view_of = self, function, args
        return made

    def context(self) -> Any:
        """Restores autocast as it was at the head's call, after checking that nothing has changed since."""
        if any(part._version != version for part, version in self.versions):
            raise RuntimeError(
                "the logits of a converted model are asked for after its head's weight, or what it was called with, "
                "was changed, and were not computed before; look at them before the optimizer's step, or call "
                "aclnn_torch.convert without linear_loss=True"
            )
        kind = self.parts[0].device.type if self.autocast is not None else "cpu"
        return torch.autocast(kind, dtype=self.autocast, enabled=self.autocast is not None)

    def is_computed(self) -> bool:
        """True if the logits exist; they may have been written to."""
        return self.whole is not None or (self.view_of is not None and self.view_of[0].is_computed())

    def compute(self) -> Tensor:
        """The logits."""
        if self.whole is None:
            with torch.inference_mode(False), torch.enable_grad():
                if self.view_of is not None:
                    origin, function, args = self.view_of
                    self.whole = function(origin.compute(), *args)
                else:
                    with self.context():
                        self.whole = torch.nn.functional.linear(*self.parts).to(self.form.dtype)
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
        # Once the logits exist, they are authoritative.
        if isinstance(first, WaitingLogits) and not first.is_computed() and torch.is_grad_enabled():
            found: Tensor | None = None
            if func in _LOSSES:
                found = _loss(*args, **kwargs)
            elif func in _CHANGES and not kwargs:
                found = first.changed(func, args[1:])
            if found is not None:
                return found
        args, kwargs = tree_map_only(WaitingLogits, WaitingLogits.compute, (args, kwargs))
        return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        args, kwargs = tree_map_only(WaitingLogits, WaitingLogits.compute, (args, kwargs or {}))
        return func(*args, **kwargs)


# Properties that are known without the logits.
_DESCRIPTIONS = {
    *(getattr(Tensor, name).__get__ for name in ("shape", "dtype", "device", "ndim", "is_cpu", "layout")),
    *(Tensor.size, Tensor.dim, Tensor.numel, Tensor.__len__, Tensor.is_floating_point, torch.is_floating_point),
}


# Operations on waiting logits, expressed on the hidden states: given these, the logits and further arguments.


def _same(hidden: Tensor, logits: WaitingLogits, *args: Any) -> Tensor | None:
    """Casts to float32, or makes contiguous."""
    return None if args else hidden


def _to(hidden: Tensor, logits: WaitingLogits, *args: Any) -> Tensor | None:
    return hidden if args == (torch.float32,) else None


def _view(hidden: Tensor, logits: WaitingLogits, *shape: Any) -> Tensor | None:
    """Rearranges rows."""
    sizes = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
    if len(sizes) < 2 or sizes[-1] != logits.form.shape[-1]:
        return None
    return hidden.reshape(*sizes[:-1], hidden.shape[-1])


def _rows(hidden: Tensor, logits: WaitingLogits, index: Any) -> Tensor | None:
    """Selects rows: ``[..., :-1, :]``."""
    places = index if isinstance(index, tuple) else (index,)
    if not places or not all(place is Ellipsis or isinstance(place, slice) for place in places):
        return None
    return hidden[index] if places[-1] == slice(None) else None


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
    """The cross entropy of rows with class indices; None for other and invalid calls, which use the logits."""
    hidden, matrix, bias = logits.parts
    labels = target.dim() == 1 and target.dtype in (torch.int64, torch.int32)
    if hidden.dim() != 2 or not labels or size_average is not None or reduce is not None:
        return None
    if reduction not in ("mean", "sum", "none") or not 0 <= label_smoothing <= 1:
        return None
    # Autocast computes losses in float32.
    dtype = logits.form.dtype if autocast_dtype(hidden) is None else torch.float32
    with logits.context():
        if not has_functions(hidden, label_smoothing):
            return None
        return loss_of_rows(hidden, matrix, target, bias, weight, reduction, ignore_index, label_smoothing).to(dtype)


_LOSSES = (torch.nn.functional.cross_entropy, F.cross_entropy)
_CHANGES: dict[Callable[..., Any], Callable[..., Tensor | None]] = {
    Tensor.float: _same,
    Tensor.contiguous: _same,
    Tensor.to: _to,
    Tensor.view: _view,
    Tensor.reshape: _view,
    Tensor.__getitem__: _rows,
}


class WaitingHead(torch.nn.Linear):
    """The final linear layer of a language model. In training, its logits are computed on first use."""

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
        # A hook, or a wrapper of the weight, may release the weight after this call.
        if not self.training or not torch.is_grad_enabled() or any(hooks) or not plain or traced:
            return super().forward(input)
        return WaitingLogits.of_head(input, self.weight, self.bias)
