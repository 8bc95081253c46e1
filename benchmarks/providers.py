"""The providers of a case: by name, something to sample. All providers of a case use the same inputs."""

from __future__ import annotations

import contextlib
import functools
import math
import time
import timeit
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.profiler_legacy import profile

import aclnn_torch
from tests.operators.linear_cross_entropy import in_three

from . import cann, memory, models
from .cases import KERNELS, MODES, Case, Function, Model, Operator, Tensors, Vocabulary, noise
from .jax_peer import Jax
from .roofline import allocate, rooflines

# The provider that the others are compared with.
OURS = "aclnn"

# Tolerance for results of operators that are not elementwise, in multiples of eps at the largest result: torch's long
# float32 sums of a weight's gradient are up to 55 off, and 16-bit results are rounded more than once.
AGREEMENT = {torch.float32: 128, torch.bfloat16: 4, torch.float16: 4}
ELEMENTWISE = {kernel.operator for kernel in KERNELS}

# The size of the product that measures the processor's peak, for dtypes with hardware support.
GEMM_SIZE = 2048
# Peers whose estimated time for a loss of a large vocabulary, from a small part of it, is longer are not timed.
LONGEST_CALL = 25.0  # seconds
PARTS_OF_A_CALL = 16
GEMM_DTYPES = (torch.float32, torch.bfloat16)

# A result that stays in a core's private caches together with its inputs.
CACHED_BYTES = 256 << 10
CACHED_COLUMNS = 4096

# A sample consists of as many calls as take about this long, well above the clock's resolution.
SAMPLE_SECONDS = 5e-4

# Longer calls need no warm-up.
LONG_SECONDS = 0.1

# Idle threads spin this long after a call, and would take cores from another process.
SPIN_SECONDS = 5e-3


@dataclass(frozen=True)
class Settings:
    """The part of the machine in use, and the available optional peers."""

    threads: int = field(default_factory=torch.get_num_threads)
    jax: Jax | None = None
    compile: bool = True


@dataclass(frozen=True)
class Provider:
    """Something to time. All work of a case has one unit."""

    call: Callable[[], Any]
    work: float = 1.0

    def sample(self, calls: int) -> float:
        """The cost of a call, in seconds: the mean over this many."""
        return timeit.timeit(self.call, number=calls) / calls

    def prepare(self) -> tuple[int, float]:
        """Warms up; returns the number of calls of a sample, and its duration in seconds."""
        seconds = self._elapsed()
        if seconds < LONG_SECONDS:
            seconds = self._elapsed()
        calls = max(1, round(SAMPLE_SECONDS / seconds))
        return calls, calls * seconds

    def _elapsed(self) -> float:
        start = time.perf_counter()
        self.sample(1)
        return time.perf_counter() - start


@dataclass(frozen=True)
class OneThread(Provider):
    """The same on one thread."""

    def sample(self, calls: int) -> float:
        """The cost of a call, in seconds."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return super().sample(calls)
        finally:
            torch.set_num_threads(threads)
            self.call()  # wakes the other threads again


@dataclass(frozen=True)
class Rest(Provider):
    """The part of the work outside our operators: the time if these took none."""

    def sample(self, calls: int) -> float:
        """The cost of a call, in seconds."""
        with profile() as profiler:  # the profiler takes time when it ends
            start = time.perf_counter()
            self.call()
            elapsed = time.perf_counter() - start
        # The time of a nested call is included in its caller's.
        own = [
            event.cpu_time_total
            for event in profiler.function_events
            if event.name.startswith("aclnn::") and not _is_within_ours(event)
        ]
        return super().sample(calls) * (1 - sum(own) / 1e6 / elapsed)


def _is_within_ours(event: Any) -> bool:
    """True if one of our operators has called it, directly or not."""
    parent = event.cpu_parent
    return parent is not None and (parent.name.startswith("aclnn::") or _is_within_ours(parent))


@dataclass(frozen=True)
class Jaxs(Provider):
    """Work that JAX's process runs and times; `call` is ours."""

    jax: Jax | None = None

    def sample(self, calls: int) -> float:
        """The cost of a call, in seconds."""
        assert self.jax is not None
        time.sleep(SPIN_SECONDS)
        seconds = self.jax.time(calls)
        time.sleep(SPIN_SECONDS)
        self.call()  # wakes this process's threads again
        return seconds


