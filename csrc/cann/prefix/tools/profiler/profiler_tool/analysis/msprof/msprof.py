"""msprof of the host CANN: makes tables and a timeline of a profile's records.

``msprof --export=on --output=DIR``: DIR is a folder PROF_..., or contains some. The files are written to the folder
mindstudio_profiler_output of each, with the names and columns of CANN's msprof. Values that only a device knows are
"N/A". ``msprof --analyze=on --output=DIR`` has nothing to add to them. docs/emulation/profiling.md of aclnn_torch
describes the records. Times are those of the host, which computes in place of a device.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import stat
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any

Event = dict[str, Any]
Interval = tuple[int, int]

RECORDS = "host/data/profile.jsonl"
FOLDER = os.O_RDONLY | os.O_DIRECTORY  # the flags to open a folder
LONGEST_RECORD = 2 << 20  # characters; the host CANN writes at most 1.25 MiB
OUTPUT = "mindstudio_profiler_output"
UNKNOWN = "N/A"

# The types of tasks that are no operators, by the function that submits them.
TASK_TYPES = {
    "aclrtMemcpyAsync": "MEMCPY_ASYNC",
    "aclrtMemsetAsync": "MEMSET_ASYNC",
    "aclrtRecordEvent": "EVENT_RECORD",
    "aclrtResetEvent": "EVENT_RESET",
    "aclrtStreamWaitEvent": "EVENT_WAIT",
    "aclmdlRIExecuteAsync": "MODEL_EXECUTE",
}
COMMUNICATION = "COMMUNICATION"  # tasks of functions Hccl...

# The tables' names of types that differ from the documents' names, and of formats by their number (aclFormat).
DTYPES = {"BFLOAT16": "DT_BF16"}
FORMATS = {
    -1: "UNDEFINED",
    0: "NCHW",
    1: "NHWC",
    2: "ND",
    3: "NC1HWC0",
    4: "FRACTAL_Z",
    12: "NC1HWC0_C04",
    16: "HWCN",
    27: "NDHWC",
    29: "FRACTAL_NZ",
    30: "NCDHW",
    32: "NDC1HWC0",
    33: "FRACTAL_Z_3D",
    35: "NC",
    47: "NCL",
}

# The layers of the timeline, in their order; each is a process in the viewer.
CANN, HARDWARE, OVERLAP, MARKS = range(1, 5)
LAYERS = {CANN: "CANN", HARDWARE: "Ascend Hardware", OVERLAP: "Overlap Analysis", MARKS: "MsTx"}
HOST = -1  # instead of a device
MOST_DEVICES = 64

# torch_npu looks for a table every tenth of a second while this program runs, and ignores a table that it did not see
# in time.
SEEN_AFTER = 0.5  # seconds


@contextlib.contextmanager
def opened(path: Path, flags: int, folder: int | None = None) -> Iterator[int]:
    """Opens the file with the last name of a path in an open folder, or without a folder the path itself.

    Another user may have put a file there: symbolic links are not followed, and opening a pipe does not block.
    """
    if folder is not None:
        flags |= os.O_NOFOLLOW
    try:
        file = os.open(path if folder is None else path.name, flags | os.O_NONBLOCK, 0o666, dir_fd=folder)
    except OSError as error:
        if folder is not None and path.is_symlink():
            raise ValueError(f"{path} is a symbolic link, which is not followed; remove it") from None
        raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from None
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def records_of(folder: Path) -> Iterator[IO[str]]:
    """The file of a profile's records."""
    path = folder
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(opened(folder, FOLDER))
        *between, last = RECORDS.split("/")
        for name in between:
            path = path / name
            file = stack.enter_context(opened(path, FOLDER, file))
        file = stack.enter_context(opened(path / last, os.O_RDONLY, file))
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError(f"{path / last} is not a regular file")
        with open(file, encoding="ascii", closefd=False) as text:
            yield text


def whole_lines(file: IO[str]) -> Iterator[str]:
    """The lines of a file of records, except for an incomplete last one, which a killed process may leave."""
    while (line := file.readline(LONGEST_RECORD)).endswith("\n"):
        yield line
    if len(line) == LONGEST_RECORD:
        raise ValueError(f"it has a record of more than {LONGEST_RECORD} characters")


