"""Activation functions and their gradients under torch_npu; csrc/cann/rows/activation."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
import torch_npu

from .aten_ops import Case, cases_of, check, on_npu, with_gradients

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
X = torch.linspace(-4, 4, 48).reshape(4, 12)
INPUTS = [*(X.to(d) for d in FLOATS), torch.linspace(-4, 4, 48).reshape(12, 4).t()]


gelu_by_tanh = partial(F.gelu, approximate="tanh")


def swiglu(x: torch.Tensor) -> torch.Tensor:
    first, second = x.float().chunk(2, -1)
    return (F.silu(first) * second).to(x.dtype)


def fast_gelu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(1.702 * x)


def geglu(x: torch.Tensor) -> torch.Tensor:
    kept, activated = x.chunk(2, -1)
    return kept * gelu_by_tanh(activated)


CASES = [
    *(
        Case(name, with_gradients(call), (x,))
        for x in INPUTS
        for name, call in [
            ("Relu ThresholdBackward", F.relu),
            ("Threshold ThresholdBackward", partial(F.threshold, threshold=0.5, value=-1.0)),
            ("LeakyRelu LeakyReluBackward", partial(F.leaky_relu, negative_slope=0.2)),
            ("Sigmoid SigmoidBackward", torch.sigmoid),
            ("Tanh TanhBackward", torch.tanh),
            ("Celu", partial(F.celu, alpha=1.5)),
            ("Hardtanh HardtanhBackward", partial(F.hardtanh, min_val=-0.5, max_val=2.0)),
            ("Hardtanh HardtanhBackward", F.relu6),
            ("Hardshrink HardshrinkBackward", partial(F.hardshrink, lambd=0.7)),
            ("Softshrink SoftshrinkBackward", partial(F.softshrink, lambd=0.7)),
            ("LogSigmoidForward LogSigmoidBackward", F.logsigmoid),
            ("Glu GluBackward", partial(F.glu, dim=1)),
            ("Softmax SoftmaxBackward", partial(F.softmax, dim=1)),
            ("Softmax SoftmaxBackward", partial(F.softmax, dim=0)),
        ]
    ),
    *(
        # The gradient is exp(result) times a sum of 12 weights up to 1.5, from a rounded result up to 4.
        Case("LogSoftmax LogSoftmaxBackward", with_gradients(partial(F.log_softmax, dim=-1)), (x,), absolute=bound)
        for x, bound in ((X, 0.0), (X.half(), 2**-8), (X.bfloat16(), 2**-5))
    ),
    *(
        Case(name, call, (x,))
        for x in (X, X.half(), X.t())
        for name, call in [
            ("InplaceRelu", torch.relu_),
            ("InplaceThreshold", lambda x: F.threshold_(x, 0.5, -1.0)),
            ("InplaceLeakyRelu", lambda x: F.leaky_relu_(x, 0.2)),
            ("InplaceCelu", lambda x: F.celu_(x, 1.5)),
            ("InplaceHardtanh", lambda x: F.hardtanh_(x, -0.5, 2.0)),
        ]
    ),
    *(
        Case("Prelu PreluBackward", with_gradients(F.prelu), (x, w))
        for x in (X, X.half(), X.reshape(2, 4, 6))
        for w in (torch.tensor([0.25]), torch.linspace(0.1, 0.9, x.shape[1]))
        for w in [w.to(x.dtype)]
    ),
    # Different formulas from ATen's for the same functions: a few roundings of the largest value.
    Case("SwiGlu SwiGluGrad", with_gradients(on_npu(torch_npu.npu_swiglu, swiglu)), (X,), 1e-6, 1e-6),
    Case("FastGelu FastGeluBackward", with_gradients(on_npu(torch_npu.fast_gelu, fast_gelu)), (X,), 1e-6, 1e-6),
    Case(
        "GeGluV3 GeGluV3Backward",
        with_gradients(on_npu(lambda x: torch_npu.npu_geglu(x)[0], geglu)),
        (X,),
        1e-6,
        1e-6,
    ),
    Case("Relu", torch.relu, (torch.arange(-3, 3),)),
    Case("Softmax", partial(torch.softmax, dim=0, dtype=torch.float32), (X.half(),)),
    Case("Softmax", partial(torch.softmax, dim=0), (torch.tensor(2.0),)),
]


@cases_of(CASES)
def test_activation(case: Case) -> None:
    check(case)
