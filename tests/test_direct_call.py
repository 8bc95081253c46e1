"""The fast path from aclnn_torch.functional to the operators: ordinary arguments use it, others torch.ops."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import aclnn_torch
import aclnn_torch.functional as F
from aclnn_torch import _C
from tests.operators import ELEMENTWISE

ops = torch.ops.aclnn
x = torch.linspace(-2, 2, 12).reshape(3, 4)
w = torch.linspace(0.5, 1, 4)
b = torch.linspace(-1, 1, 4)
labels = torch.tensor([0, 3, 1])

CALLS: dict[str, tuple[torch._ops.OpOverload, tuple[Any, ...]]] = {
    "elu": (ops.elu.default, (x, 0.5, 2.0, 3.0)),
    "elu, whole numbers": (ops.elu.default, (x, 2, 1, 1)),
    **{
        kernel.name: (kernel.overload, kernel.arguments(x))
        for info in ELEMENTWISE.values()
        for kernel in info.kernels_for("tests")
        if kernel.reads == 1 and all(case.direct for case in info.functions)
    },
    "layer_norm": (ops.layer_norm.default, (x, (4,), w, b, 1e-5)),
    "layer_norm, a list": (ops.layer_norm.default, (x, [3, 4], None, None, 1e-5)),
    "layer_norm, a size": (ops.layer_norm.default, (x, x.shape, None, None, 1e-5)),
    "layer_norm, a parameter": (ops.layer_norm.default, (x, (4,), torch.nn.Parameter(w), None, 1e-5)),
    "rms_norm": (ops.rms_norm.default, (x, w, 1e-6)),
    "rms_norm, a whole number": (ops.rms_norm.default, (x, w, 1)),
    "_cross_entropy": (ops._cross_entropy.default, (x, labels, w, "sum", 3, 0.0)),
}


def unused(*arguments: Any) -> Any:
    raise AssertionError(f"not called directly: {arguments}")


def first(operator: Callable[..., Any]) -> Callable[..., Any]:
    """The path's callable in functional."""

    def call(*arguments: Any) -> Any:
        results = operator(*arguments)
        return results[0] if isinstance(results, tuple) else results

    return call


@pytest.mark.parametrize("name", CALLS)
def test_ordinary_arguments_go_straight_to_the_operator(name: str) -> None:
    operator, arguments = CALLS[name]
    result = _C.direct_call(operator.name(), unused)(*arguments)
    assert isinstance(result, Tensor)
    assert torch.equal(result, first(operator)(*arguments))


class Subclass(torch.Tensor):
    pass


