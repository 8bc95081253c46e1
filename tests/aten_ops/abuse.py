"""Incorrect calls of every function on ATen: `python -m tests.aten_ops.abuse` prints the outcomes.

Each argument of each sample is changed in turn: null, destroyed, another type, invalid or mismatched sizes, overlapping
memory, numbers at the limits of their range and, with each mode, tensors full of such numbers; optional tensors are
left out together, with each flag unchanged and inverted. A call must fail in stage 1 with a sentence that names the
function, or be computed; it must not access memory outside its tensors, which end at inaccessible pages. Calls run in
separate processes, and one that dies or hangs is reported by name: abuse() does that.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import math
import os
import re
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests import cabi
from tests.aten_ops.stored import FORMATS
from tests.aten_ops.sweep import (
    ENVIRONMENT,
    LIBRARY,
    PACKAGE,
    Caller,
    Number,
    Tensor,
    is_output,
    samples,
    with_dtypes,
)
from tests.cabi import AICORE_EXCEPTION, SUCCESS
from tests.published import rows

# Timeout of a call in seconds; small tensors take milliseconds.
LIMIT = 20
# And the limit of additional address space in bytes: a call must be refused before it allocates. Each thread of ATen's
# takes some for its stack and its part of the heap.
ROOM = (4 << 30) + (os.cpu_count() or 1) * (160 << 20)
# And the timeout until the first call; under AddressSanitizer torch alone takes half a minute.
LIMIT_OF_START = 300

INTEGERS = (-(2**63), -(2**31), -9, -2, -1, 0, 1, 3, 9, 2**31 - 1, 2**31, 2**63 - 1)
REALS = (math.nan, math.inf, -math.inf, -1.0, 0.0, 1e300)
TEXTS = ("", "x", "BSH" * 1000)
HUGE = 2**40
# Under AddressSanitizer a destroyed handle is not passed: reading it is an error there.
IS_SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
MODES = (0, 1, 2, 3)
# Numbers at the limits of arithmetic, by dtype.
ENDS: dict[str, tuple[float, ...]] = {
    **{f"INT{bits}": (-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1, 1) for bits in (8, 16, 32, 64)},
    "FLOAT": (math.nan, -math.inf, 0.0, math.inf, -1.0, 3e38, 1e-45),
}
# Calls that are always made, even if others are sampled.
ALWAYS = re.compile("of its range$|^all optional tensors|: (first |last )?214748364[78]$")
# Internals of torch and Python, useless to a caller of CANN's interface.
INSIDE = re.compile(r"[Pp]ython|[a-z]Error\b|INTERNAL ASSERT|report a bug|c10::|std::|bad_\w+|vector::|nullptr")
# Beginnings and terms of torch's texts; ours quote them after these words.
OF_TORCH = re.compile(
    r"Expected |[Ee]xpected all tensors|scalar type|at non-singleton|mat1 and mat2|tensor [ab] |aten::|torch\."
)
QUOTED = re.compile("; ATen, which computes it, says: |cast the tensors \\(")
# For the private formats: tensors with fewer dimensions cannot be laid out.
LEAST_DIMENSIONS = {"NZ": 2, "NC1HWC0": 4, "FRACTAL_Z": 4, "NDC1HWC0": 5, "FRACTAL_Z_3D": 5}


@dataclass(frozen=True)
class Described(Tensor):
    """A tensor with a description only: stage 2 must not run."""


@dataclass(frozen=True)
class Gone(Tensor):
    """A tensor that is destroyed before the call."""


@dataclass(frozen=True)
class Overlapping(Tensor):
    """A tensor in the memory of the first one, shifted by one element."""


class Abuser(Caller):
    """Makes the descriptors of invalid arguments."""

    def tensor(self, value: Tensor | None, kind: str, strided: bool, memories: list[tuple[cabi.Memory, str]]) -> int:
        if value is None:
            return 0
        if isinstance(value, Described) or len(value.shape) < LEAST_DIMENSIONS.get(value.format, 0):
            dtype = cabi.Dtype[value.dtype.replace("BFLOAT16", "BF16")]
            sizes = cabi.int64s(value.shape)
            memory = ctypes.create_string_buffer(64)
            format = FORMATS.get(value.format, cabi.Format.ND)
            found = self.library.aclCreateTensor(
                sizes, len(value.shape), dtype, None, 0, format, sizes, len(value.shape), memory
            )
            assert found
            return int(found)
        if isinstance(value, Overlapping) and memories:
            first = memories[0][0]
            item = cabi.storage_type(cabi.Dtype[value.dtype.replace("BFLOAT16", "BF16")]).itemsize
            room = first.elements * cabi.storage_type(first.dtype).itemsize - item
            if math.prod(value.shape) * item <= room:
                dtype = cabi.Dtype[value.dtype.replace("BFLOAT16", "BF16")]
                sizes = cabi.int64s(value.shape)
                return int(
                    self.library.aclCreateTensor(
                        sizes,
                        len(value.shape),
                        dtype,
                        None,
                        0,
                        cabi.Format.ND,
                        sizes,
                        len(value.shape),
                        first.address + item,
                    )
                )
        handle = super().tensor(value, kind, strided, memories)
        if isinstance(value, Gone):
            self.library.aclDestroyTensor(handle)
            self.gone.add(handle)
        return handle


def variants(name: str, arguments: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls with one argument changed, and a description of the change."""
    for kind, argument in rows(LIBRARY)[name]:
        value = arguments[argument]
        for label, changed in _changes(kind, value):
            yield f"{argument}: {label}", {**arguments, argument: changed}
    outputs = {a for kind, a in rows(LIBRARY)[name] if is_output(kind) and isinstance(arguments[a], Tensor)}
    if outputs:
        shared = {a: Overlapping(v.dtype, v.shape) if a in outputs else v for a, v in arguments.items()}
        yield "outputs in the memory of the first tensor", shared
    for dtype in ENDS if any(_has_tensors(value) for value in arguments.values()) else ():
        tensors = with_dtypes(name, arguments, dtype, "INT64", dtype).items()
        hard = {argument: _at_the_ends(value, dtype, i) for i, (argument, value) in enumerate(tensors)}
        yield f"{dtype} at the ends of its range", hard
        for argument, value in arguments.items():
            for mode in MODES if type(value) is int else ():
                if mode != value:
                    yield f"{argument}: {mode}, {dtype} at the ends of its range", {**hard, argument: mode}

    yield from _without_optional_tensors(name, arguments)


