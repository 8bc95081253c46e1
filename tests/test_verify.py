"""`aclnn-torch verify` with the host CANN as the installed one, and with a copy of it that has five faults.

All runs use strict mode, as on a machine with NPUs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aclnn_torch import host
from tests import LONGEST, builds, test_npu
from tests.verify.observation import Observation
from tests.verify.report import EQUAL, EXPLAINED, UNEXPLAINED, Report, verdict
from tests.verify.run import FINDING, Record, release_of

LIBRARIES = host.PREFIX / "lib64"
INCLUDE = builds.ROOT / "csrc" / "host_cann" / "include"
HIDDEN = "aclnnSoftplusBackward"


def verify(folder: Path, pattern: str, *options: str, **environment: str) -> tuple[int, dict[str, Any], str]:
    """The exit status, the report and the standard error output."""
    command = [sys.executable, "-m", "aclnn_torch", "verify", "--json", "--filter", pattern, "--output", str(folder)]
    variables = os.environ | host.environment(product="Ascend910B", strict=True) | environment
    result = subprocess.run([*command, *options], env=variables, capture_output=True, text=True, timeout=LONGEST)
    return result.returncode, json.loads(result.stdout or "{}"), result.stderr


def unexplained(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The installed CANN's outcome of each case that is neither equal nor explained."""
    return {case["name"]: case["installed"] for case in report["cases"] if case["verdict"] == UNEXPLAINED}


def test_an_honest_copy(tmp_path: Path) -> None:
    """No differences; values are measured, calls are timed; and an interrupted run is continued."""
    pattern = "^((status|values|streams|views)/aclnnElu/|times/aclnnElu/FLOAT16$)"
    status, report, errors = verify(tmp_path, pattern)
    assert status == 0, errors
    assert unexplained(report) == {}
    kinds = {case["name"].partition("/")[0] for case in report["cases"]}
    assert kinds == {"status", "values", "streams", "times", "views"}
    assert report["counts"][EQUAL] + report["counts"][EXPLAINED] == len(report["cases"]) > 100
    assert (report["versions"]["SoC"], report["versions"]["product"]) == ("Ascend910B2", "Ascend910B")
    installed, of_host = report["errors"]["aclnnElu"]["FLOAT"]
    assert 0 < installed == of_host < 8
    timed = [case for case in report["cases"] if case["name"].startswith("times/")]
    assert all(side["seconds"]["stage 2"] > 0 for case in timed for side in (case["installed"], case["host"]))
    assert "## Unexplained\n\nNone." in (tmp_path / "report.md").read_text()

    records = tmp_path / "records.jsonl"
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(lines[:-5]) + lines[-5][:30])
    status, again, errors = verify(tmp_path, pattern)
    assert status == 0, errors
    assert [case["name"] for case in again["cases"]] == [case["name"] for case in report["cases"]]
    kept = [line for line in records.read_text().splitlines(keepends=True) if line in lines]
    assert kept[: len(lines) - 5] == lines[:-5]


@pytest.mark.test_all
def test_an_earlier_release_of_cann(tmp_path: Path) -> None:
    """A CANN 9.1 does what its own checks say; beside the newest ones, two rows of aclnnSeluBackward differ."""
    pattern = "^status/aclnnSeluBackward/3/.* another dtype$"
    status, report, errors = verify(tmp_path / "own", pattern, ACLNN_TORCH_CANN="9.1")
    assert status == 0, errors
    assert report["versions"]["checks of CANN"] == "9.1"
    assert unexplained(report) == {}
    outcomes = {
        case["name"].split("/")[-1]: (case["installed"]["outcome"], case["expected"]) for case in report["cases"]
    }
    assert outcomes == {
        "result has another dtype": ("561103", "561103"),
        "gradInput has another dtype": ("0", "0"),
    }
    status, report, errors = verify(tmp_path / "newest", pattern, "--cann", "later", ACLNN_TORCH_CANN="9.1")
    assert status == 1, errors
    assert len(unexplained(report)) == 2


def test_the_release_of_a_version_of_cann() -> None:
    versions = ("8.0.RC2", "8.5.0", "8.5.1.alpha001", "9.0.0", "9.0.1", "9.1.0", "9.2.0-beta.1", "10.0.0", "unknown")
    releases = ("8.5", "8.5", "8.5", "9.0", "9.0", "9.1", "later", "later", "later")
    assert tuple(map(release_of, versions)) == releases


def faulty_copy(folder: Path) -> dict[str, str]:
    """The variables of a copy of the host CANN's libraries with five faults."""
    libraries = folder / "lib64"
    libraries.mkdir()
    for name in ("libascendcl.so", "libnnopbase.so"):
        (libraries / name).symlink_to(LIBRARIES / name)
    content = (LIBRARIES / "libopapi.so").read_bytes()
    names = {b"libopapi.so": b"libopapj.so"}
    names |= {name.encode(): b"x" + name[1:].encode() for name in (HIDDEN, f"{HIDDEN}GetWorkspaceSize")}
    for name, other in names.items():
        assert b"\0" + name + b"\0" in content
        content = content.replace(b"\0" + name + b"\0", b"\0" + other + b"\0")
    real = libraries / "libopapj.so"
    real.write_bytes(content)
    command = [*builds.CXX, "-shared", "-fPIC", "-std=c++20", f"-I{INCLUDE}", f'-DREAL="{real.name}"']
    command += [str(Path(__file__).parent / "verify" / "faulty.cpp"), "-o", str(libraries / "libopapi.so")]
    linked = ("-Wl,--no-as-needed", str(real), "-Wl,-rpath,$ORIGIN", "-Wl,--allow-shlib-undefined")
    subprocess.run([*command, *linked], check=True)
    search = f"{libraries}:{LIBRARIES}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    return {"ASCEND_HOME_PATH": str(folder), "LD_LIBRARY_PATH": search}


