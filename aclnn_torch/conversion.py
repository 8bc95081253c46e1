"""Swaps the modules of a model for this package's, in place, and back."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from . import functional as F
from ._scripting import not_scriptable
from ._waiting_logits import WaitingHead
from .ops import OPERATORS

__all__ = ["convert", "revert"]

# torch's class -> our subclass, which adds nothing to an instance. An older torch lacks some.
_OURS: dict[type, type] = {
    getattr(torch.nn, ours.__name__): ours
    for operator in OPERATORS.values()
    for ours in operator.modules
    if hasattr(torch.nn, ours.__name__)
}
_TORCHS = {ours: torchs for torchs, ours in _OURS.items()}

# Names of the epsilon in the RMSNorm classes of model libraries.
_EPSILONS = ("variance_epsilon", "eps", "epsilon")

# Where a 16-bit RMSNorm rounds: CANN's once, at the end; libraries' also before the multiplication by the weight.
_ROUNDINGS = ("cann", "library")


def convert(model: torch.nn.Module, rounding: str = "cann", linear_loss: bool = False) -> dict[str, Any]:
    """Makes the modules of a model compute through aclnn, in place.

    Swapped are instances of exactly the ``torch.nn`` classes that :mod:`aclnn_torch.nn` has, but neither subclasses nor
    modules with parametrizations; and of other libraries' RMSNorm classes: a class whose name ends in ``RMSNorm``, that
    has only a ``weight`` and an epsilon and a forward of one argument, and that is found to compute
    ``x / sqrt(mean(x^2) + eps) * weight`` over the last dimension. (Classes that scale by ``1 + weight``, for instance,
    are not swapped.) Parameters, buffers, hooks and the state_dict are unchanged: only the class changes, to a subclass
    of the original. If the input's dtype is not the weight's, the library's own forward is called, because libraries
    differ in the result's dtype.

    The loss function of a model of Transformers is replaced, too, through ``model.loss_function``: the library's
    function still prepares logits and labels, and its calls of torch's cross entropy with class indices become
    :func:`aclnn_torch.functional.cross_entropy`.

    With ``linear_loss``, the head of a language model with a loss (``ForCausalLM``) is swapped, too, if it is a
    ``torch.nn.Linear``. In training it does not compute its logits: the loss is
    :func:`aclnn_torch.functional.linear_cross_entropy` of the hidden states and the head's weight, tied or not. Any
    other use of the logits, as in models that cap theirs, computes them after all, until the weight changes. They are
    computed immediately if the head has hooks, and under compilation. It is meant for training by ``outputs.loss``: an
    ``autograd.Function`` that receives the logits, such as that of ``DataParallel``, gets no gradient.

    Args:
        model: a module; it is itself swapped if its class is one of these.
        rounding: where a library's 16-bit RMSNorm rounds. ``"cann"``: once, at the end, as aclnnRmsNorm does.
            ``"library"``: as the libraries do, before and after the multiplication by the weight; aclnnRmsNorm then
            gets a gamma of ones, and torch multiplies. No difference in wider dtypes.
        linear_loss: whether the heads of language models are swapped.

    Returns:
        The qualified name of each swapped module (``""`` for the model itself), and its previous class; for a loss, the
        model's name with ``loss_function``, and the previous function.

    Raises:
        ValueError: another ``rounding``.
    """
    if rounding not in _ROUNDINGS:
        raise ValueError(f"convert: rounding is {rounding!r}, expected one of {', '.join(map(repr, _ROUNDINGS))}")
    swapped: dict[str, Any] = {}
    for name, module in model.named_modules():
        before = type(module)
        after = _OURS.get(before) or _rms_norm_class(module, rounding)
        if after is not None and after is not before:
            module.__class__ = after
            swapped[name] = before
    for name, head in _heads(model) if linear_loss else ():
        if type(head) is torch.nn.Linear:
            head.__class__ = WaitingHead
            swapped[name] = torch.nn.Linear
    for name, owner in _owners_of_losses(model):
        if not isinstance(owner.loss_function, _Loss):
            swapped[name] = owner.loss_function
            owner.loss_function = _Loss(owner.loss_function)
    return swapped


def revert(model: torch.nn.Module) -> dict[str, Any]:
    """Undoes :func:`convert`, and swaps modules that were created from :mod:`aclnn_torch.nn` for torch's.

    Returns:
        The qualified name of each module or loss that was swapped, and its previous class or function.
    """
    swapped: dict[str, Any] = {}
    for name, owner in _owners_of_losses(model):
        if isinstance(owner.loss_function, _Loss):
            swapped[name] = owner.loss_function
            owner.loss_function = owner.loss_function.original
    for name, head in model.named_modules():  # a library may have moved it
        if type(head) is WaitingHead:
            head.__class__ = torch.nn.Linear  # type: ignore[assignment]
            swapped[name] = WaitingHead
    for name, module in model.named_modules():
        before: Any = type(module)
        foreign = issubclass(before, _ForeignRMSNorm)
        after = before._aclnn_torch_original if foreign else _TORCHS.get(before)
        if after is not None:
            module.__class__ = after
            swapped[name] = before
    return swapped


class _CrossEntropy(TorchFunctionMode):
    """While it is active, cross entropies with class indices are aclnn's."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is torch.nn.functional.cross_entropy:
            target = args[1] if len(args) > 1 else kwargs["target"]
            if not target.is_floating_point():
                function = F.cross_entropy
        return function(*args, **kwargs)


