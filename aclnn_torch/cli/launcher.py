"""Starts a program as its child, and reports unreported failures at its end. `aclnn-torch run` execs this file.

    python -I -S launcher.py COMMAND...

Uses only the standard library, so that it takes little memory. A failure of a stream is raised by the next wait for the
stream. Failures that no wait reports are written by the host CANN of each child process as lines into memory of this
process (csrc/host_cann/runtime/unreported_failures.h), which disappears with it, however it ends.

To its parent, this process acts as the program: it stays in the same process group, forwards the signals sent to it,
stops as the program does, keeps no file but standard error open, and ends with the program's status or signal. If it is
killed, so is the program. One difference remains: a signal that a process, not a terminal, sends to the whole group
reaches the program twice.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

VARIABLE = "ACLNN_TORCH_FAILURES"
NAME = b"aclnn_torch_failures"  # name of the memory, checked by the host CANN
MOST_BYTES = 1 << 20  # for failures; marking them as reported takes at most as much again
MOST_FAILURES = 20  # reported individually

# A terminal sends these to the whole group. They stop a process that does not catch them.
STOPPING = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
OF_TERMINAL = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGWINCH, signal.SIGCONT} | STOPPING
SI_KERNEL = 0x80
PR_SET_PDEATHSIG = 1
MFD_CLOEXEC = 1

libc = ctypes.CDLL(None)


def start(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, set[signal.Signals]]:
    """Starts the program; returns its process, and the signals that are now blocked and waited for."""
    waited = set(signal.valid_signals()) - {
        signal.SIGKILL,
        signal.SIGSTOP,
    }  # a crash of this process must end it
    reaping = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it were ignored, the status would be lost
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    parent = os.getpid()
    child = os.fork()
    if child:
        return child, waited
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        signal.signal(signal.SIGCHLD, reaping)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends this process if it arrives before the program exists
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.execve(command[0], [*command], environment)
    except BaseException as error:
        print(f"aclnn-torch: {command[0]} cannot be started: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(1)


def let_go(kept: int) -> None:
    """Closes the program's files except standard error: only the program may hold a pipe open."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in (0, 1, 2, kept, null):
            with contextlib.suppress(OSError):  # the list's own
                os.close(number)
    for number in {0, 1} - {kept, null}:
        os.dup2(null, number)


def stop(number: int) -> None:
    """Stops this process by the signal that stopped the program, until it is continued."""
    if number != signal.SIGSTOP:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)  # sent while blocked: a pending copy of the signal then stops only once
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})


def wait(child: int, waited: set[signal.Signals]) -> int:
    """The child's wait status."""
    is_asked_to_stop = False
    while True:
        event = signal.sigwaitinfo(waited)
        number = event.si_signo
        if number == signal.SIGCHLD:
            changed, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
            if changed and not os.WIFSTOPPED(status):
                return status
            # If the program has caught SIGTSTP, it sends SIGSTOP itself. From others, SIGSTOP is for the program only,
            # because they may not know that this process must be continued, too.
            is_asked_to_stop |= signal.SIGTSTP in signal.sigpending()
            if changed and (os.WSTOPSIG(status) != signal.SIGSTOP or is_asked_to_stop):
                stop(os.WSTOPSIG(status))
            continue
        if number in (signal.SIGTSTP, signal.SIGCONT):
            is_asked_to_stop = number == signal.SIGTSTP
        # When a terminal disappears, only the session leader gets SIGHUP.
        is_own = number == signal.SIGHUP and os.getsid(0) == os.getpid()
        if event.si_code != SI_KERNEL or number not in OF_TERMINAL or is_own:
            os.kill(child, number)


def unreported(lines: Sequence[str]) -> Iterator[str]:
    """A sentence for each failure that was written but not reported; other lines are skipped."""
    failures: dict[tuple[int, int], str] = {}
    told: list[str] = []
    for line in lines:
        try:
            entry = json.loads(line)
            key = (int(entry["process"]), int(entry["number"]))
            if entry.get("told"):
                failures.pop(key, None)
                continue
            device, stream, status = (int(entry[name]) for name in ("device", "stream", "status"))
            call, text = str(entry["call"]), str(entry["text"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            continue
        if key in failures:  # from an earlier process with the same number
            told.append(failures.pop(key))
        place = f"stream {stream}" if stream else "torch_npu's queue"
        what = "" if not call or text.startswith(f"{call}:") else f"{call}: "
        sentence = (
            f"npu:{device}, {place} of process {key[0]} failed with {status}, and nothing waited for it to hear so: "
            f"{what}{text}; what was computed after it is not to be used, and torch.npu.synchronize({device}) in the "
            "program raises this where it happens"
        )
        failures[key] = "".join(letter if letter.isprintable() else " " for letter in sentence)
    yield from told
    yield from failures.values()


def tell(report: int) -> None:
    """Writes the sentences to standard error, if it is open."""
    if sys.stderr is None:
        return
    lines = os.pread(report, 2 * MOST_BYTES, 0).decode(errors="replace").splitlines()
    sentences = list(unreported(lines))
    for sentence in sentences[:MOST_FAILURES]:
        print(f"aclnn-torch: {sentence}", file=sys.stderr)
    if len(sentences) > MOST_FAILURES:
        print(f"aclnn-torch: {len(sentences) - MOST_FAILURES} more streams failed like that", file=sys.stderr)
    if os.fstat(report).st_size >= MOST_BYTES:
        print("aclnn-torch: streams failed so often that not all of it was written down", file=sys.stderr)
    sys.stderr.flush()


def end(status: int) -> NoReturn:
    """Ends this process in the same way as the child."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has already written a core file
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
        os._exit(128 + number)  # a container's first process survives its own signals
    os._exit(os.WEXITSTATUS(status))


def main(command: Sequence[str]) -> NoReturn:
    """Runs the command: an executable's path and its arguments."""
    environment = dict(os.environ)
    environment.pop(VARIABLE, None)
    report = libc.memfd_create(NAME, MFD_CLOEXEC)
    if report >= 0:  # the program runs without it, too
        # Not inherited: some programs close unknown descriptors.
        environment[VARIABLE] = f"/proc/{os.getpid()}/fd/{report}"
    try:
        child, waited = start(command, environment)
    except OSError as error:
        print(f"aclnn-torch: {command[0]} cannot be started: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    with contextlib.suppress(OSError):  # no /proc
        let_go(report)
    status = wait(child, waited)
    if report >= 0:
        with contextlib.suppress(OSError):  # standard error is closed
            tell(report)
    end(status)


if __name__ == "__main__":
    main(sys.argv[1:])
