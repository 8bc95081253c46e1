"""Threads that use the package at the same time, in a Python with the GIL or without; subinterpreters.

And the threads that a function of the host CANN computes with.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import aclnn_torch
import aclnn_torch.functional as F
from aclnn_torch import _C
from tests import LONGEST
from tests.builds import ROOT

HAS_GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")
THREADS = 8


def at_the_same_time(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """The results of calls with 0, 1, and so on, each in a thread of its own; they begin together."""
    together = threading.Barrier(threads)

    def run(number: int) -> Any:
        together.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu": F.elu,
    "gelu": F.gelu,
    "selu, in place": lambda x: F.selu(x * 1.0, inplace=True),
    "layer_norm": lambda x: F.layer_norm(x, [32], torch.ones(32)),
    "rms_norm": lambda x: F.rms_norm(x, (32,), torch.ones(32)),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.arange(len(x)) % 32),
    "linear_cross_entropy": lambda x: F.linear_cross_entropy(x, torch.eye(32), torch.arange(len(x)) % 32),
    "conv1d": lambda x: F.conv1d(x[None], torch.ones(3, len(x), 3)),
}


def trained(number: int) -> list[Tensor]:
    """The results and the gradients of every function, for an input of this number."""
    generator = torch.Generator().manual_seed(number)
    tensors = []
    for function in FUNCTIONS.values():
        x = torch.randn(40, 32, generator=generator, requires_grad=True)
        result = function(x)
        result.sin().sum().backward()
        tensors += [result.detach(), x.grad]
    return tensors


def test_threads_compute_what_one_does(nothing_leaked: None) -> None:
    expected = [trained(number) for number in range(THREADS)]
    rounds = at_the_same_time(lambda number: [trained(number) for _ in range(10)])
    for results, tensors in zip(rounds, expected, strict=True):
        for result in results:
            torch.testing.assert_close(result, tensors, rtol=0, atol=0)


def test_each_thread_has_its_own_error(nothing_leaked: None) -> None:
    def refused(number: int) -> set[str]:
        texts = set()
        for _ in range(100):
            with pytest.raises(aclnn_torch.AclnnError) as caught:
                F.layer_norm(torch.ones(2, 100), (number + 1,))
            assert caught.value.status == 161002
            texts.add(str(caught.value))
        return texts

    for number, texts in enumerate(at_the_same_time(refused)):
        assert len(texts) == 1
        assert f"[{number + 1}]" in texts.pop()


def test_settings_and_counters_while_others_compute(tmp_path: Path, nothing_leaked: None) -> None:
    x = torch.randn(300, 100)
    expected = F.elu(x)

    def work(number: int) -> None:
        for round in range(50):
            if number == 0:
                aclnn_torch.set_memory_limit(round % 2 << 20)
                aclnn_torch.empty_cache()
                aclnn_torch.reset_peak_memory_stats()
            elif number == 1:
                with aclnn_torch.profile_stages(), aclnn_torch.product("host" if round % 2 else "Ascend910B"):
                    assert _C.live_objects("nonsense") == -1
            elif number == 2:
                with aclnn_torch.trace(tmp_path / f"{round}.json"):
                    assert aclnn_torch.memory_stats()["allocations.current"] >= 0
            assert torch.equal(F.elu(x), expected)

    limit = aclnn_torch.memory_stats()["limit_bytes"]
    try:
        at_the_same_time(work)
    finally:
        aclnn_torch.set_memory_limit(limit)
    assert aclnn_torch.get_product() == "Ascend910B"


def test_a_list_of_sizes_may_change_during_a_call() -> None:
    """A call has the sizes of one moment; reading them from the list, it would find no memory where one was."""
    x = torch.ones(1, 4)
    sizes = [4]
    done = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            while not done.is_set():
                sizes.clear()
                sizes.append(4)
        else:
            try:
                for _ in range(50_000):
                    with contextlib.suppress(aclnn_torch.AclnnError):
                        F.layer_norm(x, sizes)
                with pytest.raises(aclnn_torch.AclnnError, match="normalizedShape has 0 sizes, expected 1 to 2"):
                    F.layer_norm(x, [])
            finally:
                done.set()

    at_the_same_time(work, threads=2)


def run(code: str) -> str:
    """The output of a new interpreter, which finds this package."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST)
    assert result.returncode == 0, result.stderr
    return result.stdout


