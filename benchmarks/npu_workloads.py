"""What `benchmarks.npu_beside_cpu` runs on a simulated NPU and on the CPU: the same program with another device.

A workload is built for a device and then is a function that does one step and waits for it. A step of an elementwise
workload is a number of calls, of which the last is waited for, as in a program that does not look at every result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Step = Callable[[], object]
DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class Workload:
    """A name, the limit of the NPU's time as a multiple of the CPU's, calls per step, and what makes the step."""

    name: str
    bar: float | None
    calls: int
    build: Callable[[str], Step]


def waiting(device: str, work: Step) -> Step:
    """A step that ends when the device is done."""
    import torch

    if device == "cpu":
        return work

    def step() -> None:
        work()
        torch.npu.synchronize()

    return step


def llama(hidden: int, layers: int, dtype: str, device: str) -> torch.nn.Module:
    """A Llama of Transformers with random weights, the same for each device."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1024,
        hidden_size=hidden,
        intermediate_size=hidden * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).to(device=device, dtype=getattr(torch, dtype))


def training(hidden: int, layers: int, batch: int, length: int, dtype: str, device: str) -> Step:
    """Forward, loss, backward, AdamW."""
    import torch

    network = llama(hidden, layers, dtype, device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
    tokens = torch.randint(1024, (batch, length)).to(device)

    def step() -> None:
        network(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return waiting(device, step)


def generation(dtype: str, device: str) -> Step:
    """16 tokens, one after the other, with a static cache."""
    import torch

    network = llama(256, 4, dtype, device).eval()
    tokens = torch.randint(1, 1024, (2, 16)).to(device)
    generate = functools.partial(
        network.generate,
        tokens,
        attention_mask=torch.ones_like(tokens),
        max_new_tokens=16,
        min_new_tokens=16,
        do_sample=False,
        cache_implementation="static",
        disable_compile=True,
    )
    return waiting(device, generate)


def optimizer_step(fused: bool, dtype: str, device: str) -> Step:
    """AdamW alone, on 96 small and 8 large tensors."""
    import torch

    torch.manual_seed(0)
    sizes = [(64, 64)] * 96 + [(1024, 1024)] * 8
    parameters = [torch.randn(size).to(device=device, dtype=getattr(torch, dtype)) for size in sizes]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    return waiting(device, torch.optim.AdamW(parameters, lr=1e-4, fused=fused or None).step)


def images(device: str) -> Step:
    """An epoch of 8 batches of images, which two workers make, through a small convolutional network."""
    import torch

    class Images(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
        def __len__(self) -> int:
            return 256

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            generator = torch.Generator().manual_seed(index)
            return torch.randint(256, (3, 64, 64), dtype=torch.uint8, generator=generator), index % 10

    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [torch.nn.Conv2d(before, after, 3, stride=2, padding=1), torch.nn.BatchNorm2d(after), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(64 * 8 * 8, 10)).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-2, momentum=0.9)
    loader = torch.utils.data.DataLoader(
        Images(), batch_size=32, num_workers=2, persistent_workers=True, pin_memory=device != "cpu"
    )

    def epoch() -> None:
        for batch, labels in loader:
            pictures = batch.to(device, non_blocking=True).float() / 255
            loss = torch.nn.functional.cross_entropy(network(pictures), labels.to(device, non_blocking=True))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return waiting(device, epoch)


FUNCTIONS = ("fill_", "zero_", "copy_", "add", "add_", "mul_", "exp", "gelu", "softmax", "sum")


def calls(function: str, size: int, count: int, dtype: str, device: str) -> Step:
    """Calls of a function on tensors of so many bytes, in rows of 1024 elements."""
    import torch

    torch.manual_seed(0)
    type_of_elements = getattr(torch, dtype)
    shape = (size // type_of_elements.itemsize // 1024, 1024)
    a, b = (torch.rand(shape).to(device=device, dtype=type_of_elements) for _ in range(2))
    call: Step = {
        "fill_": lambda: a.fill_(2.0),
        "zero_": lambda: a.zero_(),
        "copy_": lambda: a.copy_(b),
        "add": lambda: torch.add(a, b),
        "add_": lambda: a.add_(b, alpha=1e-9),
        "mul_": lambda: a.mul_(b),
        "exp": lambda: torch.exp(a),
        "gelu": lambda: torch.nn.functional.gelu(a, approximate="tanh"),
        "softmax": lambda: torch.softmax(a, -1),
        "sum": lambda: torch.sum(a, -1),
    }[function]

    def work() -> None:
        for _ in range(count):
            call()

    return waiting(device, work)


def workloads() -> list[Workload]:
    """All workloads, in the order of the tables."""
    found = []
    for hidden, layers, batch, length, bar in (
        (64, 2, 2, 32, 2.0),
        (256, 4, 4, 128, 1.25),
        (1024, 2, 4, 128, 1.1),
    ):
        for dtype in DTYPES:
            name = f"Llama step, hidden {hidden}, {layers} layers, {batch} x {length} tokens, {dtype}"
            build = functools.partial(training, hidden, layers, batch, length, dtype)
            found.append(Workload(name, bar if dtype == "float32" else 1.0, 1, build))
    for dtype in DTYPES:
        build = functools.partial(generation, dtype)
        found.append(Workload(f"Llama, hidden 256, 16 tokens generated, {dtype}", None, 1, build))
    for dtype in DTYPES:
        for fused in (False, True):
            name = f"AdamW{', fused' if fused else ''}, 8.8 M parameters, {dtype}"
            found.append(Workload(name, None, 1, functools.partial(optimizer_step, fused, dtype)))
    found.append(Workload("images, 8 batches of 32 by a DataLoader, float32", None, 1, images))
    for text, size, count, bar in (("64 KiB", 64 << 10, 200, 1.3), ("64 MiB", 64 << 20, 2, 1.1)):
        for dtype in DTYPES:
            for function in FUNCTIONS:
                build = functools.partial(calls, function, size, count, dtype)
                found.append(Workload(f"{function}, {text}, {dtype}", bar, count, build))
    return found
