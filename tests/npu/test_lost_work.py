"""After a failing call on torch_npu's queue, which then silently drops all later work, no result can be read."""

from __future__ import annotations

import pytest

from .programs import run

# A stream that torch_npu regards as alive: every launch on it fails.
DEAD_STREAM = """
dead = torch.npu.Stream()
with torch.npu.stream(dead):
    x * 3
dead.synchronize()
assert ctypes.CDLL("libascendcl.so").aclrtDestroyStream(ctypes.c_void_p(dead.npu_stream)) == 0
"""

# How a call fails, part of its text, and the modes of the queue in which it runs on the queue.
CALLS = {
    "stage 1": ("a = torch.ones(2, 2, dtype=torch.float64).npu()\na @ a", "aclnnMatmul: the matrices promote to", "2"),
    "stage 2": (
        f"{DEAD_STREAM}with torch.npu.stream(dead):\n    x * 2",
        "aclnnMuls: 0x",
        "12",
    ),
    "a function that the host CANN lacks": (
        "step = torch.ones(1, dtype=torch.int64).npu()\n"
        "torch_npu._npu_silent_check_v2(x[:1].clone(), x, x.clone(), step, 100, 10.0, 1.0, 1.0, 1.0, 1)",
        "aclnnSilentCheck: the host CANN does not have this function",
        "2",
    ),
    "an operator by name that the host CANN lacks": (
        "torch_npu.npu_sub_sample(torch.ones(8, dtype=torch.int32).npu(), 4, 0.5)",
        "no operator SubSample among those called by name (aclop)",
        "1",
    ),
    "HCCL": (
        "from torch import distributed\n"
        "distributed.init_process_group('hccl', rank=0, world_size=1, store=distributed.HashStore())\n"
        "distributed.all_reduce(torch.ones(2, dtype=torch.int16).npu(), op=distributed.ReduceOp.PRODUCT)",
        "HcclAllReduce: dataType is INT16 and op PROD",
        "12",
    ),
    "an asynchronous copy": (
        f"y, pinned = torch.empty(3).npu(), torch.ones(3).pin_memory()\n{DEAD_STREAM}"
        "with torch.npu.stream(dead):\n    y.copy_(pinned, non_blocking=True)",
        "aclrtMemcpyAsync: 0x",
        "12",
    ),
}
# Everything that could expose uncomputed results to the program, also on the other device.
PROGRAM = """
import ctypes, sys, torch, torch_npu

x, elsewhere = torch.ones(3).npu(), torch.ones(3).to("npu:1")
early = torch.npu.Event()
early.record()
torch.npu.synchronize()
torch.npu.synchronize(1)
try:
    {call}
    torch.npu.synchronize()
except RuntimeError as error:
    pass
else:
    sys.exit("no error")
READS = {{
    "a result": lambda: (torch.ones(3).npu() * 2).tolist(),
    "a result, again": lambda: (torch.ones(3).npu() * 2).tolist(),
    "an older tensor": x.cpu,
    "a number": lambda: x.sum().item(),
    "a copy to the other device": lambda: torch.full((3,), 5.0).npu().to("npu:1").cpu(),
    "a result of the other device": lambda: (elsewhere * 2).cpu(),
    "the device": torch.npu.synchronize,
    "the other device": lambda: torch.npu.synchronize(1),
    "a stream": torch.npu.current_stream().synchronize,
    "a new stream": lambda: torch.npu.Stream().synchronize(),
    "an event": early.synchronize,
}}
for name, read in READS.items():
    try:
        print(name, "is", read(), flush=True)
    except RuntimeError as error:
        print(str(error).replace(chr(10), " "), file=sys.stderr)
import os
os._exit(0)  # without torch_npu's words on what it cannot synchronise
"""


@pytest.mark.parametrize(
    ("call", "queue"), [(call, queue) for call, (_, _, queues) in CALLS.items() for queue in queues]
)
def test_after_a_caught_failure_nothing_is_read(call: str, queue: str) -> None:
    code, text, _ = CALLS[call]
    indented = code.replace("\n", "\n    ")
    result = run(PROGRAM.format(call=indented), TASK_QUEUE_ENABLE=queue)
    assert (result.status, result.output) == (0, ""), result.errors
    lost = [line for line in result.errors.splitlines() if "torch_npu drops all work that follows on npu:0" in line]
    assert lost, result.errors
    assert text in lost[0]
    assert text in lost[-1]
