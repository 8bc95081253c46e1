"""The memory of functions that write in place: `python -m tests.aten_ops.in_place` prints it for each call.

`in_place.tsv` has calls of functions with an argument that they read and write, and the memory that stage 2 may
allocate at a time, as a part of the tensors that are written: little if a few of many rows change. `"self"` as an
output is the first tensor, once more. Of a function that is not there, the sample is called with more elements, if its
tensors can have more, and stage 2 may allocate as much as it writes. A library that counts allocations is preloaded:
run the module through peaks(). It takes one thread: each thread has a piece of the tensors for itself, and how many of
them are at their largest piece at once is chance.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests import cabi
from tests.aten_ops.sweep import ENVIRONMENT, LIBRARY, PACKAGE, Caller, Tensor, parse, roundings, samples, with_dtypes
from tests.builds import CXX
from tests.cabi import SUCCESS
from tests.published import rows

TABLE = Path(__file__).with_name("in_place.tsv")
COUNTER = Path(__file__).with_name("allocations.cpp")
# Small objects of the call itself, in bytes.
ROOM = 1 << 14
# Functions of which a call in 16 bits is also compared with the same in FLOAT.
ROUNDED = (
    *("aclnnEmbeddingRenorm", "aclnnIndexAdd", "aclnnIndexAddV2", "aclnnIndexPutImpl", "aclnnInplacePut"),
    *("aclnnInplaceScatter", "aclnnInplaceScatterReduce", "aclnnScatter", "aclnnScatterAdd", "aclnnScatterDiv"),
    *("aclnnScatterMul", "aclnnTfScatterAdd"),
)
# The elements of the tensors of a sample that is called with more.
MANY = 1 << 18


@dataclass(frozen=True)
class Same(Tensor):
    """The first tensor of the call, once more."""


@dataclass(frozen=True)
class Peak:
    """The bytes that stage 2 of a call allocates at a time, those that it may, and those of the tensors it writes."""

    call: str
    allocated: int
    allowed: int
    written: int
    rounding: float  # of a call in 16 bits: the distance from the same in FLOAT, in units in the last place
    text: str  # of a failure


def table() -> list[tuple[float, str]]:
    """The bound and the call of each line."""
    lines = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    return [(float(bound), call) for bound, call in lines]


def in_place() -> set[str]:
    """The functions with an argument that they read and write."""
    return {name for name, row in rows(LIBRARY).items() if any("InOut" in kind for kind, _ in row)}


def grown(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The call with more elements in all tensors of the shape of the first one that is written."""
    written = [arguments[argument] for kind, argument in rows(LIBRARY)[name] if "InOut" in kind]
    first = next(each for value in written for each in (value if isinstance(value, list) else [value]) if each)
    shape = first.shape or (1,)

    def larger(value: Any) -> Any:
        if isinstance(value, list):
            return [larger(each) for each in value]
        if not isinstance(value, Tensor) or value.shape != first.shape or (not value.shape and value is not first):
            return value
        return replace(value, shape=(shape[0] * (MANY // int(np.prod(shape))), *shape[1:]))

    return {argument: larger(value) for argument, value in arguments.items()}


def calls() -> Iterator[tuple[float, str, list[dict[str, Any]]]]:
    """The bound and the function of all calls, and the arguments: of a sample, those with more elements and the own."""
    listed = set()
    for bound, line in table():
        name, arguments = parse(line)
        listed.add(name)
        same = next((Same(each.dtype, each.shape) for each in arguments.values() if isinstance(each, Tensor)), None)
        yield bound, name, [{argument: same if value == "self" else value for argument, value in arguments.items()}]
    for name, arguments in samples():
        if name in in_place() - listed:
            listed.add(name)
            yield 1.0, name, [grown(name, arguments), arguments]


class Counter(Caller):
    """Notes the memory of stage 2."""

    def __init__(self) -> None:
        super().__init__()
        self.counted = ctypes.CDLL(None)
        self.counted.allocations_peak.restype = ctypes.c_int64
        self.written = self.peak = 0

    def tensor(self, value: Tensor, kind: str, strided: bool, memories: list[tuple[cabi.Memory, str]]) -> int:
        if not isinstance(value, Same):
            handle = super().tensor(value, kind, strided, memories)
        else:
            memories.append((memories[0][0], kind))
            handle = memories[0][0].descriptor()
        if "InOut" in kind or isinstance(value, Same):
            self.written += memories[-1][0].elements * cabi.storage_type(memories[-1][0].dtype).itemsize
        return handle

    def measured(self, name: str, arguments: dict[str, Any]) -> Any:
        """The outcome of a call; written and peak are its bytes."""
        stage2 = getattr(self.library, name)
        self.written = self.peak = 0

        def counting(*given: Any) -> int:
            self.counted.allocations_start()
            status = stage2(*given) or self.library.aclrtSynchronizeStream(None)
            self.peak = self.counted.allocations_peak()
            return int(status)

        setattr(self.library, name, counting)
        try:
            return self.call(name, arguments)
        finally:
            setattr(self.library, name, stage2)


def main() -> None:
    """Prints a JSON line for each call; names may follow the command."""
    caller = Counter()
    assert caller.library.aclHostSetProduct(b"host") == SUCCESS
    for bound, name, arguments in calls():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        outcome = caller.measured(name, arguments[0])
        if outcome.stage1 and len(arguments) > 1:
            outcome = caller.measured(name, arguments[1])
        written, allocated = caller.written, caller.peak
        rounding = 0.0
        if name in ROUNDED and "BF16" in {dtype.name for dtype in outcome.dtypes} and not outcome.text:
            wide = caller.call(name, with_dtypes(name, arguments[0], "FLOAT", "INT64", "FLOAT"))
            rounding = roundings("BFLOAT16", outcome, wide)
        line = [f"{name} {arguments[0]}", allocated, int(bound * written) + ROOM, written, rounding, outcome.text]
        print(json.dumps(line), flush=True)


def peaks(folder: Path, *names: str) -> list[Peak]:
    """The memory of all calls, or those of these functions, from a separate process with the counter in the folder."""
    counter = folder / "liballocations.so"
    subprocess.run([*CXX, "-std=c++20", "-O1", "-shared", "-fPIC", "-o", counter, COUNTER], check=True)
    preloaded = [str(counter), os.environ.get("LD_PRELOAD", "")]
    command = [sys.executable, "-W", "ignore", "-m", "tests.aten_ops.in_place", *names]
    environment = ENVIRONMENT | {"LD_PRELOAD": " ".join(filter(None, preloaded)), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=PACKAGE.parent, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    return [Peak(*json.loads(line)) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    main()
