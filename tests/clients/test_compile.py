"""torch.compile of a library's model, with backends that do not need a device's code generator."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests import LONGEST
from tests.clients.llama import llama, sentences
from tests.clients.training import Training, expect_alike, flat


def train(start: nn.Module, tokens: Tensor, device: str, backend: str | None = None) -> Training:
    """Steps of AdamW on one batch, with a compiled or plain model."""
    model = copy.deepcopy(start).to(device).train()
    forward = model if backend is None else torch.compile(model, backend=backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    tokens = tokens.to(device)
    losses = []
    for _ in range(5):
        loss = forward(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return Training(losses, flat(model))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "npugraphs"])
def test_a_compiled_llama_learns_as_an_eager_one_on_the_cpu(backend: str) -> None:
    torch.compiler.reset()
    start, tokens = llama(), sentences(4)
    expected = train(start, tokens, "cpu")
    expect_alike(train(start, tokens, "npu", backend), expected, flat(start))


@torch.no_grad()
def test_a_llama_predicts_as_on_the_cpu_through_npugraph_ex() -> None:
    """In training, the backend's check of strides stops at the attention: torch_npu's result is not as torch's meta."""
    torch.compiler.reset()
    model = llama().eval()
    run = torch.compile(copy.deepcopy(model).npu(), backend="npugraph_ex", dynamic=False)
    for sequences in (4, 4, 2):
        tokens = sentences(sequences)
        torch.testing.assert_close(run(input_ids=tokens.npu()).logits.cpu(), model(input_ids=tokens).logits)


INDUCTOR = """
import torch
import torch_npu
from torch.nn import functional as F

def function(x, w, b):
    y = F.layer_norm(torch.sigmoid(x @ w) + b.exp() * 2, (6,))
    return (y.softmax(-1)[:, None, :] * y[:, :, None]).sum(1).relu()

compiled = torch.compile(function)
for size in (3, 3, 5, 7):
    leaves = [[torch.randn(size, 4), torch.randn(4, 6), torch.randn(6)]]
    leaves.append([tensor.npu() for tensor in leaves[0]])
    for tensors in leaves:
        for tensor in tensors:
            tensor.requires_grad_()
    expected, actual = function(*leaves[0]), compiled(*leaves[1])
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)
    expected.square().sum().backward()
    actual.square().sum().backward()
    for on_cpu, on_npu in zip(*leaves):
        torch.testing.assert_close(on_npu.grad.cpu(), on_cpu.grad, rtol=1e-4, atol=1e-5)
print("equal")
"""


def inductor(folder: Path, fallbacks: str) -> subprocess.CompletedProcess[str]:
    """The program's end, in a process whose Inductor has compiled nothing yet."""
    named = {"NPU_INDUCTOR_FALLBACK_LIST": fallbacks, "TORCHINDUCTOR_CACHE_DIR": str(folder)}
    command = [sys.executable, "-W", "ignore", "-c", INDUCTOR]
    return subprocess.run(command, env=os.environ | named, capture_output=True, text=True, timeout=LONGEST)


def test_inductor_calls_npu_operators(tmp_path: Path) -> None:
    """torch_npu's Inductor needs Triton to be installed, and makes no kernel with this setting."""
    result = inductor(tmp_path, "allfallback")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "equal"


def test_inductors_kernels_are_refused(tmp_path: Path) -> None:
    result = inductor(tmp_path, "")
    assert result.returncode == 1
    assert (
        "triton.backends.ascend is part of triton-ascend, for whose compiler torch_npu's Inductor makes kernels, and "
        "the host CANN does not have it; set NPU_INDUCTOR_FALLBACK_LIST=allfallback, so that Inductor calls NPU "
        'operators, or call torch.compile(..., backend="npugraph_ex")'
    ) in result.stderr
