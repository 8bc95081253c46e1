"""Runs the cases in workers and stores each observation in a file immediately."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import aclnn_torch
from tests import cabi
from tests.verify import worker
from tests.verify.observation import Observation

ROOT = Path(__file__).resolve().parents[2]
TRAINING = "training/digits"
TRAINING_SECONDS = 3600.0
# Success, refusals of stage 1, and a missing function; after anything else a new process begins.
LEAVES_THE_DEVICE_FIT = re.compile(r"0|(161|361|561)\d{3}|missing")
# A worker imports and starts a CANN before its first answer.
START_SECONDS = 600.0

# A worker finds the tests here, and the package where this process found it: the one in this tree may not be built.
FINDING = """
import sys
sys.path.insert(0, {root!r})
import tests
sys.path[0] = {package!r}
"""
SERVING = """
from tests.verify.worker import serve
serve(*sys.argv[1:4], sys.stdin, int(sys.argv[4]))
"""


class Gone(Exception):
    """A worker that did not answer, with the reason."""


class Worker:
    """A process that runs cases, started on demand and again after its end."""

    def __init__(self, role: str, product: str, release: str, seconds: float, log: TextIO):
        self._arguments, self._seconds, self._log = (role, product, release), seconds, log
        self._process: subprocess.Popen[str] | None = None
        self.described: Any = []

    def start(self) -> None:
        """Starts the process, which then lists its cases or its other purpose."""
        read, write = os.pipe()
        package = str(Path(aclnn_torch.__file__).resolve().parents[1])
        code = FINDING.format(root=str(ROOT), package=package) + SERVING
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *self._arguments, str(write)],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            text=True,
            pass_fds=[write],
        )
        os.close(write)
        self._answers = os.fdopen(read)
        self.described = json.loads(self._answer(START_SECONDS))

    def ask(self, name: str) -> Observation:
        """The observation of a case."""
        try:
            if self._process is None:
                self.start()
            assert self._process and self._process.stdin
            self._process.stdin.write(name + "\n")
            self._process.stdin.flush()
            seen = Observation.from_json(self._answer(self._seconds))
        except (Gone, BrokenPipeError) as error:
            self.stop()
            return Observation(str(error) or "died")
        if not LEAVES_THE_DEVICE_FIT.fullmatch(seen.outcome):
            self.stop()
        return seen

    def _answer(self, seconds: float) -> str:
        """The next line, or Gone."""
        assert self._process
        if not select.select([self._answers], [], [], seconds)[0]:
            raise Gone(f"no answer within {seconds:g} s")
        if line := self._answers.readline():
            return line
        code = self._process.wait()
        raise Gone(f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}")

    def stop(self) -> None:
        """Ends the process in any state."""
        if self._process:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin
            self._process.stdin.close()
            self._answers.close()
            self._process = None


@dataclass
class Record:
    """A case, the host CANN's observation, if it was queried, and the installed CANN's."""

    name: str
    expected: str
    source: str
    section: str
    installed: Observation
    host: Observation | None

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Record:
        """The record of a line."""
        fields = json.loads(line)
        host = fields.pop("host")
        installed = Observation(**fields.pop("installed"))
        return cls(installed=installed, host=Observation(**host) if host else None, **fields)


class Notebook:
    """The file of records. Existing records must be from the same machine."""

    def __init__(self, path: Path, versions: dict[str, str]):
        self._path = path
        self.records: dict[str, Record] = {}
        if path.exists():
            before, *lines = path.read_text(encoding="utf-8").splitlines()
            if json.loads(before) != versions:
                raise ValueError(f"{path} is of other versions or of another machine; give --fresh or another --output")
            for line in lines:
                if line.endswith("}"):  # otherwise the run ended inside the line
                    record = Record.from_json(line)
                    self.records[record.name] = record
        self._write([json.dumps(versions), *(record.to_json() for record in self.records.values())], "w")

    def add(self, record: Record) -> None:
        """Stores a record."""
        self.records[record.name] = record
        self._write([record.to_json()], "a")

    def _write(self, lines: Sequence[str], mode: str) -> None:
        with self._path.open(mode, encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))


def product_of(soc: str) -> str:
    """The product whose rules the host CANN uses for a SoC; ValueError if it is unknown."""
    host = cabi.embedded()
    if host.aclHostSetProduct(soc.encode()) != cabi.SUCCESS:
        raise ValueError(host.aclGetRecentErrMsg().decode() + "; say which one it is with --product")
    return str(host.aclHostGetProduct().decode())


def release_of(version: str) -> str:
    """The release of CANN whose checks the host CANN makes for a version, such as 9.1 for 9.1.0; of an older one than
    all, the first; of an unknown one, the newest."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        return cabi.LATER
    number = (int(found[1]), int(found[2]))
    named = [(tuple(map(int, name.split("."))), name) for name in cabi.CANN_RELEASES if name != cabi.LATER]
    return next((name for known, name in named if number <= known), cabi.LATER)


class Verification:
    """One run over all cases that match a pattern."""

    def __init__(self, product: str, release: str, pattern: str, seconds: float, notebook: Notebook, folder: Path):
        self._product, self._release, self._pattern, self._seconds = product, release, re.compile(pattern), seconds
        self._notebook, self._folder = notebook, folder
        self.notes: list[str] = []  # the cases that were skipped, and why

    def run(self, progress: Callable[[int, int], None]) -> None:
        """Runs the cases that were not run yet."""
        with (self._folder / "workers.log").open("a", encoding="utf-8") as log:
            workers = {
                role: Worker(role, self._product, self._release, self._seconds, log)
                for role in (worker.HOST, worker.INSTALLED, worker.TORCH)
            }
            try:
                self._run(workers, log, progress)
            finally:
                for one in workers.values():
                    one.stop()

    def _run(self, workers: dict[str, Worker], log: TextIO, progress: Callable[[int, int], None]) -> None:
        host, installed, torch = workers.values()
        host.start()
        try:
            torch.start()
        except Gone as error:
            torch.stop()
            self.notes.append(
                f"torch_npu and training were not tried: the process that imports it {error}; workers.log says more"
            )
        asked = [(case, installed, host) for case in host.described]
        asked += [(case, torch, None) for case in torch.described]
        if torch.described:
            asked.append(({"name": TRAINING, "expected": "0", "source": "", "section": ""}, None, None))
        done = self._notebook.records
        chosen = [one for one in asked if self._pattern.search(one[0]["name"])]
        for number, (case, first, second) in enumerate(chosen):
            progress(number, len(chosen))
            if case["name"] in done:
                continue
            seen = first.ask(case["name"]) if first else self._train(log)
            self._notebook.add(Record(**case, installed=seen, host=second.ask(case["name"]) if second else None))
        progress(len(chosen), len(chosen))

    def _train(self, log: TextIO) -> Observation:
        """The example that trains a network; its exit code gives the result."""
        command = [sys.executable, str(ROOT / "examples" / "train_digits.py"), "--device", "npu"]
        try:
            code = subprocess.run(
                [*command, "--output", str(self._folder / "training")], stdout=log, stderr=log, timeout=TRAINING_SECONDS
            ).returncode
        except subprocess.TimeoutExpired:
            return Observation(f"no answer within {TRAINING_SECONDS:g} s")
        return Observation(
            "0" if code == 0 else f"ended with code {code}", wrong="" if code == 0 else "see workers.log"
        )
