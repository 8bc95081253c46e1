"""Text generation by a model of Transformers."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.clients.llama import LENGTH, llama, sentences


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_the_same_tokens_as_on_the_cpu(attention: str, cache: str) -> None:
    """With beam search, from prompts of several lengths."""
    model, tokens = llama().eval(), sentences(3)
    model.set_attn_implementation(attention)
    mask = (torch.arange(LENGTH) >= torch.tensor([[0], [3], [9]])).long()
    settings = {"max_new_tokens": 12, "min_new_tokens": 12, "num_beams": 3, "pad_token_id": 0}
    expected = model.generate(tokens, attention_mask=mask, do_sample=False, cache_implementation=cache, **settings)
    on_npu = copy.deepcopy(model).npu()
    found = on_npu.generate(
        tokens.npu(), attention_mask=mask.npu(), do_sample=False, cache_implementation=cache, **settings
    )
    assert found.shape == (3, LENGTH + 12)
    assert torch.equal(found.cpu(), expected)
