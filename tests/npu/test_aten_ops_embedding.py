"""Embeddings under torch_npu; csrc/cann/rows/indexing/embedding.cpp."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from tests import LONGEST

from .aten_ops import Case, cases_of, check, numbers, with_gradients

TABLE = numbers(10, 4)
TOKENS = torch.tensor([[1, 9, 0], [1, 3, 1]])


def embed(indices: torch.Tensor, table: torch.Tensor, **keywords: object) -> torch.Tensor:
    return F.embedding(indices, table, **keywords)


CASES = [
    *(Case("Embedding", embed, (TOKENS, TABLE.to(dtype))) for dtype in (torch.float, torch.half, torch.bfloat16)),
    Case("Embedding", embed, (TOKENS.int(), TABLE)),
    Case("Embedding", embed, (TOKENS[:0], TABLE)),
    Case("Embedding", embed, (TOKENS.t(), numbers(4, 10).t())),
    Case("EmbeddingDenseBackward", with_gradients(embed), (TOKENS, TABLE)),
    Case("EmbeddingDenseBackward", with_gradients(partial(embed, padding_idx=1)), (TOKENS, TABLE)),
    Case("EmbeddingDenseBackward", with_gradients(partial(embed, scale_grad_by_freq=True)), (TOKENS, TABLE)),
    Case("EmbeddingRenorm Embedding", partial(embed, max_norm=1.0), (TOKENS, TABLE)),
    Case("EmbeddingRenorm Embedding", partial(embed, max_norm=1.0, norm_type=1.0), (TOKENS, TABLE)),
    Case("OneHot", partial(F.one_hot, num_classes=12), (TOKENS,)),
    Case("OneHot", partial(F.one_hot, num_classes=10), (TOKENS[0],)),
]


@cases_of(CASES)
def test_embedding(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("token", [-1, 10])
def test_a_token_outside_the_table_is_an_error(token: int) -> None:
    """The stream detects it, and the error stays with the device, so a separate process runs it."""
    code = f"""
import torch
import torch_npu
x = torch.nn.functional.embedding(torch.tensor([0, {token}]).npu(), torch.ones(10, 4).npu())
torch.npu.synchronize()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONGEST)
    assert result.returncode != 0
    reason = "the values do not fit; ATen, which computes it, says: index out of range"
    assert f"aclnnEmbedding: the computation failed: {reason}" in result.stderr
