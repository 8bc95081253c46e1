"""Checks for every differentiable operator, on its own sample calls, with PyTorch's own tools."""

from __future__ import annotations

import ctypes
import os
import pickle
import platform
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

import aclnn_torch
from tests import inductor
from tests.operators._info import Call, as_tuple

# Tolerance against torch's result: one rounding for the 16-bit types, and for the wider ones the exponentials of both
# sides, each accurate to 2 units in the last place.
TOLERANCE: dict[torch.dtype, dict[str, float]] = {
    torch.float64: {"rtol": 4 * 2**-52, "atol": 4 * 2**-54},
    torch.float32: {"rtol": 4 * 2**-23, "atol": 4 * 2**-25},
    torch.float16: {"rtol": 2**-10, "atol": 2**-24},
    torch.bfloat16: {"rtol": 2**-7, "atol": 2**-40},
}
FLOATS = (torch.float32, torch.float16, torch.bfloat16)

# For tests of the project's BFLOAT16 products.
BFLOAT16_IS_OURS = pytest.mark.skipif(
    torch.cpu._is_amx_tile_supported(), reason="with AMX, products of BFLOAT16 are oneDNN's"
)
# For tests of algorithms that only some CPUs have.
HAS_AVX512_BFLOAT16 = (
    torch.cpu._is_avx512_bf16_supported() and os.environ.get("ACLNN_TORCH_CPU_CAPABILITY", "avx512") == "avx512"
)
# HWCAP2_BF16 of AT_HWCAP2; the processor's FEAT_BF16.
HAS_FEAT_BF16 = platform.machine() == "aarch64" and bool(ctypes.CDLL(None).getauxval(26) & 1 << 14)
NEEDS_BFLOAT16_PRODUCTS = pytest.mark.skipif(
    not (HAS_AVX512_BFLOAT16 or HAS_FEAT_BF16), reason="a CPU without AVX512_BF16 and FEAT_BF16"
)
# True if linear cross entropy multiplies BFLOAT16 without widening, rounding gradients with respect to logits to it.
MULTIPLIES_BFLOAT16 = (
    HAS_AVX512_BFLOAT16 or HAS_FEAT_BF16 or os.environ.get("ACLNN_TORCH_CPU_CAPABILITY") == "reference"
)
NEEDS_AVX512_BFLOAT16 = pytest.mark.skipif(not HAS_AVX512_BFLOAT16, reason="a CPU without AVX512_BF16")
NEEDS_AMX_BFLOAT16 = pytest.mark.skipif(
    not (HAS_AVX512_BFLOAT16 and torch.cpu._is_amx_tile_supported()), reason="a CPU without AMX"
)


def total_of(results: Tensor | tuple[Tensor, ...]) -> Tensor:
    """A number that depends on every element of the results."""
    return torch.stack([result.double().sum() for result in as_tuple(results)]).sum()


def views(shape: tuple[int, ...], dtype: torch.dtype) -> dict[str, Tensor]:
    """Random values of one (four-dimensional) shape in different memory layouts."""
    base = torch.randn(shape).to(dtype)
    padded = torch.zeros(*shape[:-1], 2 * shape[-1] + 3).to(dtype)
    padded[..., 3::2] = base
    return {
        "contiguous": base,
        "every second element, offset": padded[..., 3::2],
        "permuted": base.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
        "channels last": base.contiguous(memory_format=torch.channels_last),
    }


def check_error(
    call: Callable[[], Any], words: Sequence[str], status: int = 161002, name: str = "ACLNN_ERR_PARAM_INVALID"
) -> None:
    """The call raises an AclnnError whose text contains all words, and which can be pickled."""
    with pytest.raises(aclnn_torch.AclnnError) as caught:
        call()
    error = caught.value
    assert isinstance(error, RuntimeError)
    assert (error.status, error.status_name) == (status, name)
    assert error.api.startswith("aclnn")
    for word in words:
        assert word in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def check_gradients(call: Call) -> None:
    """First and second derivatives, reverse, forward, and forward over reverse, against finite differences."""
    tensors = call.tensors(torch.float64, requires_grad=True)
    torch.autograd.gradcheck(call.on, tensors, check_forward_ad=True, check_batched_grad=True)
    torch.autograd.gradgradcheck(call.on, tensors, check_fwd_over_rev=True, check_rev_over_rev=True)


