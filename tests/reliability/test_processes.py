"""Faults, threads and ends of processes, from Python: programs that must end correctly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import LONGEST, builds

ROOT = Path(__file__).resolve().parents[2]
FAULTS = ROOT / "build" / "release" / "tests" / "libfaults.so"

# Sixteen threads with separate tensors; exceptions in the backward of some; results checked in all.
THREADS = """
import threading
import torch
import aclnn_torch
from aclnn_torch import _C

class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        # An operator's own refusal: the shapes differ.
        return torch.ops.aclnn.selu_backward(grad, grad.new_ones(3))

def step(seed, fails):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(8, 24, generator=generator, requires_grad=True)
    gamma = torch.ones(24, requires_grad=True)
    y, _ = torch.ops.aclnn.rms_norm(torch.ops.aclnn.selu(torch.ops.aclnn.elu(x)), gamma)
    loss = torch.ops.aclnn.cross_entropy_loss(y, torch.arange(8))[0].sum()
    if fails:
        try:
            Fails.apply(loss.expand(4)).sum().backward()
        except aclnn_torch.AclnnError:
            return None
        raise SystemError("the failure was lost")
    loss.backward()
    return x.grad, gamma.grad

expected = [step(seed, False) for seed in range(16)]
wrong = []

def work(seed):
    for round in range(20):
        fails = (seed + round) % 3 == 0
        got = step(seed, fails)
        if not fails and not all(torch.equal(a, b) for a, b in zip(got, expected[seed])):
            wrong.append(seed)

threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
assert _C.live_objects() == 0, _C.live_objects()
print("done")
"""

# A child forked before the host CANN is loaded, and one after: both compute.
FORK = """
import os
import torch

def compute():
    x = torch.arange(-8.0, 8, requires_grad=True)
    torch.ops.aclnn.elu(x).sum().backward()
    return x.grad

def in_child(body):
    child = os.fork()
    if child == 0:
        os._exit(0 if body() else 1)
    assert os.waitpid(child, 0)[1] == 0

import aclnn_torch
in_child(lambda: bool(compute().isfinite().all()))
expected = compute()
in_child(lambda: torch.equal(compute(), expected))
assert torch.equal(compute(), expected)
print("done")
"""

# Workers of a DataLoader are forked children that compute.
DATA_LOADER = """
import torch
from torch.utils.data import DataLoader, Dataset
import aclnn_torch

class Computed(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.ops.aclnn.selu(torch.full((1000,), float(i - 32)))

torch.ops.aclnn.selu(torch.ones(4))  # the parent has computed before
rows = torch.cat(list(DataLoader(Computed(), batch_size=4, num_workers=2)))
expected = torch.stack([Computed()[i] for i in range(64)])
assert torch.equal(rows, expected)
print("done")
"""

PROGRAMS = {"threads": THREADS, "fork": FORK, "data_loader": DATA_LOADER}


def run(arguments: list[str], **environment: str) -> str:
    """The output of a program that must succeed."""
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""} | environment,  # torch's CUDA build forbids forking
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST,
    )
    assert result.returncode == 0, f"ended with {result.returncode}\n{result.stdout}"
    return result.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    assert run(["-c", PROGRAMS[name]]).endswith("done\n")


def test_no_fault_does_harm() -> None:
    builds.cpp_tests()
    printed = run(["-m", "tests.reliability.faults"], LD_PRELOAD=str(FAULTS.relative_to(ROOT)), OMP_NUM_THREADS="1")
    assert "calls: " in printed
    assert "allocations of the extension: " in printed


@pytest.mark.test_all
def test_nothing_grows() -> None:
    assert "threads of their own: " in run(["-m", "tests.reliability.soak"])