@pytest.mark.test_all
def test_five_faults(tmp_path: Path) -> None:
    """Each is found and identified, and nothing else."""
    pattern = f"^status/(aclnnSelu|{HIDDEN})/|^status/aclnnSilu/1/|^values/aclnn(Elu|Hardswish|Silu)/FLOAT/3x65"
    copy = tmp_path / "copy"
    copy.mkdir()
    status, report, errors = verify(tmp_path / "report", pattern, "--timeout", "20", **faulty_copy(copy))
    assert status == 1, errors
    found = unexplained(report)
    by_function: dict[str, set[str]] = {}
    for name, seen in found.items():
        by_function.setdefault(name.split("/")[1], set()).add("wrong" if seen["wrong"] else seen["outcome"])
    assert by_function == {
        "aclnnSelu": {"161001"},
        "aclnnElu": {"wrong"},
        "aclnnHardswish": {"died of SIGABRT"},
        "aclnnSilu": {"no answer within 20 s"},
        HIDDEN: {"missing"},
    }
    assert "values of out are wrong" in found["values/aclnnElu/FLOAT/3x65"]["wrong"]
    hidden = [case for case in report["cases"] if f"/{HIDDEN}/" in case["name"]]
    assert len(hidden) > 20
    assert all(case["name"] in found for case in hidden)
    equal = {case["name"] for case in report["cases"] if case["verdict"] == EQUAL}
    assert any(name.startswith("status/aclnnSilu/") for name in equal)


@pytest.mark.test_all
@test_npu.needs_torch_npu
def test_operators_under_torch_npu(tmp_path: Path) -> None:
    """An unmodified copy's operators and derivatives agree with the CPU's."""
    command = ["-m", "aclnn_torch", "run", "--strict", "-m", "aclnn_torch", "verify", "--output", tmp_path, "--json"]
    result = test_npu.run([*command, "--filter", "^(torch|derivatives)/"])
    assert result.returncode == 0, result.stdout + result.stderr
    report = json.loads(result.stdout)
    assert report["notes"] == []
    assert len(report["cases"]) > 60
    of_elu = [of for name, of in report["errors"].items() if name.startswith("elu_backward")]
    assert of_elu
    assert all(of["float32"] == [0, None] for of in of_elu)


def test_what_explains_a_difference() -> None:
    """A difference in a case that deviates on purpose is explained; one in any other, or a wrong value, is not."""

    def record(installed: Observation, section: str = "") -> Record:
        return Record("status/aclnnX/1/x", "0", "document: X", section, installed, Observation("0"))

    refused, wrong = Observation("161002", "no"), Observation("0", wrong="1 of 1 values of out are wrong")
    records = [record(Observation("0")), record(refused, "elu"), record(refused), record(wrong), record(wrong, "elu")]
    assert [verdict(one) for one in records] == [EQUAL, EXPLAINED, UNEXPLAINED, UNEXPLAINED, UNEXPLAINED]
    report = Report({"SoC": "x"}, ["torch was not tried"], records)
    assert report.counts == {EQUAL: 1, EXPLAINED: 1, UNEXPLAINED: 3}
    assert "5 cases: 1 equal, 1 explained deviation, 3 unexplained." in report.to_markdown()
    assert "Torch was not tried." in report.to_markdown()


def test_where_a_worker_finds_things(tmp_path: Path) -> None:
    """The tests are this tree's, although there are others next to the package; the package is not this tree's."""
    for name in ("aclnn_torch", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    code = FINDING.format(root=str(builds.ROOT), package=str(tmp_path))
    code += "import aclnn_torch, tests.verify; print(aclnn_torch.__file__, tests.verify.__file__, sep='\\n')"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    package, ours = map(Path, result.stdout.split("\n")[:2])
    assert package == tmp_path / "aclnn_torch" / "__init__.py"
    assert ours == builds.ROOT / "tests" / "verify" / "__init__.py"


@pytest.mark.test_all
def test_what_cannot_begin(tmp_path: Path) -> None:
    """No CANN, one that does not start, records of another machine, an unmatched pattern: a sentence, and status 2."""
    empty = tmp_path / "empty"
    empty.mkdir()
    status, _, errors = verify(empty, "x", ASCEND_HOME_PATH="")
    assert status == 2
    assert "source set_env.sh" in errors
    status, _, errors = verify(empty, "x", ACLNN_TORCH_PRODUCT="host", **{"LD_LIBRARY_PATH": str(empty)})
    assert status == 2
    assert "libascendcl.so" in errors
    status, _, errors = verify(empty, "(")
    assert status == 2
    (empty / "records.jsonl").write_text('{"SoC": "another"}\n')
    status, _, errors = verify(empty, "status/aclnnElu/1/")
    assert status == 2
    assert "another machine" in errors
    status, report, errors = verify(empty, "status/aclnnElu/1/", "--fresh")
    assert status == 0, errors
    assert len(report["cases"]) == 2