def check_transforms(call: Call) -> None:
    """torch.func.grad, vmap (over each argument and over all), vmap over grad, jacrev and jacfwd, jvp."""
    tensors = call.tensors(torch.float64)
    positions = tuple(range(len(tensors)))

    def total(*args: Tensor) -> Tensor:
        return total_of(tuple(result.square() for result in call.results(*args)))

    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    expected = torch.autograd.grad(total(*leaves), leaves)
    torch.testing.assert_close(torch.func.grad(total, argnums=positions)(*tensors), expected)

    torch.testing.assert_close(
        torch.func.jacrev(call.on, argnums=positions)(*tensors), torch.func.jacfwd(call.on, argnums=positions)(*tensors)
    )

    batched = [torch.stack([call.tensors(torch.float64, seed=seed)[i] for seed in range(3)]) for i in positions]
    for chosen in [positions, *[(i,) for i in positions]]:
        for dim in (0, -1):
            in_dims = tuple(dim if i in chosen else None for i in positions)
            args = [batched[i].movedim(0, dim) if i in chosen else tensors[i] for i in positions]
            single = [[batched[i][k] if i in chosen else tensors[i] for i in positions] for k in range(3)]
            each = zip(*[call.results(*one) for one in single], strict=True)
            expected = tuple(torch.stack(parts) for parts in each)
            torch.testing.assert_close(torch.vmap(call.results, in_dims)(*args), expected)
            gradients = torch.vmap(torch.func.grad(total, argnums=positions), in_dims)(*args)
            for i in positions:
                gradient = torch.stack([torch.func.grad(total, argnums=i)(*one) for one in single])
                torch.testing.assert_close(gradients[i], gradient)
    twice = [tensor.unsqueeze(0).expand(2, *tensor.shape) for tensor in batched]
    nested = torch.vmap(torch.vmap(call.results))(*twice)
    expected = torch.vmap(call.results)(*batched)
    torch.testing.assert_close(tuple(result[1] for result in nested), expected)


def check_compilers(call: Call, dtype: torch.dtype) -> None:
    """torch.compile without graph breaks and with dynamic shapes, and torch.export, forward and backward."""
    torch._dynamo.reset()
    compiled = torch.compile(call.on, fullgraph=True, dynamic=True, backend=inductor.BACKEND)
    for seed in range(2):
        eager, traced = (call.tensors(dtype, requires_grad=True, seed=seed) for _ in range(2))
        expected, got = call.on(*eager), compiled(*traced)
        torch.testing.assert_close(got, expected)
        total_of(expected).backward()
        total_of(got).backward()
        for a, b in zip(traced, eager, strict=True):
            torch.testing.assert_close(a.grad, b.grad)

    class Module(torch.nn.Module):
        def forward(self, *tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
            return call.on(*tensors)

    tensors = tuple(call.tensors(dtype))
    batch = torch.export.Dim("batch")
    batched = call.batched or [True] * len(tensors)
    shapes = None
    if all(tensor.dim() > 0 and tensor.shape[0] > 1 for tensor, varies in zip(tensors, batched, strict=True) if varies):
        shapes = {"tensors": tuple({0: batch} if varies else None for varies in batched)}
    program = torch.export.export(Module(), tensors, dynamic_shapes=shapes)
    # torch 2.9 cannot run its guards of a forward(*tensors).
    unguarded = {"check_guards": False} if torch.__version__.startswith("2.9.") else {}
    torch.testing.assert_close(program.module(**unguarded)(*tensors), call.on(*tensors))


def opcheck(overload: Any, arguments: Sequence[Any], keywords: dict[str, Any] | None = None) -> None:
    """torch.library.opcheck with all its tests; in 16 bits without tracing, which does not depend on the dtype."""
    floats = [argument for argument in arguments if isinstance(argument, Tensor) and argument.is_floating_point()]
    tests = ["test_schema", "test_autograd_registration", "test_faketensor"]
    if floats[0].element_size() != 2:
        tests.append("test_aot_dispatch_dynamic")
    torch.library.opcheck(overload, tuple(arguments), keywords, test_utils=tests)


def check_compiled_autograd(call: Call, dtype: torch.dtype) -> None:
    """The backward pass itself, compiled."""
    torch._dynamo.reset()
    eager, traced = (call.tensors(dtype, requires_grad=True) for _ in range(2))
    total_of(call.on(*eager)).backward()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
        total_of(call.on(*traced)).backward()
    for a, b in zip(traced, eager, strict=True):
        torch.testing.assert_close(a.grad, b.grad)
