"""Images under torch_npu; csrc/cann/rows/vision."""

from __future__ import annotations

from functools import partial

import torch.nn.functional as F

from .aten_ops import Case, cases_of, check, numbers, with_gradients

LINE = numbers(2, 3, 8)
IMAGE = numbers(2, 4, 8, 6)
VOLUME = numbers(2, 3, 4, 3, 5)
GRID = numbers(2, 5, 4, 2).clamp(-1.2, 1.2)


def pair(name: str) -> str:
    return f"{name} {name}Backward"


CASES = [
    *(
        Case(pair(f"{kind}Pad{x.dim() - 2}d"), with_gradients(partial(F.pad, pad=pad, mode=mode)), (x,))
        for kind, mode in (("Reflection", "reflect"), ("Replication", "replicate"))
        for x, pad in ((LINE, (1, 2)), (IMAGE, (1, 2, 3, 0)), (VOLUME, (1, 2, 0, 1, 2, 1)))
    ),
    Case("AffineGrid", partial(F.affine_grid, size=(2, 3, 4, 5)), (numbers(2, 2, 3),)),
    Case(pair("GridSampler2D"), with_gradients(partial(F.grid_sample, align_corners=False)), (IMAGE, GRID)),
    Case(
        pair("GridSampler2D"),
        with_gradients(partial(F.grid_sample, padding_mode="border", align_corners=True)),
        (IMAGE, GRID),
    ),
    Case("", with_gradients(partial(F.pixel_shuffle, upscale_factor=2)), (IMAGE,)),
    Case("", with_gradients(partial(F.pixel_unshuffle, downscale_factor=2)), (IMAGE,)),
]


@cases_of(CASES)
def test_vision(case: Case) -> None:
    check(case)