OTHERS: dict[str, tuple[torch._ops.OpOverload, tuple[Any, ...]]] = {
    "a subclass": (ops.elu.default, (x.as_subclass(Subclass), 1.0, 1.0, 1.0)),
    "a number of numpy's": (ops.elu.default, (x, np.float64(0.5), 1.0, 1.0)),
    "True for a number": (ops.rms_norm.default, (x, w, True)),
    "arguments left out": (ops.elu.default, (x,)),
    "sizes that are tensors": (ops.layer_norm.default, (x, [torch.tensor(4)], w, b, 1e-5)),
    "an optional subclass": (ops.layer_norm.default, (x, (4,), w.as_subclass(Subclass), b, 1e-5)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_arguments_go_to_torchs_own_function(name: str) -> None:
    operator, arguments = OTHERS[name]
    seen = []

    def otherwise(*given: Any) -> Any:
        seen.append(given)
        return first(operator)(*given)

    result = _C.direct_call(operator.name(), otherwise)(*arguments)
    assert len(seen) == 1
    assert all(a is b for a, b in zip(seen[0], arguments, strict=True))
    expected = first(operator)(*arguments)
    assert type(result) is type(expected)
    assert torch.equal(result, expected)


leaf = x.clone().requires_grad_()
FUNCTIONS: dict[str, Callable[[], Tensor]] = {
    **{
        f"{case.name} {of}": partial(case.of(F), value, **case.keywords)
        for info in ELEMENTWISE.values()
        for case in info.functions
        for of, value in (("of a tensor", x), ("of a leaf", leaf))
        if case.direct
    },
    "layer_norm": lambda: F.layer_norm(x, (4,), w, b),
    "layer_norm, whole numbers": lambda: F.layer_norm(x, [4], eps=1),
    "rms_norm": lambda: F.rms_norm(x, (4,), w),
    "cross_entropy": lambda: F.cross_entropy(leaf, labels, label_smoothing=0),
    "nn.ELU": lambda: aclnn_torch.nn.ELU()(x),
    "nn.LayerNorm": lambda: aclnn_torch.nn.LayerNorm(4)(x),
    "nn.RMSNorm": lambda: aclnn_torch.nn.RMSNorm(4)(x),
    "nn.CrossEntropyLoss": lambda: aclnn_torch.nn.CrossEntropyLoss()(x, labels),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_the_short_way(name: str) -> None:
    called = []

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is torch._ops.OpOverload.__call__.__code__:
            called.append(frame.f_locals["self"])

    FUNCTIONS[name]()
    sys.setprofile(watch)
    try:
        FUNCTIONS[name]()
    finally:
        sys.setprofile(None)
    assert not [operator for operator in called if operator.namespace == "aclnn"]


@pytest.mark.parametrize(
    "arguments",
    [
        (x, 2**63, 1.0, 1.0),
        (x, "1", 1.0, 1.0),
        (x, torch.tensor(1.0), 1.0, 1.0),
        (None, 1.0, 1.0, 1.0),
        (),
        (x, 1.0, 1.0, 1.0, 1.0),
    ],
    ids=["too large", "text", "a tensor", "no tensor", "none", "too many"],
)
def test_what_is_no_argument_fails_as_with_torch_ops(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((RuntimeError, TypeError, OverflowError)) as theirs:
        ops.elu.default(*arguments)
    with pytest.raises(theirs.type) as ours:
        _C.direct_call("aclnn::elu", ops.elu.default)(*arguments)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("elu", (x.to(torch.int64), 1.0, 1.0, 1.0)),
        ("layer_norm", (x, (5,), None, None, 1e-5)),
        ("layer_norm", (x, (), None, None, 1e-5)),
        ("rms_norm", (x, b[:3], 1e-5)),
        ("_cross_entropy", (x, labels + 4, None, "mean", -100, 0.0)),
    ],
)
def test_errors_are_the_operators(name: str, arguments: tuple[Any, ...], nothing_leaked: None) -> None:
    operator = getattr(ops, name).default
    with pytest.raises(RuntimeError) as theirs:
        operator(*arguments)
    with pytest.raises(theirs.type) as ours:
        _C.direct_call(f"aclnn::{name}", unused)(*arguments)
    assert str(ours.value) == str(theirs.value)
    assert vars(ours.value) == vars(theirs.value)


def test_an_error_of_the_other_way_does_not_hide_its_warnings(capfd: pytest.CaptureFixture[str]) -> None:
    def otherwise(*arguments: Any) -> Any:
        torch.ops.aten.arange.out(3, out=torch.zeros(2))  # warns in C++
        raise KeyError("mine")

    torch.set_warn_always(True)
    try:
        with pytest.raises(KeyError, match="mine"):
            _C.direct_call("aclnn::elu", otherwise)(x)
    finally:
        torch.set_warn_always(False)
    assert "resized" in capfd.readouterr().err


def test_an_unknown_operator() -> None:
    with pytest.raises(ValueError, match=r"aclnn::elu_backwards"):
        _C.direct_call("aclnn::elu_backwards", unused)


@pytest.mark.parametrize("name", ["convolution", "elu_backward", "selu_"])
def test_a_signature_that_is_not_listed(name: str) -> None:
    """Also for an operator that overwrites its tensor: its result is not a new tensor."""
    with pytest.raises(ValueError, match=rf"no signature of csrc/python/direct_call.cpp is that of aclnn::{name}\("):
        _C.direct_call(f"aclnn::{name}", unused)


def test_a_function_keeps_the_other_way_as_long_as_it_lives() -> None:
    def otherwise() -> None: ...

    alive = weakref.ref(otherwise)
    call = _C.direct_call("aclnn::elu", otherwise)
    del otherwise
    gc.collect()
    assert alive() is not None
    assert call.__name__ == "aclnn::elu"
    del call
    gc.collect()
    assert alive() is None


def test_modes_see_the_call() -> None:
    """For functions a mode sees the function, as with torch.nn.functional; for operators the operator."""

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
            seen.append(function)
            return function(*arguments, **(named or {}))

    class Dispatched(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
            seen.append(function)
            return function(*arguments, **(named or {}))

    seen: list[Any] = []
    with Functions():
        F.elu(x)
    assert seen == [F.elu]
    seen.clear()
    with Dispatched():
        F.layer_norm(x, (4,))
    assert ops.layer_norm.default in seen


def test_tracers_see_the_call() -> None:
    class Model(torch.nn.Module):
        def forward(self, value: Tensor) -> Tensor:
            return F.elu(F.layer_norm(value, (4,), w))

    traced = torch.fx.symbolic_trace(Model())
    assert {F.elu, F.layer_norm} <= {node.target for node in traced.graph.nodes}
    assert torch.equal(traced(x), Model()(x))
    script = torch.jit.trace(Model(), (x,))
    assert {"aclnn::elu", "aclnn::layer_norm"} <= {node.kind() for node in script.inlined_graph.nodes()}
    exported = torch.export.export(Model(), (x,))
    assert {ops.elu.default, ops.layer_norm.default} <= {node.target for node in exported.graph.nodes}


def test_the_compiler_has_the_whole_graph() -> None:
    def model(value: Tensor) -> Tensor:
        for info in ELEMENTWISE.values():
            for case in info.functions:
                value = case.of(F)(value)
        value = F.rms_norm(F.layer_norm(value, (4,), w, b), (4,), w)
        return F.cross_entropy(value, labels)

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    one, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    result, expected = compiled(one), model(other)
    assert torch.equal(result, expected)
    result.backward()
    expected.backward()
    assert torch.equal(one.grad, other.grad)  # type: ignore[arg-type]


def test_transforms() -> None:
    batch = torch.stack([x, x + 1])
    assert torch.equal(torch.func.vmap(F.elu)(batch), F.elu(batch))
    gradient = torch.func.grad(lambda value: F.layer_norm(value, (4,), w).sin().sum())(x)
    leaf = x.clone().requires_grad_()
    F.layer_norm(leaf, (4,), w).sin().sum().backward()
    assert torch.allclose(gradient, leaf.grad)  # type: ignore[arg-type]


class TensorOfMany(torch.Tensor):
    """Answers every function with a tensor."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        return torch.arange(3)


def test_what_a_subclass_answers_is_the_result() -> None:
    assert torch.equal(F.layer_norm(x.as_subclass(TensorOfMany), (4,)), torch.arange(3))
    assert torch.equal(F.elu(x.as_subclass(TensorOfMany)), torch.arange(3))


def at_work(call: Callable[[], Any], meanwhile: Callable[[], Any]) -> int:
    """Runs calls in a separate thread; returns how often `meanwhile` ran, which needs the interpreter's lock."""
    state, count = "before", 0

    def compute() -> None:
        nonlocal state
        state = "inside"
        call()
        state = "done"

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread = threading.Thread(target=compute)
        thread.start()
        while state != "done":
            if state == "inside":
                meanwhile()
                count += 1
            time.sleep(0)
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    return count


def test_other_threads_run_meanwhile() -> None:
    """The interpreter's lock is released while an operator computes."""
    value = torch.randn(2**22)
    # On a busy machine a call may end before another thread runs.
    assert any(at_work(lambda: F.elu(value), lambda: None) for _ in range(100))


def test_a_tensor_that_is_computed_from_cannot_be_swapped_away() -> None:
    refused = 0

    def swap() -> None:
        nonlocal refused
        try:
            torch.utils.swap_tensors(value, torch.ones(1))
        except RuntimeError:
            refused += 1

    for _ in range(100):
        value = torch.ones(2**22)
        result: list[Tensor] = []
        at_work(lambda: result.append(F.elu(value)), swap)  # noqa: B023  (done before the next round)
        assert result[0].sum() in (1, 2**22)
        if refused:
            return
    raise AssertionError("never swapped while the operator computed")
