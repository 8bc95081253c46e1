"""Comparison of two trainings with the same start, one of them on a simulated NPU."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

# Relative bounds on the difference of the losses, and of the displacements of all parameters. In float32 only the order
# of sums differs; in 16 bits roundings differ, too.
BOUNDS = {
    torch.float32: (1e-5, 1e-4),
    torch.bfloat16: (torch.finfo(torch.bfloat16).eps / 4, 2 * torch.finfo(torch.bfloat16).eps),
    torch.float16: (torch.finfo(torch.float16).eps / 4, 2 * torch.finfo(torch.float16).eps),
}


class Training(NamedTuple):
    """The records of a training: the loss of each step, and the parameters after the last."""

    losses: list[float]
    parameters: Tensor


def flat(model: nn.Module) -> Tensor:
    """The trainable parameters, as one vector on the CPU."""
    return torch.cat([value.detach().float().cpu().flatten() for value in model.parameters() if value.requires_grad])


def expect_alike(found: Training, expected: Training, start: Tensor, dtype: torch.dtype = torch.float32) -> None:
    """Every loss is equal, and the parameters moved in the same direction, within the dtype's precision.

    Adam moves a parameter whose gradient is nearly 0 by the sign of a rounding error, so the displacement is compared
    as a whole, and not number by number.
    """
    of_a_loss, of_the_way = BOUNDS[dtype]
    torch.testing.assert_close(found.losses, expected.losses, rtol=of_a_loss, atol=0)
    way = torch.linalg.vector_norm(expected.parameters - start).item()
    apart = torch.linalg.vector_norm(found.parameters - expected.parameters).item()
    assert way > 0
    assert apart <= of_the_way * way, f"{apart / way:.1e} of the way apart"
