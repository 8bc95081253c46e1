"""Fuzzes the C interface: `python -m tests.fuzz`, or `make fuzz`.

libFuzzer (from the package atheris) generates calls of every two-stage function, in a build with AddressSanitizer and
UndefinedBehaviorSanitizer; tests/cpp/fuzz defines a call and its invariants. Each operator has ten minutes, shared by
its forward, its backward and its in-place form; those added later (tests/operators) share ten. Three run at a time.
Then every call that reached something new, and those of the committed corpus, are run once more in the release build,
where their statuses are compared with the oracle's.

--minutes N gives each N minutes, --function NAME selects one function, and --keep replaces the committed corpus by the
calls needed to cover what all of them cover.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests import builds
from tests.conformance.machinery import tables_by_file
from tests.fuzz import corpus, oracle
from tests.operators import OPERATORS as INFOS
from tests.sanitize import ADDRESS, ROOT, leaks_can_be_found

FOLDER = ROOT / "build" / "fuzz"
PROGRAM = FOLDER / "tests" / "fuzz_libfuzzer"
AT_A_TIME = 3
MOST_BYTES = 512  # of a case: even the longest, of ConvolutionBackward, has fewer

# Table files whose functions share ten minutes; each of the others has its own.
TOGETHER = tuple(name for name, info in INFOS.items() if info.later)


def operators() -> dict[str, list[str]]:
    """The functions of each turn of ten minutes."""
    found: dict[str, list[str]] = {}
    for name, tables in tables_by_file().items():
        turn = ", ".join(TOGETHER) if name in TOGETHER else name
        found.setdefault(turn, []).extend(table.operator.api for table in tables)
    return found


OPERATORS = operators()


class Outcome(NamedTuple):
    """The outcome of one function's turn."""

    function: str
    executions: int
    seconds: float
    crashed: bool
    output: str


def environment() -> dict[str, str]:
    """One thread, since several of these run at a time; stop at the first finding."""
    asan = f"{ADDRESS['ASAN_OPTIONS']}:detect_leaks={int(leaks_can_be_found())}:allocator_may_return_null=1"
    # Aborts, so that libFuzzer keeps the case.
    ubsan = f"{ADDRESS['UBSAN_OPTIONS']}:abort_on_error=1"
    return os.environ | {"ASAN_OPTIONS": asan, "UBSAN_OPTIONS": ubsan, "OMP_NUM_THREADS": "1"}


def working_corpus(function: str) -> Path:
    """The folder of a function's cases for libFuzzer, including the committed ones."""
    folder = FOLDER / "corpus" / function
    folder.mkdir(parents=True, exist_ok=True)
    for number, case in enumerate(corpus.read(function)):
        (folder / f"committed-{number}").write_bytes(case)
    return folder


def libfuzzer(function: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs libFuzzer on one function. Findings are left in the function's folder of findings."""
    findings = FOLDER / "findings" / function
    findings.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_len={MOST_BYTES}",
        "-len_control=0",
        "-timeout=60",
        "-rss_limit_mb=4096",
        f"-artifact_prefix={findings}/",
    ]
    return subprocess.run(
        [PROGRAM, function, *options, *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def fuzz(function: str, seconds: int) -> Outcome:
    """One function's turn."""
    start = time.monotonic()
    result = libfuzzer(function, f"-max_total_time={seconds}", "-print_final_stats=1", working_corpus(function))
    found = re.search(r"stat::number_of_executed_units: (\d+)", result.stdout)
    outcome = Outcome(
        function, int(found[1]) if found else 0, time.monotonic() - start, result.returncode != 0, result.stdout
    )
    rate = outcome.executions / max(outcome.seconds, 1)
    word = "FAILED" if outcome.crashed else "ok    "
    print(f"{word} {function:26} {outcome.executions:>10,} executions, {rate:,.0f} a second", flush=True)
    return outcome


def check_statuses(function: str) -> list[str]:
    """Every case in the working corpus whose statuses differ from the oracle's."""
    cases = [path.read_bytes() for path in sorted(working_corpus(function).iterdir())]
    wrong = []
    for case, outcome in zip(cases, corpus.replay(function, cases), strict=True):
        if problem := oracle.wrong(function, outcome):
            wrong.append(f"{case.hex()}: {problem}\n  {outcome}")
    print(f"{'FAILED' if wrong else 'ok    '} {function:26} {len(cases):>10,} statuses", flush=True)
    return wrong


def keep(function: str) -> None:
    """Replaces the committed corpus by a small one with the coverage of the working one."""
    folder = FOLDER / "kept" / function
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    result = libfuzzer(function, "-set_cover_merge=1", folder, working_corpus(function))
    cases = [path.read_bytes() for path in folder.iterdir()]
    if result.returncode != 0 or not cases:
        raise RuntimeError(f"{function}: the corpus could not be made smaller, and stays\n{result.stdout}")
    corpus.write(function, cases)


def main() -> int:
    """Fuzzes, checks the statuses, prints figures, and returns 0 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="for each operator")
    parser.add_argument("--function", choices=sorted(oracle.TABLES), help="this one only, for that long")
    parser.add_argument("--keep", action="store_true", help="replace the committed corpus")
    arguments = parser.parse_args()

    builds.build("fuzz", "cpp_tests")
    if arguments.function:
        turns = {arguments.function: int(60 * arguments.minutes)}
    else:
        turns = {name: int(60 * arguments.minutes / len(group)) for group in OPERATORS.values() for name in group}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        outcomes = list(pool.map(fuzz, turns, turns.values()))
    for outcome in outcomes:
        if outcome.crashed:
            print(f"\n{outcome.function}:\n{outcome.output[-8000:]}")
    wrong = [problem for function in turns for problem in check_statuses(function)]
    print("\n".join(wrong))
    if arguments.keep:
        for function in turns:
            keep(function)

    print(f"{'operator':26} {'executions':>14}")
    for operator, group in OPERATORS.items():
        print(f"{operator:26} {sum(o.executions for o in outcomes if o.function in group):>14,}")
    crashed = [outcome.function for outcome in outcomes if outcome.crashed]
    print(f"{sum(o.executions for o in outcomes):,} executions, {len(crashed)} crashed, {len(wrong)} wrong statuses")
    return 1 if crashed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
