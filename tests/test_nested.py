"""Nested tensors of the jagged layout: results and gradients as with torch's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as TF
from torch import Tensor

import aclnn_torch
import aclnn_torch.functional as F
from tests.operators import ELEMENTWISE, FunctionCase
from tests.operators._info import REFERENCE

pytestmark = pytest.mark.usefixtures("host_product")

DTYPE = torch.float64  # rounding errors are far below the bounds


def sequences() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(length, 2, 4, dtype=DTYPE) for length in (3, 1, 4)]


def nested() -> Tensor:
    return torch.nested.nested_tensor(sequences(), layout=torch.jagged, requires_grad=True)


def with_holes() -> Tensor:
    values = torch.randn(9, 2, 4, dtype=DTYPE, requires_grad=True)
    return torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 4, 6, 9]), torch.tensor([2, 2, 1]))


WEIGHT = torch.linspace(0.5, 1.5, 8, dtype=DTYPE).reshape(2, 4).requires_grad_()
BIAS = torch.linspace(-1, 1, 8, dtype=DTYPE).reshape(2, 4).requires_grad_()


def function_calls(case: FunctionCase, others: bool = True) -> Iterator[tuple[str, Callable[[Any, Tensor], Tensor]]]:
    """The options of an elementwise function in a module of functions."""
    for name, _ in case.variants(F, others):
        yield name, lambda functions, x, name=name: dict(case.variants(functions, others))[name](x)


ELEMENTWISE_CASES = [case for info in ELEMENTWISE.values() for case in info.functions]
CALLS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    **{name: call for case in ELEMENTWISE_CASES for name, call in function_calls(case)},
    "layer_norm": lambda f, x: f.layer_norm(x, (2, 4), WEIGHT, BIAS),
    "layer_norm of one dimension": lambda f, x: f.layer_norm(x, (4,), WEIGHT[0], BIAS[0]),
    "layer_norm without weights": lambda f, x: f.layer_norm(x, (2, 4)),
    "rms_norm": lambda f, x: f.rms_norm(x, (2, 4), WEIGHT, 1e-3),
    "rms_norm of one dimension": lambda f, x: f.rms_norm(x, [4], WEIGHT[0], 1e-3),
    "rms_norm without weight": lambda f, x: f.rms_norm(x, (4,), eps=1e-3),
}


def assert_equal(got: Any, expected: Any) -> None:
    assert got.shape == expected.shape  # the ragged size stands for the offsets
    if expected.is_nested:
        got, expected = got.values(), expected.values()
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def gradients(y: Tensor, *leaves: Tensor) -> tuple[Tensor | None, ...]:
    torch.manual_seed(1)
    return torch.autograd.grad(y, leaves, torch.randn_like(y), allow_unused=True)


# Torch lacks rules for these: the function is applied to all elements instead.
NOT_IN_TORCH = [name for case in ELEMENTWISE_CASES if not case.nested_in_torch for name, _ in function_calls(case)]


@pytest.mark.parametrize("name", CALLS)
def test_as_torch(name: str) -> None:
    x = nested()
    got = CALLS[name](F, x)
    try:
        if name in NOT_IN_TORCH:
            raise NotImplementedError
        expected = CALLS[name](REFERENCE, x)
    except NotImplementedError:  # an older torch lacks in-place functions, too
        expected = torch.nested.nested_tensor_from_jagged(CALLS[name](REFERENCE, x.values()), x.offsets())
    assert_equal(got, expected)
    for one, other in zip(gradients(got, x, WEIGHT, BIAS), gradients(expected, x, WEIGHT, BIAS), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert_equal(one, other)


@pytest.mark.parametrize("name", CALLS)
def test_each_sequence_as_a_tensor(name: str) -> None:
    results = CALLS[name](F, nested()).unbind()
    for result, sequence in zip(results, sequences(), strict=True):
        torch.testing.assert_close(result, CALLS[name](F, sequence), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for case in ELEMENTWISE_CASES for name, _ in function_calls(case, False)])
def test_layouts(name: str) -> None:
    """The ragged dimension after another one, and sequences with holes between them."""
    for x in (nested().transpose(1, 2), with_holes()):
        got = CALLS[name](F, x)
        assert got.shape == x.shape
        for result, sequence in zip(got.unbind(), x.unbind(), strict=True):
            torch.testing.assert_close(result, CALLS[name](F, sequence), rtol=1e-12, atol=1e-12)


def test_a_weights_gradient_alone() -> None:
    x = nested().detach()
    for name in ("layer_norm", "rms_norm"):
        got, expected = (gradients(CALLS[name](functions, x), WEIGHT)[0] for functions in (F, TF))
        assert_equal(got, expected)


def test_modules_and_convert() -> None:
    model = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.GELU(), torch.nn.RMSNorm((2, 4), eps=1e-3)).to(DTYPE)
    x = nested()
    results = []
    for _ in range(2):
        y = model(x)
        results.append([y, *gradients(y, x, *model.parameters())])
        aclnn_torch.convert(model)
    for got, expected in zip(results[1], results[0], strict=True):
        assert_equal(got, expected)


def test_compiled() -> None:
    torch._dynamo.reset()

    def model(x: Tensor) -> Tensor:
        return F.layer_norm(F.gelu(F.elu(x)), (2, 4), WEIGHT, BIAS)

    x = nested()
    got, expected = torch.compile(model, fullgraph=True, backend="aot_eager")(x), model(x)
    assert_equal(got, expected)
    for one, other in zip(gradients(got, x, WEIGHT), gradients(expected, x, WEIGHT), strict=True):
        assert_equal(one, other)


def test_what_is_refused() -> None:
    x, dense = nested(), torch.ones(8, 2, 4, dtype=DTYPE)
    aclnn = torch.ops.aclnn
    with pytest.raises(RuntimeError, match=r"layer_norm: normalized_shape has 3 dimensions, expected at most 2"):
        F.layer_norm(x, (x.shape[1], 2, 4))
    with pytest.raises((RuntimeError, ValueError), match="ragged"):
        aclnn.rms_norm(x, dense)
    with pytest.raises(RuntimeError, match="elu_backward: grad_output is not a nested tensor, expected one"):
        aclnn.elu_backward(dense, 1, 1, 1, False, x)
    with pytest.raises(RuntimeError, match=r"selu_backward: a nested tensor has shape .*, expected sequences of the"):
        aclnn.selu_backward(nested(), x)
