"""A process that answers requests until it is closed, so that tests need not load libraries for each call."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import LONGEST

SHOWN = 3000  # characters of each end of a long output


class Failure(AssertionError):
    """The process ended, did not answer in time, answered something else, or printed to its standard error."""


def _ends(text: str) -> str:
    return text if len(text) <= 2 * SHOWN else f"{text[:SHOWN]}\n...\n{text[-SHOWN:]}"


class Server:
    """A child that reads a request per line, as JSON, and prints an answer per line: ``[number, answer]``.

    The number counts the requests. After a failure the child is gone.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, seconds: float = LONGEST
    ) -> None:
        self._seconds = seconds
        self._errors = tempfile.TemporaryFile("a+b")  # noqa: SIM115
        self._process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        self._unread = bytearray()
        self._count = 0
        self._last: collections.deque[str] = collections.deque(maxlen=10)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, request: Any) -> Any:
        """The answer to a request; Failure if there is none."""
        self._count += 1
        line = json.dumps(request)
        self._last.append(line[:500])
        try:
            assert self._process.stdin
            try:
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()
                answer = self._line()
            except BrokenPipeError:
                raise Failure("the process ended") from None
            try:
                number, value = json.loads(answer)
            except (ValueError, TypeError):
                raise Failure(f"the process printed {_ends(answer.decode(errors='replace'))!r}") from None
            if number != self._count:
                raise Failure(f"the process answered request {number}, expected an answer to {self._count}")
            if self._said():
                raise Failure("the process printed to its standard error")
            return value
        except Failure as failure:
            raise Failure(self._story(str(failure))) from None

    def close(self) -> None:
        """Ends the process; Failure unless it ends with status 0 and has printed nothing more."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            with contextlib.suppress(EOFError):
                while True:
                    self._read(time.monotonic() + self._seconds)
            status = self._process.wait(self._seconds)
            if status or self._unread or self._said():
                rest = _ends(self._unread.decode(errors="replace"))
                raise Failure(f"the process ended with {status} and printed {rest!r}")
        except Failure as failure:
            raise Failure(self._story(str(failure))) from None
        self._release()

    def _line(self) -> bytes:
        """The next line of the output."""
        deadline = time.monotonic() + self._seconds
        try:
            while b"\n" not in self._unread:
                self._read(deadline)
        except EOFError:
            raise Failure("the process ended") from None
        line, _, rest = self._unread.partition(b"\n")
        self._unread = rest
        return bytes(line)

    def _read(self, deadline: float) -> None:
        assert self._process.stdout
        if not select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise Failure(f"the process did not answer within {self._seconds:g} s")
        if not (found := os.read(self._process.stdout.fileno(), 2**16)):
            raise EOFError
        self._unread += found

    def _said(self) -> str:
        """Its standard error."""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode(errors="replace")

    def _story(self, what: str) -> str:
        """Ends the process. The failure, the process's standard error and its last requests."""
        self._process.kill()
        status = self._process.wait()
        text = f"{what} (status {status})\n{_ends(self._said())}\nThe last requests:\n" + "\n".join(self._last)
        self._release()
        return text

    def _release(self) -> None:
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()


_servers: dict[tuple[Any, ...], Server] = {}


def ask(command: Sequence[str], environment: Mapping[str, str], folder: Path, request: Any) -> Any:
    """The answer of the process with this command and environment, of which a test process has one."""
    key = (*command, *sorted(environment.items()), folder)
    if key not in _servers:
        _servers[key] = Server(command, environment, folder)
    try:
        return _servers[key].ask(request)
    except Failure:
        del _servers[key]
        raise


def close_all() -> None:
    """Ends all processes; Failure if one does not end well."""
    failures = []
    while _servers:
        try:
            _servers.popitem()[1].close()
        except Failure as failure:
            failures.append(str(failure))
    if failures:
        raise Failure("\n\n".join(failures))