def _without_optional_tensors(name: str, arguments: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls without all, two or one of the optional tensors; some only matter with a flag's other value."""
    kinds = rows(LIBRARY)[name]
    optional = [argument for kind, argument in kinds if "Optional" in kind and _has_tensors(arguments[argument])]
    flags = [argument for argument, value in arguments.items() if type(value) is bool]
    some = [absent for count in (1, 2) for absent in itertools.combinations(optional, count) if len(optional) > count]
    for label, absent in (("all optional tensors", tuple(optional)), *((", ".join(each), each) for each in some)):
        for flag in (None, *flags):
            if not absent or (flag is None and len(absent) == 1):
                continue  # changed alone above
            other = {flag: not arguments[flag]} if flag else {}
            with_flag = f", {flag}: the other" if flag else ""
            yield f"{label}: null{with_flag}", {**arguments, **dict.fromkeys(absent), **other}


def _has_tensors(value: Any) -> bool:
    return any(isinstance(each, Tensor) for each in (value if isinstance(value, list) else [value]))


def _at_the_ends(value: Any, dtype: str, first: int) -> Any:
    """Tensors of that dtype with its extreme numbers, from one of them on: two tensors combine them in pairs."""
    if isinstance(value, list):
        return [_at_the_ends(each, dtype, first + i) for i, each in enumerate(value)]
    if not isinstance(value, Tensor) or value.dtype != dtype:
        return value
    start = first % len(ENDS[dtype])
    return replace(value, values=ENDS[dtype][start:] + ENDS[dtype][:start])


def _changes(kind: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Tensor):
        yield from _changed_tensors(value)
    elif isinstance(value, Number):
        yield "null", None
        for number in (*REALS, -(2**31), 2**31 - 1):
            if value.dtype in ("FLOAT", "DOUBLE", "FLOAT16") or math.isfinite(number):
                yield f"{number}", Number(value.dtype if abs(number) < 2**62 else "DOUBLE", number)
    elif isinstance(value, list) and value and isinstance(value[0], Tensor):
        yield "null", None
        yield "no tensors", []
        yield "one more", [*value, value[-1]]
        yield "one less", value[:-1]
        for label, changed in _changed_tensors(value[0]):
            if isinstance(changed, Gone):
                continue  # the list owns its tensors
            yield f"the first {label}", [changed, *value[1:]]
    elif isinstance(value, list) and value and isinstance(value[0], Number):
        yield "null", None
        yield "no numbers", []
        yield "one more", [*value, value[-1]]
    elif isinstance(value, list):
        yield "null", None
        yield "nothing", []
        yield "one more", [*value, *(value[-1:] or [1])]
        if value and not isinstance(value[0], bool):
            for number in INTEGERS if isinstance(value[0], int) else REALS:
                yield f"first {number}", [number, *value[1:]]
                yield f"last {number}", [*value[:-1], number]
    elif isinstance(value, bool):
        yield "the other", not value
    elif isinstance(value, int):
        bits = {"int8_t": 7, "int32_t": 31, "aclDataType": 31, "uint32_t": 32, "uint64_t": 64, "int": 31}.get(kind, 63)
        for number in INTEGERS:
            if -(2**bits) <= number < 2**bits and (number >= 0 or not kind.startswith("uint")):
                yield f"{number}", number
    elif isinstance(value, float):
        yield from ((f"{number}", number) for number in REALS)
    elif isinstance(value, str):
        yield "null", None
        yield from ((text[:9], text) for text in TEXTS)


def _changed_tensors(value: Tensor) -> Iterator[tuple[str, Any]]:
    shape = value.shape
    yield "null", None
    if not IS_SANITIZED:
        yield "destroyed", Gone(value.dtype, shape, value.values)
    for dtype in ("INT4", "STRING", "FLOAT8_E5M2", "UINT32", "BOOL", "COMPLEX64", "DOUBLE", "INT64"):
        if dtype != value.dtype:
            small = dtype in ("INT4", "STRING")
            yield f"of {dtype}", Described(dtype, shape) if small else replace(value, dtype=dtype, values=())
    yield "without dimensions", replace(value, shape=())
    yield "with one dimension more", replace(value, shape=(*shape, 1))
    yield "of nine dimensions", replace(value, shape=(1,) * 9)
    for i, size in enumerate(shape):
        yield f"without its dimension {i}", replace(value, shape=shape[:i] + shape[i + 1 :])
        for other in (0, 1, size + 1, 2 * size):
            if other != size:
                yield f"with {other} in dimension {i}", replace(value, shape=(*shape[:i], other, *shape[i + 1 :]))
        for other in (-1, HUGE, 2**62):
            sizes = (*shape[:i], other, *shape[i + 1 :])
            yield f"with {other} in dimension {i}", Described(value.dtype, sizes, format=value.format)
    for values in ((-1,), (2**31 - 1,), (7,)):
        if value.dtype in ("INT32", "INT64"):
            yield f"full of {values[0]}", replace(value, values=values)


def described(value: Any) -> bool:
    """True if an argument has no memory, or none of its own."""
    tensors = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Tensor)]
    return any(isinstance(x, Described) or len(x.shape) < LEAST_DIMENSIONS.get(x.format, 0) for x in tensors)


