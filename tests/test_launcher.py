"""What `aclnn-torch run` becomes: a parent that to others is the program, and tells which failures nobody heard of.

The programs here stand for such on NPUs: they write what the host CANN writes (csrc/host_cann/runtime/untold.h).
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_torch.cli import launcher

LAUNCH = [sys.executable, "-I", "-S", launcher.__file__, sys.executable, "-c"]
WRITE = """
import json, os, signal, sys, time
path = os.environ["ACLNN_TORCH_FAILURES"]
def write(**entry):
    with open(path, "a") as file:
        file.write(json.dumps(entry) + "\\n")
def fail(number, process=os.getpid(), text="aclnnElu: no", device=1, stream=3, call="aclnnElu"):
    write(process=process, number=number, device=device, stream=stream, call=call, status=507015, text=text)
"""
READY = "print('ready', flush=True)\n"


def launch(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LAUNCH, WRITE + code], env=os.environ | environment, capture_output=True, text=True, timeout=120
    )


def start(code: str) -> subprocess.Popen[str]:
    """A program that has said that it is ready."""
    process = subprocess.Popen([*LAUNCH, WRITE + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_status_and_the_streams_are_the_programs(status: int) -> None:
    code = f"print(input(), os.getpgrp()); print('error', file=sys.stderr); sys.exit({status})"
    done = subprocess.run([*LAUNCH, WRITE + code], input="in", capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (status, f"in {os.getpgrp()}\n", "error\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE])
def test_a_program_that_a_signal_ends(number: signal.Signals) -> None:
    """What it failed with before is told, too."""
    done = launch(
        f"fail(1); signal.signal({int(number)}, 0) if {int(number)} != 9 else 0; os.kill(os.getpid(), {number})"
    )
    assert done.returncode == -number
    assert "aclnnElu: no" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_to_the_launcher_alone_reach_the_program(number: signal.Signals) -> None:
    code = f"signal.signal({int(number)}, lambda *_: sys.exit(5))\n{READY}time.sleep(100)"
    process = start(code)
    process.send_signal(number)
    assert process.wait(60) == 5


def test_a_terminals_interrupt_comes_once() -> None:
    code = (
        "count = 0\ndef handle(*_):\n    global count\n    count += 1\n"
        f"signal.signal(signal.SIGINT, handle)\n{READY}"
        "end = time.monotonic() + 2\nwhile time.monotonic() < end: time.sleep(0.01)\nprint('count', count)"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.execv(LAUNCH[0], [*LAUNCH, WRITE + code])
    output = b""
    while b"ready" not in output:
        output += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    while not re.search(rb"count \d+\r\n", output):  # a line may come in parts
        output += os.read(terminal, 1000)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)
    assert b"count 1\r\n" in output


def test_a_launcher_that_is_killed_takes_the_program_with_it() -> None:
    process = start(f"{READY}print(os.getpid(), flush=True)\ntime.sleep(100)")
    assert process.stdout is not None
    program = int(process.stdout.readline())
    process.kill()
    process.wait(60)
    end = time.monotonic() + 60
    while Path(f"/proc/{program}").exists() and ") Z " not in Path(f"/proc/{program}/stat").read_text():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_file_is_the_users_alone_and_goes() -> None:
    done = launch("print(path, oct(os.stat(path).st_mode & 0o777), os.listdir('/proc/self/fd'))")
    path, mode, *open_files = done.stdout.split(maxsplit=2)
    assert mode == "0o600"
    assert not Path(path).exists()
    assert "aclnn_torch_failures" not in open_files[0]
    assert done.stderr == ""


def test_each_launcher_has_a_file_of_its_own(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("")
    other.chmod(0o600)
    done = launch("fail(1)", ACLNN_TORCH_FAILURES=str(other))
    assert "aclnnElu: no" in done.stderr
    assert other.read_text() == ""


def test_without_a_place_for_the_file_the_program_runs() -> None:
    code = "import tempfile; tempfile.tempdir = '/nowhere'; import runpy, sys; sys.argv = sys.argv[1:]; "
    code += f"runpy.run_path({launcher.__file__!r}, run_name='__main__')"
    program = "import os; print(os.environ.get('ACLNN_TORCH_FAILURES'))"
    command = [sys.executable, "-c", code, launcher.__file__, sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")


TELLS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "one": ("fail(1, process=77)", lambda text: text == SENTENCE),
    "one that was told": ("fail(1); write(process=os.getpid(), number=1, told=True)", lambda text: text == ""),
    "another that was told": (
        "fail(1, process=77); fail(1, process=78); write(process=78, number=1, told=True)",
        lambda text: text == SENTENCE,
    ),
    "of children that are gone": (
        "for _ in range(3):\n    if os.fork() == 0:\n        fail(1, process=os.getpid()); os._exit(0)\n    os.wait()",
        lambda text: text.count("aclnnElu: no") == 3,
    ),
    "of two processes with one number": (
        "fail(1, process=77); fail(1, process=77, text='aclnnElu: other')",
        lambda text: text.count("aclnnElu") == 2,
    ),
    "of a queue": (
        "fail(1, process=77, stream=0, call='')",
        lambda text: "npu:1, torch_npu's queue of process 77 failed with 507015" in text,
    ),
    "of a copy": ("fail(1, call='aclrtMemcpyAsync')", lambda text: ": aclrtMemcpyAsync: aclnnElu: no; " in text),
    "many": (
        "for i in range(30): fail(i)",
        lambda text: text.count("aclnnElu") == 20 and "aclnn-torch: 10 more streams failed like that\n" in text,
    ),
    "what controls a terminal": (
        "fail(1, text='a\\x1b[2Jb\\nc')",
        lambda text: "a [2Jb c" in text and text.count("\n") == 1,
    ),
    "what is no line of the host CANN": (
        "for junk in (b'\\xff\\n', b'[1]\\n', b'7\\n', b'{}\\n', b'[' * 9000 + b'\\n', b'{\"process\": 1e999}\\n',"
        " b'{\"process\":'):\n    open(path, 'ab').write(junk)",
        lambda text: text == "",
    ),
    "what is too large": (
        "open(path, 'a').write(' ' * (1 << 20) + '\\n'); fail(1)",
        lambda text: text == "",
    ),
}
SENTENCE = (
    "aclnn-torch: npu:1, stream 3 of process 77 failed with 507015, and nothing waited for it to hear so: "
    "aclnnElu: no; what was computed after it is not to be used, and torch.npu.synchronize(1) in the program raises "
    "this where it happens\n"
)


@pytest.mark.parametrize("case", TELLS)
def test_what_is_told(case: str) -> None:
    code, is_right = TELLS[case]
    done = launch(code)
    assert done.returncode == 0, done.stderr
    assert is_right(done.stderr), done.stderr


def test_a_closed_standard_error_does_not_change_the_status() -> None:
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" 2>&-', "bash", *LAUNCH, WRITE + "fail(1); sys.exit(3)"], timeout=120, check=False
    )
    assert done.returncode == 3