# Counts the threads that a call starts: those of OpenMP, which stay.
STARTED = """
import os
from tests.aten_ops.sweep import Caller, parse
caller = Caller()
for line in LINES:
    before = len(os.listdir("/proc/self/task"))
    outcome = caller.call(*parse(line))
    assert (outcome.stage1, outcome.stage2) == (0, 0), outcome.text
    print(len(os.listdir("/proc/self/task")) - before)
"""
ALONE = [
    "aclnnInplaceOne selfRef=BOOL[2048,2048]",
    "aclnnTriu self=BOOL[2048,2048] diagonal=1 out=BOOL[2048,2048]",
    "aclnnExp self=FLOAT[65536] out=FLOAT[65536]",
    "aclnnMm self=FLOAT[256,256] mat2=FLOAT[256,256] out=FLOAT[256,256] cubeMathType=0",
    "aclnnFlashAttentionScore query=FLOAT[1,1,512,16] key=FLOAT[1,1,512,16] value=FLOAT[1,1,512,16]"
    " realShiftOptional=null dropMaskOptional=null paddingMaskOptional=null attenMaskOptional=BOOL[512,512]:0"
    " prefixOptional=[] scaleValueOptional=0.25 keepProbOptional=1 preTokensOptional=2147483647"
    ' nextTokensOptional=2147483647 headNum=1 inputLayout="BNSD" innerPreciseOptional=0 sparseModeOptional=0'
    " softmaxMaxOut=FLOAT[1,1,512,8] softmaxSumOut=FLOAT[1,1,512,8] softmaxOutOut=FLOAT[0]"
    " attentionOutOut=FLOAT[1,1,512,16]",
]
DIVIDED = [
    "aclnnExp self=FLOAT[65537] out=FLOAT[65537]",
    "aclnnInplaceOne selfRef=BOOL[8388609]",
    "aclnnTriu self=BOOL[2049,4096] diagonal=0 out=BOOL[2049,4096]",
    "aclnnAny self=BOOL[2,200000] dim=[1] keepdim=false out=BOOL[2]",
]


@pytest.mark.parametrize("line", DIVIDED)
def test_little_work_of_a_row_is_not_divided(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 65536 elements, masks aside, or 8 MiB of memory; ATen itself divides from 32768 on."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert run(STARTED.replace("LINES", repr([*ALONE, line]))).split() == ["0"] * len(ALONE) + ["1"]


@pytest.mark.skipif(HAS_GIL, reason="this Python has the GIL")
def test_a_python_without_the_gil_stays_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython enables it, with a warning, for a module that does not declare that it needs none, such as triton."""
    code = """
import logging, sys
logging.disable()  # torch's build for CUDA tells that triton is missing
sys.modules["triton"] = None
import aclnn_torch, aclnn_torch.distributed, aclnn_torch.host
print(sys._is_gil_enabled())
"""
    monkeypatch.delenv("PYTHON_GIL", raising=False)  # with 0 it would stay without in any case
    assert run(code) == "False\n"


SUBINTERPRETER = """
try:
    import _interpreters as interpreters  # since Python 3.13
except ImportError:
    import _xxsubinterpreters as interpreters
{before}
code = '''
try:
    import aclnn_torch
except ImportError as error:
    print(error, flush=True)
'''
print(interpreters.run_string(interpreters.create({kind}), code))
"""
KINDS = ["'isolated'", "'legacy'"] if sys.version_info >= (3, 13) else ["isolated=True", "isolated=False"]


@pytest.mark.parametrize("before", ["", "import aclnn_torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_subinterpreter_is_refused(kind: str, before: str) -> None:
    """Also one that shares the main one's GIL; torch's import hangs in both, or is a segmentation fault."""
    expected = (
        "aclnn_torch: torch cannot be used in a subinterpreter; import aclnn_torch in the main interpreter, and start "
        "threads or processes there\nNone\n"
    )
    assert run(SUBINTERPRETER.format(kind=kind, before=before)) == expected
