"""Makes every allocation of the extension, and every call it makes into the host CANN, fail once.

``LD_PRELOAD=build/release/tests/libfaults.so python tests/reliability/faults.py``: each operator of torch.ops.aclnn,
forward and backward, runs with its n-th event failing, for n = 1, 2, ... until a run has fewer. Each run ends in an
exception or in the right result; no object of the host CANN is left; the next run is right. Prints how many faults
were injected, and ends with code 1 if one did harm.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from aclnn_torch import _C

OWN_ALLOCATION, CALL = 1, 2  # FaultKind of faults.h
MOST = 1000  # events of one run: more is an endless loop

aclnn = torch.ops.aclnn
faults = ctypes.CDLL(None)
faults.faults_arm.argtypes = [ctypes.c_int, ctypes.c_int64]
faults.faults_disarm.restype = ctypes.c_int64

Run = Callable[[], tuple[Tensor, ...]]


def with_gradients(function: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor) -> Run:
    """The function's results, and the gradients of the first."""

    def run() -> tuple[Tensor, ...]:
        leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
        results = function(*leaves)
        results = (results,) if isinstance(results, Tensor) else results
        return *(result.detach() for result in results), *torch.autograd.grad(results[0].sum(), leaves)

    return run


def runs(dtype: torch.dtype) -> Iterator[tuple[str, Run]]:
    """Every operator, on tensors that are large enough for the memory pool where that is cheap."""
    generator = torch.Generator().manual_seed(0)

    def some(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    x = some(256, 160)
    yield "elu", with_gradients(lambda x: aclnn.elu(x, 1.5, 1.0, 2), x)
    yield "elu_", lambda: (aclnn.elu_(x.clone(), 1.5, 1.0, 2),)
    yield "elu_backward", with_gradients(lambda g, y: aclnn.elu_backward(g, 1.5, 1.0, 1.0, False, y), x, x + 1)
    yield "selu", with_gradients(aclnn.selu, x)
    yield "selu_", lambda: (aclnn.selu_(x.clone()),)
    yield "selu_backward", with_gradients(aclnn.selu_backward, x, x + 1)
    yield "silu", with_gradients(aclnn.silu, x)
    yield "silu_backward", with_gradients(aclnn.silu_backward, x, x + 1)
    yield "gelu", with_gradients(aclnn.gelu, x)
    yield "gelu_backward", with_gradients(aclnn.gelu_backward, x, x + 1)
    yield "layer_norm", with_gradients(lambda x, w, b: aclnn.layer_norm(x, [160], w, b, 1e-5), x, some(160), some(160))
    yield "rms_norm", with_gradients(aclnn.rms_norm, x, some(160))
    rstd = torch.rand(256, 1, generator=generator)
    yield "rms_norm_grad", lambda: aclnn.rms_norm_grad(x, x, rstd, some(160).fill_(1))
    target = torch.arange(256) % 160
    yield "cross_entropy_loss", with_gradients(lambda x: aclnn.cross_entropy_loss(x, target), x)
    log_prob = torch.log_softmax(x.float(), 1).to(dtype)
    grad = torch.ones(1).to(dtype)
    yield "cross_entropy_loss_grad", lambda: (aclnn.cross_entropy_loss_grad(grad, log_prob, target),)
    for name, image, weight in (
        ("direct", some(2, 2, 7, 7), some(2, 2, 3, 3)),
        ("products", some(2, 16, 19, 19), some(32, 16, 3, 3)),
    ):
        args = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        bias = some(weight.shape[0])
        yield (
            f"convolution ({name})",
            with_gradients(lambda x, w, b, args=args: aclnn.convolution(x, w, b, *args), image, weight, bias),
        )


def same(results: tuple[Tensor, ...] | None, expected: tuple[Tensor, ...]) -> bool:
    return results is not None and all(torch.equal(a, b) for a, b in zip(results, expected, strict=True))


def run_with_fault(run: Run, kind: int, n: int) -> tuple[tuple[Tensor, ...] | None, int]:
    """The results, or None if the run ended in an exception; and the number of its events.

    On a thread of its own, which has no memory kept from earlier calls.
    """
    results = None
    events = 0

    def on_thread() -> None:
        nonlocal results, events
        faults.faults_arm(kind, n)
        try:
            results = run()
        except (RuntimeError, MemoryError):  # AclnnError is a RuntimeError
            pass
        finally:
            events = faults.faults_disarm()

    thread = threading.Thread(target=on_thread)
    thread.start()
    thread.join()
    return results, events


def inject(name: str, run: Run, kind: int) -> tuple[int, list[str]]:
    """All faults of one kind in one run: how many there were, and what harm they did."""
    expected = run()
    live = _C.live_objects()
    harm = []
    for n in range(1, MOST):
        results, events = run_with_fault(run, kind, n)
        if results is not None and not same(results, expected):
            harm.append(f"{name}: a wrong result after event {n} of kind {kind}")
        if _C.live_objects() != live:
            return n, [*harm, f"{name}: objects are left after event {n} of kind {kind}"]
        if not same(run(), expected):
            return n, [*harm, f"{name}: the run after event {n} of kind {kind} is wrong"]
        if events < n:
            return n - 1, harm
    return MOST, [*harm, f"{name}: more than {MOST} events of kind {kind}"]


def main() -> int:
    harm = []
    for kind, what in ((CALL, "calls"), (OWN_ALLOCATION, "allocations of the extension")):
        total = 0
        for dtype in (torch.float32, torch.bfloat16):
            for name, run in runs(dtype):
                count, problems = inject(f"{name} {dtype}", run, kind)
                total += count
                harm += problems
                if count == 0:
                    harm.append(f"{name}: no event of kind {kind}")
        print(f"{what}: {total} faults injected")
    print(*harm, sep="\n")
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main())
