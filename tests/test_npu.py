"""Runs tests/npu in the environment with torch_npu, and tests how programs start there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from aclnn_torch import host
from aclnn_torch.products import PRODUCTS
from tests import LONGEST_SESSION

ROOT = Path(__file__).resolve().parent.parent
# `make` installs torch_npu into a separate environment; the variable names another.
PYTHON = Path(os.environ.get("ACLNN_TORCH_NPU_PYTHON", ROOT / ".venv-npu" / "bin" / "python"))


def why_not() -> str:
    """The reason why nothing can run under torch_npu; empty if it can."""
    if not PYTHON.exists():
        return f"no torch_npu: {PYTHON} is missing; run `make npu`"
    code = "from aclnn_torch import host; print(host.torch_npu_problem() or '')"
    return subprocess.run([PYTHON, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


ALL = pytest.mark.test_all
needs_torch_npu = pytest.mark.usefixtures("torch_npu_environment")  # of conftest.py


def run(
    command: Sequence[str | Path], python: str | Path = PYTHON, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Python's result for the command, started as from a shell without a CANN."""
    unwanted = ("ASCEND", "ACLNN_TORCH_", "ACL_", "TASK_QUEUE", "TORCH_DEVICE", "LD_LIBRARY_PATH", "PYTEST_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return subprocess.run(
        [python, *command],
        cwd=ROOT,
        env=clean | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=LONGEST_SESSION,
    )


# The queue modes of torch_npu on streams with threads, and the last again in strict mode.
MODES = {
    "queue 0": {"TASK_QUEUE_ENABLE": "0"},
    "queue 1": {"TASK_QUEUE_ENABLE": "1"},
    "queue 2": {"TASK_QUEUE_ENABLE": "2"},
    "queue 2, strict": {"TASK_QUEUE_ENABLE": "2", "ACLNN_TORCH_STRICT": "1"},
}
# Tests that depend on streams having threads, and with queue 2 our and vllm-ascend's operators and training, too.
ON_INLINE_STREAMS = [f"tests/npu/test_{name}.py" for name in ("graphs", "order", "smoke", "streams")]
WITH_QUEUE_2 = [f"tests/npu/test_{name}.py" for name in ("operators", "torch_npu_path", "training", "vendor_operators")]
# They start one program per outcome of a process, and select the mode themselves.
OF_PROCESSES = ("strict", "process", "programs", "lost_work", "unreported_failures")
PROGRAMS = tuple(f"tests/npu/test_{name}.py" for name in OF_PROCESSES)
# Independent of the mode, and slow. The traces run on inline streams with queue 2, with their file.
TRACES = "tests/npu/test_operators.py::test_a_compiler_traces_it_whole"
OF_ONE_MODE = ("demo", "distributed", "library", "profiler", "torchair", "transformers")
ONCE = tuple(f"tests/npu/test_{name}.py" for name in OF_ONE_MODE)
# One case for each of torch_npu's own operators: in strict mode, and as Ascend950 calls them in the default mode.
CASES = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("tests/npu/test_aten_ops*.py"))]


def run_pytest(*arguments: str, product: str = "Ascend910B", **environment: str) -> None:
    """Runs tests on two NPUs of 1 GiB."""
    command = ["-m", "aclnn_torch", "run", "--product", product, "--devices", "2", "--memory", "1G"]
    command += ["-m", "pytest", "-q", "-p", "torch_npu", "-p", "no:cacheprovider", *arguments]
    result = run(command, **environment)
    if result.returncode != 0 or " passed" not in result.stdout:
        pytest.fail(f"status {result.returncode}\n{result.stdout}{result.stderr}", pytrace=False)


@pytest.mark.test_all
@needs_torch_npu
@pytest.mark.parametrize("mode", MODES)
def test_under_torch_npu(mode: str) -> None:
    left_out = [*PROGRAMS, *ONCE, *([] if mode == "queue 2, strict" else CASES)]
    run_pytest("tests/npu", "--deselect", TRACES, *(f"--ignore={path}" for path in left_out), **MODES[mode])


@needs_torch_npu
@pytest.mark.parametrize("queue", [pytest.param("0", marks=ALL), pytest.param("1", marks=ALL), "2"])
def test_inline_streams_under_torch_npu(queue: str) -> None:
    paths = ON_INLINE_STREAMS + (WITH_QUEUE_2 if queue == "2" else [])
    run_pytest(*paths, TASK_QUEUE_ENABLE=queue, ACLNN_TORCH_INLINE_STREAMS="1")


@pytest.mark.test_all
@needs_torch_npu
def test_operators_of_ascend950() -> None:
    """On Ascend950, torch_npu calls other functions for some of them."""
    run_pytest(*CASES, product="Ascend950")


@pytest.mark.test_all
@needs_torch_npu
@pytest.mark.parametrize("product", [product for product in PRODUCTS if product != "host"])
def test_every_product(product: str) -> None:
    run_pytest("tests/npu/test_products.py", product=product, TASK_QUEUE_ENABLE="0")


@pytest.mark.test_all
@needs_torch_npu
def test_saturation_mode_of_a_product_that_has_both() -> None:
    run_pytest("tests/npu/test_products.py", TASK_QUEUE_ENABLE="0", INF_NAN_MODE_FORCE_DISABLE="1")


@pytest.mark.test_all
@needs_torch_npu
def test_processes_under_torch_npu() -> None:
    run_pytest(*PROGRAMS)


@pytest.mark.test_all
@needs_torch_npu
def test_in_the_default_mode_under_torch_npu() -> None:
    run_pytest(*ONCE)