@dataclass(frozen=True)
class Measured(Provider):
    """A provider whose cost is not in seconds and that returns it."""

    def sample(self, calls: int) -> float:
        """The cost of a call."""
        return float(self.call())

    def prepare(self) -> tuple[int, float]:
        """Takes the fewest samples allowed."""
        return 1, math.inf


Providers = dict[str, Provider]


@contextlib.contextmanager
def providers(case: Case, settings: Settings) -> Iterator[Providers]:
    """Makes the providers of a case, including ours; checks that equivalent ones agree."""
    with contextlib.ExitStack() as stack:
        subject = case.subject
        if isinstance(subject, Operator):
            make = {"kernel": _kernel, "curve": _kernel, "scaling": _scaling}.get(case.mode, _operator)
            yield make(case, subject, settings, stack)
        elif isinstance(subject, Function):
            yield _forward_backward(case, subject)
        elif isinstance(subject, Vocabulary):
            yield _vocabulary(case, subject, settings, stack)
        elif isinstance(subject, Model):
            ours, eager = models.steps(subject.name, case.dtype)
            yield {OURS: Provider(ours), "eager": Provider(eager), "rest of the step": Rest(ours)}
        else:
            peak = functools.partial(memory.peak, work=case.shape or subject.name, threads=settings.threads)
            others = [name for name in memory.OF_LINEAR_LAYERS if subject.name == "linear_cross_entropy"]
            yield {name: Measured(functools.partial(peak, name)) for name in others or (OURS, "eager")}


def _operator(case: Case, operator: Operator, settings: Settings, stack: contextlib.ExitStack) -> Providers:
    """An operator as a user calls it, and the available peers of its mode."""
    peers = MODES[case.mode][1]
    inputs = operator.inputs(case.shape, case.dtype)
    work = operator.flops(case.shape) if operator.flops else 1.0
    ours = functools.partial(operator.call, *operator.arguments(*inputs))
    expected = _tensors(ours())
    eager = operator.eager(*inputs) if operator.eager else functools.partial(operator.torch, *inputs)
    agree(operator, expected, _tensors(operator.expected(inputs)), f"{case}: eager")
    found = {OURS: Provider(ours, work), "eager": Provider(eager, work)}

    def add(name: str, provider: Provider, results: Sequence[Tensor]) -> None:
        # Eager torch's result is the reference.
        try:
            agree(operator, expected, results, name)
            found[name] = provider
        except AssertionError as error:
            warnings.warn(f"{case}: not timed. {error}", stacklevel=2)

    if "eager out=" in peers and operator.out:
        warm = tuple(torch.empty_like(tensor) for tensor in expected)
        call = operator.out(warm, *inputs)
        call()
        add("eager out=", Provider(call, work), warm)
    if "torch.compile" in peers and settings.compile:
        torch._dynamo.reset()
        compiled = functools.partial(torch.compile(operator.torch, dynamic=False), *inputs)
        add("torch.compile", Provider(compiled, work), _tensors(compiled()))
    if "JAX" in peers and settings.jax:
        stack.callback(settings.jax.unload)
        results = settings.jax.load(operator.operator, operator.jax, inputs)
        add("JAX", Jaxs(ours, work, settings.jax), results)
    if "nothing asked" in peers and operator.nothing:
        found["nothing asked"] = Provider(operator.nothing(*inputs), work)
    if "GEMM peak" in peers and case.dtype in GEMM_DTYPES:
        found["GEMM peak"] = _gemm_peak(case.dtype)
    if "roofline" in peers:
        present = tuple(_device_like(tensor) for tensor in inputs)
        moved, roofs = _traffic(operator, present, tuple(map(_device_like, expected)))
        found |= {name: Provider(roof.call, roof.work / moved * work) for name, roof in roofs.items()}
        cached = _in_cache(case, operator, moved / max(tensor.nbytes for tensor in expected), settings, stack)
        found["in cache"] = OneThread(cached.call, cached.work / moved * work)
    return found


def _gemm_peak(dtype: torch.dtype) -> Provider:
    """The highest rate of products."""
    a, b, c = (noise((GEMM_SIZE, GEMM_SIZE), dtype, seed) for seed in range(3))
    return Provider(functools.partial(torch.mm, a, b, out=c), 2.0 * GEMM_SIZE**3)


