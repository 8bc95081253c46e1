"""The command line: doctor, check, and the help of every command."""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import aclnn_torch
from aclnn_torch import _problem, cli, decompositions, functional
from aclnn_torch.cli import bench, config, coverage, doctor, npu, prefix
from aclnn_torch.ops import OPERATORS
from tests import LONGEST
from tests.aten_ops.sweep import LIBRARY
from tests.cabi import exported_operators
from tests.published import refused, refused_to_torch_npu

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "cpp"

FORGETFUL = """
#include <cstring>
#include "acl/acl.h"
#include "aclnn/acl_meta.h"
int main(int count, char** arguments) {
  if (aclInit(nullptr) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 3;
  void* memory = nullptr;
  if (aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 4;
  float value = 1;
  aclCreateScalar(&value, ACL_FLOAT);
  aclCreateScalar(&value, ACL_FLOAT);
  if (count > 1 && std::strcmp(arguments[1], "fail") == 0) return 5;
  if (count > 1 && std::strcmp(arguments[1], "touch") == 0) std::memset(memory, 0, 64);
  aclrtFree(memory);
  aclrtResetDevice(0);
  return aclFinalize();
}
"""


def command_line(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """One command in a separate process."""
    command = [sys.executable, "-m", "aclnn_torch", *map(str, arguments)]
    ours = ("ACLNN_TORCH_PRODUCT", "ACLNN_TORCH_CANN")
    environment = {name: value for name, value in os.environ.items() if name not in ours} | variables
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST)


