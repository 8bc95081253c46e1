"""The two components: what CPU tensors need, and the CANN that looks installed, which is built when it is needed; and
the order of csrc's folders."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import ninja
import pytest
import torch

from aclnn_torch import host
from tests import LONGEST

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"
# The folders of csrc from the lowest on, and the folders that each includes; a file belongs to the innermost one.
# Published headers include only one another, and all folders may include them.
PUBLISHED = ("host_cann/include", "cann/prefix/include", "cann/atb/include")
FOLDERS = {
    **dict.fromkeys(PUBLISHED, ""),
    "host_cann/runtime": "",
    "host_cann/kernels": "host_cann/runtime",
    "host_cann/kernels/dispatch": "host_cann/kernels",
    "host_cann/kernels/reference": "host_cann/kernels",
    "host_cann/descriptors": "host_cann/runtime",
    "host_cann/arguments": "host_cann/runtime host_cann/kernels host_cann/descriptors",
    "host_cann/ops": "host_cann/runtime host_cann/kernels host_cann/descriptors host_cann/arguments",
    "cann/hccl": "host_cann/runtime",
    "cann/profiling": "host_cann/runtime",
    "cann/triton": "host_cann/runtime",
    "cann/vllm": "host_cann/runtime",
    "cann/rows/engine": "host_cann/runtime host_cann/descriptors host_cann/arguments",
    "cann/rows": "host_cann/runtime host_cann/kernels host_cann/descriptors host_cann/arguments cann/rows/engine",
    "cann/named_ops": "host_cann/runtime host_cann/descriptors cann/rows/engine cann/rows",
    "cann/atb": "host_cann/runtime host_cann/descriptors host_cann/arguments cann/rows/engine cann/rows",
    "cann/prefix": "host_cann/runtime",
    "client": "",
    "cmake": "",
    "torch_ops": "client",
    "torch_npu": "torch_ops",
    "python": "client torch_ops",
}
NOT_OF_THE_CORE = re.compile(r"csrc/(cann|torch_npu)/")
# Replaces the real setup.py: records its arguments, and creates the libraries.
SETUP = """
import sys, time
from pathlib import Path
with open("calls.txt", "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
print("compiling", flush=True)
time.sleep(0.5)
if {works}:
    folder = Path("aclnn_torch/cann/lib64")
    folder.mkdir(parents=True, exist_ok=True)
    for name in {names}:
        (folder / f"lib{{name}}.so").touch()
        if {hangs}:
            time.sleep({longest})
sys.exit({works} is False)
"""


def of_ninja(*arguments: str) -> str:
    command = [Path(ninja.BIN_DIR) / "ninja", "-C", ROOT / "build" / "release", "-t", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_core_is_made_of_the_core() -> None:
    inputs = set(of_ninja("inputs", "core").split("\n"))
    objects = {line for line in inputs if line.endswith(".o")}
    assert len(objects) > 60
    assert not [line for line in inputs if NOT_OF_THE_CORE.search(line.replace("/CMakeFiles", ""))]
    compiled = {}
    for part in of_ninja("deps", *sorted(objects)).split("\n\n"):
        first, *headers = part.strip().split("\n")
        compiled[first.partition(":")[0]] = headers
    assert set(compiled) - {""} == objects
    files = set().union(*compiled.values())  # in a unity build, the others are headers of the compiled file
    assert any(line.endswith("torch_ops/elu.cpp") for line in files)
    foreign = {name: [line for line in headers if NOT_OF_THE_CORE.search(line)] for name, headers in compiled.items()}
    assert not {name: headers for name, headers in foreign.items() if headers}


def folder_of(path: Path) -> str:
    return next(str(folder) for folder in path.relative_to(CSRC).parents if str(folder) in FOLDERS)


def included_folders(path: Path) -> set[str]:
    """The folders whose headers a file includes, except its own and the published ones."""
    names = re.findall(r'^ *# *include "(.+)"', path.read_text(), re.MULTILINE)
    files = [(place / name).resolve() for name in names for place in (path.parent, CSRC) if (place / name).is_file()]
    return {folder_of(file) for file in files} - {folder_of(path), *PUBLISHED}


def test_folders_include_those_below_them() -> None:
    """Exactly the includes in the table."""
    included: dict[str, set[str]] = {folder: set() for folder in FOLDERS}
    for path in CSRC.rglob("*"):
        if path.suffix in (".h", ".cpp", ".py"):  # Python generates C++, too
            included[folder_of(path)] |= included_folders(path)
    assert included == {folder: set(others.split()) for folder, others in FOLDERS.items()}
    order = list(FOLDERS)
    assert not [folder for folder in order if not included[folder] <= set(order[: order.index(folder)])]


def test_no_two_headers_have_one_name() -> None:
    """So that a name is unambiguous. CANN's published headers keep CANN's names."""
    headers = [path for path in CSRC.rglob("*.h") if "include" not in path.relative_to(CSRC).parts]
    names = Counter(path.name for path in headers)
    assert len(names) > 100
    assert not sorted(str(path.relative_to(CSRC)) for path in headers if names[path.name] > 1)


def test_the_layout_has_every_folder() -> None:
    """The table in CONTRIBUTING.md names each folder in its first column."""
    layout = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Layout\n")[2].partition("\n## ")[0]
    named = re.findall(r"`csrc/([\w/]+)`", "\n".join(re.findall(r"^\|([^|]*)\|", layout, re.MULTILINE)))
    parts = [CSRC / "host_cann", CSRC / "cann"]
    folders = [path for parent in (CSRC, *parts) for path in parent.iterdir() if path.is_dir() and path not in parts]
    assert sorted(named) == sorted(str(path.relative_to(CSRC)) for path in folders)


def link_or_copy(source: str, target: str) -> None:
    """A link if the file system supports it, which is free; otherwise a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree in which only the core is built."""
    left_out = shutil.ignore_patterns("cann", "__pycache__")
    shutil.copytree(ROOT / "aclnn_torch", tmp_path / "aclnn_torch", ignore=left_out, copy_function=link_or_copy)
    return tmp_path


def start(tree: Path, *arguments: str) -> subprocess.Popen[str]:
    """A command of the package in a tree, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "aclnn_torch", *arguments],
        start_new_session=True,
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def make_setup(tree: Path, works: bool, hangs: bool = False) -> None:
    """Its build works, fails, or hangs after the first library."""
    setup = SETUP.format(works=works, hangs=hangs, names=host.LIBRARIES, longest=LONGEST)
    (tree / "setup.py").write_text(setup)