def _kernel(case: Case, operator: Operator, settings: Settings, stack: contextlib.ExitStack) -> Providers:
    """Stage 2 of the C ABI into existing results, and the fastest code with the same memory traffic."""
    inputs = tuple(_device_like(tensor) for tensor in operator.inputs(case.shape, case.dtype))
    results = _tensors(operator.call(*operator.arguments(*inputs)))
    outputs = tuple(allocate(tuple(tensor.shape), tensor.dtype) for tensor in results)
    call = _two_stage(operator, inputs, outputs, stack)
    call.run()
    agree(operator, outputs, _tensors(operator.expected(inputs)), f"{case}: eager")
    moved, roofs = _traffic(operator, inputs, outputs)
    found: Providers = {OURS: Provider(call.run, moved), **roofs}
    if "in cache" in MODES[case.mode][1]:
        found["in cache"] = _in_cache(case, operator, moved / max(tensor.nbytes for tensor in outputs), settings, stack)
    return found


def _two_stage(operator: Operator, inputs: Tensors, outputs: Tensors, stack: contextlib.ExitStack) -> cann.Call:
    """The operator through the C ABI."""
    call = cann.Call(operator.cann_name or operator.operator, (operator.cann or operator.arguments)(*inputs), outputs)
    stack.callback(call.close)
    return call


def _in_cache(
    case: Case, operator: Operator, traffic: float, settings: Settings, stack: contextlib.ExitStack
) -> Provider:
    """The kernel's time if memory took none: a few short rows, on one thread, repeated as often as there are threads.

    `traffic` is the bytes moved per byte of the largest result.
    """
    columns = tuple(min(size, CACHED_COLUMNS) for size in case.shape[1:])
    row = math.prod(columns) * case.dtype.itemsize
    rows = CACHED_BYTES // row
    inputs = operator.inputs((rows, *columns), case.dtype)
    outputs = _tensors(operator.call(*operator.arguments(*inputs)))
    call = _two_stage(operator, inputs, outputs, stack)
    return OneThread(call.run, traffic * rows * row * settings.threads)


def _traffic(operator: Operator, inputs: Tensors, outputs: Tensors) -> tuple[float, Providers]:
    """The bytes of a call, every tensor once, and the fastest code for the large tensors' traffic."""
    read = [value for value in operator.arguments(*inputs) if isinstance(value, Tensor)]
    written = max(outputs, key=lambda tensor: tensor.nbytes)
    large = [tensor for tensor in read if tensor.nbytes == written.nbytes]
    traffic = sum(tensor.nbytes for tensor in (*large, written))
    roofs = {f"roofline: {name}": Provider(function, traffic) for name, function in rooflines(large, written).items()}
    return sum(tensor.nbytes for tensor in (*read, *outputs)), roofs


def _scaling(case: Case, operator: Operator, settings: Settings, stack: contextlib.ExitStack) -> Providers:
    """Ours on all threads and on one."""
    call = functools.partial(operator.call, *operator.arguments(*operator.inputs(case.shape, case.dtype)))
    return {OURS: Provider(call), "1 thread": OneThread(call)}