def test_version() -> None:
    result = command_line("--version")
    assert (result.stdout, result.stderr, result.returncode) == (f"aclnn-torch {aclnn_torch.__version__}\n", "", 0)


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """One command in this process, which has imported torch; child processes write to the same files."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        try:
            status = cli.main([*map(str, arguments)])
        except SystemExit as end:
            assert isinstance(end.code, int)
            status = end.code
        output = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, status, output.out, output.err)

    for name in ("ACLNN_TORCH_PRODUCT", "ACLNN_TORCH_CANN"):
        monkeypatch.delenv(name, raising=False)
    return run


Check = Callable[..., dict[str, object]]


@pytest.fixture
def check(command: Command) -> Check:
    """The output of `check --json`."""

    def run(*arguments: str | Path) -> dict[str, object]:
        result = json.loads(command("check", "--json", *arguments).stdout)
        assert isinstance(result, dict)
        return result

    return run


def test_check_runs_a_program(command: Command) -> None:
    result = command("check", EXAMPLES / "elu_backward.cpp")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-3:] == [
        "right",
        "aclnn-torch: exit status 0",
        "aclnn-torch: released everything",
    ]


@pytest.fixture
def forgetful(tmp_path: Path) -> Path:
    """A program that leaks two scalars, and more if told to fail."""
    source = tmp_path / "forgetful.cpp"
    source.write_text(FORGETFUL)
    return source


def test_check_tells_what_is_left(forgetful: Path, command: Command, check: Check) -> None:
    result = command("check", forgetful)
    assert result.returncode == 1
    assert "left 2 x scalar: aclDestroyScalar" in result.stdout
    assert check(forgetful)["left"] == {"scalar": 2}


def test_check_passes_arguments_and_status_on(forgetful: Path, check: Check) -> None:
    result = check(forgetful, "--args", "fail")
    assert result["exit_status"] == 5
    assert result["left"] == {"scalar": 2, "device_block": 1, "context": 1}


def test_check_on_a_strict_device(forgetful: Path, command: Command, check: Check) -> None:
    """The host cannot access device memory there."""
    assert check(forgetful, "--args", "touch")["exit_status"] == 0
    result = check("--strict", forgetful, "--args", "touch")
    assert result["exit_status"] == -11
    assert result["left"] is None
    assert "ended by signal 11" in command("check", "--strict", forgetful, "--args", "touch").stdout


def test_check_of_what_does_not_compile(tmp_path: Path, command: Command) -> None:
    source = tmp_path / "wrong.cpp"
    source.write_text("int main() { return nonsense; }")
    result = command("check", source)
    assert result.returncode == 2
    assert "nonsense" in result.stderr
    assert "does not compile" in result.stdout
    assert command("check", tmp_path / "absent.cpp").returncode == 2


def test_check_names_what_the_host_cann_has_not(tmp_path: Path, command: Command, check: Check) -> None:
    """All of them, although the compiler stops at the first header; functions that the program defines do not count."""
    source = tmp_path / "asking.cpp"
    source.write_text(
        '#include "acl/acl.h"\n#include "aclnnop/aclnn_add.h"\n#include "aclnnop/aclnn_of_tomorrow.h"\n'
        "#include <acl/of_tomorrow.h>\n#define aclCheck(x) (x)\nstatic int aclHelper(int x) { return x; }\n"
        "// aclnnCommented()\nint main() {\n"
        "  aclCheck(aclHelper(aclInit(nullptr)));\n  aclrtOfTomorrow(1);\n"
        "  aclnnAddGetWorkspaceSize();\n  aclnnOfTomorrowGetWorkspaceSize();\n  aclnnOfTomorrow();\n}\n"
    )
    expected = ["aclnnop/aclnn_of_tomorrow.h", "acl/of_tomorrow.h"]
    assert check(source)["missing"] == {
        "headers": sorted(expected),
        "functions": ["aclnnOfTomorrow", "aclrtOfTomorrow"],
    }
    assert "the host CANN has no aclnnOfTomorrow\n" in command("check", source).stdout


def test_check_without_a_compiler(forgetful: Path, command: Command) -> None:
    result = command("check", "--compiler", "no-such-compiler", forgetful)
    assert result.returncode == 2
    assert "no-such-compiler" in result.stderr
    assert "Traceback" not in result.stderr


def test_check_with_a_compiler_of_several_words(forgetful: Path) -> None:
    result = json.loads(command_line("check", "--json", forgetful, CXX="env -u NOTHING g++").stdout)
    assert result["compiled"]


@pytest.mark.parametrize(("product", "cann"), [("Ascend910", "9.1"), ("Ascend910B", "later")])
def test_doctor_as_json(product: str, cann: str) -> None:
    """Products that refuse some operators are not a problem."""
    result = command_line("doctor", "--json", ACLNN_TORCH_PRODUCT=product, ACLNN_TORCH_CANN=cann)
    assert result.returncode == 0, result.stdout
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)}
    assert findings["torch"]["text"] == torch.__version__
    assert all(finding["works"] for finding in findings.values())
    assert f"as {product}, with the checks of CANN {cann}, " in findings["host CANN"]["text"]
    count = len(decompositions())
    assert findings["operators"]["text"] == f"{count} of {count} compute what ATen computes"


def fake_library(folder: Path, *texts: str) -> Path:
    """A torch_npu with these texts in its library."""
    library = folder / "torch_npu" / "lib" / "libtorch_npu.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"\0".join([b"", *(text.encode() for text in texts), b""]))
    (folder / "torch_npu" / "__init__.py").touch()
    return folder


def test_coverage_of_a_torch_npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names in its library, each with its state; names that are not of a first stage are ignored."""
    texts = [
        "aclnnAdd",
        *(f"aclnn{name}GetWorkspaceSize" for name in ("Add", "None", "MatmulAllReduce", "QuantFlashAttentionScore")),
        "aclnnROIAlignGetWorkspaceSize",
    ]
    texts += ["call aclnnMulGetWorkspaceSize", "aclnnFusedInferAttentionScoreV3GetMaxWorkspaceSize"]
    fake_library(tmp_path, *texts)
    monkeypatch.syspath_prepend(str(tmp_path))
    states = {entry.function: entry for entry in coverage.coverage(coverage.asked_for())}
    assert {name: entry.state for name, entry in states.items()} == {
        "aclnnAdd": "computed",
        "aclnnNone": "missing",
        "aclnnMatmulAllReduce": "refused",
        "aclnnQuantFlashAttentionScore": "missing",
        "aclnnROIAlign": "not published",
        "aclnnFusedInferAttentionScoreV3GetMaxWorkspaceSize": "computed",
    }
    assert states["aclnnMatmulAllReduce"].reason == "it communicates between devices (HCCL)"
    assert states["aclnnQuantFlashAttentionScore"].reason.startswith("it is not written yet: its inputs are HIFLOAT8")
    assert states["aclnnROIAlign"].reason == "no document of CANN has it; torch_npu takes ROIAlign by name"


