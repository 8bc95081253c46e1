"""The committed calls: one file for each function, one call per line in hexadecimal; and running them.

A call describes each argument, so functions with the same kinds of arguments can share a file: a function without its
own file uses that of the first such function by name.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests import LONGEST
from tests.conformance.machinery import all_tables

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent / "corpus"
PROGRAM = ROOT / "build" / "release" / "tests" / "fuzz_replay"


def functions() -> list[str]:
    """Names of the functions in the program."""
    return subprocess.run([PROGRAM, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def read(function: str) -> list[bytes]:
    """The committed calls of a function, its own or shared."""
    kinds = {table.operator.api: [type(value) for value in table.operator.arguments.values()] for table in all_tables()}
    alike = [function, *sorted(name for name in kinds if kinds[name] == kinds[function])]
    path = next((path for name in alike if (path := FOLDER / f"{name}.txt").exists()), None)
    return [bytes.fromhex(line) for line in path.read_text().splitlines()] if path else []


def write(function: str, cases: Iterable[bytes]) -> None:
    """Replaces the committed calls; trailing zeros are redundant, and dropped."""
    FOLDER.mkdir(exist_ok=True)
    lines = sorted({case.rstrip(b"\0").hex() for case in cases} - {""}, key=lambda line: (len(line), line))
    (FOLDER / f"{function}.txt").write_text("".join(f"{line}\n" for line in lines))


def replay(function: str, cases: Iterable[bytes]) -> list[dict[str, Any]]:
    """Runs calls in the release build; returns each with its statuses. If a call violates an invariant, the program
    ends with a message, and so does this function."""
    lines = "".join(f"{case.hex()}\n" for case in cases)
    result = subprocess.run(
        [PROGRAM, function],
        input=lines,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=LONGEST,
    )
    outcomes = result.stdout.splitlines()
    assert result.returncode == 0, f"call {len(outcomes)} ended the program with {result.returncode}: {result.stderr}"
    return [json.loads(line) for line in outcomes]