class Profile:
    """The records of a folder PROF_..., with times in nanoseconds of the wall clock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[Event] = []
        self.launches: list[Event] = []
        self.tasks: list[Event] = []
        self.marks: list[Event] = []
        with records_of(folder) as file:
            lines = whole_lines(file)
            head = json.loads(next(lines, "{}"))
            if head.get("kind") != "profile":
                raise ValueError(f"{folder / RECORDS} does not begin with the record of a profile")
            self.process: int = head["process"]
            shift = head["wall"] - head["begin"]
            kinds = {"api": self.calls, "launch": self.launches, "task": self.tasks, "mark": self.marks}
            for line in lines:
                record = json.loads(line)
                record["begin"] += shift
                record["end"] += shift
                kinds[record["kind"]].append(record)
        for records in kinds.values():
            records.sort(key=lambda record: (record["begin"], -record["end"]))
        for mark in self.marks:
            for key in ("message", "domain"):
                mark[key] = mark[key].encode("latin-1").decode(errors="replace")
        for number, task in enumerate(self.tasks):
            task["task"] = number
            task["type"] = type_of(task)
        self.devices = sorted({task["device"] for task in self.tasks})

    def operators(self) -> Iterator[Event]:
        """The tasks that compute."""
        return (task for task in self.tasks if task["operator"])


def type_of(task: Event) -> str:
    """The tables' name of a task's type. A device has units of several kinds, which the host does not distinguish."""
    if task["operator"]:
        return "AI_CORE"
    name: str = task["name"]
    if name.startswith("Hccl"):
        return COMMUNICATION
    return TASK_TYPES.get(name, name)


def microseconds(nanoseconds: int) -> str:
    """A time, exactly."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"


def duration(record: Event) -> float:
    """In microseconds."""
    nanoseconds: int = record["end"] - record["begin"]
    return nanoseconds / 1000


# Intervals


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of the intervals, in order."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def without(intervals: list[Interval], others: list[Interval]) -> list[Interval]:
    """The parts outside the others; both are unions."""
    rest = []
    at = 0
    for begin, end in intervals:
        while at < len(others) and others[at][1] <= begin:
            at += 1
        i = at
        while i < len(others) and others[i][0] < end:
            if others[i][0] > begin:
                rest.append((begin, others[i][0]))
            begin = max(begin, others[i][1])
            i += 1
        if begin < end:
            rest.append((begin, end))
    return rest


# The timeline


def process_of(profile: Profile, layer: int, device: int = HOST) -> int:
    """The viewer's number of a layer, of 32 bits at most, and different from torch_npu's own numbers."""
    place = 2 * MOST_DEVICES + layer if device == HOST else (layer - HARDWARE) * MOST_DEVICES + device
    return profile.process << 8 | place


def metadata(process: int, layer: int, label: str, threads: dict[int, str]) -> Iterator[Event]:
    """The viewer's names of a process and its threads."""

    def event(name: str, thread: int, key: str, value: Any) -> Event:
        return {"ph": "M", "name": name, "pid": process, "tid": thread, "args": {key: value}}

    yield event("process_name", 0, "name", LAYERS[layer])
    yield event("process_labels", 0, "labels", label)
    yield event("process_sort_index", 0, "sort_index", layer)
    for thread, name in sorted(threads.items()):
        yield event("thread_name", thread, "name", name)
        yield event("thread_sort_index", thread, "sort_index", thread)


def complete(name: str, process: int, thread: int, begin: int, end: int, **args: Any) -> Event:
    """An event with a beginning and an end."""
    times = {"ts": microseconds(begin), "dur": (end - begin) / 1000}
    return {"ph": "X", "name": name, "pid": process, "tid": thread, **times, "args": args}


def host_events(profile: Profile) -> Iterator[Event]:
    """The calls of functions, and the launches within them."""
    process = process_of(profile, CANN)
    records = profile.calls + profile.launches
    yield from metadata(process, CANN, "CPU", {r["thread"]: f"Thread {r['thread']}" for r in records})
    for record in records:
        name = record["name"]
        args: Event = {"Thread Id": record["thread"], "level": "acl", "id": name, "item_id": name}
        title = f"AscendCL@{name}"
        if "launch" in record:
            args["connection_id"] = record["launch"]
            if record["operator"]:
                title = "Node@launch"
                args |= {"level": "node", "id": "launch"}
        yield complete(title, process, record["thread"], record["begin"], record["end"], **args)


