"""Tests of every operator, based on its declaration in tests/operators.

Properties of a single operator are tested in the test_<operator>.py of its name.
"""

from __future__ import annotations

import itertools
import pickle

import pytest
import torch
import torch.nn.functional as TF
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db

import aclnn_torch
import aclnn_torch.functional as F
from aclnn_torch import ops as stated
from tests import inductor, operator_checks
from tests.operator_checks import FLOATS, TOLERANCE, Call, views
from tests.operators import ELEMENTWISE, OPERATORS, FunctionCase, Kernel, ModuleCase
from tests.operators._info import REFERENCE

ops = torch.ops.aclnn

EACH_CALL = [(name, call) for name, info in OPERATORS.items() for call in info.calls]
CALLS = pytest.mark.parametrize("call", [pytest.param(call, id=f"{name}-{call}") for name, call in EACH_CALL])
PRODUCT_AND_CALLS = pytest.mark.parametrize(
    "product, call", [pytest.param(OPERATORS[name].product, call, id=f"{name}-{call}") for name, call in EACH_CALL]
)
KERNELS = pytest.mark.parametrize(
    "kernel", [kernel for info in ELEMENTWISE.values() for kernel in info.kernels_for("tests")], ids=str
)
IN_PLACE = pytest.mark.parametrize(
    "kernel",
    [kernel for info in ELEMENTWISE.values() for kernel in info.kernels_for("tests") if kernel.in_place],
    ids=lambda kernel: kernel.in_place,
)
FUNCTIONS = pytest.mark.parametrize("case", [case for info in ELEMENTWISE.values() for case in info.functions], ids=str)
IN_PLACE_FUNCTIONS = pytest.mark.parametrize(
    "case", [case for info in ELEMENTWISE.values() for case in info.functions if case.in_place], ids=str
)
MODULES = pytest.mark.parametrize("case", [case for info in ELEMENTWISE.values() for case in info.modules], ids=str)


def registered_operators() -> set[torch._ops.OpOverload]:
    """All existing operators."""
    names = (name.split("::") for name in torch._C._dispatch_get_all_op_names())
    return {getattr(torch.ops.aclnn, name).default for library, name in names if library == "aclnn"}


def product_for(dtype: torch.dtype) -> str:
    return "host" if dtype == torch.float64 else "Ascend910B"


# ---- The declarations are complete -----------------------------------------------------------------


def test_every_operator_is_stated() -> None:
    overloads = [overload.operator for operator in stated.OPERATORS.values() for overload in operator.overloads]
    assert len(overloads) == len(set(overloads))
    assert set(overloads) == registered_operators()


def test_every_operator_is_tried() -> None:
    assert set(OPERATORS) == set(stated.OPERATORS)
    for name, operator in stated.OPERATORS.items():
        info = OPERATORS[name]
        assert {case.name for case in info.functions} == {function.__name__ for function in operator.functions}
        assert {case.name for case in info.modules} == {cls.__name__ for cls in operator.modules}
        overloads = {overload.operator.name().removeprefix("aclnn::") for overload in operator.overloads}
        if info.kernels:
            tried = info.kernels_for("tests")
            assert {kernel.operator for kernel in tried} | {k.in_place for k in tried if k.in_place} == overloads


@pytest.mark.parametrize("operator", ELEMENTWISE)
def test_schemas(operator: str) -> None:
    for name, expected in ELEMENTWISE[operator].schemas.items():
        if "(" not in expected:
            expected = str(getattr(torch.ops.aten, expected).default._schema).removeprefix("aten::")
        assert str(getattr(ops, name).default._schema).removeprefix("aclnn::") == expected


# torch has had tags for in-place and out operators since 2.13.
IN_PLACE_TAG = {tag for tag in [getattr(torch.Tag, "inplace", None)] if tag is not None}


def test_tags() -> None:
    """ATen's own: all operators trace, elementwise ones are pointwise, and those that write to self are in-place."""
    elementwise = {overload.operator for name in ELEMENTWISE for overload in stated.OPERATORS[name].overloads}
    for operator in registered_operators():
        expected = {torch.Tag.pt2_compliant_tag}
        expected |= {torch.Tag.pointwise} if operator in elementwise else set()
        expected |= IN_PLACE_TAG if operator._schema.is_mutable else set()
        assert set(operator.tags) == expected, operator


# ---- Derivatives, transforms, compilers ------------------------------------------------------------


@CALLS
def test_gradients(call: Call, host_product: None) -> None:
    operator_checks.check_gradients(call)


@CALLS
def test_transforms(call: Call, host_product: None) -> None:
    operator_checks.check_transforms(call)


@PRODUCT_AND_CALLS
def test_compilers(product: str, call: Call) -> None:
    with aclnn_torch.product(product):
        operator_checks.check_compilers(call, torch.float32)


