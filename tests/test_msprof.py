"""The host CANN's msprof on folders of records that are made here; tests/npu/test_profiler.py has real ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import aclnn_torch.host

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
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


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
    """A profile that somebody else made may hold a link where files are written."""
    folder = make_profile(tmp_path / "PROF_1", HEAD, task(0))
    (tmp_path / "elsewhere").mkdir()
    (folder / "mindstudio_profiler_output").symlink_to(tmp_path / "elsewhere")
    done = export(tmp_path)
    assert done.returncode == 1
    assert "mindstudio_profiler_output is a symbolic link, which is not followed; remove it" in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


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