def tensor_columns(task: Event) -> dict[str, str]:
    """The tables' columns of an operator's tensors."""
    columns: dict[str, str] = {}
    for side, key in (("Input", "inputs"), ("Output", "outputs")):
        tensors = task.get(key)
        shapes = types = formats = UNKNOWN
        if tensors is not None:
            shapes = '"' + ";".join(",".join(map(str, shape)) for _, _, shape in tensors) + '"'
            types = ";".join(DTYPES.get(dtype, dtype) for dtype, _, _ in tensors)
            formats = ";".join(FORMATS.get(number, str(number)) for _, number, _ in tensors)
        columns |= {f"{side} Shapes": shapes, f"{side} Data Types": types, f"{side} Formats": formats}
    return columns


def device_events(profile: Profile, device: int) -> Iterator[Event]:
    """The tasks and marks of a device's streams, and the arrows from the launches to them."""
    process = process_of(profile, HARDWARE, device)
    tasks = [task for task in profile.tasks if task["device"] == device]
    marks = [mark for mark in profile.marks if mark.get("device") == device]
    streams = {record["stream"]: f"Stream {record['stream']}" for record in tasks + marks}
    yield from metadata(process, HARDWARE, f"NPU {device}", streams)
    for mark in marks:
        yield complete(mark["message"], process, mark["stream"], mark["begin"], mark["end"], domain=mark["domain"])
    launches = {launch["launch"]: launch for launch in profile.launches}
    for task in tasks:
        args = {
            "Task Type": task["type"],
            "Physic Stream Id": task["stream"],
            "Task Id": task["task"],
            "connection_id": task["launch"],
            "status": task["status"],
        }
        if task["operator"]:
            args |= tensor_columns(task)
        if "group" in task:
            args |= {"group": task["group"], "operation": task["operation"]}
        yield complete(name_of(task), process, task["stream"], task["begin"], task["end"], **args)
        launch = launches.get(task["launch"])
        if launch is None:
            continue
        arrow = {"cat": "HostToDevice", "name": f"HostToDevice{task['task']}", "id": str(task["task"])}
        host = {"pid": process_of(profile, CANN), "tid": launch["thread"], "ts": microseconds(launch["begin"])}
        yield {"ph": "s", **arrow, **host}
        yield {"ph": "f", "bp": "e", **arrow, "pid": process, "tid": task["stream"], "ts": microseconds(task["begin"])}


def overlap_events(profile: Profile, device: int) -> Iterator[Event]:
    """The times at which a device computed, communicated, and did neither."""
    tasks = [task for task in profile.tasks if task["device"] == device]
    computing = union((task["begin"], task["end"]) for task in tasks if task["operator"])
    communication = union((task["begin"], task["end"]) for task in tasks if task["type"] == COMMUNICATION)
    busy = union(computing + communication)
    free = without([(busy[0][0], busy[-1][1])], busy) if busy else []
    rows = {
        "Computing": computing,
        "Communication": communication,
        "Communication(Not Overlapped)": without(communication, computing),
        "Free": free,
    }
    process = process_of(profile, OVERLAP, device)
    yield from metadata(process, OVERLAP, f"NPU {device}", dict(enumerate(rows)))
    for thread, (name, intervals) in enumerate(rows.items()):
        for begin, end in intervals:
            yield complete(name, process, thread, begin, end)


def mark_events(profile: Profile) -> Iterator[Event]:
    """The marks that the program set on its threads."""
    marks = [mark for mark in profile.marks if "stream" not in mark]
    if not marks:
        return
    process = process_of(profile, MARKS)
    yield from metadata(process, MARKS, "CPU", {mark["thread"]: f"Thread {mark['thread']}" for mark in marks})
    for mark in marks:
        args = {"event_type": mark["type"], "domain": mark["domain"]}
        yield complete(mark["message"], process, mark["thread"], mark["begin"], mark["end"], **args)


def timeline(profile: Profile) -> Iterator[Event]:
    """All events of the timeline."""
    yield from host_events(profile)
    for device in profile.devices:
        yield from device_events(profile, device)
        yield from overlap_events(profile, device)
    yield from mark_events(profile)


