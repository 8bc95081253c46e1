"""Builds and tests the package with each supported torch: ``make matrix``, or with ``ARGS=TORCH`` one of them.

Each row of ROWS is built in a copy of the tree in build/matrix, with the Makefile's commands, as a user would: the
build, a suite of tests on CPU tensors, and one under torch_npu on simulated NPUs. It needs the network, 6 GB of space
for a row, and about a quarter of an hour for it on two cores. A row's environments are kept, for the next time. The
table in docs/compatibility.md is updated for the tested rows; the others are kept. A row whose interpreter is not on
PATH is skipped with a message.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
HEADER = "| torch | torch_npu | Python | CPU tensors | NPU tensors |\n|---|---|---|---|---|\n"


class Row(NamedTuple):
    """A combination of versions."""

    torch: str
    torch_npu: str | None  # None if no matching torch_npu was published
    python: str


ROWS = (
    Row("2.7.1", "2.7.1.post11", "3.10"),
    Row("2.8.0", "2.8.0.post5", "3.13"),
    Row("2.9.0", "2.9.0.post9", "3.12"),
    Row("2.10.0", "2.10.0.post7", "3.11"),
    Row("2.11.0", "2.11.0.post3", "3.10"),
    Row("2.12.1", "2.12.0.post3", "3.12"),
    Row("2.13.0", "2.13.0", "3.11"),
    Row("2.14.1", "2.14.0", "3.14"),
    Row("2.15.0", None, "3.13"),
)

# Every operator with its derivatives, compilers, export and transforms; modules and functions; errors.
CPU = (
    *("tests/test_operators.py", "tests/test_functional.py", "tests/test_nn.py", "tests/test_decompositions.py"),
    *("tests/test_fx.py", "tests/test_scripting.py", "tests/test_plumbing.py", "tests/test_elu.py"),
    *("tests/test_rms_norm.py", "tests/test_cross_entropy_loss.py", "tests/test_linear_cross_entropy.py"),
    *("tests/test_convolution.py", "tests/test_threads.py"),
)
# Operators and streams; training, graphs and the profiler; HCCL on two ranks; the functions that torch_npu looks up.
NPU = (
    *(f"tests/npu/test_{name}.py" for name in ("smoke", "operators", "streams", "training", "graphs", "profiler")),
    *(f"tests/npu/test_distributed.py::test_every_case[2-{way}]" for way in ("memory", "network")),
    "tests/npu/test_coverage.py",
)


def counts(output: str) -> str:
    """The last line of pytest: "123 passed, 4 skipped"."""
    found = re.findall(r"\d+ (?:passed|failed|errors?|skipped)", output.strip().splitlines()[-1])
    return ", ".join(found) or "no test ran"


def run(folder: Path, *command: str) -> str:
    """The output of a command; if it fails, the end of it is shown."""
    # CXX is for make, which accepts "ccache g++"; torch's Inductor does not.
    environment = {name: value for name, value in os.environ.items() if name != "CXX"}
    result = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    (folder / "build").mkdir(exist_ok=True)
    with (folder / "build" / "matrix.log").open("a") as log:
        log.write(f"$ {' '.join(command)}\n{result.stdout}\n")
    if result.returncode != 0:
        print("\n".join(result.stdout.splitlines()[-15:]), flush=True)
    return result.stdout


def runs(python: str) -> bool:
    """True if the interpreter is there; pyenv has commands on PATH for those that it has switched off."""
    return shutil.which(python) is not None and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


def build(row: Row, folder: Path) -> bool:
    """Copies the files that git tracks, and builds them; the environments of the last time are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in (".venv", ".venv-npu"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.rstrip("\0").split("\0"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    variables = [f"TORCH={row.torch}", f"PYTHON=python{row.python}"]
    if os.environ.get("CXX"):
        variables.append(f"CXX={os.environ['CXX']}")
    if row.torch_npu:
        variables.append(f"TORCH_NPU={row.torch_npu}")
    run(folder, "make", "npu" if row.torch_npu else "build", *variables)
    return bool(list((folder / "aclnn_torch").glob("_C.*.so")))


def try_row(row: Row) -> str:
    """The row of the table."""
    # The Makefile does not see that a kept environment has another torch_npu or Python, so its folder is another.
    folder = ROOT / "build" / "matrix" / "-".join(f"{name}-{version}" for name, version in row._asdict().items())
    results = ["does not build", "does not build"]
    if build(row, folder):
        pytest = ["-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
        results[0] = counts(run(folder, ".venv/bin/python", *pytest, "-n", "2", "--dist=worksteal", *CPU))
        if row.torch_npu:
            npus = ["-m", "aclnn_torch", "run", "--devices", "2", "--memory", "1G"]
            results[1] = counts(run(folder, ".venv-npu/bin/python", *npus, *pytest, "-p", "torch_npu", *NPU))
    if row.torch_npu is None:
        results[1] = "no torch_npu yet"
    return f"| {row.torch} | {row.torch_npu or 'none'} | {row.python} | {results[0]} | {results[1]} |\n"


def main(wanted: list[str]) -> int:
    """Tests the rows of the given versions of torch, or all; returns 1 if anything failed."""
    page = PAGE.read_text()
    start = page.index(HEADER) + len(HEADER)
    end = page.index("\n\n", start - 1) + 1
    lines = {line.split("|")[1].strip(): line + "\n" for line in page[start:end].splitlines()}
    failed = False
    for row in ROWS:
        if wanted and row.torch not in wanted:
            continue
        if not runs(f"python{row.python}"):
            print(f"torch {row.torch}: left out, python{row.python} is not on PATH", flush=True)
            continue
        begin = time.monotonic()
        lines[row.torch] = try_row(row)
        print(lines[row.torch].rstrip(), f"{time.monotonic() - begin:.0f} s", flush=True)
        failed |= bool(re.search(r"failed|error|not build|no test ran", lines[row.torch]))
    ordered = [lines[row.torch] for row in ROWS if row.torch in lines]
    PAGE.write_text(page[:start] + "".join(ordered) + page[end:])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