@pytest.mark.test_all
def test_commands_that_need_it_build_it_once(tree: Path) -> None:
    make_setup(tree, works=True)
    commands = [start(tree, "config", "--prefix"), start(tree, "env"), start(tree, "config", "--libdir")]
    results = [(*command.communicate(timeout=LONGEST), command.returncode) for command in commands]
    assert [result[2] for result in results] == [0, 0, 0]
    assert results[0][0] == f"{tree / 'aclnn_torch' / 'cann'}\n"  # without the build's output
    assert results[2][0] == f"{tree / 'aclnn_torch' / 'cann' / 'lib64'}\n"
    assert sorted(result[1] for result in results) == ["", "", "compiling\n"]
    assert (tree / "calls.txt").read_text() == "--quiet build_ext --inplace --cann\n"


@pytest.mark.test_all
@pytest.mark.parametrize(
    "command", [["config"], ["env"], ["run", "x.py"], ["check", "x.cpp"], ["doctor", "--coverage"]]
)
def test_where_it_cannot_be_built_they_say_how(tree: Path, command: list[str]) -> None:
    process = start(tree, *command)  # without setup.py, as outside a source tree
    stdout, stderr = process.communicate(timeout=LONGEST)
    missing = ", ".join(f"lib{name}.so" for name in host.LIBRARIES)
    lib64 = tree / "aclnn_torch" / "cann" / "lib64"
    said = f"aclnn-torch: the host CANN is not built: {lib64} lacks {missing}; run `make cann` in the repository\n"
    assert (stdout, stderr) == ("", said)
    assert process.returncode in (1, 2)


