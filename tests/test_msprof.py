"""The host CANN's msprof on synthetic folders of records; tests/npu/test_profiler.py has real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import aclnn_torch.host
from tests import LONGEST

MSPROF = "tools/profiler/profiler_tool/analysis/msprof/msprof.py"
HEAD = {"kind": "profile", "process": 7, "product": "Ascend910B1", "begin": 0, "wall": 1_000_000}


def make_profile(folder: Path, *records: dict[str, Any]) -> Path:
    file = folder / "host/data/profile.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def task(device: int) -> dict[str, Any]:
    times = {"begin": 10, "end": 20}
    return {
        **{"kind": "task", "thread": 1, **times, "name": "aclnnAdd", "launch": 1, "operator": True},
        **{"device": device, "stream": 0, "status": 0},
    }


def export(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(aclnn_torch.host.PREFIX / MSPROF), "--export=on", f"--output={folder}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)


def timeline_of(folder: Path) -> list[dict[str, Any]]:
    (file,) = folder.glob("mindstudio_profiler_output/msprof_*.json")
    return json.loads(file.read_text())


def test_each_device_has_layers_of_its_own(tmp_path: Path) -> None:
    folder = make_profile(tmp_path / "PROF_1", HEAD, *(task(device) for device in range(64)))
    assert export(tmp_path).returncode == 0
    names = {
        (event["pid"], event["args"]["labels"]) for event in timeline_of(folder) if event["name"] == "process_labels"
    }
    assert len(names) == len({process for process, _ in names}) == 1 + 2 * 64


def test_a_profile_leads_nowhere_else(tmp_path: Path) -> None:
    """Another user's profile may contain a link where files are written."""
    folder = make_profile(tmp_path / "PROF_1", HEAD, task(0))
    (tmp_path / "elsewhere").mkdir()
    (folder / "mindstudio_profiler_output").symlink_to(tmp_path / "elsewhere")
    done = export(tmp_path)
    assert done.returncode == 1
    assert "mindstudio_profiler_output is a symbolic link, which is not followed; remove it" in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_output_that_leads_to_nothing_is_told_as_a_link(tmp_path: Path) -> None:
    folder = make_profile(tmp_path / "PROF_1", HEAD, task(0))
    (folder / "mindstudio_profiler_output").symlink_to(tmp_path / "elsewhere")
    assert "mindstudio_profiler_output is a symbolic link, which is not followed" in export(tmp_path).stderr
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("link", ["host", "host/data", "host/data/profile.jsonl"])
def test_records_are_those_of_the_folder_itself(tmp_path: Path, link: str) -> None:
    """Another user's profile may link to files that only its reader may read."""
    other = make_profile(tmp_path / "other", HEAD, task(0))
    folder = tmp_path / "PROF_1"
    (folder / link).parent.mkdir(parents=True)
    (folder / link).symlink_to(other / link)
    done = export(tmp_path)
    assert done.returncode == 1
    assert f"{folder / link} is a symbolic link, which is not followed; remove it" in done.stderr
    assert not (folder / "mindstudio_profiler_output").exists()


@pytest.mark.parametrize("whole", [False, True], ids=["folder", "of folders"])
def test_nobody_is_waited_for(tmp_path: Path, whole: bool) -> None:
    """With a pipe instead of records, which nobody writes to."""
    folder = make_profile(tmp_path / "PROF_1")
    records = folder / "host/data/profile.jsonl"
    records.unlink()
    os.mkfifo(records)
    done = export(tmp_path if whole else folder)
    assert done.returncode == 1
    assert f"{records} is not a regular file" in done.stderr


def test_a_record_without_an_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A sparse file of zeros, which uses no disk space and would use all memory."""
    folder = make_profile(tmp_path / "PROF_1", HEAD)
    os.truncate(folder / "host/data/profile.jsonl", 1 << 40)
    done = export(tmp_path)
    assert done.returncode == 1
    assert "it has a record of more than 2097152 characters" in done.stderr


def test_records_of_any_shape_do_not_hide_other_profiles(tmp_path: Path) -> None:
    deep = make_profile(tmp_path / "PROF_1", HEAD) / "host/data/profile.jsonl"
    deep.write_text(deep.read_text() + "[" * 100_000 + "\n")
    make_profile(tmp_path / "PROF_2", HEAD, {**task(0), "begin": 0, "end": 10**400})
    good = make_profile(tmp_path / "PROF_3", HEAD, task(0))
    done = export(tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert any(event["name"] == "aclnnAdd" for event in timeline_of(good))


def test_a_folder_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    make_profile(tmp_path / "PROF_1", {"kind": "task"})
    make_profile(tmp_path / "PROF_2", HEAD, {"kind": "task"})
    good = make_profile(tmp_path / "PROF_3", HEAD, task(0))
    done = export(tmp_path)
    assert done.returncode == 1
    assert [line.partition(" cannot be exported")[0] for line in done.stderr.splitlines()] == [
        f"msprof: {tmp_path / name}" for name in ("PROF_1", "PROF_2")
    ]
    assert any(event["name"] == "aclnnAdd" for event in timeline_of(good))


def test_an_unfinished_line_is_left_out(tmp_path: Path) -> None:
    folder = make_profile(tmp_path / "PROF_1", HEAD, task(0))
    with (folder / "host/data/profile.jsonl").open("a") as file:
        file.write('{"kind":"ta')
    assert export(tmp_path).returncode == 0
    assert sum(event["name"] == "aclnnAdd" for event in timeline_of(folder)) == 1