@pytest.mark.parametrize(
    "product, call",
    [
        pytest.param(info.product, call, id=f"{name}-{call}", marks=(pytest.mark.test_all,) if i > 0 else ())
        for name, info in OPERATORS.items()
        for i, call in enumerate(info.calls)
    ],
)
def test_compiled_autograd(product: str, call: Call) -> None:
    with aclnn_torch.product(product):
        operator_checks.check_compiled_autograd(call, torch.float32)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@KERNELS
def test_opcheck(kernel: Kernel, dtype: torch.dtype, requires_grad: bool) -> None:
    def tensor(*shape: int) -> Tensor:
        return torch.randn(shape).to(dtype).requires_grad_(requires_grad)

    strided = torch.randn(4, 6).to(dtype).t()[::2].detach().requires_grad_(requires_grad)
    for x in (tensor(3, 4), tensor(), tensor(0, 2), strided):
        gradients = [torch.randn_like(x).requires_grad_(requires_grad) for _ in range(kernel.reads - 1)]
        arguments = kernel.arguments(*gradients, x)
        operator_checks.opcheck(kernel.overload, arguments, kernel.named)


@IN_PLACE
def test_opcheck_in_place(kernel: Kernel) -> None:
    for shape in ((3, 4), (), (0, 2)):
        overload = getattr(ops, kernel.in_place).default
        torch.library.opcheck(overload, kernel.arguments(torch.randn(shape)), kernel.named)


@FUNCTIONS
def test_third_derivative(case: FunctionCase, host_product: None) -> None:
    # At 3, torch 2.7 has another derivative of hardswish than all others.
    last = 4.0 if case.name == "hardswish" and torch.__version__.startswith("2.7.") else 3.0
    for (_, ours), (_, torchs) in zip(case.variants(F), case.variants(REFERENCE), strict=True):
        values = []
        for function in (ours, torchs):
            x = torch.tensor([-1.5, 0.7, last], dtype=torch.float64, requires_grad=True)
            value = function(x)
            for _ in range(3):  # times x, because some second derivatives are constant
                (value,) = torch.autograd.grad((value * x).sum(), x, create_graph=True)
            values.append(value.detach())
        torch.testing.assert_close(*values)


# ---- Values compared with torch's ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64], ids=str)
@FUNCTIONS
def test_agrees_with_torch_on_its_samples(case: FunctionCase, dtype: torch.dtype) -> None:
    """Values, layouts and gradients on PyTorch's own samples, also in place; incoming gradients are at most 2."""
    wide = torch.float64 if case.peer_is_exact_in_double else dtype
    tolerance = TOLERANCE[dtype]
    if case.peer_is_exact_in_double and dtype == torch.float64:
        # torch's own cancels there: a unit of 1 times the largest input, 9.
        tolerance = {"rtol": 0.0, "atol": 2**-49}
    info = next(op for op in op_db if op.name == f"nn.functional.{case.name}")
    count = 0
    with aclnn_torch.product(product_for(dtype)):
        for sample in info.sample_inputs("cpu", dtype, requires_grad=True):
            for in_place in (False, True) if case.in_place else (None,):
                keywords = sample.kwargs if in_place is None else sample.kwargs | {"inplace": in_place}
                results = []
                for module, computed_in in ((F, dtype), (REFERENCE, wide)):
                    x = sample.input.detach().to(computed_in, copy=True).requires_grad_()
                    y = case.of(module)(x * 1, *sample.args, **keywords)
                    weight = torch.linspace(-2, 2, y.numel(), dtype=torch.float64).to(dtype).reshape(y.shape)
                    results.append((y, *torch.autograd.grad(y, x, weight.to(computed_in))))
                for got, expected, widened in zip(*results, (0.0, case.gradient_atol(dtype)), strict=True):
                    assert got.stride() == expected.stride()
                    allowed = tolerance | {"atol": tolerance["atol"] + widened}
                    torch.testing.assert_close(got, expected.to(dtype), **allowed)
                count += 1
    assert count >= (6 if case.in_place else 3)


def tensors_of(kernel: Kernel, dtype: torch.dtype) -> itertools.product:
    """The operator's input tensors, in every combination of layouts."""
    shape = (2, 3, 5, 7)
    of_input = views(shape, dtype)
    of_gradient = views(shape, dtype)
    of_gradient["expanded"] = torch.randn(1, 3, 1, 7).to(dtype).expand(shape)
    return itertools.product(*[of_gradient.items()] * (kernel.reads - 1), of_input.items())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@KERNELS
