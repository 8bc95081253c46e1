"""What a simulated NPU takes for a program, compared with what the CPU takes for the same program.

    .venv-npu/bin/python -m benchmarks.npu_beside_cpu [--filter TEXT ...] [--turns 5]
    .venv-npu/bin/python -m benchmarks.npu_beside_cpu --floor
    .venv-npu/bin/python -m benchmarks.npu_beside_cpu --where [--filter TEXT ...]

The two run in processes of their own: the one on the NPU as `aclnn-torch run` starts it, the other with no trace of
torch_npu. They take turns, and while one works the other is stopped (SIGSTOP), because torch_npu's threads poll also
where nothing is to be done. The time includes the wait at the end of a step; the first step of a turn does not count.
A ratio is that of the medians of the two turns that follow one another; printed are its median, least and greatest.

`--floor` measures the elementwise calls of 64 KiB, and in a third process the same calls of functions that do nothing.
torch_npu finds these before those of the host CANN, as it finds custom operators. What they take is its own time.

`--where` prints for the NPU where the time of a step goes, and the functions of CANN that take most of it. The stages
and the functions are those of a trace, whose own time they contain.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from .npu_workloads import Step, Workload, workloads

WARM_UP = 3
COPIES = ("aclnnInplaceCopy", "aclnnCast", "aclnnViewCopy", "aclnnContiguous")
NO_OPERATORS = Path(__file__).with_name("no_operators.cpp")
THREADS = {"acl_thread": "queue", "release_thread": "release"}  # torch_npu's names of its threads


def times_of(step: Step, seconds: float) -> list[float]:
    """The times of steps, in milliseconds, after one that does not count; at least 3."""
    step()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def thread_times() -> dict[int, tuple[str, float]]:
    """The name of each thread of this process, and how long it ran on a processor, in milliseconds."""
    found = {}
    for thread in Path("/proc/self/task").iterdir():
        ran = int((thread / "schedstat").read_text().split()[0])
        found[int(thread.name)] = ((thread / "comm").read_text().strip(), ran / 1e6)
    return found


def where_time_goes(step: Step) -> dict[str, Any]:
    """Milliseconds per step: as a whole, of the threads, of the stages and of the functions."""
    count = len(times_of(step, 0.5))
    before = thread_times()
    begin = time.perf_counter()
    for _ in range(count):
        step()
    whole = (time.perf_counter() - begin) * 1e3 / count
    after = thread_times()

    runtime = ctypes.CDLL("libnnopbase.so")
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        runtime.aclHostTrace(str(trace).encode())
        begin = time.perf_counter()
        for _ in range(count):
            step()
        traced = (time.perf_counter() - begin) * 1e3 / count
        runtime.aclHostTraceEnd(str(trace).encode())
        events = [json.loads(line.rstrip().rstrip(",")) for line in trace.read_text().splitlines()[1:]]

    stages: dict[str, float] = defaultdict(float)
    functions: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    streams = set()
    for event in events:
        kind, name, duration = event["cat"], event["name"], event["dur"] / 1e3 / count
        if kind == "run":
            streams.add(event["tid"])
            kind = "copies" if name in COPIES else "computing"
            took, calls = functions[name]
            functions[name] = (took + duration, calls + 1 / count)
        stages[kind] += duration
    stages["traced"] = traced

    threads: dict[str, float] = defaultdict(float)
    for number, (name, ran) in after.items():
        if number == os.getpid() or name.startswith("pt_autograd"):
            group = "program"
        else:
            group = "stream" if number in streams else THREADS.get(name, "others")
        threads[group] += (ran - before.get(number, (name, 0.0))[1]) / count
    return {"whole": whole, "stages": stages, "threads": threads, "functions": functions}


def serve(device: str) -> None:
    """Answers the requests of standard input, line by line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(value: object) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    answer(os.getpid())
    if device == "npu":
        import torch_npu  # noqa: F401
    else:
        sys.modules["torch_npu"] = None  # type: ignore[assignment]  which hides it from Transformers
    known = {workload.name: workload for workload in workloads()}
    step: Step = lambda: None  # noqa: E731
    for line in sys.stdin:
        request = json.loads(line)
        if "workload" in request:
            step = lambda: None  # noqa: E731  the last one's memory is freed first
            gc.collect()
            step = known[request["workload"]].build(device)
            for _ in range(WARM_UP):
                step()
            answer(True)
        elif "seconds" in request:
            answer(times_of(step, request["seconds"]))
        else:
            answer(where_time_goes(step))


