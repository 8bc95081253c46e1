"""tests/aten_ops/server.py: whatever the process does, a request ends with its answer or with a Failure."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.aten_ops import server
from tests.aten_ops.server import Failure, Server

# It does what a request says, after which it answers.
CHILD = """
import json, os, sys, time
for number, line in enumerate(sys.stdin, 1):
    exec(json.loads(line))
    print(json.dumps([number, os.getpid()]), flush=True)
"""


def child(seconds: float = 60, code: str = CHILD) -> Server:
    return Server([sys.executable, "-c", code], dict(os.environ), Path.cwd(), seconds)


def is_gone(pid: int) -> bool:
    return not Path("/proc", str(pid)).exists()


def test_answers_come_in_order() -> None:
    process = child()
    assert [process.ask("pass"), process.ask("pass")] == [process.pid] * 2
    process.close()
    assert is_gone(process.pid)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("os._exit(3)", "the process ended (status 3)"),
        ("os.kill(os.getpid(), 11)", "the process ended (status -11)"),
        ("print('hello')", "the process printed 'hello'"),
        ("print(5)", "the process printed '5'"),
        ("print('[7, 1]')", "the process answered request 7, expected an answer to 1"),
        (
            "print('warning', file=sys.stderr, flush=True)",
            "the process printed to its standard error (status -9)\nwarning",
        ),
        ("raise ValueError('wrong')", "ValueError: wrong"),
    ],
)
def test_failures_tell_what_happened(request_: str, said: str) -> None:
    process = child()
    with pytest.raises(Failure) as failure:
        process.ask(request_)
    assert said in str(failure.value) and request_[:20] in str(failure.value)
    assert is_gone(process.pid)


def test_a_process_that_does_not_answer_is_ended() -> None:
    process = child(seconds=0.5)
    with pytest.raises(Failure, match=r"did not answer within 0\.5 s"):
        process.ask("time.sleep(1000)")
    assert is_gone(process.pid)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import atexit, os; atexit.register(lambda: os._exit(7))", "ended with 7"),
        ("import atexit; atexit.register(lambda: print('late'))", "printed 'late"),
        ("import atexit, sys; atexit.register(lambda: print('late', file=sys.stderr))", "\nlate"),
    ],
)
def test_the_end_is_looked_at(code: str, said: str) -> None:
    process = child(code=f"{code}\n{CHILD}")
    process.ask("pass")
    with pytest.raises(Failure) as failure:
        process.close()
    assert said in str(failure.value)
    assert is_gone(process.pid)


def test_each_environment_has_a_process_and_a_failure_ends_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_servers", {})

    def ask(request: str, **variables: str) -> Any:
        return server.ask([sys.executable, "-c", CHILD], {"PATH": os.environ["PATH"], **variables}, Path.cwd(), request)

    first, second = ask("pass"), ask("pass", OMP_NUM_THREADS="2")
    assert first != second and ask("assert os.environ['OMP_NUM_THREADS'] == '2'", OMP_NUM_THREADS="2") == second
    with pytest.raises(Failure):
        ask("os._exit(1)")
    assert ask("pass") != first and ask("pass", OMP_NUM_THREADS="2") == second
    server.close_all()
    assert is_gone(second)