@needs_torch_npu
def test_run_is_the_program(tmp_path: Path) -> None:
    """Arguments, output, exit status and python's options are the program's own; torch autoloads torch_npu."""
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, torch\n"
        "print(sys.argv[1:], __name__, torch.npu.device_count(), torch.npu.get_device_name(0))\n"
        "print(torch.ones(2, 2).npu().cpu().sum().item(), torch.npu.mem_get_info(1)[1] >> 20)\n"
        "print(sys._xoptions, sys.warnoptions)\n"
        "sys.exit(7)\n"
    )
    command = ["-X", "own=1", "-W", "ignore", "-m", "aclnn_torch", "run"]
    command += ["--devices", "3", "--product", "Ascend910_93", "--memory", "256M"]
    result = run([*command, script, "-m", "--devices", "x y"])
    assert result.returncode == 7, result.stderr
    assert result.stdout == "['-m', '--devices', 'x y'] __main__ 3 Ascend910_9391\n4.0 256\n{'own': '1'} ['ignore']\n"


@pytest.mark.test_all
@needs_torch_npu
def test_enable_serves_a_notebook() -> None:
    """No variable is set, and `import torch` alone would fail here without a CANN."""
    code = """
from aclnn_torch import host
host.enable(devices=2)
host.enable(devices=2)
import acl, torch, torch_npu
print(torch.npu.device_count(), torch.ones(3).to("npu:1").cpu().tolist(), acl.rt.get_device_count())
try:
    host.enable()
except RuntimeError as error:
    print(error)
"""
    result = run(["-c", code])
    assert result.returncode == 0, result.stderr
    first, second = result.stdout.splitlines()
    assert first == "2 [1.0, 1.0, 1.0] (2, 0)"
    assert second.startswith("torch_npu is imported already")


@needs_torch_npu
def test_the_shell_commands_set_a_shell_up() -> None:
    command = """
        eval "$("$0" -m aclnn_torch env --devices 4)" || exit 1
        exec "$0" -c 'import acl, torch; print(torch.npu.device_count(), acl.rt.get_device_count())'
    """
    result = run(["-c", command, PYTHON], python="bash")
    assert (result.returncode, result.stdout) == (0, "4 (4, 0)\n"), result.stderr


@pytest.mark.test_all
@needs_torch_npu
def test_torch_npu_without_a_cann_is_left_alone() -> None:
    code = """
import os, sys
import aclnn_torch
print("torch_npu" in sys.modules, "TORCH_DEVICE_BACKEND_AUTOLOAD" in os.environ)
"""
    result = run(["-c", code])
    assert result.stdout == "False False\n", result.stderr
    result = run(["-m", "aclnn_torch", "doctor"])
    assert result.returncode == 0, result.stdout
    assert (
        "`aclnn-torch run`; a program that imports torch or torch_npu without either ends in `libhccl.so: cannot"
        in (result.stdout)
    )


NO_CANN = "torch_npu cannot be loaded: libhccl.so: cannot open shared object file: No such file or directory; "


@pytest.mark.test_all
@needs_torch_npu
def test_torch_npu_that_does_not_find_its_cann() -> None:
    """The import reports it, with a remedy; torch stays usable. The command line works, and reports it."""
    for first in ("import aclnn_torch", "from aclnn_torch import nn"):
        result = run(["-c", first], ASCEND_HOME_PATH="/nowhere")
        last = result.stderr.splitlines()[-1]
        assert last.startswith(f"ImportError: aclnn_torch: {NO_CANN}ASCEND_HOME_PATH is /nowhere, expected"), last
        assert "`aclnn-torch run`" in last
        assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in last
    result = run(["-m", "aclnn_torch", "doctor"], ASCEND_HOME_PATH="/nowhere")
    assert result.returncode == 1
    assert f"({NO_CANN}" in result.stdout
    result = run(["-c", "import aclnn_torch"], ASCEND_HOME_PATH="/nowhere", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.returncode == 0, result.stderr
    result = run(["-m", "aclnn_torch", "run", "-m", "aclnn_torch", "doctor"], ASCEND_HOME_PATH="/nowhere")
    assert result.returncode == 0, result.stdout


def test_run_needs_torch_npu() -> None:
    result = run(["-m", "aclnn_torch", "run", "program.py"], python=sys.executable)
    assert result.returncode == 1
    assert "torch_npu is not installed here" in result.stderr


@pytest.mark.test_all
def test_doctor_tells_what_is_here() -> None:
    result = run(["-m", "aclnn_torch", "doctor"], python=sys.executable)
    assert result.returncode == 0, result.stderr
    lines = dict(line.split(maxsplit=1) for line in result.stdout.replace("host CANN", "host").splitlines())
    assert lines["torch"].split()[0] == torch.__version__
    assert lines["host"].startswith("embedded, as Ascend910B")
    assert lines["CANN"].startswith("none (")


@needs_torch_npu
def test_doctor_under_torch_npu() -> None:
    """It reports the versions, and the CANN that a program would use."""
    command = ["-m", "aclnn_torch", "run", "-m", "aclnn_torch", "doctor"]
    result = run(command)
    assert result.returncode == 0, result.stderr
    series = re.escape(".".join(torch.__version__.split(".")[:2]))
    assert re.search(rf"NPU operators +built for torch_npu {series}\.\S+\n", result.stdout), result.stdout
    assert re.search(rf"torch_npu +{series}\.", result.stdout), result.stdout
    assert str(host.PREFIX) in result.stdout
