"""Tests of the operators that torch_npu calls: one line per case.

A case is code of a torch user. It runs on the CPU and on the NPU with the same arguments, must give the same tensors,
and must call the aclnn functions that it names: the host CANN's trace records them.
"""

from __future__ import annotations

import atexit
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

# The host CANN's trace of this process; opened when the first operator runs.
TRACE = tempfile.NamedTemporaryFile("r", prefix="aclnn_torch_trace_")  # noqa: SIM115
atexit.register(TRACE.close)  # deletes the file; the end of a module does not
os.environ["ACLNN_TORCH_TRACE"] = TRACE.name

# In this mode torch_npu also runs stage 1 on its queue, and silently drops all later work after an error.
errors_are_clean = pytest.mark.skipif(
    os.environ.get("TASK_QUEUE_ENABLE") == "2", reason="with TASK_QUEUE_ENABLE=2 an error ends all work of torch_npu"
)


@dataclass(frozen=True)
class Case:
    """One call. `functions` are the aclnn functions it must call, in a string, without their prefix."""

    functions: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    relative: float = 0.0  # tolerance; 0 means bitwise equal
    absolute: float = 0.0
    product: str = ""  # the only product on which torch_npu calls them

    def __str__(self) -> str:
        types = [str(x.dtype).removeprefix("torch.") for x in self.arguments if isinstance(x, torch.Tensor)]
        return "-".join([*self.functions.split(), *types])


def move(value: Any, device: str, reduced: torch.dtype | None = None) -> Any:
    """The value with its tensors on a device, with the same strides; on the CPU they are copies.

    Tensors of 16-bit floating-point types are converted to `reduced`, if given.
    """
    if isinstance(value, torch.Tensor):
        storage = value.new_empty(0).set_(value.untyped_storage()).clone()
        if reduced is not None and value.dtype in REDUCED:
            storage = storage.to(reduced)
        return storage.to(device).as_strided(value.shape, value.stride(), value.storage_offset())
    if isinstance(value, (list, tuple)):
        return type(value)(move(x, device, reduced) for x in value)
    return value


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in a call's results, on the CPU."""
    if isinstance(value, torch.Tensor):
        return [value.detach().cpu()]
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in tensors_of(part)]
    return [torch.tensor(value)] if isinstance(value, (bool, int, float)) else []


def on_npu(npu: Callable[..., Any], cpu: Callable[..., Any]) -> Callable[..., Any]:
    """A call of a function that only torch_npu has, and its equivalent on the CPU."""
    return lambda x, *rest: (npu if x.device.type == "npu" else cpu)(x, *rest)


def with_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function's first result and its gradients with respect to all floating-point arguments."""

    def call(*arguments: Any) -> list[torch.Tensor | None]:
        leaves = [
            x.detach().requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
            for x in arguments
        ]
        result = function(*leaves)
        result = result[0] if isinstance(result, tuple) else result
        # A different weight per element, so that no two gradients are equal.
        weights = torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape).to(result)
        inputs = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
        return [result, *torch.autograd.grad(result, inputs, weights, allow_unused=True)]

    call.with_gradients = True  # type: ignore[attr-defined]
    return call


def numbers(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Normally distributed numbers, always the same."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def operators_of(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """A call's results, and the aclnn functions that ran for it, without their prefix."""
    torch.npu.synchronize()
    TRACE.seek(0, os.SEEK_END)
    result = call()
    torch.npu.synchronize()
    events = [json.loads(line.rstrip(",\n")) for line in TRACE]
    launched = [event["name"] for event in events if event["cat"] == "stage 2" and event["args"]["status"] == 0]
    return result, [name.removeprefix("aclnn") for name in launched]


def on_product(name: str) -> bool:
    """True if the NPU's product contains the text, such as 950; always true for ""."""
    return name in torch.npu.get_device_name(0)


REDUCED = (torch.float16, torch.bfloat16)


def rounded_once(case: Case) -> list[torch.Tensor]:
    """A case's result on the CPU in FLOAT, rounded to the 16-bit type of its arguments."""
    (reduced,) = {x.dtype for x in tensors_of(case.arguments)} & set(REDUCED)
    arguments = move(case.arguments, "cpu", torch.float32)
    results = tensors_of([case.call(*arguments), arguments])
    return [x.to(reduced) if x.dtype == torch.float32 else x for x in results]


def differences(case: Case, got: list[torch.Tensor], expected: list[torch.Tensor]) -> list[str]:
    """The differences between results and expectations; empty if they are close enough."""
    texts = []
    for mine, other in zip(expected, got, strict=True):
        # A gradient is computed from results and weights that were rounded before, by half a unit each.
        unit = torch.finfo(mine.dtype).eps if hasattr(case.call, "with_gradients") and mine.dtype in REDUCED else 0
        relative, absolute = max(case.relative, 2 * unit), max(case.absolute, unit / 2)
        try:
            torch.testing.assert_close(other, mine, rtol=relative, atol=absolute, equal_nan=True)
        except AssertionError as error:
            texts.append(str(error))
    return texts


# torch_npu 2.8.0 has had no release since these came; 2.7.1 has.
NOT_IN_2_8 = {
    *("FusedCausalConv1d", "FusedSgd", "InplaceFusedCausalConv1d", "LeftShift", "MaskedCausalConv1d"),
    *("MaskedCausalConv1dBackward", "MoeFinalizeRoutingV4", "MoeGatingTopKBackward", "MoeGatingTopKV2"),
    *("RepeatInterleaveTensor", "RightShift"),
}


def check(case: Case) -> None:
    """Runs a case on both devices; the returned tensors, and the arguments afterwards, must be equal."""
    if not on_product(case.product):
        pytest.skip(f"torch_npu calls {case.functions} on Ascend{case.product} alone")
    if torch.__version__.startswith("2.8.") and NOT_IN_2_8.intersection(case.functions.split()):
        pytest.skip(f"torch_npu 2.8 does not call {case.functions}")
    ours = move(case.arguments, "cpu")
    theirs = move(case.arguments, "npu:0")
    got, ran = operators_of(lambda: case.call(*theirs))
    results = tensors_of([got, theirs])
    expected = tensors_of([case.call(*ours), ours])
    wrong = differences(case, results, expected)
    if wrong and any(x.dtype in REDUCED for x in results):
        # Operations that the CPU rounds to 16 bits more than once are computed in FLOAT by the host CANN.
        wrong = differences(case, results, rounded_once(case))
    assert not wrong, wrong[0]
    missed = [name for name in case.functions.split() if name not in ran]
    assert not missed, f"{missed} did not run, but {ran} did"


def cases_of(*tables: Iterable[Case]) -> Any:
    """A decorator: runs the test once for each case."""
    cases = [case for table in tables for case in table]
    return pytest.mark.parametrize("case", cases, ids=str)
