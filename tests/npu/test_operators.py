"""The operators on NPU tensors: bitwise equal to the CPU's, because the same kernels compute them here."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
import torch_npu
from torch import Tensor

import aclnn_torch
import aclnn_torch.functional as F
from tests.operators import ELEMENTWISE, OPERATORS, Kernel

ops = torch.ops.aclnn
NPU = torch.device("npu", 0)
FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def same(ours: Any, expected: Any) -> None:
    """Results on an NPU equal the CPU's: bits, sizes, strides, dtypes."""
    if isinstance(expected, (tuple, list)):
        assert len(ours) == len(expected)
        for mine, other in zip(ours, expected, strict=True):
            same(mine, other)
    elif expected is None:
        assert ours is None
    else:
        assert ours.device.type == "npu"
        assert (ours.dtype, ours.shape, ours.stride()) == (expected.dtype, expected.shape, expected.stride())
        torch.testing.assert_close(ours.detach().cpu(), expected.detach(), rtol=0, atol=0, equal_nan=True)


def moved(value: Any, device: torch.device = NPU) -> Any:
    """The same on an NPU, views as the same views: only whole storages are copied."""
    if isinstance(value, Tensor):
        base = torch.empty(0, dtype=value.dtype).set_(value.detach().untyped_storage())
        return base.to(device).as_strided(value.shape, value.stride(), value.storage_offset())
    if isinstance(value, (tuple, list)):
        return type(value)(moved(item, device) for item in value)
    return value


def views(dtype: torch.dtype) -> dict[str, Tensor]:
    """Tensors of every kind of layout."""
    values = torch.randn(6, 5, 4).to(dtype)
    return {
        "contiguous": values,
        "transposed": values.transpose(0, 2),
        "stepped": values[::2, :, 1::2],
        "offset": values[2:, 1:],
        "expanded": values[:, :1].expand(6, 3, 4),
        "channels-last": torch.randn(2, 3, 4, 5).to(dtype).to(memory_format=torch.channels_last),
        "scalar": values[1, 2, 3],
        "empty": values[:0],
    }


@dataclass(frozen=True)
class Call:
    """An operator and its arguments on the CPU."""

    name: str
    run: Callable[..., Any]
    arguments: Sequence[Any]

    def __str__(self) -> str:
        return self.name


def elementwise_calls() -> list[Call]:
    calls = []
    for dtype in FLOATS:
        for name, x in views(dtype).items():
            label = f"{str(dtype).removeprefix('torch.')}-{name}"
            g = torch.randn(x.shape).to(dtype)
            calls += [
                Call(f"{kernel.name}-{label}", kernel, (g, x)[-kernel.reads :])
                for info in ELEMENTWISE.values()
                for kernel in info.kernels_for("tests")
            ]
    return calls


@pytest.mark.parametrize("call", elementwise_calls(), ids=str)
def test_values(call: Call) -> None:
    same(call.run(*moved(call.arguments)), call.run(*call.arguments))


@pytest.mark.parametrize(
    "kernel",
    [kernel for info in ELEMENTWISE.values() for kernel in info.kernels_for("tests") if kernel.in_place],
    ids=lambda kernel: kernel.in_place,
)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "stepped", "offset", "scalar", "empty"])
def test_in_place(kernel: Kernel, layout: str) -> None:
    x = views(torch.float32)[layout]
    y = moved(x)
    assert kernel.run_in_place(y) is y
    same(y, kernel.run_in_place(x))


def other_calls() -> list[Call]:
    return [
        Call(f"{name}-{str(dtype).removeprefix('torch.')}", run, arguments)
        for dtype in FLOATS
        for info in OPERATORS.values()
        for name, run, arguments in info.npu(dtype)
    ]


@pytest.mark.parametrize("call", other_calls(), ids=str)
def test_values_of_the_others(call: Call) -> None:
    same(call.run(*moved(call.arguments)), call.run(*call.arguments))


def test_channels_last_convolution() -> None:
    """torch_npu makes no channels-last tensors: results have the CPU's values, in the order of their dims."""
    x = torch.randn(2, 3, 6, 5).to(memory_format=torch.channels_last)
    y, w = moved(x), torch.randn(4, 3, 3, 3)
    assert y.stride() == x.stride()
    same(F.conv2d(y, w.npu(), cube_math_type=0), F.conv2d(x, w).contiguous())


