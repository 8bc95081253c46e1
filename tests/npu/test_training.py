"""Ordinary training on simulated NPUs: the same numbers as on the CPU, and typical surrounding code."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import aclnn_torch

TOKENS, WIDTH, HEADS, LENGTH = 61, 32, 4, 16
LIBRARIES = {"aclnn_torch": aclnn_torch.nn, "torch": nn}


class Block(nn.Module):
    """Causal attention by matmul and softmax, and an MLP, each after an RMSNorm."""

    def __init__(self, library: ModuleType) -> None:
        super().__init__()
        self.before_attention = library.RMSNorm([WIDTH], eps=1e-6)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.joined = nn.Linear(WIDTH, WIDTH, bias=False)
        self.before_mlp = library.RMSNorm([WIDTH], eps=1e-6)
        self.gate, self.up = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.before_attention(x)).chunk(3, -1)
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(self.mask, -torch.inf).softmax(-1)
        x = x + self.joined(torch.matmul(weights, v).transpose(1, 2).flatten(2))
        h = self.before_mlp(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Transformer(nn.Module):
    """Two blocks between an embedding and the logits; returns the mean cross entropy of the next token."""

    def __init__(self, library: ModuleType) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.Sequential(Block(library), Block(library))
        self.norm = library.RMSNorm([WIDTH], eps=1e-6)
        self.head = nn.Linear(WIDTH, TOKENS, bias=False)
        self.loss = library.CrossEntropyLoss()

    def forward(self, tokens: Tensor) -> Tensor:
        logits = self.head(self.norm(self.blocks(self.embedding(tokens[:, :-1]))))
        return self.loss(logits.flatten(0, 1), tokens[:, 1:].flatten())


def make_transformer(library: ModuleType) -> Transformer:
    torch.manual_seed(0)
    return Transformer(library)


def batches(count: int, size: int = 8) -> list[Tensor]:
    """Token sequences determined by their beginning, so that there is something to learn."""
    generator = torch.Generator().manual_seed(1)
    first = torch.randint(TOKENS, (count, size, 1), generator=generator)
    step = torch.randint(1, 4, (count, size, 1), generator=generator)
    return list((first + step * torch.arange(LENGTH + 1)) % TOKENS)


def train(model: Transformer, device: str, steps: int = 20) -> list[float]:
    """The losses of AdamW on the device, all fetched at the end."""
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for tokens in batches(steps):
        loss = model(tokens.to(device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).cpu().tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_transformer_learns_as_on_the_cpu(library: str) -> None:
    expected = train(make_transformer(LIBRARIES[library]), "cpu")
    found = train(make_transformer(LIBRARIES[library]), "npu")
    assert expected[-1] < 0.8 * expected[0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)


def test_both_libraries_learn_alike() -> None:
    losses = [train(make_transformer(library), "npu") for library in LIBRARIES.values()]
    torch.testing.assert_close(*losses, rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_learns_as_on_the_cpu(dtype: torch.dtype) -> None:
    losses = {}
    for device in ("cpu", "npu"):
        model = make_transformer(aclnn_torch.nn)
        with torch.autocast(device, dtype):
            losses[device] = train(model, device, steps=5)
    torch.testing.assert_close(losses["npu"], losses["cpu"], rtol=4 * torch.finfo(dtype).eps, atol=0)


def test_every_device_trains() -> None:
    losses = [train(make_transformer(aclnn_torch.nn), f"npu:{index}", steps=3) for index in range(2)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fused_adamw_reads_tensors_of_other_strides_in_logical_order(dtype: torch.dtype, amsgrad: bool) -> None:
    """A parameter and a moment whose columns are contiguous, beside a gradient whose rows are: the formula of torch's
    documentation of AdamW, with each result rounded once."""
    torch.manual_seed(0)
    parameter, gradient, mean = (torch.randn(48, 64).to(dtype) for _ in range(3))
    square, largest = (torch.rand(48, 64).to(dtype) for _ in range(2))
    p, g, m, v, most = (tensor.double() for tensor in (parameter, gradient, mean, square, largest))
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    most = torch.maximum(most, v) if amsgrad else most
    corrected = (most if amsgrad else v) / (1 - 0.99**3)
    p = p * (1 - 0.01 * 0.1) - 0.01 * (m / (1 - 0.9**3)) / (corrected.sqrt() + 1e-8)

    def by_columns(tensor: Tensor) -> Tensor:
        return tensor.t().contiguous().npu().t()

    own = [by_columns(parameter), gradient.npu(), mean.npu(), by_columns(square), by_columns(largest)]
    assert not own[0].is_contiguous()
    lists = [[tensor] for tensor in own[:4]] + [[own[4]] if amsgrad else []]
    torch._fused_adamw_(
        *lists,
        [torch.tensor(3.0).npu()],
        lr=0.01,
        beta1=0.9,
        beta2=0.99,
        weight_decay=0.1,
        eps=1e-8,
        amsgrad=amsgrad,
        maximize=False,
    )
    bound = torch.finfo(dtype).eps
    for result, expected in zip(own, (p, g, m, v, most), strict=True):
        torch.testing.assert_close(result.cpu().double(), expected, rtol=bound, atol=bound)


def test_a_model_is_saved_and_loaded(tmp_path: Path) -> None:
    model = make_transformer(aclnn_torch.nn).to("npu")
    torch.save(model.state_dict(), tmp_path / "model.pt")
    # torch_npu 2.7 and 2.8 load to the current device only.
    for device in ("cpu", "npu:0", *["npu:1"] * (torch.__version__ >= (2, 9))):
        state = torch.load(tmp_path / "model.pt", map_location=device)
        assert {value.device for value in state.values()} == {torch.device(device)}
        other = Transformer(aclnn_torch.nn).to(device)
        other.load_state_dict(state)
        tokens = batches(1)[0]
        assert torch.equal(other(tokens.to(device)).cpu(), model(tokens.npu()).cpu())
    assert {value.device.type for value in torch.load(tmp_path / "model.pt").values()} == {"npu"}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_pins_memory(workers: int) -> None:
    """Its workers are forked while the NPU is in use, and only use the CPU."""
    torch.ones(3, device="npu").sum()
    tokens = torch.cat(batches(4))
    loader = DataLoader(TensorDataset(tokens), batch_size=8, num_workers=workers, pin_memory=True)
    seen = []
    for (batch,) in loader:
        assert batch.is_pinned()
        seen.append(batch.to("npu", non_blocking=True))
    assert torch.equal(torch.cat(seen).cpu(), tokens)


def network_of_everything() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=2),
        nn.GroupNorm(2, 8),
        nn.GELU("tanh"),  # the formula that torch_npu uses on every product
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 16),
        nn.LayerNorm(16),
        nn.SiLU(),
        nn.Dropout(0.0),
        nn.Linear(16, 5),
    )


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda parameters, foreach: torch.optim.SGD(parameters, 0.1, momentum=0.9, nesterov=True, foreach=foreach),
    "Adam": lambda parameters, foreach: torch.optim.Adam(parameters, 1e-2, foreach=foreach),
    "AdamW": lambda parameters, foreach: torch.optim.AdamW(parameters, 1e-2, amsgrad=True, foreach=foreach),
}


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_convolutional_network_of_plain_torch_learns(name: str, foreach: bool) -> None:
    """Without aclnn_torch: torch_npu's own operators on the host CANN."""
    torch.manual_seed(3)
    start = network_of_everything()
    images, labels = torch.randn(16, 1, 12, 12), torch.randint(5, (16,))
    losses = {}
    for device in ("cpu", "npu"):
        model = network_of_everything().to(device)
        model.load_state_dict(start.state_dict())
        optimizer = OPTIMIZERS[name](model.parameters(), foreach)
        x, y = images.to(device), labels.to(device)
        losses[device] = []
        for _ in range(8):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    assert losses["cpu"][-1] < 0.8 * losses["cpu"][0]
    torch.testing.assert_close(losses["npu"], losses["cpu"], rtol=1e-4, atol=0)