def _forward_backward(case: Case, function: Function) -> Providers:
    """A function called on tensors that require grad, and its backward pass."""
    inputs = function.inputs(case.shape, case.dtype)
    wanted = [tensor.requires_grad_() for tensor in inputs if tensor.is_floating_point()]
    upstream = noise(tuple(function.torchs(*inputs).shape), case.dtype, 4)

    def step(call: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        return torch.autograd.grad(call(*inputs), wanted, upstream)

    ours, torchs = function.ours, function.torchs
    close([ours(*inputs)], [torchs(*inputs)], f"{case}: eager")
    close(step(ours), step(torchs), f"{case}: the gradient of eager")
    return {OURS: Provider(functools.partial(step, ours)), "eager": Provider(functools.partial(step, torchs))}


class _RowsInParts(torch.autograd.Function):
    """Liger-Kernel's algorithm in torch's operators: losses and gradients of some rows at a time, in the forward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, labels: Tensor) -> Tensor:
        # As many rows at a time as have logits of x's size.
        parts = max(1, matrix.shape[0] // x.shape[1])
        rows = 1 << (-(-x.shape[0] // parts) - 1).bit_length()
        total = torch.zeros(())
        of_x, of_matrix = torch.empty_like(x), torch.zeros_like(matrix, dtype=torch.float32)
        for some, own, gradient in zip(x.split(rows), labels.split(rows), of_x.split(rows), strict=True):
            logits = torch.nn.functional.linear(some, matrix).float()
            total += torch.nn.functional.cross_entropy(logits, own, reduction="sum")
            by_logits = logits.softmax(1)
            by_logits[torch.arange(len(own)), own] -= 1
            by_logits = by_logits.div_(len(labels)).to(x.dtype)
            torch.mm(by_logits, matrix, out=gradient)
            of_matrix += by_logits.t() @ some
        ctx.save_for_backward(of_x, of_matrix.to(matrix.dtype))
        return total / len(labels)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        of_x, of_matrix = ctx.saved_tensors
        return of_x * grad, of_matrix * grad, None


def _vocabulary(case: Case, subject: Vocabulary, settings: Settings, stack: contextlib.ExitStack) -> Providers:
    """The mean loss of a linear layer and its gradients, by all available implementations."""
    x, matrix, labels = inputs = subject.inputs(case.shape, case.dtype)
    work = subject.flops(case.shape)
    x.requires_grad_(), matrix.requires_grad_()

    def step(loss: Callable[..., Tensor], x: Tensor, matrix: Tensor, labels: Tensor) -> Tensors:
        value = loss(x, matrix, labels)
        return value.detach(), *torch.autograd.grad(value, (x, matrix))

    ours = functools.partial(step, aclnn_torch.functional.linear_cross_entropy, *inputs)
    # In 16 bits eager torch rounds logits and their gradients; only its float32 is right.
    wide = [tensor.detach().float().requires_grad_() for tensor in (x, matrix)]
    exact = step(memory.linear_cross_entropy, *wide, labels)
    close(ours(), exact, f"{case}: eager")
    found = {OURS: Provider(ours, work)}
    peers = {"eager": memory.linear_cross_entropy, "rows in parts": _RowsInParts.apply}
    if chunks := memory.OF_LINEAR_LAYERS.get("chunks"):
        peers["chunks"] = chunks
    few = -(-len(x) // PARTS_OF_A_CALL)
    for name, loss in peers.items():
        part = functools.partial(step, loss, x[:few], matrix, labels[:few])
        part()
        seconds = timeit.timeit(part, number=1) * len(x) / few
        if seconds < LONGEST_CALL:
            found[name] = Provider(functools.partial(step, loss, *inputs), work)
        else:
            warnings.warn(f"{case}: {name} is not timed: a call would take {seconds:.0f} s", stacklevel=2)
    if case.dtype != torch.float32:
        found["CANN's three"] = Provider(functools.partial(in_three, x.detach(), matrix.detach(), labels), work)
    if settings.compile and "eager" in found:
        torch._dynamo.reset()
        compiled = torch.compile(memory.linear_cross_entropy, dynamic=False)
        found["torch.compile"] = Provider(functools.partial(step, compiled, *inputs), work)
    if settings.jax:
        stack.callback(settings.jax.unload)
        settings.jax.load(subject.name, {}, tuple(tensor.detach() for tensor in inputs))
        found["JAX"] = Jaxs(ours, work, settings.jax)
    if case.dtype in GEMM_DTYPES:
        found["GEMM peak"] = _gemm_peak(case.dtype)
    return found


def _device_like(tensor: Tensor) -> Tensor:
    """The same numbers in memory allocated like a device's."""
    return allocate(tuple(tensor.shape), tensor.dtype).copy_(tensor)


def _tensors(results: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    return (results,) if isinstance(results, Tensor) else tuple(results)


def agree(operator: Operator, ours: Sequence[Tensor], others: Sequence[Tensor], name: str) -> None:
    """Raises AssertionError if results differ, for as many results as the other has."""
    pairs = [(a, b.reshape(a.shape)) for a, b in zip(ours, others, strict=False)]
    if operator.operator in ELEMENTWISE:
        for a, b in pairs:
            _assert_close(a, b, name)
    else:
        close(*zip(*pairs, strict=True), name)


def close(ours: Sequence[Tensor], others: Sequence[Tensor], name: str) -> None:
    """Measures differences relative to the largest result: a small one may remain of large terms."""
    for a, b in zip(ours, others, strict=True):
        # The coarser of the two dtypes determines the last rounding.
        dtype = max(a.dtype, b.dtype, key=lambda dtype: torch.finfo(dtype).eps)
        largest = b.abs().max().item() if b.numel() else 0.0
        _assert_close(a, b, name, rtol=0, atol=AGREEMENT[dtype] * torch.finfo(dtype).eps * largest, check_dtype=False)


def _assert_close(a: Tensor, b: Tensor, name: str, **options: Any) -> None:
    """In cache-sized pieces, which takes a fraction of the time."""
    for ours, other in zip(a.reshape(-1).split(2**18), b.reshape(-1).split(2**18), strict=True):
        torch.testing.assert_close(ours, other, msg=lambda text: f"{name}: {text}", **options)
