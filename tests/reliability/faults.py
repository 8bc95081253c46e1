"""Makes every allocation of the extension, and each of its calls into the host CANN, fail once.

``LD_PRELOAD=build/release/tests/libfaults.so python tests/reliability/faults.py``: each operator of torch.ops.aclnn,
forward and backward, runs with its n-th event failing, for n = 1, 2, ... until a run has fewer events. Each run ends in
an exception or in the right result; no object of the host CANN is leaked; the next run is right. Prints the number of
injected faults, and exits with 1 if one did harm.
"""

from __future__ import annotations

import ctypes
import sys
import threading

import torch
from torch import Tensor

from aclnn_torch import _C

from .operators import Run, runs

OWN_ALLOCATION, CALL = 1, 2  # FaultKind of faults.h
MOST = 1000  # events of one run: more means an endless loop

faults = ctypes.CDLL(None)
faults.faults_arm.argtypes = [ctypes.c_int, ctypes.c_int64]
faults.faults_disarm.restype = ctypes.c_int64


def same(results: tuple[Tensor, ...] | None, expected: tuple[Tensor, ...]) -> bool:
    return results is not None and all(torch.equal(a, b) for a, b in zip(results, expected, strict=True))


def run_with_fault(run: Run, kind: int, n: int) -> tuple[tuple[Tensor, ...] | None, int]:
    """The results, or None if the run ended in an exception; and the number of its events.

    On a separate thread, without cached memory of earlier calls.
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
    """All faults of one kind in one run: their number, and the harm they did."""
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
