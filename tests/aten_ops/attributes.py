"""Calls of every function on ATen with other numbers in an attribute, and with the shapes that these ask for.

tests/aten_ops/abuse.py changes one argument, so that most of its calls with another padding or kernel are refused for
a tensor's shape, and the kernel is never reached. Here a tensor gets the shape that the refusal expects, and a gradient
the shape of its forward's output, until the call is computed or refused for another reason. Tensors end at inaccessible
pages. `python -m tests.aten_ops.attributes FUNCTION...` prints the calls that end the process, and the numbers of all
calls and of those that were computed.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests import LONGEST, cabi
from tests.aten_ops.abuse import Abuser, samples_of
from tests.aten_ops.sweep import ENVIRONMENT, LIBRARY, PACKAGE, Tensor, is_output
from tests.cabi import SUCCESS
from tests.published import rows

NUMBERS = (-5, -2, -1, 0, 1, 2, 3, 5, 9, 100)
MOST_ELEMENTS = 1 << 16
MOST_REPAIRS = 5

Arguments = dict[str, Any]


def changes(name: str, arguments: Arguments) -> Iterator[Arguments]:
    """Other values of one attribute: one number, two neighbours of a list, or all of a list."""
    for kind, argument in rows(LIBRARY)[name]:
        value = arguments[argument]
        if type(value) is int and kind != "aclDataType":
            yield from ({argument: number} for number in NUMBERS if number != value)
        elif isinstance(value, list) and value and type(value[0]) is int:
            for i in range(len(value)):
                for number in NUMBERS:
                    yield {argument: [*value[:i], number, *value[i + 1 :]]}
                    for other in NUMBERS if i + 1 < len(value) else ():
                        yield {argument: [*value[:i], number, other, *value[i + 2 :]]}
            yield from ({argument: [number] * len(value)} for number in NUMBERS)


def repaired(arguments: Arguments, text: str) -> Arguments | None:
    """The arguments with the shape that a refusal expects; None if it asks for no shape, or for one that is large."""
    found = re.search(r"(\w+) has shape \[([\d, ]*)\], expected \[([\d, ]*)\]", text)
    tensor = arguments.get(found[1]) if found else None
    if found is None or not isinstance(tensor, Tensor):
        return None
    shape = tuple(map(int, re.findall(r"\d+", found[3])))
    if shape == tensor.shape or math.prod(shape) > MOST_ELEMENTS:
        return None
    return arguments | {found[1]: replace(tensor, shape=shape, values=())}


def accepted(caller: Abuser, name: str, arguments: Arguments, only_stage1: bool = False) -> Arguments | None:
    """The arguments, repaired, with which a call succeeds; None if it is refused."""
    for _ in range(MOST_REPAIRS):
        outcome = caller.call(name, arguments, only_stage1=only_stage1)
        if outcome.stage1 == SUCCESS:
            return arguments
        if (found := repaired(arguments, outcome.text)) is None:
            return None
        arguments = found
    return None


def with_gradient(caller: Abuser, name: str, arguments: Arguments, samples: dict[str, Arguments]) -> Arguments | None:
    """The arguments of a gradient with gradOutput as the forward's output; None if there is no such forward."""
    forward = re.sub("(Backward|Grad)$", "", name)
    gradient = next((a for a, v in arguments.items() if a.lower().startswith("grad") and isinstance(v, Tensor)), None)
    if forward == name or forward not in samples or gradient is None:
        return None
    shared = {argument: arguments[argument] for argument in samples[forward] if argument in arguments}
    found = accepted(caller, forward, samples[forward] | shared, only_stage1=True)
    outputs = [a for kind, a in rows(LIBRARY)[forward] if is_output(kind) and found and isinstance(found[a], Tensor)]
    if not found or not outputs:
        return None
    return arguments | {
        argument: replace(arguments[argument], shape=found[output].shape, values=())
        for argument, output in zip([gradient, *outputs[1:]], outputs, strict=True)
        if isinstance(arguments.get(argument), Tensor)
    }


def try_all(caller: Abuser, name: str, samples: dict[str, Arguments], report: int) -> None:
    """Makes all calls of a function; writes each change, and at the end the numbers."""
    made = computed = 0
    for change in changes(name, samples[name]):
        os.write(report, f"{json.dumps(change)}\n".encode())
        arguments = samples[name] | change
        for tried in (arguments, with_gradient(caller, name, arguments, samples)):
            made += tried is not None
            computed += tried is not None and accepted(caller, name, tried) is not None
    os.write(report, f"{made} {computed}\n".encode())


def main() -> None:
    """Each function has a process of its own."""
    cabi.Memory.is_fenced = True
    caller = Abuser()
    assert caller.library.aclHostSetProduct(b"host") == SUCCESS
    samples = dict(samples_of([]))
    total = [0, 0]
    for name in sys.argv[1:] or samples:
        source, sink = os.pipe()
        if (child := os.fork()) == 0:
            os.close(source)
            try_all(caller, name, samples, sink)
            os._exit(0)
        os.close(sink)
        with open(source) as file:
            last = file.read().splitlines()[-1]
        _, status = os.waitpid(child, 0)
        if status != 0:
            print(f"{name}: ended with {os.waitstatus_to_exitcode(status)} after {last}", flush=True)
        else:
            total = [a + int(b) for a, b in zip(total, last.split(), strict=True)]
    print(*total)


def faults(*names: str) -> tuple[list[str], int, int]:
    """The calls that ended the process, and the numbers of all calls and of those that were computed."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.aten_ops.attributes", *names]
    done = subprocess.run(command, cwd=PACKAGE.parent, env=ENVIRONMENT, capture_output=True, text=True, timeout=LONGEST)
    assert done.returncode == 0, done.stderr
    *lines, numbers = done.stdout.splitlines()
    made, computed = map(int, numbers.split())
    return lines, made, computed


if __name__ == "__main__":
    main()
