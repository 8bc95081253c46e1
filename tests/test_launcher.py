"""The launcher that `aclnn-torch run` becomes: it acts as the program, and reports unreported failures.

The programs here simulate programs on NPUs: they write what the host CANN writes
(csrc/host_cann/runtime/unreported_failures.h).
"""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aclnn_torch.cli import launcher
from tests import LONGEST

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
WAIT = "[time.sleep(0.05) for _ in range(2000)]"  # a signal just before a short sleep does not matter


def launch(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LAUNCH, WRITE + code], env=os.environ | environment, capture_output=True, text=True, timeout=LONGEST
    )


def start(code: str, **options: Any) -> subprocess.Popen[str]:
    """A program that has reported that it is ready."""
    process = subprocess.Popen(
        [*LAUNCH, WRITE + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_status_and_the_streams_are_the_programs(status: int) -> None:
    code = f"print(input(), os.getpgrp()); print('error', file=sys.stderr); sys.exit({status})"
    done = subprocess.run([*LAUNCH, WRITE + code], input="in", capture_output=True, text=True, timeout=LONGEST)
    assert (done.returncode, done.stdout, done.stderr) == (status, f"in {os.getpgrp()}\n", "error\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE])
def test_a_program_that_a_signal_ends(number: signal.Signals) -> None:
    """Its earlier failures are reported, too."""
    done = launch(
        f"fail(1); signal.signal({int(number)}, 0) if {int(number)} != 9 else 0; os.kill(os.getpid(), {number})"
    )
    assert done.returncode == -number
    assert "aclnnElu: no" in done.stderr


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGABRT, signal.SIGWINCH]
)
def test_signals_to_the_launcher_alone_reach_the_program(number: signal.Signals) -> None:
    code = f"signal.signal({int(number)}, lambda *_: sys.exit(5))\n{READY}{WAIT}"
    process = start(code)
    process.send_signal(number)
    assert process.wait(LONGEST) == 5


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
    while not re.search(rb"count \d+\r\n", output):  # a line may arrive in parts
        output += os.read(terminal, 1000)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)
    assert b"count 1\r\n" in output


