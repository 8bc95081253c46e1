"""accelerate's models that do not fit on one NPU: spread over two, or offloaded and loaded layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import accelerate
import pytest
import torch
from transformers import LlamaForCausalLM

from tests.clients.llama import llama, sentences

Place = Callable[[LlamaForCausalLM, Path], LlamaForCausalLM]


def spread(model: LlamaForCausalLM, folder: Path) -> LlamaForCausalLM:
    """A layer on each NPU, as the program specifies."""
    second = ("model.layers.1", "model.norm", "lm_head")
    first = ("model.embed_tokens", "model.rotary_emb", "model.layers.0")
    return accelerate.dispatch_model(model, dict.fromkeys(first, 0) | dict.fromkeys(second, 1))


def loaded(model: LlamaForCausalLM, folder: Path) -> LlamaForCausalLM:
    """Over both, by the library's estimate of free memory."""
    model.save_pretrained(folder)
    return LlamaForCausalLM.from_pretrained(folder, device_map="auto", max_memory={0: "60KB", 1: "1MB"})


def from_host(model: LlamaForCausalLM, folder: Path) -> LlamaForCausalLM:
    """The parameters stay in host memory."""
    return accelerate.cpu_offload(model, torch.device("npu:0"))


def from_disk(model: LlamaForCausalLM, folder: Path) -> LlamaForCausalLM:
    """The parameters stay in files."""
    return accelerate.disk_offload(model, folder, torch.device("npu:0"))


PLACES: dict[Place, set[str]] = {
    spread: {"npu:0", "npu:1"},
    loaded: {"npu:0", "npu:1"},
    from_host: {"meta"},
    from_disk: {"meta"},
}


@pytest.mark.parametrize("place", PLACES)
@torch.inference_mode()
def test_a_model_answers_as_on_the_cpu(place: Place, tmp_path: Path) -> None:
    model, tokens = llama().eval(), sentences(2)
    expected = model(tokens).logits
    placed = place(model, tmp_path)
    assert {str(parameter.device) for parameter in placed.parameters()} == PLACES[place]
    torch.testing.assert_close(placed(tokens.npu()).logits.cpu(), expected)
