"""Runs all C++ tests, and the Python tests of the operators and rows, under the sanitizers: `make sanitize`.

asan: AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer. tsan: ThreadSanitizer, for the C++ tests with
threads. Each is a separate build below build/; a second run rebuilds only what changed. The Python tests use a copy of
the package with the extension and the host CANN of the first build.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests import LONGEST_SESSION, OF_THE_CALLER, builds

ROOT = Path(__file__).resolve().parent.parent
AT_A_TIME = 2

# The tests that call operators from torch, without test_compilers: a compiler's output is not instrumented.
PYTHON_TESTS = (
    *(path.stem for path in sorted((ROOT / "tests" / "operators").glob("[!_]*.py"))),
    *("operators", "direct_call", "functional", "nn", "memory"),
    *("aten_values", "aten_abuse", "private_formats"),
)

# GCC 12's fake stack, which detects uses after return, is not aligned for AVX-512 vectors.
ADDRESS = {
    "ASAN_OPTIONS": "halt_on_error=1:strict_string_checks=1:check_initialization_order=1:strict_init_order=1"
    ":detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
THREAD = {
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
    # torch's OpenMP runtime is not instrumented: the synchronisation of its threads is invisible, and every parallel
    # loop would look like a race. The threads here are the tests' own and the streams'.
    "OMP_NUM_THREADS": "1",
}


class Outcome(NamedTuple):
    variant: str
    test: str
    passed: bool
    seconds: float


def leaks_can_be_found() -> bool:
    """Return true if LeakSanitizer works here; it needs ptrace, which some containers forbid."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "probe"
        command = [*builds.CXX, "-fsanitize=address", "-xc++", "-", "-o", program]
        subprocess.run(command, input="int main() {}", text=True, check=True)
        environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=1"}
        return subprocess.run([program], env=environment, capture_output=True).returncode == 0


def run(variant: str, program: Path, options: dict[str, str]) -> Outcome:
    """Run one test program, and show its output if it fails."""
    start = time.monotonic()
    try:
        result = subprocess.run(
            [program],
            env=os.environ | options,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LONGEST_SESSION,
        )
        passed, output = result.returncode == 0, result.stdout
    except subprocess.TimeoutExpired as late:
        passed, output = False, f"{(late.stdout or b'').decode(errors='replace')}\nnot done in {LONGEST_SESSION} s\n"
    outcome = Outcome(variant, program.name, passed, time.monotonic() - start)
    print(f"{'ok    ' if passed else 'FAILED'} {variant:8} {program.name} ({outcome.seconds:.1f} s)", flush=True)
    for line in re.findall("^skipped .*$", output, re.MULTILINE):
        print(f"       {variant:8} {program.name}: {line}", flush=True)
    if not passed:
        print(output, flush=True)
    return outcome


def run_variant(variant: str, options: dict[str, str]) -> list[Outcome]:
    """Build one variant and run its tests."""
    print(f"building {variant}", flush=True)
    start = time.monotonic()
    folder = builds.build(variant, "all", "cpp_tests", "install")
    print(f"built {variant} in {time.monotonic() - start:.0f} s", flush=True)
    programs = sorted((folder / "tests").glob("test_*"))
    assert programs, "no tests were built"
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(lambda program: run(variant, program, options), programs))


def run_python() -> Outcome:
    """Run the operators' Python tests on the address variant."""
    package = ROOT / "build" / "asan" / "python"
    builds.copy_sources(package)
    # Python is not instrumented, so the runtime is preloaded; it also needs the C++ library's throwing functions.
    names = ("libasan.so", "libubsan.so", "libstdc++.so.6")
    libraries = [
        subprocess.run(
            [*builds.CXX, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in names
    ]
    environment = (
        {name: value for name, value in os.environ.items() if name not in OF_THE_CALLER}
        | ADDRESS
        | {
            "LD_PRELOAD": " ".join(libraries),
            "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)]),
            # Python and torch keep memory until the process ends; some tests request more than there is.
            "ASAN_OPTIONS": f"{ADDRESS['ASAN_OPTIONS']}:detect_leaks=0:allocator_may_return_null=1",
        }
    )
    tests = [ROOT / "tests" / f"test_{name}.py" for name in PYTHON_TESTS]
    start = time.monotonic()
    # Appended, so that the tree's own package does not come first.
    options = [
        "-q",
        "-k",
        "not test_compilers",
        f"--numprocesses={AT_A_TIME}",
        "--dist=worksteal",
        "--import-mode=append",
        "-o",
        "pythonpath=",  # a space-separated list
    ]
    result = subprocess.run([sys.executable, "-m", "pytest", *options, *map(str, tests)], cwd=package, env=environment)
    return Outcome("asan", "Python tests", result.returncode == 0, time.monotonic() - start)


def main() -> int:
    """Run both variants, print a table, and return 0 if everything passed."""
    start = time.monotonic()
    leaks = leaks_can_be_found()
    ADDRESS["ASAN_OPTIONS"] += f":detect_leaks={int(leaks)}"
    outcomes = [*run_variant("asan", ADDRESS), run_python(), *run_variant("tsan", THREAD)]

    print(f"\n{'test':28} {'asan':>14} {'tsan':>14}")
    for name in dict.fromkeys(outcome.test for outcome in outcomes):
        cells = [f"{'ok' if o.passed else 'FAILED'} {o.seconds:6.1f} s" for o in outcomes if o.test == name]
        print(f"{name:28} " + " ".join(f"{cell:>14}" for cell in cells))
    if not leaks:
        print("LeakSanitizer cannot run on this machine: leaks were not looked for.")
    failed = sum(not outcome.passed for outcome in outcomes)
    print(f"{len(outcomes)} runs, {failed} failed, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