class _Loss:
    """A loss function of Transformers that computes its cross entropies with aclnn."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self.original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with _CrossEntropy():
            return self.original(*args, **kwargs)


def _owners_of_losses(model: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """The models of Transformers in a model that have a loss, and each loss's name."""
    library: Any = sys.modules.get("transformers")  # not imported means that there is no such model
    if library is None:
        return
    for name, module in model.named_modules():
        if isinstance(module, library.PreTrainedModel) and module.loss_type is not None:
            yield f"{name}.loss_function".lstrip("."), module


def _heads(model: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """The heads of the language models of Transformers in a model, and their names."""
    heads = {
        id(owner.get_output_embeddings()) for _, owner in _owners_of_losses(model) if owner.loss_type == "ForCausalLM"
    }
    yield from ((name, module) for name, module in model.named_modules() if id(module) in heads)


class _ForeignRMSNorm:
    """The members that are added to another library's RMSNorm class."""

    _aclnn_torch_original: Any
    _aclnn_torch_rounding: str
    weight: Tensor
    __prepare_scriptable__ = not_scriptable("a converted RMSNorm module")

    def _aclnn_torch_forward(self, *args: Tensor, **kwargs: Tensor) -> Tensor:
        """The forward, with one argument like the original's."""
        (x,) = (*args, *kwargs.values())
        if isinstance(x, torch.fx.Proxy):
            return self._aclnn_torch_node(x)
        if x.dtype == self.weight.dtype:
            if self._aclnn_torch_rounding == "library" and x.element_size() == 2:
                return self.weight * F.rms_norm(x, self.weight.shape, torch.ones_like(self.weight), _epsilon(self))
            return F.rms_norm(x, self.weight.shape, self.weight, _epsilon(self))
        # Libraries differ in the result's dtype for mixed dtypes.
        result: Tensor = self._aclnn_torch_original.forward(self, x)
        return result

    def _aclnn_torch_node(self, x: Any) -> Any:
        """A node of torch.fx's graph for the whole module: the choice of a branch depends on a dtype at run time."""
        path = x.tracer.path_of_module(self)
        if path:
            return x.tracer.create_proxy("call_module", path, (x,), {})
        return self._aclnn_torch_original.forward(self, x)  # the root of the graph cannot be a node in it

    def __reduce__(self) -> tuple[Any, ...]:
        # The class cannot be found by name; its original can.
        return _restore, (self._aclnn_torch_original, self._aclnn_torch_rounding, self.__dict__.copy())


@functools.cache
def _subclass_of(original: Any, rounding: str) -> Any:
    @functools.wraps(original.forward)  # inspect and torch.fx read the argument names
    def forward(self: Any, *args: Tensor, **kwargs: Tensor) -> Any:
        return self._aclnn_torch_forward(*args, **kwargs)

    namespace = {
        "_aclnn_torch_original": original,
        "_aclnn_torch_rounding": rounding,
        "__module__": __name__,
        "__doc__": original.__doc__,
        "forward": forward,
    }
    return type(original.__name__, (_ForeignRMSNorm, original), namespace)


def _restore(original: type, rounding: str, state: dict[str, Any]) -> Any:
    cls = _subclass_of(original, rounding)
    module = cls.__new__(cls)
    module.__dict__.update(state)
    return module


def _epsilon(module: Any) -> float | None:
    return next((getattr(module, name) for name in _EPSILONS if isinstance(getattr(module, name, None), float)), None)


def _rms_norm_class(module: torch.nn.Module, rounding: str) -> Any:
    """A subclass for another library's RMSNorm module; None if the module is not one."""
    cls: Any = type(module)
    if isinstance(module, _ForeignRMSNorm):
        return _subclass_of(module._aclnn_torch_original, rounding)
    if not cls.__name__.endswith("RMSNorm") or isinstance(module, torch.nn.RMSNorm):
        return None
    tensors = dict([*module.named_parameters(), *module.named_buffers()])
    alone = list(tensors) == ["weight"] and tensors["weight"].dim() == 1 and not list(module.children())
    if not alone or _epsilon(module) is None or len(inspect.signature(module.forward).parameters) != 1:
        return None
    return _subclass_of(cls, rounding) if _computes_rms_norm(module) else None


def _computes_rms_norm(module: torch.nn.Module) -> bool:
    """True if a copy of the module, in float32 and with its own weight, agrees with the formula."""
    float32: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}  # whatever the current defaults
    try:
        with torch.no_grad():
            probe: Any = copy.deepcopy(module).to_empty(device="cpu").float()
            size = probe.weight.shape[0]
            probe.weight.copy_(torch.linspace(-0.5, 1.5, size, **float32))
            x = torch.linspace(-3, 2, 2 * size, **float32).reshape(1, 2, size)
            expected = torch.nn.functional.rms_norm(x, [size], probe.weight, _epsilon(module))
            results = [probe.train(training).forward(x) for training in (True, False)]
            return all(torch.allclose(result, expected, rtol=1e-5, atol=1e-6) for result in results)
    except Exception:  # the copy lacks something that the forward needs: do not replace it
        return False