# ---- In a separate process


def main() -> None:
    """Prints a JSON line before and after each call: "FIRST SKIP EVERY FUNCTION..." follows the command.

    Skips calls before number SKIP of the function FIRST and, of the others, all but every EVERYth and those that match
    ALWAYS.
    """
    caller = Abuser()
    cabi.Memory.is_fenced = True
    assert caller.library.aclHostSetProduct(b"host") == SUCCESS
    if not IS_SANITIZED:
        before = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (before + ROOM, resource.RLIM_INFINITY))
    first, skip, every = (sys.argv[1], int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 1 else ("", 0, 1)
    names = sys.argv[4:]
    started = not first
    for name, arguments in samples_of(names):
        if name == first:
            started = True
        if not started:
            continue
        for i, (label, changed) in enumerate(variants(name, arguments)):
            is_chosen = ALWAYS.search(label) is not None or (i + len(name)) % every == 0
            if (name == first and i < skip) or not is_chosen:
                continue
            print(json.dumps({"function": name, "variant": i, "label": label}), flush=True)
            begin = time.monotonic()
            only_stage1 = any(described(value) for value in changed.values())
            outcome = caller.call(name, changed, only_stage1=only_stage1)
            print(
                json.dumps([outcome.stage1, outcome.stage2, outcome.text, round(time.monotonic() - begin, 3)]),
                flush=True,
            )


def samples_of(names: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """One sample of each function, or of the given ones."""
    return [(name, arguments) for name, arguments in dict(samples()).items() if not names or name in names]


# ---- In the parent


@dataclass(frozen=True)
class Fault:
    """A fault of a call."""

    function: str
    label: str
    what: str


def _run(arguments: list[str]) -> Iterator[Any]:
    """The lines of a process; the last one describes its end."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.aten_ops.abuse", *arguments]
    process = subprocess.Popen(
        command, cwd=PACKAGE.parent, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout and process.stderr
    os.set_blocking(process.stdout.fileno(), False)
    rest, last, limit = b"", time.monotonic(), LIMIT_OF_START
    while True:
        ready, _, _ = select.select([process.stdout], [], [], 1)
        data = process.stdout.read() if ready else None
        if data:
            last, limit = time.monotonic(), LIMIT
            *lines, rest = (rest + data).split(b"\n")
            yield from (json.loads(line) for line in lines)
        elif data == b"":
            break
        elif time.monotonic() - last > limit:
            process.kill()
            process.wait()
            yield f"took more than {limit} s"
            return
    error = process.stderr.read().decode()
    if len(error) > 2000:  # a sanitizer reports the error first, Python last
        error = f"{error[:1000]}\n...\n{error[-1000:]}"
    yield f"ended the process: {process.wait()}, {error}" if process.wait() != 0 or error else ""


def fault_of_text(text: str) -> str:
    """The fault of a refusal's text: a foreign text must follow one of ours."""
    ours = QUOTED.split(text)[0]
    if found := INSIDE.search(text):
        return f"the text speaks of torch's inside, {found[0]!r}: {text!r}"
    if found := OF_TORCH.search(ours):
        return f"the text is torch's, {found[0]!r}: {text!r}"
    return ""


def fault_of(call: dict[str, Any], outcome: list[Any]) -> str:
    """The fault of an outcome; empty if there is none."""
    stage1, stage2, text, _ = outcome
    if stage1 == stage2 == SUCCESS:
        return ""
    if wrong := fault_of_text(text):
        return wrong
    if "memory is exhausted" in text and "in dimension" not in call["label"]:
        return f"memory is asked for before the sizes of outputs are looked at: {text!r}"
    if stage1 != SUCCESS and stage1 not in (161001, 161002, 361001) and not 561000 <= stage1 < 562000:
        return f"stage 1 ended with {stage1}: {text}"
    if stage1 == SUCCESS and stage2 not in (AICORE_EXCEPTION, 161001, 161002):
        return f"stage 2 ended with {stage2}: {text}"
    if not text.startswith(call["function"]):
        return f"the text does not name the function: {text!r}"
    return ""


def abuse(*names: str, every: int = 1) -> tuple[int, list[Fault]]:
    """The number of calls, and the faults."""
    count, faults = 0, []
    start: list[str] = ["", "0"]
    while True:
        call: dict[str, Any] = {}
        for line in _run([*start, str(every), *names]):
            if isinstance(line, dict):
                call = line
                count += 1
            elif isinstance(line, list):
                if what := fault_of(call, line):
                    faults.append(Fault(call["function"], call["label"], what))
            elif line:
                faults.append(Fault(call.get("function", ""), call.get("label", ""), line))
                start = [call.get("function", ""), str(call.get("variant", 0) + 1)]
            else:
                return count, faults
        if not call:
            return count, faults


if __name__ == "__main__":
    main()
