"""A small Llama of Transformers with random weights, and its training data."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY, LENGTH = 61, 16
# Other models have the same sizes.
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


def llama() -> LlamaForCausalLM:
    """A language model."""
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, num_key_value_heads=2, **SIZES))


def sentences(count: int) -> Tensor:
    """Token sequences determined by the first token of each row."""
    return (torch.randint(VOCABULARY, (count, 1)) + 2 * torch.arange(LENGTH)) % VOCABULARY