# The tables, each a name, its columns and its rows


def name_of(task: Event) -> str:
    """The name of a task: an operator's function, a communication's operation, or the type of another task."""
    if task["type"] == COMMUNICATION:
        return operator_type(task)
    name: str = task["name"] if task["operator"] else task["type"]
    return name


def operator_type(task: Event) -> str:
    """For example Add for aclnnAdd, and hcom_allReduce_ for HcclAllReduce; torch_npu looks for hcom_receive_.

    A device reports the names of the kernels that a function runs, which are not known here.
    """
    function: str = task["name"]
    if task["type"] != COMMUNICATION:
        return function.removeprefix("aclnn")
    name = function.removeprefix("Hccl").replace("Recv", "Receive")
    return f"hcom_{name[0].lower()}{name[1:]}_"


def op_summary(profile: Profile) -> Iterator[Event]:
    """Each operator and communication that a device ran.

    The wait time is the time for which its stream was idle before.
    """
    last: dict[tuple[int, int], int] = {}
    for task in profile.tasks:
        stream = (task["device"], task["stream"])
        waited = max(task["begin"] - last.get(stream, task["begin"]), 0)
        last[stream] = task["end"]
        if not task["operator"] and task["type"] != COMMUNICATION:
            continue
        yield {
            "Device_id": task["device"],
            "Model ID": UNKNOWN,
            "Task ID": task["task"],
            "Stream ID": task["stream"],
            "Op Name": name_of(task),
            "OP Type": operator_type(task),
            "OP State": UNKNOWN,
            "Task Type": task["type"],
            "Task Start Time(us)": microseconds(task["begin"]),
            "Task Duration(us)": duration(task),
            "Task Wait Time(us)": waited / 1000,
            "Block Num": UNKNOWN,
            "Mix Block Num": UNKNOWN,
            "HF32 Eligible": UNKNOWN,
            **tensor_columns(task),
            "Context ID": UNKNOWN,
        }


def op_statistic(profile: Profile) -> Iterator[Event]:
    """The number and the duration of runs of each type of operator on each device; the longest total first."""
    times: dict[tuple[int, str, str], list[float]] = defaultdict(list)
    for task in profile.operators():
        times[task["device"], operator_type(task), task["type"]].append(duration(task))
    totals: dict[int, float] = defaultdict(float)
    for (device, _, _), durations in times.items():
        totals[device] += sum(durations)
    for (device, op_type, core), durations in sorted(times.items(), key=lambda item: (item[0][0], -sum(item[1]))):
        total = sum(durations)
        yield {
            "Device_id": device,
            "OP Type": op_type,
            "Core Type": core,
            "Count": len(durations),
            "Total Time(us)": round(total, 3),
            "Min Time(us)": min(durations),
            "Avg Time(us)": round(total / len(durations), 3),
            "Max Time(us)": max(durations),
            "Ratio(%)": round(100 * total / totals[device], 3) if totals[device] else 0,
        }


def task_time(profile: Profile) -> Iterator[Event]:
    """Each task of a stream."""
    for task in profile.tasks:
        yield {
            "Device_id": task["device"],
            "kernel_name": name_of(task),
            "kernel_type": task["type"],
            "stream_id": task["stream"],
            "task_id": task["task"],
            "task_time(us)": duration(task),
            "task_start(us)": microseconds(task["begin"]),
            "task_stop(us)": microseconds(task["end"]),
        }


