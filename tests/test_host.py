"""The environment that makes the host CANN a machine with NPUs; tests/test_npu.py starts programs in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aclnn_torch import cli, host


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--product", "Ascend999"], "Ascend999 does not name a product"),
        (["--cann", "9.2"], "9.2 does not name a release of CANN; the releases are 8.5, 9.0, 9.1 and later"),
        (["--devices", "0"], "devices is 0, expected a number from 1 to 64"),
        (["--devices", "65"], "devices is 65, expected a number from 1 to 64"),
        (["--memory", "0"], "memory is 0, expected a number of bytes, with or without K, M, G or T behind it"),
        (["--memory", "2GB"], "memory is 2GB, expected a number of bytes"),
    ],
)
@pytest.mark.parametrize("command", ["run", "env"])
def test_bad_devices_are_refused(
    command: str, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = ["program.py"] if command == "run" else []
    assert cli.main([command, *arguments, *program]) == 1
    printed = capsys.readouterr()
    assert text in printed.err
    assert printed.out == ""


def test_environment_puts_the_host_cann_first(monkeypatch: pytest.MonkeyPatch) -> None:
    own = str(host.PREFIX / "lib64")
    programs = [str(host.PREFIX / "bin"), str(host.PREFIX / "tools" / "profiler" / "bin")]
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/a:{own}:/b")
    monkeypatch.setenv("PATH", f"/a:{programs[1]}:/b")
    monkeypatch.setenv("ASCEND_GLOBAL_LOG_LEVEL", "3")
    variables = host.environment(product="Ascend910B2", devices=2, memory="2G", strict=True, cann="9.1")
    assert variables["LD_LIBRARY_PATH"] == f"{own}:/a:/b"
    assert variables["PATH"] == ":".join([*programs, "/a", "/b"])
    assert (Path(programs[0]) / "npu-smi").is_file()
    assert (Path(programs[1]) / "msprof").is_file()
    assert variables["ACLNN_TORCH_PRODUCT"] == "Ascend910B2"
    assert variables["ACLNN_TORCH_CANN"] == "9.1"
    assert variables["ACLNN_TORCH_DEVICES"] == "2"
    assert variables["ACLNN_TORCH_DEVICE_MEMORY"] == "2G"
    assert variables["ACLNN_TORCH_STRICT"] == "1"
    assert host.environment(memory=1 << 20, strict=False)["ACLNN_TORCH_STRICT"] == "0"
    assert not {"ACLNN_TORCH_CANN", "ACLNN_TORCH_STRICT", "ACLNN_TORCH_DEVICE_MEMORY"} & set(host.environment())
    assert variables["ASCEND_GLOBAL_LOG_LEVEL"] == "2"
    for name in ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH"):
        assert Path(variables[name]).is_dir()
    for folder in ("runtime", "compiler"):
        assert (Path(variables["ASCEND_HOME_PATH"]) / folder).is_dir()


@pytest.mark.parametrize("devices", [1, 64])
def test_the_least_and_the_most_devices(devices: int) -> None:
    assert host.environment(devices=devices)["ACLNN_TORCH_DEVICES"] == str(devices)


@pytest.mark.parametrize("own", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT"])
def test_openmp_waits_as_the_user_says(monkeypatch: pytest.MonkeyPatch, own: str) -> None:
    """libgomp's documentation, "GOMP_SPINCOUNT": ACTIVE allows 1000 looks where threads are more than processors.

    20000 elsewhere, where it would be 30 billion.
    """
    for name in host.OPENMP:
        monkeypatch.delenv(name, raising=False)
    assert host.environment().items() >= {"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": "20000"}.items()
    monkeypatch.setenv(own, "7")
    assert not host.OPENMP.keys() & host.environment().keys()


def test_freed_memory_is_kept_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bytes, as glibc's manual, "Tunable Parameters", has the variables."""
    sizes = {"MALLOC_TRIM_THRESHOLD_": str(256 * 1024**2), "MALLOC_MMAP_THRESHOLD_": str(32 * 1024**2)}
    for name in sizes:
        monkeypatch.delenv(name, raising=False)
    assert host.environment().items() >= sizes.items()
    for name in sizes:
        monkeypatch.setenv(name, "7")
    assert {host.environment()[name] for name in sizes} == {"7"}


# Writes the timer slack of the thread that loads the library, and of one that it starts.
TIMERS = """
import ctypes, sys, threading
libc = ctypes.CDLL(None)
slack = lambda: libc.prctl(30)  # PR_GET_TIMERSLACK
libc.prctl(29, int(sys.argv[2]))  # PR_SET_TIMERSLACK
before = slack()
ctypes.CDLL(sys.argv[1])
of_thread = []
thread = threading.Thread(target=lambda: of_thread.append(slack()))
thread.start()
thread.join()
print(before, slack(), *of_thread)
"""


@pytest.mark.parametrize(("before", "after"), [(50_000, 1_000_000), (70_000, 70_000)])
def test_threads_that_poll_sleep_longer(before: int, after: int) -> None:
    """prctl(2): Linux may end a sleep late by the thread's timer slack, 50 microseconds unless it was set."""
    library = host.PREFIX / "lib64" / "libge_runner.so"
    command = [sys.executable, "-c", TIMERS, str(library), str(before)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.split() == [str(before), str(after), str(after)]


def test_enable_comes_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_npu", sys)
    with pytest.raises(RuntimeError, match="torch_npu is imported already"):
        host.enable()