# Differentiable functions of tensors, and the tensors' shapes.
DIFFERENTIABLE = {
    **{
        name: (function, [(5, 4)])
        for info in ELEMENTWISE.values()
        for case in info.functions
        for name, function in case.variants(F)
    },
    **{name: call for info in OPERATORS.values() for name, call in info.npu_functions.items()},
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_first_and_second_derivatives(name: str) -> None:
    """Equal to the CPU's. Second derivatives use plain operators, which may round differently."""
    function, shapes = DIFFERENTIABLE[name]
    values = [torch.randn(shape) for shape in shapes]
    seen = []
    for device in ("cpu", "npu"):
        leaves = [value.to(device).requires_grad_() for value in values]
        result = function(*leaves)
        direction = torch.linspace(-1, 1, result.numel()).reshape(result.shape).to(device)
        first = torch.autograd.grad(result, leaves, direction, create_graph=True)
        total = sum((gradient * gradient).sum() for gradient in first)
        seen.append(([result, *first], torch.autograd.grad(total, leaves, materialize_grads=True)))
    same([t.detach() for t in seen[1][0]], [t.detach() for t in seen[0][0]])
    for ours, expected in zip(seen[1][1], seen[0][1], strict=True):
        torch.testing.assert_close(ours.cpu(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_forward_mode(name: str) -> None:
    """Equal to the CPU's tangents; plain operators in their formulas may round differently."""
    function, shapes = DIFFERENTIABLE[name]
    primals = tuple(torch.randn(shape) for shape in shapes)
    tangents = tuple(torch.randn(shape) for shape in shapes)
    expected = torch.func.jvp(function, primals, tangents)
    ours = torch.func.jvp(function, tuple(moved(primals)), tuple(moved(tangents)))
    same(ours[0], expected[0])
    torch.testing.assert_close(ours[1].cpu(), expected[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if "in place" not in name])
def test_vmap_over_gradients(name: str) -> None:
    function, shapes = DIFFERENTIABLE[name]
    values = tuple(torch.randn(3, *shape) for shape in shapes)

    def gradients(*arguments: Tensor) -> Any:
        return torch.func.grad(lambda *x: function(*x).sum(), argnums=tuple(range(len(arguments))))(*arguments)

    ours, expected = (torch.func.vmap(gradients)(*arguments) for arguments in (moved(values), values))
    for mine, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(mine.cpu(), other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_a_compiler_traces_it_whole(name: str) -> None:
    """Shapes and dtypes are traced without a device; the graph then runs on it, forward and backward."""
    torch._dynamo.reset()  # several names may share code
    function, shapes = DIFFERENTIABLE[name]
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    results = []
    for call in (function, compiled):
        torch.manual_seed(0)
        leaves = [torch.randn(shape).npu().requires_grad_() for shape in shapes]
        result = call(*leaves)
        results.append([result.detach(), *torch.autograd.grad(result.sum(), leaves)])
    same(results[1], [x.cpu() for x in results[0]])


@pytest.mark.parametrize("call", [c for c in other_calls() if "float32" in c.name and "masked" not in c.name], ids=str)
def test_schema_and_traces_are_right(call: Call) -> None:
    """torch's own checks of an operator, except that of gradients, which only knows its own devices."""
    operator, keywords = (call.run.func, call.run.keywords) if isinstance(call.run, partial) else (call.run, {})
    torch.library.opcheck(
        operator.default,
        tuple(moved(call.arguments)),
        keywords,
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype: torch.dtype) -> None:
    """Convolutions run in the 16-bit dtype and losses in float32, as on the CPU."""
    x, w, logits, target = torch.randn(2, 3, 5, 5), torch.randn(4, 3, 3, 3), torch.randn(5, 4), torch.arange(5) % 4
    with torch.autocast("cpu", dtype=dtype):
        expected = F.conv2d(x, w), F.cross_entropy(logits.to(dtype), target)
    with torch.autocast("npu", dtype=dtype):
        ours = F.conv2d(x.npu(), w.npu()), F.cross_entropy(logits.to(dtype).npu(), target.npu())
    assert expected[0].dtype == dtype
    assert expected[1].dtype == torch.float32
    same(ours, expected)


def test_modules_train() -> None:
    """Modules of the package move to the device like any other."""
    model = torch.nn.Sequential(
        aclnn_torch.nn.Conv2d(1, 2, 3), aclnn_torch.nn.ELU(), torch.nn.Flatten(), aclnn_torch.nn.RMSNorm(18)
    )
    x, target = torch.randn(4, 1, 5, 5), torch.arange(4)
    gradients = []
    for device in ("cpu", "npu"):
        model.zero_grad()
        model.to(device)
        model[0].cube_math_type = 0
        aclnn_torch.nn.CrossEntropyLoss()(model(x.to(device)), target.to(device)).backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    same(gradients[1], gradients[0])


BAD = {
    "dtype": lambda d: ops.elu(torch.ones(3, dtype=torch.int32).to(d)),
    "attribute": lambda d: ops.elu_backward(*torch.ones(1, 3).to(d), -1, 1, 1, True, torch.ones(3).to(d)),
    "shapes": lambda d: ops.selu_backward(torch.ones(3).to(d), torch.ones(4).to(d)),
    "complex": lambda d: ops.selu(torch.empty(3, dtype=torch.complex64, device=d)),
    "expanded": lambda d: ops.elu_(torch.ones(1).to(d).expand(3)),
    "gamma": lambda d: ops.rms_norm(torch.ones(3, 4).to(d), torch.ones(3).to(d)),
    "epsilon": lambda d: ops.rms_norm(torch.ones(3, 4).to(d), torch.ones(4).to(d), -1.0),
    "reduction": lambda d: ops.cross_entropy_loss(torch.ones(3, 4).to(d), torch.zeros(3).long().to(d), None, "max"),
    "groups": lambda d: F.conv1d(torch.ones(1, 4, 5).to(d), torch.ones(3, 2, 2).to(d), groups=2, cube_math_type=0),
    "type": lambda d: F.conv1d(torch.ones(1, 2, 5).to(d), torch.ones(3, 2, 2).to(d), cube_math_type=7),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_the_cpus(name: str) -> None:
    """Function, status and text, immediately; later calls are not affected."""
    errors = []
    for device in ("cpu", "npu"):
        with pytest.raises(aclnn_torch.AclnnError) as caught:
            BAD[name](device)
        error = caught.value
        errors.append((error.api, error.status, error.status_name, str(error)))
    assert errors[1] == errors[0]
    torch.npu.synchronize()
    x = torch.randn(10)
    same(ops.elu(x.npu()), ops.elu(x))


def test_an_error_in_a_backward() -> None:
    x = torch.ones(3).npu().requires_grad_()
    y = F.elu(x * 1, -1.0, inplace=True)
    with pytest.raises(aclnn_torch.AclnnError, match=r"aclnnEluBackward.*alpha is -1"):
        y.sum().backward()
    torch.npu.synchronize()


@pytest.mark.parametrize("first", ["cpu", "npu"])
def test_tensors_of_two_devices_are_refused(first: str) -> None:
    x, y = torch.ones(3).to(first), torch.ones(3).to("cpu" if first == "npu" else "npu")
    with pytest.raises(aclnn_torch.AclnnError, match=rf"result is on {y.device}, expected {x.device} as gradOutput is"):
        ops.selu_backward(x, y)
    with pytest.raises(aclnn_torch.AclnnError, match="is on npu:1, expected npu:0"):
        ops.selu_backward(torch.ones(3).npu(), torch.ones(3).to("npu:1"))


def test_the_tensors_device_need_not_be_the_current_one() -> None:
    x = torch.randn(6, 5)
    y = x.to("npu:1").requires_grad_()
    assert torch.npu.current_device() == 0
    result = F.rms_norm(F.elu(y), (5,))
    result.backward(torch.ones_like(result))
    assert torch.npu.current_device() == 0
    assert {result.device, y.grad.device} == {torch.device("npu", 1)}
    same(result.detach(), F.rms_norm(F.elu(x), (5,)))


def test_private_formats_are_refused() -> None:
    x = torch_npu.empty_with_format((16, 16), dtype=torch.float16, device="npu", acl_format=29)
    assert torch_npu.get_npu_format(x) == 29
    with pytest.raises(
        aclnn_torch.AclnnError, match=r"self has the private format 29 .*torch_npu\.npu_format_cast\(x, 2\)"
    ):
        ops.elu(x)


def test_determinism_is_handed_on() -> None:
    runtime = ctypes.CDLL("libascendcl.so")
    value = ctypes.c_int64(-1)
    deterministic = 0  # ACL_OPT_DETERMINISTIC
    x = torch.ones(3).npu()
    try:
        for wanted in (True, False, True):
            torch.use_deterministic_algorithms(wanted)
            ops.elu(x)
            torch.npu.synchronize()
            assert runtime.aclrtGetSysParamOpt(deterministic, ctypes.byref(value)) == 0
            assert value.value == wanted
    finally:
        torch.use_deterministic_algorithms(False)
        ops.elu(x)


def test_cube_math_type_is_torch_npus() -> None:
    """1 + 2^-12 is one in HFLOAT32. A backward uses its forward's setting, whatever is set meanwhile."""
    fine = 1 + 2.0**-12
    one, w = torch.ones(1, 1, 1).npu(), torch.full((1, 1, 1), fine).npu().requires_grad_()
    assert F.conv1d(one.cpu(), w.detach().cpu()).item() == fine
    before = torch_npu.npu.conv.allow_hf32
    try:
        for allowed, expected in ((True, 1.0), (False, fine)):
            torch_npu.npu.conv.allow_hf32 = allowed
            x = one.clone().requires_grad_()
            y = F.conv1d(x, w)
            torch_npu.npu.conv.allow_hf32 = not allowed
            (gradient,) = torch.autograd.grad(y, x, one)
            assert (y.item(), gradient.item()) == (expected, expected)
            torch_npu.npu.conv.allow_hf32 = allowed
            assert torch.nn.functional.conv1d(one, w).item() == expected
            assert F.conv1d(one, w, cube_math_type=0).item() == fine
            assert F.conv1d(one, w, cube_math_type=3).item() == 1.0
    finally:
        torch_npu.npu.conv.allow_hf32 = before


def test_memory_goes_back() -> None:
    """Calls retain nothing: results, workspace and queued tasks are freed with the last reference."""
    logits, target = torch.randn(64, 100).npu(), torch.zeros(64, dtype=torch.long).npu()
    gc.collect()  # garbage of other tests
    torch.npu.synchronize()
    before = torch.npu.memory_allocated()
    for _ in range(50):
        ops.cross_entropy_loss(logits, target)
        ops.elu(logits.t())
    torch.npu.synchronize()
    assert torch.npu.memory_allocated() == before
