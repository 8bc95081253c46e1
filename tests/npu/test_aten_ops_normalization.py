"""Normalisations under torch_npu; csrc/cann/rows/normalization."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
import torch_npu

from .aten_ops import Case, cases_of, check, numbers, with_gradients

X = numbers(3, 4)
IMAGE = numbers(3, 4, 2, 5)
SCALE = numbers(4, seed=1)
SHIFT = numbers(4, seed=2)
MEAN = numbers(4, seed=3)
VARIANCE = numbers(4, seed=4).abs() + 0.5
# Intermediate results are FP32 here and partly 16-bit in ATen: two units in the last place.
HALF = {"relative": 2**-9, "absolute": 2**-9}
BFLOAT16 = {"relative": 2**-6, "absolute": 2**-6}
FLOAT = {"relative": 2**-20, "absolute": 2**-20}


def batch_norm(x, mean, variance, weight, bias, training=True):  # type: ignore[no-untyped-def]
    """Its result and gradients; the running statistics are arguments that it updates."""
    call = with_gradients(lambda x, w, b: F.batch_norm(x, mean, variance, w, b, training, 0.25))
    return call(x, weight, bias)


def add_rms_norm(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> list[torch.Tensor]:
    if x.device.type == "npu":
        return list(torch_npu.npu_add_rms_norm(x, y, weight, 1e-5))
    total = x + y
    rstd = (total.float().square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    return [(total.float() * rstd * weight.float()).to(x.dtype), rstd, total]


CASES = [
    *(
        Case("BatchNorm BatchNormBackward", call, (x, MEAN, VARIANCE, SCALE, SHIFT), **FLOAT)
        for call in (batch_norm, partial(batch_norm, training=False))
        for x in (IMAGE, X, numbers(3, 4, 6), numbers(2, 4, 2, 3, 2))
    ),
    Case("BatchNorm", lambda x, w, b: batch_norm(x, None, None, w, b), (IMAGE, SCALE, SHIFT), **FLOAT),
    Case(
        "BatchNorm BatchNormBackward",
        with_gradients(lambda x: F.batch_norm(x, None, None, training=True)),
        (IMAGE,),
        **FLOAT,
    ),
    Case(
        "BatchNorm",
        batch_norm,
        (IMAGE.half(), MEAN, VARIANCE, SCALE, SHIFT),
        **HALF,
    ),
    Case("BatchNorm", with_gradients(F.instance_norm), (IMAGE,), **FLOAT),
    Case(
        "GroupNorm GroupNormBackward",
        with_gradients(lambda x, *p: F.group_norm(x, 2, *p)),
        (IMAGE, SCALE, SHIFT),
    ),
    Case("GroupNorm GroupNormBackward", with_gradients(lambda x: F.group_norm(x, 2)), (IMAGE,)),
    Case("GroupNorm", lambda x, *p: F.group_norm(x, 4, *p), (IMAGE.half(), SCALE.half(), SHIFT.half()), **HALF),
    Case("AddRmsNorm", add_rms_norm, (X, numbers(3, 4, seed=5), SCALE), **FLOAT),
    Case("AddRmsNorm", add_rms_norm, (X.half(), numbers(3, 4, seed=5).half(), SCALE.half()), **HALF),
    Case("Rsqrt", with_gradients(lambda x, w: F.rms_norm(x, (4,), w, 1e-5)), (X, SCALE), **FLOAT),
]


@cases_of(CASES)
def test_normalization(case: Case) -> None:
    check(case)