def api_statistic(profile: Profile) -> Iterator[Event]:
    """The number and the duration of calls of each function of the host."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for record in profile.calls:
        times["acl", record["name"]].append(duration(record))
    for record in profile.launches:
        times[("node", "launch") if record["operator"] else ("acl", record["name"])].append(duration(record))
    for (level, name), durations in sorted(times.items()):
        yield {
            "Device_id": "host",
            "Level": level,
            "API Name": name,
            "Time(us)": round(sum(durations), 3),
            "Count": len(durations),
            "Avg(us)": round(statistics.fmean(durations), 3),
            "Min(us)": min(durations),
            "Max(us)": max(durations),
            "Variance": round(statistics.pvariance(durations), 3),
        }


def msprof_tx(profile: Profile) -> Iterator[Event]:
    """The marks of the program, with the time at which a stream reached them, if the mark has a stream."""
    on_streams = {mark["mark"]: mark for mark in profile.marks if "stream" in mark}
    for mark in profile.marks:
        if "stream" in mark:
            continue
        there = on_streams.get(mark["mark"])
        yield {
            "Device_id": there["device"] if there else "host",
            "pid": profile.process,
            "tid": mark["thread"],
            "category": UNKNOWN,
            "event_type": mark["type"],
            "payload_type": UNKNOWN,
            "payload_value": UNKNOWN,
            "Start_time(us)": microseconds(mark["begin"]),
            "End_time(us)": microseconds(mark["end"]),
            "message_type": UNKNOWN,
            "message": mark["message"],
            "domain": mark["domain"],
            "Device Start_time(us)": microseconds(there["begin"]) if there else UNKNOWN,
            "Device End_time(us)": microseconds(there["end"]) if there else UNKNOWN,
        }


TABLES = (op_summary, op_statistic, task_time, api_statistic, msprof_tx)


@contextlib.contextmanager
def whole_file(path: Path, folder: int) -> Iterator[IO[str]]:
    """A file to write in an open folder, which gets its name when it is complete.

    torch_npu waits for names, and reads the files then.
    The file is created: an existing one, such as a symbolic link, is not written to.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with (
            opened(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder) as number,
            open(number, "w", newline="", encoding="utf-8", closefd=False) as file,
        ):
            yield file
        os.rename(part.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part.name, dir_fd=folder)


def export(folder: Path) -> None:
    """Writes the files of one profile: the timeline, and the tables that have rows.

    The table of functions is always written, because torch_npu waits for a table.
    """
    profile = Profile(folder)
    path = folder / OUTPUT
    with opened(folder, FOLDER) as there:
        with contextlib.suppress(FileExistsError):
            os.mkdir(OUTPUT, 0o700, dir_fd=there)
        with opened(path, FOLDER, there) as output:
            write(profile, path, output)


def write(profile: Profile, path: Path, output: int) -> None:
    """Writes a profile's files to an open folder; error texts use its path."""
    stamp = datetime.now().strftime("%Y%m%d%H%M%S")
    with whole_file(path / f"msprof_{stamp}.json", output) as file:
        separator = "["
        for event in timeline(profile):
            file.write(separator + json.dumps(event))
            separator = ",\n"
        file.write("]")
    for table in TABLES:
        rows = list(table(profile))
        if not rows and table is not api_statistic:
            continue
        with whole_file(path / f"{table.__name__}_{stamp}.csv", output) as file:
            writer = csv.DictWriter(file, list(rows[0]) if rows else ["Device_id", "Level", "API Name"])
            writer.writeheader()
            writer.writerows(rows)


def folders(output: Path) -> list[Path]:
    """The profiles in a folder, or the folder itself if it is one."""
    if os.path.lexists(output / RECORDS):
        return [output]
    return sorted(path.parent.parent.parent for path in output.glob(f"PROF_*/{RECORDS}"))


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="msprof",
        description="msprof of the host CANN: tables and a timeline of what a profile recorded. "
        "Programs begin profiles themselves, with aclprofStart or torch_npu.profiler.",
        allow_abbrev=False,
    )
    parser.add_argument("--export", choices=("on", "off"), default="off", help="write mindstudio_profiler_output")
    parser.add_argument("--analyze", choices=("on", "off"), default="off", help="accepted; there is nothing to add")
    parser.add_argument("--output", type=Path, required=True, help="a folder PROF_..., or one that has some")
    parser.add_argument("--type", choices=("text",), help=argparse.SUPPRESS)  # torch_npu passes it
    options = parser.parse_args()
    found = folders(options.output)
    if not found:
        print(f"msprof: {options.output} has no profile of the host CANN, PROF_*/{RECORDS}", file=sys.stderr)
        return 1
    if options.export == "off":
        return 0
    failed = False
    for folder in found:
        try:
            export(folder)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            print(f"msprof: {folder} cannot be exported: {type(error).__name__}: {error}", file=sys.stderr)
            failed = True
    time.sleep(SEEN_AFTER)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
