"""Rounds of (an operator of torch_npu, one of ours, one of torch_npu), each reading the previous result.

As a program it prints the number of wrong results: ``python order.py one`` or ``two`` streams.
"""

from __future__ import annotations

import sys

import torch
import torch_npu  # noqa: F401
from torch import Tensor

import aclnn_torch

ROUNDS = 500
SIZE = 2000


def inputs() -> Tensor:
    """One row per round, all different, so that a result computed from another round's memory is wrong."""
    return torch.linspace(-2, 2, ROUNDS)[:, None] + torch.linspace(0, 0.1, SIZE)


def expected(x: Tensor) -> Tensor:
    """The expected results of the rounds, on the CPU."""
    return aclnn_torch.functional.elu(x + 1) * 2


def wrong(results: list[Tensor]) -> int:
    """The number of rounds with wrong results."""
    torch.npu.synchronize()
    pairs = zip(results, expected(inputs()), strict=True)
    return sum(not torch.equal(result.cpu(), row) for result, row in pairs)


def one_stream() -> list[Tensor]:
    """Everything on the current stream; a round's memory is reused by the next."""
    results = []
    for row in inputs().npu().unbind():
        y = row + 1
        z = aclnn_torch.functional.elu(y)
        results.append(z * 2)
    return results


def two_streams() -> list[Tensor]:
    """Ours on a separate stream, with an event before and one after it."""
    other = torch.npu.Stream()
    results = []
    for row in inputs().npu().unbind():
        y = row + 1
        other.wait_event(torch.npu.current_stream().record_event())
        with torch.npu.stream(other):
            z = aclnn_torch.functional.elu(y)
            done = other.record_event()
        torch.npu.current_stream().wait_event(done)
        # The allocator only knows the streams on which memory was allocated.
        y.record_stream(other)
        z.record_stream(torch.npu.current_stream())
        results.append(z * 2)
    return results


STREAMS = {"one": one_stream, "two": two_streams}

if __name__ == "__main__":
    print(wrong(STREAMS[sys.argv[1]]()))
