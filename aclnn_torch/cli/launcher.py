"""Starts a program as its child, and tells as it ends which failures nobody heard of. `aclnn-torch run` becomes this.

    python -I -S launcher.py COMMAND...

It uses the standard library alone, so that it takes little memory beside the program. A failure of a stream is an error
of whatever waits for the stream. Of those for which nothing does, the host CANN of each process below this one writes a
line into a file that this one makes (csrc/host_cann/runtime/untold.h).

To whoever started it, this process is the program: it stays in the same process group, hands on the signals that are
sent to it alone, and ends as the program does, by the same status or signal. If it is killed, so is the program.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

VARIABLE = "ACLNN_TORCH_FAILURES"
MOST_BYTES = 1 << 20  # that are read of the file; the host CANN writes no more than a line beyond
MOST_FAILURES = 20  # that are told one by one

# What this process does not hand on: what cannot be caught, its own faults, its child's end, and job control, which
# concerns the whole group.
KEPT = {
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD),
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS),
    *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT, signal.SIGWINCH, signal.SIGURG),
}
# A terminal sends these to the whole group.
OF_TERMINAL = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP}
SI_KERNEL = 0x80
PR_SET_PDEATHSIG = 1


def start(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, set[signal.Signals]]:
    """The program's process, and the signals that are blocked from then on, to be waited for."""
    waited = set(signal.valid_signals()) - KEPT | {signal.SIGCHLD}
    reaping = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # were it ignored, the status would be lost
    prctl = ctypes.CDLL(None).prctl
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    parent = os.getpid()
    child = os.fork()
    if child:
        return child, waited
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        signal.signal(signal.SIGCHLD, reaping)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # one that comes before the program is there ends it
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.execve(command[0], [*command], environment)
    except BaseException as error:
        print(f"aclnn-torch: {command[0]} cannot be started: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(1)


def wait(child: int, waited: set[signal.Signals]) -> int:
    """The child's wait status."""
    while True:
        event = signal.sigwaitinfo(waited)
        if event.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
        elif event.si_signo not in OF_TERMINAL or event.si_code != SI_KERNEL:
            os.kill(child, event.si_signo)


def untold(lines: Sequence[str]) -> Iterator[str]:
    """A sentence for each failure that was written and not told; what is no such line is passed over."""
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
        if key in failures:  # of an earlier process that had the same number
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
    """Writes the sentences to standard error, where there is one."""
    if sys.stderr is None:
        return
    lines = os.pread(report, MOST_BYTES, 0).decode(errors="replace").splitlines()
    sentences = list(untold(lines))
    for sentence in sentences[:MOST_FAILURES]:
        print(f"aclnn-torch: {sentence}", file=sys.stderr)
    if len(sentences) > MOST_FAILURES:
        print(f"aclnn-torch: {len(sentences) - MOST_FAILURES} more streams failed like that", file=sys.stderr)
    sys.stderr.flush()


def end(status: int) -> NoReturn:
    """Ends this process as the child has ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has written the one that there is to be
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def main(command: Sequence[str]) -> NoReturn:
    """Runs the command, an executable's path with its arguments."""
    environment = dict(os.environ)
    environment.pop(VARIABLE, None)
    report, path = -1, ""
    with contextlib.suppress(OSError):  # without a place for the file the program runs all the same
        report, path = tempfile.mkstemp(prefix="aclnn_torch_failures_")  # of mode 0600
        environment[VARIABLE] = path
    status = wait(*start(command, environment))
    if path:
        with contextlib.suppress(OSError):
            os.unlink(path)
        with contextlib.suppress(OSError):  # nobody reads standard error
            tell(report)
    end(status)


if __name__ == "__main__":
    main(sys.argv[1:])