def test_strides(kernel: Kernel, dtype: torch.dtype) -> None:
    """Values and layout; Meta tensors give the same sizes, layout and dtype."""
    tolerance = TOLERANCE[dtype]
    for named in tensors_of(kernel, dtype):
        layouts, tensors = zip(*named, strict=True)
        ours = kernel(*tensors)
        allowed = tolerance | {"atol": max(tolerance["atol"], kernel.atol(dtype))}
        torch.testing.assert_close(ours, kernel.expected(*tensors), **allowed)
        # For an expanded gradient and an input with gaps, ATen gives the result the input's layout.
        if layouts[0] != "expanded" or tensors[-1].is_contiguous():
            assert ours.stride() == kernel.by_peer(*tensors).stride()
        on_meta = [torch.empty_strided(t.shape, t.stride(), dtype=dtype, device="meta") for t in tensors]
        meta = kernel(*on_meta)
        assert (meta.shape, meta.stride(), meta.dtype) == (ours.shape, ours.stride(), ours.dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@IN_PLACE
def test_strides_in_place(kernel: Kernel, dtype: torch.dtype) -> None:
    for x in views((2, 3, 5, 7), dtype).values():
        y = x.detach().clone(memory_format=torch.preserve_format)
        assert kernel.run_in_place(y) is y
        torch.testing.assert_close(y, kernel.expected(x), **TOLERANCE[dtype])


@pytest.mark.parametrize("shape", [(0,), (0, 2), (3, 0, 2)], ids=str)
@KERNELS
def test_tensors_without_elements(kernel: Kernel, shape: tuple[int, ...]) -> None:
    tensors = [torch.ones(shape, requires_grad=True) for _ in range(kernel.reads)]
    result = kernel(*tensors)
    assert result.shape == shape
    assert all(gradient.shape == shape for gradient in torch.autograd.grad(result.sum(), tensors))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@KERNELS
def test_the_same_bits_for_any_number_of_threads(kernel: Kernel, dtype: torch.dtype) -> None:
    tensors = [torch.randn(300_001).to(dtype) for _ in range(kernel.reads)]
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 5, 8):
            torch.set_num_threads(threads)
            results.append(kernel(*tensors))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(result, results[0]) for result in results)


# ---- In place --------------------------------------------------------------------------------------


@IN_PLACE_FUNCTIONS
def test_in_place_follows_autograds_rules(case: FunctionCase) -> None:
    function, torchs = case.of(F), case.of(TF)
    leaf = torch.randn(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        function(leaf, **case.keywords, inplace=True)
    x = leaf * 1
    version = x._version
    assert function(x, **case.keywords, inplace=True) is x
    assert x._version == version + 1
    expected = torch.autograd.grad(torchs(leaf, **case.keywords).sum(), leaf)
    torch.testing.assert_close(torch.autograd.grad(x.sum(), leaf), expected)
    y = leaf.exp()
    function(y, **case.keywords, inplace=True)  # overwrites the result that exp saved
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda t: function(t.sin(), **case.keywords, inplace=True) + 1, fullgraph=True, backend=inductor.BACKEND
    )
    value = torch.randn(5)
    torch.testing.assert_close(compiled(value), torchs(value.sin(), **case.keywords) + 1)


@IN_PLACE_FUNCTIONS
def test_in_place_on_a_view_writes_only_the_view(case: FunctionCase) -> None:
    results = []
    for module in (F, TF):
        base = torch.full((6, 6), -1.0)
        case.of(module)(base[1:5:2, ::3], **case.keywords, inplace=True)
        results.append(base)
    torch.testing.assert_close(*results)


# ---- Autocast, modules, errors ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@FUNCTIONS
def test_autocast_leaves_it_alone_as_torchs(case: FunctionCase, dtype: torch.dtype) -> None:
    x, w = (torch.randn(4, 4, requires_grad=True) for _ in range(2))
    function, torchs = case.of(F), case.of(TF)
    with torch.autocast("cpu", dtype=dtype):
        assert function(x).dtype == torchs(x).dtype == torch.float32
        product = function(x @ w)
        assert product.dtype == torchs(x @ w).dtype == dtype
    product.sum().backward()
    assert x.grad is not None and x.grad.dtype == torch.float32


@MODULES
def test_module(case: ModuleCase) -> None:
    for arguments in (case.arguments, *case.other_arguments):
        ours, torchs = (getattr(library, case.name)(*arguments) for library in (aclnn_torch.nn, torch.nn))
        assert repr(ours) == repr(torchs)
        assert ours.state_dict() == torchs.state_dict() == {}
        x = torch.randn(3, 5)
        torch.testing.assert_close(ours(x.clone()), torchs(x.clone()))
        y = x.clone()
        assert (ours(y) is y) == (torchs(x) is x)
        assert vars(pickle.loads(pickle.dumps(ours))) == vars(ours)


ERRORS = [(operator, name) for operator, info in ELEMENTWISE.items() for name in info.errors]


@pytest.mark.parametrize(("operator", "name"), ERRORS, ids=lambda value: value)
def test_bad_input(operator: str, name: str, nothing_leaked: None) -> None:
    operator_checks.check_error(*ELEMENTWISE[operator].errors[name])
