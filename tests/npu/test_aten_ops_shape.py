"""Creating, joining and moving tensors under torch_npu; csrc/cann/rows/shape."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F

from .aten_ops import Case, cases_of, check

X = torch.arange(48.0).reshape(2, 4, 6)
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool)
LIKE = torch.zeros(2)


def on_device(call: object, *arguments: object, **keywords: object) -> object:
    """A factory function of torch, on the device of a given tensor."""
    return lambda like: call(*arguments, device=like.device, **keywords)  # type: ignore[operator]


def unfolded(x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    x.unfold(1, 3, 2).square().sum().backward()
    return x.grad


def folded(x: torch.Tensor) -> torch.Tensor:
    return F.fold(x, (5, 6), (2, 3))


CASES = [
    Case("Arange", on_device(torch.arange, 7), (LIKE,)),
    Case("Arange", on_device(torch.arange, 1, 2.5, 0.25), (LIKE,)),
    Case("Arange", on_device(torch.arange, 10, 0, -3, dtype=torch.int32), (LIKE,)),
    Case("Arange", on_device(torch.arange, 0, 5, dtype=torch.float16), (LIKE,)),
    Case("Range", on_device(torch.range, 1, 4, 0.5), (LIKE,)),
    Case("Linspace", on_device(torch.linspace, -1, 1, 11), (LIKE,)),
    Case("Linspace", on_device(torch.linspace, 0, 5, 6, dtype=torch.int64), (LIKE,)),
    Case("LogSpace", on_device(torch.logspace, 0, 2, 5, base=3.0), (LIKE,)),
    Case("Eye", on_device(torch.eye, 3), (LIKE,)),
    Case("Eye", on_device(torch.eye, 2, 4, dtype=torch.int32), (LIKE,)),
    Case("InplaceFillDiagonal", partial(torch.Tensor.fill_diagonal_, fill_value=2.5, wrap=True), (X.reshape(12, 4),)),
    *(
        Case(name, call, (X.to(dtype),))
        for dtype in DTYPES
        for name, call in [
            ("Cat", lambda x: torch.cat([x, x[:, :1], x[:, 1:3]], dim=1)),
            ("Stack", lambda x: torch.stack([x, x.flip(0)], dim=-1)),
            ("Repeat", lambda x: x.repeat(2, 1, 3)),
            ("Flip", partial(torch.flip, dims=(0, 2))),
            ("Roll", partial(torch.roll, shifts=(1, -2), dims=(0, 2))),
            ("Triu", partial(torch.triu, diagonal=1)),
            ("Tril", partial(torch.tril, diagonal=-1)),
            ("InplaceTriu", partial(torch.Tensor.triu_)),
            ("InplaceTril", partial(torch.Tensor.tril_, diagonal=1)),
            ("InplaceCopy", lambda x: x.permute(2, 0, 1).contiguous()),
            ("InplaceCopy", lambda x: x[:, :1].expand(2, 5, 6).clone()),
            ("ConstantPadNd", lambda x: F.pad(x, (1, 2, 0, 1), value=1)),
            ("ConstantPadNd", lambda x: F.pad(x, (-1, 0))),
        ]
    ),
    Case("Cat", lambda *parts: torch.cat(parts, 0), (X[0], X.half()[1], X[0, :0])),
    Case("Cat", lambda x: torch.cat([x[i % 2] for i in range(100)]), (X,)),
    Case("ChannelShuffle", partial(F.channel_shuffle, groups=2), (X.reshape(2, 4, 2, 3),)),
    Case("Im2col", lambda x: F.unfold(x, (2, 3), dilation=1, padding=1, stride=2), (X.reshape(1, 2, 4, 6),)),
    Case("Im2colBackward", folded, (X.reshape(1, 48)[:, :1].expand(1, 16 * 6).reshape(1, 6, 16) + 1,)),
    Case("UnfoldGrad", unfolded, (X,)),
    Case("RepeatInterleaveInt", partial(torch.repeat_interleave, repeats=3), (X,)),
    Case("RepeatInterleaveIntWithDim", partial(torch.repeat_interleave, repeats=2, dim=1), (X,)),
    Case("RepeatInterleave", torch.repeat_interleave, (torch.arange(4.0), torch.tensor([0, 2, 1, 3]))),
    Case("RepeatInterleaveWithDim", partial(torch.repeat_interleave, dim=1), (X, torch.tensor([0, 2, 1, 3]))),
    Case("RepeatInterleaveTensor", torch.repeat_interleave, (torch.tensor([0, 2, 1, 3]),)),
]


@cases_of(CASES)
def test_shape(case: Case) -> None:
    check(case)
