"""Training steps of whole models, with torch's modules and with the same modules converted.

Two are from the examples: the digits' network of train_digits.py, and the Llama of finetune_llama.py with Llama's
vocabulary, whose loss ours computes without its logits. The third is shaped like Llama: RMSNorm, attention with rotary
positions, a gated feed-forward, tied embeddings, and cross entropy over a large vocabulary.
"""

from __future__ import annotations

import copy
import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

import aclnn_torch

EXAMPLES = Path(__file__).parents[1] / "examples"

Step = Callable[[], float]

# Tolerance of the two losses in the first steps, in multiples of eps at the loss: every earlier operation rounds.
AGREEMENT = 64
STEPS = 2  # the second loss depends on the first gradients


class Block(nn.Module):
    """One layer of a language model."""

    def __init__(self, width: int, heads: int, hidden: int):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_feed_forward = nn.RMSNorm(width, 1e-6), nn.RMSNorm(width, 1e-6)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.attended = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Of [batch, position, width]."""
        batch, length, width = x.shape
        projected = self.query_key_value(self.before_attention(x))
        query, key, value = projected.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attended(mixed.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.gate_up(self.before_feed_forward(x)).chunk(2, -1)
        return x + self.down(nn.functional.silu(gate) * up)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotates pairs of numbers by their position."""
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


class LanguageModel(nn.Module):
    """Shaped like Llama; returns the loss of predicting each token from those before it."""

    def __init__(self, layers: int = 4, width: int = 288, heads: int = 6, hidden: int = 768, vocabulary: int = 32000):
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(layers))
        self.last = nn.RMSNorm(width, 1e-6)
        self.loss = nn.CrossEntropyLoss()
        for matrix in self.parameters():
            if matrix.dim() == 2:
                nn.init.normal_(matrix, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Of [batch, position]."""
        width = self.embedding.weight.shape[1] // self.heads
        frequencies = 10000.0 ** -(torch.arange(0, width, 2) / width)
        angles = torch.outer(torch.arange(tokens.shape[1] - 1), frequencies).repeat(1, 2)
        x = self.embedding(tokens[:, :-1])
        cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cosine, sine)
        logits = nn.functional.linear(self.last(x), self.embedding.weight)
        return self.loss(logits.flatten(0, 1), tokens[:, 1:].flatten())


def steps(name: str, dtype: torch.dtype) -> tuple[Step, Step]:
    """A training step of a converted model and of the same in torch; each call is the next step of its own copy."""
    ours, torchs = {"digits": digits, "llama": llama, "finetune_llama": finetune_llama}[name](dtype)
    for _ in range(STEPS):
        # A 16-bit loss is computed from many float32 sums and rounded when returned.
        torch.testing.assert_close(ours(), torchs(), rtol=AGREEMENT * torch.finfo(dtype).eps, atol=0)
    return ours, torchs


def digits(dtype: torch.dtype) -> tuple[Step, Step]:
    """The example's network, on one of its batches."""
    example = example_of("train_digits")
    torch.manual_seed(0)
    model = example.build_model(nn).to(dtype)
    images, _, labels, _ = example.load_data(0)
    batch = images[: example.BATCH].to(dtype), labels[: example.BATCH]

    def step_of(model: nn.Module) -> Step:
        return functools.partial(example.train_step, example.new_run(model, 1), *batch)

    return step_of(converted(model)), step_of(model)


def example_of(name: str) -> ModuleType:
    """A module of the examples."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    return importlib.import_module(name)


VOCABULARY = 32000  # Llama's


def finetune_llama(dtype: torch.dtype) -> tuple[Step, Step]:
    """The example's Llama, on one of its batches."""
    ours, torchs = (finetune_llama_step(converts, dtype) for converts in (True, False))
    return ours, torchs


def finetune_llama_step(converts: bool, dtype: torch.dtype) -> Step:
    """One of the two models, from the same weights."""
    example = example_of("finetune_llama")
    torch.manual_seed(0)
    model = example.build_model(VOCABULARY).to(dtype)
    if converts and "lm_head" not in aclnn_torch.convert(model, linear_loss=True):
        raise AssertionError("the head is not converted")
    run = example.new_run(model)
    text, _ = example.load_text()
    batch = text[: example.BATCH]

    def step() -> float:
        example.train_step(run, batch)
        return float(run.losses[-1])

    return step


def llama(dtype: torch.dtype) -> tuple[Step, Step]:
    """The language model on random tokens."""
    torch.manual_seed(0)
    model = LanguageModel().to(dtype)
    tokens = torch.randint(model.embedding.num_embeddings, (4, 257))

    def step_of(model: nn.Module) -> Step:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def step() -> float:
            optimizer.zero_grad()
            loss = model(tokens)
            loss.backward()
            optimizer.step()
            return loss.item()

        return step

    return step_of(converted(model)), step_of(model)


def converted(model: nn.Module) -> nn.Module:
    """A copy with converted modules."""
    ours = copy.deepcopy(model)
    if not aclnn_torch.convert(ours):
        raise AssertionError("nothing is converted")
    return ours