def test_no_function_that_is_here_is_listed_as_undeclared() -> None:
    assert coverage.UNDECLARED.keys() & {entry.function for entry in coverage.coverage(None)} == set()


def test_coverage_is_printed(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(fake_library(tmp_path, "aclnnAddGetWorkspaceSize", "aclnnNoneGetWorkspaceSize")))
    result = command("doctor", "--coverage")
    lines = result.stdout.splitlines()
    assert result.returncode == 0
    assert lines[0] == "The installed torch_npu calls 2 functions: 1 computed, 0 refused, 1 missing, 0 not published."
    assert [line.split() for line in lines[1:]] == [["aclnnAdd", "computed"], ["aclnnNone", "missing"]]
    result = command("doctor", "--coverage", "--json")
    assert result.returncode == 0
    entries = json.loads(result.stdout)
    assert entries[1] == {"function": "aclnnNone", "state": "missing", "reason": ""}


def test_a_command_builds_what_is_missing_while_it_holds_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where the sources are; elsewhere, and where nothing can be written, the reason is told."""
    missing = ["libopapi.so"]

    def build() -> bool:
        with (tmp_path / "build" / "lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        missing.clear()
        return True

    monkeypatch.setattr(prefix, "TREE", tmp_path)
    monkeypatch.setattr(prefix, "missing_libraries", lambda: missing)
    monkeypatch.setattr(prefix, "_build", build)
    assert not prefix.is_built()
    assert capfd.readouterr().err.endswith("lib64 lacks libopapi.so; run `make cann` in the repository\n")
    (tmp_path / "setup.py").touch()
    (tmp_path / "build").touch()
    assert not prefix.is_built()
    assert "the host CANN is not built: [Errno 17] File exists" in capfd.readouterr().err
    (tmp_path / "build").unlink()
    assert prefix.is_built() and prefix.is_built()
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(importlib.util.find_spec("torch_npu") is not None, reason="torch_npu is installed here")
def test_coverage_without_torch_npu(command: Command) -> None:
    """The host CANN's own functions, those of its table and the operators'."""
    result = command("doctor", "--coverage")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    sentence = (
        r"torch_npu is not installed here. The host CANN has (\d+) functions: (\d+) computed, (\d+) refused, (\d+) "
    )
    match = re.fullmatch(sentence + "missing, 0 not published.", lines[0])
    assert match
    functions, computed, refusing, missing = map(int, match.groups())
    assert functions == computed + refusing + missing == len(lines) - 1
    assert refusing + missing == len(refused()) + len(refused_to_torch_npu())
    names = {line.split()[0] for line in lines[1:]}
    assert exported_operators(LIBRARY) <= names


def test_doctor_where_nothing_is_built_for_npus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PREFIX", tmp_path / "cann")
    assert doctor.built_for() is None


def test_doctor_tries_every_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = set()

    def note(operator: torch._ops.OpOverload, *arguments: object, **keywords: object) -> object:
        tried.add(operator)
        return call(operator, *arguments, **keywords)

    call = torch._ops.OpOverload.__call__
    monkeypatch.setattr(torch._ops.OpOverload, "__call__", note)
    assert doctor._operators().works
    assert set(decompositions()) <= tried


def test_doctor_notices_an_operator_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    selu = OPERATORS["selu"]
    forward, *others = selu.overloads
    wrong = dataclasses.replace(forward, decomposition=torch.tanh)
    monkeypatch.setitem(OPERATORS, "selu", dataclasses.replace(selu, overloads=(wrong, *others)))
    finding = doctor._operators()
    assert not finding.works
    assert "selu: " in finding.text
    assert "rms_norm" not in finding.text
    monkeypatch.setattr(doctor, "findings", lambda: iter([finding]))
    assert cli.main(["doctor"]) == 1


def test_doctor_notices_a_torch_npu_of_another_series(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"torch": "2.13.0", "torch_npu": "2.1.0.post3"}
    with monkeypatch.context() as patch:
        patch.setattr(importlib.metadata, "version", versions.__getitem__)
        patch.setattr(importlib.util, "find_spec", lambda name: importlib.machinery.ModuleSpec(name, None))
        finding = doctor._torch_npu()
    advice = "`pip install --no-deps 'torch_npu==2.13.*'`"
    expected = f"torch_npu here is 2.1.0.post3, which does not go with torch 2.13.0; {advice}"
    assert finding == doctor.Finding("torch_npu", "2.1.0.post3", works=False, advice=expected)


@pytest.mark.parametrize(
    ("built", "installed", "works"),
    [
        ("2.13.0", "2.13.0", True),
        ("2.13.0", "2.13.0.post2", True),
        ("2.13.0", None, True),
        ("2.13.0", "2.13.1", False),
        ("2.13.0", "2.12.0", False),
    ],
)
def test_doctor_compares_the_releases_of_torch_npu(
    built: str, installed: str | None, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "built_for", lambda: built)
    monkeypatch.setattr(doctor, "installed_version", lambda name: installed)
    state = f"built for torch_npu {built}" + ("" if works else f", and {installed} is installed")
    advice = None if works else "build aclnn_torch again"
    assert doctor._npu_operators() == doctor.Finding("NPU operators", state, works=works, advice=advice)


@pytest.mark.parametrize(
    ("before", "options"),
    [
        (["-X", "dev", "-W", "error", "-m", "aclnn_torch"], ["-X", "dev", "-W", "error"]),
        (["-X", "dev", "bin/aclnn-torch"], ["-X", "dev"]),
        (["bin/aclnn-torch"], []),
    ],
)
def test_options_of_python_itself_are_the_programs_too(
    before: list[str], options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", *before, "run", "-m", "program"])
    monkeypatch.setattr(sys, "argv", ["aclnn-torch", "run", "-m", "program"])
    assert npu._interpreter_options() == options


def test_config_prints_values_in_the_order_of_the_table(command: Command) -> None:
    values = {name: value for name, (value, _) in config.config_values().items()}
    assert command("config", "--libdir", "--prefix").stdout == f"{values['prefix']} {values['libdir']}\n"
    assert command("config").stdout.splitlines() == [f"{name}: {value}" for name, value in values.items()]


@pytest.mark.parametrize(("built", "wanted"), [("2.13.0+cpu", "torch==2.13.0"), (None, "torch")])
def test_a_missing_torch_is_named(built: str | None, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    monkeypatch.setattr(_problem, "built_for", lambda: built)
    assert _problem.explain(ImportError()) == f"torch is not installed; `pip install {wanted}`"


@pytest.mark.test_all
def test_bench_measures_every_function() -> None:
    result = command_line("bench", "--json", "--elements", "1", "--threads", "1")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["elements"], report["threads"], report["dtype"]) == (1, 1, "float32")
    measured = {(row["function"], row["mode"]) for row in report["results"]}
    names = [name for name in functional.__all__ if hasattr(torch.nn.functional, name)]  # not in every torch
    assert measured == {(name, mode) for name in names for mode in ("forward", "forward+backward")}
    for row in report["results"]:
        assert row["ratio"] == pytest.approx(row["torch_seconds"] / row["seconds"])
        assert 0 < row["seconds"] < 1


def test_bench_measures_as_many_elements_as_said() -> None:
    """At most whole rows and planes beside the number."""
    for name in functional.__all__:
        first, *_ = bench._arguments(name, getattr(functional, name), 100_000, torch.float16)
        assert first.dtype == torch.float16
        assert first.numel() == pytest.approx(100_000, rel=0.07)


def test_bench_measures_what_its_help_says() -> None:
    parser = argparse.ArgumentParser()
    bench._add_arguments(parser)
    assert (parser.parse_args([]).elements, parser.parse_args([]).dtype) == (1048576, "float32")


@pytest.mark.test_all
def test_bench_as_a_table() -> None:
    lines = command_line("bench", "--elements", "64", "--dtype", "float16", "--filter", "^s?elu").stdout.splitlines()
    assert "float16" in lines[0]
    assert [line.split()[0] for line in lines[2:]] == ["elu", "elu", "selu", "selu"]
    for line in lines[2:]:
        ours, torchs, ratio = map(float, line.split()[-3:])
        assert ratio == pytest.approx(torchs / ours, rel=0.05)  # they are rounded to a tenth of a microsecond


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(("--filter", "("), "regular expression"), (("--elements", "0"), "--elements"), (("--dtype", "int8"), "int8")],
)
def test_bench_refuses_what_makes_no_sense(arguments: tuple[str, ...], word: str, command: Command) -> None:
    result = command("bench", *arguments)
    assert result.returncode == 2
    assert word in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.test_all
def test_bench_on_a_product_that_refuses() -> None:
    result = command_line("bench", "--elements", "64", "--filter", "cross", ACLNN_TORCH_PRODUCT="Ascend910")
    assert result.returncode == 1
    assert "561003" in result.stderr
    assert "Traceback" not in result.stderr


BROKEN = [
    *("torch is missing", "torch is of another series"),
    *("the binary part is missing", "the binary part does not fit"),
]


@pytest.fixture(params=BROKEN)
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[str], Path, str]:
    """The command to start python with a package that cannot be imported, its folder, and the expected text."""
    if request.param == "torch is missing":
        return [sys.executable, "-S"], ROOT, "pip install torch=="  # without site-packages
    left_out = shutil.ignore_patterns("*.so", "cann", "__pycache__")
    package = shutil.copytree(ROOT / "aclnn_torch", tmp_path / "aclnn_torch", ignore=left_out)
    if request.param == "torch is of another series":
        (package / "lib" / "torch_version.txt").write_text("2.1.2+cpu\n")
        return [sys.executable], tmp_path, "is built for 2.1.2+cpu; build it again, by `make build`"
    if request.param == "the binary part does not fit":
        (package / f"_C{sysconfig.get_config_var('EXT_SUFFIX')}").write_text("no library")
        return [sys.executable], tmp_path, "build aclnn_torch again"
    # Python's own message; without this, an editable installation would be found.
    absent = "raise ModuleNotFoundError(\"No module named 'aclnn_torch._C'\", name='aclnn_torch._C')\n"
    (package / "_C.py").write_text(absent)
    return [sys.executable], tmp_path, "make build"


@pytest.mark.test_all
def test_what_is_missing_is_told(broken: tuple[list[str], Path, str]) -> None:
    """The commands print it on a separate line, the import in its error."""
    python, folder, advice = broken
    environment = os.environ | {"PYTHONPATH": str(folder)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*python, *arguments], cwd=folder, env=environment, capture_output=True, text=True)

    for command in ("doctor", "bench"):
        result = run("-m", "aclnn_torch", command)
        assert result.returncode == 1
        assert advice in result.stdout + result.stderr
        assert "Traceback" not in result.stderr, result.stderr
    result = run("-m", "aclnn_torch", "config")  # needs only the prefix
    assert result.returncode == (0 if folder == ROOT else 1)
    assert "Traceback" not in result.stderr, result.stderr
    result = run("-c", "import aclnn_torch")
    assert result.stderr.splitlines()[-1].startswith("ImportError: aclnn_torch: ")
    assert advice in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_has_examples_and_exit_statuses(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert "aclnn-torch " + name in printed
    assert "example" in printed
    assert "exit status: " in printed