def test_a_build_that_fails_is_told(tree: Path) -> None:
    make_setup(tree, works=False)
    process = start(tree, "config")
    stdout, stderr = process.communicate(timeout=LONGEST)
    end = "is not built: what is missing or wrong is said above; run `make cann` in the repository\n"
    assert (stdout, process.returncode) == ("", 1)
    assert stderr.startswith("compiling\n") and stderr.endswith(end)


@pytest.mark.test_all
def test_a_build_that_is_killed_leaves_the_core(tree: Path) -> None:
    """The core computes, and the next command builds the rest again."""
    make_setup(tree, works=True, hangs=True)
    process = start(tree, "config", "--prefix")
    first, *others = (tree / "aclnn_torch" / "cann" / "lib64" / f"lib{name}.so" for name in host.LIBRARIES)
    while not first.exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=LONGEST)
    assert not any(library.exists() for library in others)

    elu = "torch.ops.aclnn.elu(torch.tensor([-1.0, 2.0])).tolist()"
    command = [sys.executable, "-c", f"import torch, aclnn_torch; print(aclnn_torch.__file__, {elu})"]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    result = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=LONGEST)
    expected = torch.nn.functional.elu(torch.tensor([-1.0, 2.0])).tolist()
    assert (result.stdout, result.stderr) == (f"{tree / 'aclnn_torch' / '__init__.py'} {expected}\n", "")

    make_setup(tree, works=True)
    stdout, stderr = start(tree, "config", "--prefix").communicate(timeout=LONGEST)
    assert (stdout, stderr) == (f"{tree / 'aclnn_torch' / 'cann'}\n", "compiling\n")
    assert all(library.exists() for library in others)


def test_doctor_is_content_with_the_core(tree: Path) -> None:
    process = start(tree, "doctor")
    stdout, _ = process.communicate(timeout=LONGEST)
    assert "not built yet; needed for C++ programs and torch_npu" in stdout and "make cann" in stdout
    assert process.returncode == 0, stdout


def make_recording_tree(tree: Path, seconds: float = 0) -> None:
    """setup.py with programs that record their arguments in calls.txt, and take their time."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for module in ("cmake", "ninja"):
        (tree / f"{module}.py").write_text(f"CMAKE_BIN_DIR = BIN_DIR = {str(tree)!r}\n")
    (tree / "cmake").write_text(f'#!/bin/sh\necho "$*" >> "{tree}/calls.txt"\nsleep {seconds}\n')
    (tree / "cmake").chmod(0o755)
    (tree / "aclnn_torch").mkdir(exist_ok=True)
    (tree / "aclnn_torch" / "__init__.py").write_text('__version__ = "0"\n')


def start_setup(tree: Path, *asked: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", *asked]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ACLNN_")}
    environment |= {"PYTHONPATH": str(tree)}
    return subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("asked", [[], ["--cann"]], ids=["build", "cann"])
@pytest.mark.parametrize("was_built", [False, True])
def test_what_setup_builds(tmp_path: Path, was_built: bool, asked: list[str]) -> None:
    """The core, and the prefix only if it is requested or was built before."""
    make_recording_tree(tmp_path)
    if was_built:
        (tmp_path / "aclnn_torch" / "cann" / "lib64").mkdir(parents=True)
    assert start_setup(tmp_path, *asked).wait(timeout=LONGEST) == 0
    calls = (tmp_path / "calls.txt").read_text().replace(f"{tmp_path}/build/release", "BUILD").splitlines()
    core = ["--build BUILD --target core -- --quiet", "--install BUILD --component core"]
    rest = ["--build BUILD --target all -- --quiet", "--install BUILD --component cann"]
    assert calls[0].startswith(f"-S {tmp_path} -B BUILD -G Ninja ")
    assert calls[1:] == (core + rest if was_built or asked else core)


def test_builds_in_one_folder_take_turns(tmp_path: Path) -> None:
    """As of two `make` in one tree: configuring while the other compiles would break both."""
    make_recording_tree(tmp_path, seconds=0.2)
    builds = [start_setup(tmp_path), start_setup(tmp_path)]
    assert [build.wait(timeout=LONGEST) for build in builds] == [0, 0]
    calls = [call.split()[0] for call in (tmp_path / "calls.txt").read_text().splitlines()]
    assert calls == ["-S", "--build", "--install"] * 2