def is_in_state(process: int, letters: str) -> bool:
    """True if a process is in one of the states of /proc/PID/stat; X stands for an ended process."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] in letters
    except FileNotFoundError:
        return "X" in letters


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_terminal_that_goes_ends_the_program(tmp_path: Path) -> None:
    """The launcher is the session leader here, as in `ssh -t`, and the only process that the kernel signals."""
    place = tmp_path / "program"
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
        os.execv(LAUNCH[0], [*LAUNCH, f"{WRITE}{READY}open({str(place)!r}, 'w').write(str(os.getpid()))\n{WAIT}"])
    wait_for(lambda: place.exists() and place.read_text() != "")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGHUP
    assert is_in_state(int(place.read_text()), "XZ")


# A program in its own process group, as started by the shell, that prints its number.
JOB: dict[str, Any] = {"preexec_fn": os.setpgrp}
PROGRAM = f"{READY}print(os.getpid(), flush=True)\n{WAIT}"


def program_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def stopped_by(process: subprocess.Popen[str]) -> int:
    """The signal with which a shell sees that its job stopped."""
    found, status = os.waitpid(process.pid, os.WUNTRACED)
    assert found == process.pid
    assert os.WIFSTOPPED(status)
    return os.WSTOPSIG(status)


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU])
@pytest.mark.parametrize("to", ["the launcher", "the group"])
def test_it_stops_and_goes_on_with_the_program(to: str, number: signal.Signals) -> None:
    process = start(PROGRAM, **JOB)
    program = program_of(process)
    for _ in range(2):
        (os.killpg if to == "the group" else os.kill)(process.pid, number)
        assert stopped_by(process) == number
        assert is_in_state(program, "T")
        (os.killpg if to == "the group" else os.kill)(process.pid, signal.SIGCONT)
        wait_for(lambda: is_in_state(program, "S") and is_in_state(process.pid, "S"))
    process.terminate()
    assert process.wait(LONGEST) == -signal.SIGTERM


def test_a_program_that_does_not_stop_is_not_stopped() -> None:
    """Its handler reports the signal."""
    process = start(f"signal.signal(signal.SIGTSTP, lambda *_: os._exit(5))\n{PROGRAM}", **JOB)
    program_of(process)
    os.killpg(process.pid, signal.SIGTSTP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert (os.WIFEXITED(status), os.waitstatus_to_exitcode(status)) == (True, 5)


TIDIES_UP = "signal.signal(signal.SIGTSTP, lambda *_: (time.sleep(0.1), os.kill(os.getpid(), signal.SIGSTOP)))\n"


@pytest.mark.parametrize("before", ["", TIDIES_UP], ids=["plain", "tidies up"])
def test_a_shell_has_its_terminal_back(before: str, tmp_path: Path) -> None:
    """Ctrl-Z, fg, Ctrl-C; a program may catch the first, and stop itself after cleaning up."""
    program = tmp_path / "program.py"
    # Not by print, whose buffer is not reentrant for a second signal.
    code = "import os, signal, sys, time\nsignal.signal(signal.SIGCONT, lambda *_: os.write(1, b'going on\\n'))\n"
    program.write_text(f"{code}{before}try:\n  {READY}  {WAIT}\nexcept KeyboardInterrupt: sys.exit(5)\n")
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], os.environ | {"TERM": "dumb", "PS1": "$ "})
    output = b""

    def type_and_wait(typed: str, expected: bytes) -> None:
        nonlocal output
        os.write(terminal, typed.encode())
        while re.search(expected, output) is None:
            assert select.select([terminal], [], [], 60)[0], output
            output += os.read(terminal, 1000)
        output = b""

    type_and_wait(f"{shlex.join([*LAUNCH[:-1], str(program)])}; echo status $?\n", rb"ready\r\n")
    type_and_wait("\x1a", rb"Stopped.*\r\n")
    type_and_wait("fg; echo status $?\n", rb"going on\r\n")
    type_and_wait("\x03", rb"status 5\r\n")
    os.close(terminal)
    os.waitpid(child, 0)


def test_who_stops_the_program_alone_may_let_it_go_on_alone() -> None:
    """As programs do that limit CPU usage: they do not know the launcher."""
    process = start(f"signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5))\n{PROGRAM}")
    program = program_of(process)
    os.kill(program, signal.SIGSTOP)
    wait_for(lambda: is_in_state(program, "T"))
    os.kill(process.pid, signal.SIGURG)  # ignored by the program; the launcher has then noticed the stop
    wait_for(lambda: is_in_state(process.pid, "S"))
    os.kill(program, signal.SIGCONT)
    os.kill(program, signal.SIGUSR1)
    assert process.wait(LONGEST) == 5


def test_the_ends_of_pipes_are_the_programs() -> None:
    """Its standard output and input, and another file: if the program closes them, they are closed."""
    reading, writing = os.pipe()
    code = f"{READY}os.close(1); os.close(0); os.close({writing}); {WAIT}"
    process = start(code, stdin=subprocess.PIPE, pass_fds=[writing])
    os.close(writing)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.read() == ""
    assert os.read(reading, 1) == b""
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        os.write(process.stdin.fileno(), b"in")
    assert process.poll() is None
    process.terminate()
    assert process.wait(LONGEST) == -signal.SIGTERM


def test_a_launcher_that_is_killed_takes_the_program_with_it(tmp_path: Path) -> None:
    """And leaves no process."""
    process = start(PROGRAM, env=os.environ | {"TMPDIR": str(tmp_path)})
    program = program_of(process)
    process.kill()
    process.wait(LONGEST)
    wait_for(lambda: is_in_state(program, "XZ"))
    assert list(tmp_path.iterdir()) == []


def test_the_first_process_of_a_container_has_the_shells_status() -> None:
    """The kernel does not end it by the signal that it sends itself."""
    code = "import sys; from aclnn_torch.cli import launcher; launcher.os.kill = lambda *_: None; launcher.end(15)"
    assert subprocess.run([sys.executable, "-c", code], timeout=LONGEST, check=False).returncode == 128 + 15


def test_the_memory_is_not_the_programs_to_keep() -> None:
    done = launch(
        "print(os.readlink(path), [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')[:-1]])"
    )
    memory, files = done.stdout.split(" (deleted) ")
    assert memory == "/memfd:aclnn_torch_failures"
    assert memory not in files
    assert done.stderr == ""


def test_each_launcher_has_its_own(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("")
    other.chmod(0o600)
    done = launch("fail(1)", ACLNN_TORCH_FAILURES=str(other))
    assert "aclnnElu: no" in done.stderr
    assert other.read_text() == ""


def launch_with(change: str, program: str) -> subprocess.CompletedProcess[str]:
    """Runs a modified launcher."""
    code = f"import sys\nfrom aclnn_torch.cli import launcher\n{change}\nlauncher.main(sys.argv[1:])"
    command = [sys.executable, "-c", code, sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)


def test_without_memory_for_it_the_program_runs() -> None:
    program = "import os; print(os.environ.get('ACLNN_TORCH_FAILURES'))"
    done = launch_with("launcher.libc.memfd_create = lambda *_: -1", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")


def test_a_program_that_cannot_be_started() -> None:
    done = launch_with("def no(): raise BlockingIOError(11, 'no processes')\nlauncher.os.fork = no", "")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"aclnn-torch: {sys.executable} cannot be started: [Errno 11] no processes\n"
    command = [*LAUNCH[:4], "/nowhere/python"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("aclnn-torch: /nowhere/python cannot be started: [Errno 2] ")


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
        "open(path, 'a').write(' ' * (2 << 20) + '\\n'); fail(1)",
        lambda text: text == NOT_ALL,
    ),
    "one that was told when there was room for that alone": (
        "fail(1); open(path, 'a').write(' ' * (1 << 20) + '\\n')\nwrite(process=os.getpid(), number=1, told=True)",
        lambda text: text == NOT_ALL,
    ),
}
NOT_ALL = "aclnn-torch: streams failed so often that not all of it was written down\n"
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


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
def test_a_closed_file_does_not_keep_it_from_telling(closed: str) -> None:
    """Its number is reused for the next file, which may be the memory."""
    command = ["bash", "-c", f'exec "$@" {closed}', "bash", *LAUNCH, WRITE + "fail(1, process=77); sys.exit(3)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    assert (done.returncode, done.stderr) == (3, SENTENCE)


def test_a_closed_standard_error_does_not_change_the_status() -> None:
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" 2>&-', "bash", *LAUNCH, WRITE + "fail(1); sys.exit(3)"], timeout=LONGEST, check=False
    )
    assert done.returncode == 3
