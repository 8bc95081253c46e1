"""A converted model of Transformers on simulated NPUs."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_llama_learns_as_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed on both devices, converted and not."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    llama = importlib.import_module("finetune_llama")
    on_cpu, on_npu = (llama.train(steps=4, seed=0, output=tmp_path, device=device) for device in ("cpu", "npu"))
    assert on_npu.difference < 1e-5
    for name, run in on_npu.runs.items():
        torch.testing.assert_close(run.losses, on_cpu.runs[name].losses, rtol=1e-5, atol=0)