class Child:
    """A process that works only while it is asked something."""

    def __init__(self, device: str, environment: dict[str, str] | None = None) -> None:
        run = ["-m", "aclnn_torch", "run"] if device == "npu" else []
        command = [sys.executable, *run, "-m", "benchmarks.npu_beside_cpu", "--device", device]
        # Without this, torch loads torch_npu by itself.
        own = environment or ({} if device == "npu" else {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
        self.process = subprocess.Popen(
            command, env=os.environ | own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.number = self._answer()
        os.kill(self.number, signal.SIGSTOP)

    def ask(self, **request: object) -> Any:
        """The answer; the process is stopped before and afterwards."""
        assert self.process.stdin is not None
        os.kill(self.number, signal.SIGCONT)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        os.kill(self.number, signal.SIGSTOP)
        return answer

    def end(self) -> None:
        """Ends the process."""
        os.kill(self.number, signal.SIGCONT)
        self.process.communicate()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the process ended")
        return json.loads(line)


def child_without_operators(folder: Path) -> Child:
    """A process on the NPU whose elementwise functions do nothing; the folder keeps them."""
    library = folder / "op_api" / "lib" / "libcust_opapi.so"
    library.parent.mkdir(parents=True)
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    subprocess.run([*compiler, "-std=c++20", "-O2", "-shared", "-fPIC", NO_OPERATORS, "-o", library], check=True)
    return Child("npu", {"ASCEND_CUSTOM_OPP_PATH": str(folder)})


def measure(measured: list[Workload], children: dict[str, Child], turns: int, seconds: float) -> None:
    """Prints for each workload the times, and the ratios of all to the first one's."""
    print("milliseconds per step or call, medians; divided by the CPU's, median (least - greatest)")
    for workload in measured:
        for child in children.values():
            child.ask(workload=workload.name)
        medians: dict[str, list[float]] = {device: [] for device in children}
        for _ in range(turns):
            for device, child in children.items():
                medians[device].append(statistics.median(child.ask(seconds=seconds)) / workload.calls)
        line = f"{workload.name:62} cpu {statistics.median(medians['cpu']):9.4f}"
        for device in [device for device in children if device != "cpu"]:
            ratios = [own / cpu for cpu, own in zip(medians["cpu"], medians[device], strict=True)]
            line += f"  {device} {statistics.median(medians[device]):9.4f}"
            line += f"  {statistics.median(ratios):5.2f} ({min(ratios):.2f} - {max(ratios):.2f})"
        print(line + (f"  bar {workload.bar}" if workload.bar else ""), flush=True)
    for child in children.values():
        child.end()


def print_where(names: list[str]) -> None:
    """Prints for each workload where the time of a step goes on the NPU."""
    child = Child("npu")
    for name in names:
        child.ask(workload=name)
        found = child.ask()
        stages, threads = found["stages"], found["threads"]
        ran = stages.get("computing", 0) + stages.get("copies", 0)
        print(f"{name}: {found['whole']:.2f} ms per step, {stages['traced']:.2f} while it is traced")
        for text, value in (
            ("stage 1", stages.get("stage 1", 0)),
            ("stage 2, which hands the call to the stream", stages.get("stage 2", 0)),
            ("the stream computes", stages.get("computing", 0)),
            ("the stream copies and casts", stages.get("copies", 0)),
            ("the stream waits for work", stages["traced"] - ran),
            ("processor: the program's threads", threads.get("program", 0)),
            ("processor: torch_npu's queue", threads.get("queue", 0)),
            ("processor: torch_npu's release_thread", threads.get("release", 0)),
            ("processor: the stream", threads.get("stream", 0)),
            ("processor: other threads, of OpenMP most", threads.get("others", 0)),
        ):
            print(f"  {value:9.2f} ms  {text}")
        for function, (took, calls) in sorted(found["functions"].items(), key=lambda item: -item[1][0])[:12]:
            print(f"  {took:9.2f} ms  {calls:7.1f} calls  {function}")
    child.end()


def main() -> int:
    """Measures, in two processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", nargs="+", default=[""], help="workloads whose names contain one of these")
    parser.add_argument("--turns", type=int, default=5, help="of each process (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn, at least (default: %(default)s)")
    parser.add_argument("--floor", action="store_true", help="measure calls that do nothing, too")
    parser.add_argument("--where", action="store_true", help="print where the time goes")
    parser.add_argument("--list", action="store_true", help="print the names of the workloads")
    parser.add_argument("--device", choices=("cpu", "npu"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.device:
        serve(arguments.device)
        return 0
    chosen = [each for each in workloads() if any(text in each.name for text in arguments.filter)]
    if arguments.floor:
        chosen = [each for each in chosen if "64 KiB" in each.name]
    names = [each.name for each in chosen]
    if arguments.list:
        print("\n".join(names))
    elif arguments.where:
        print_where(names)
    else:
        with tempfile.TemporaryDirectory() as folder:
            children = {device: Child(device) for device in ("cpu", "npu")}
            if arguments.floor:
                children["floor"] = child_without_operators(Path(folder))
            measure(chosen, children, arguments.turns, arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
