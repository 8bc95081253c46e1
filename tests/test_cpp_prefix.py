"""What C++ users get: the prefix that looks like an installed CANN, and the command that describes it."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "cpp"
EXAMPLE = EXAMPLES / "elu_backward.cpp"
OUTPUT = "result[0] is: 2.000000\nresult[1] is: -0.000000\nresult[2] is: 0.000000\nresult[3] is: 1.000000\n"
HEADERS = ROOT / "csrc" / "host" / "include"

# The program must find its libraries by itself, not through the tests' environment.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD", "AclnnTorch_DIR")}


def run(command: Sequence[str | Path], **options: object) -> str:
    """Run a command that must succeed and return its output."""
    options = {"env": ENVIRONMENT, "capture_output": True, "text": True} | options
    result = subprocess.run(command, **options)  # type: ignore[call-overload]
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


@functools.cache
def config(*switches: str) -> str:
    """Return what the command prints for these switches."""
    return run([sys.executable, "-m", "aclnn_torch", "config", *switches], cwd=ROOT).rstrip("\n")


@pytest.fixture(scope="module")
def prefix() -> Path:
    return Path(config("--prefix"))


def need(program: str) -> str:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return program


def test_example_is_the_documents_own() -> None:
    """Byte for byte the C++ part of CANN's document: whoever edits it no longer tests what users have."""
    digest = hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()
    assert digest == "29edeb249b9a960b6fa3b22f5db755f6595c59cb4e777a711d8bd4964b30bf91"


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_example_runs_as_the_readme_says(compiler: str, tmp_path: Path) -> None:
    program = tmp_path / "elu_backward"
    run([need(compiler), EXAMPLE, *config("--cflags", "--libs").split(), "-o", program])
    assert run([program]) == OUTPUT


@pytest.mark.parametrize(
    "libraries",
    [
        "-lascendcl -lnnopbase -lopapi",
        "-lopapi -lnnopbase -lascendcl",
        "-lacl_rt -lopapi_nn -lopapi_math -lnnopbase",
        "-Wl,--as-needed -lacl_rt -lopapi_math -lopapi_nn -lnnopbase",
    ],
)
def test_old_and_new_library_names_link(libraries: str, prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "elu_backward"
    flags = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib64'}", f"-Wl,-rpath,{prefix / 'lib64'}"]
    run([need("g++"), EXAMPLE, *flags, *libraries.split(), "-o", program])
    assert run([program]) == OUTPUT


@pytest.mark.parametrize(
    "find", ["-DAclnnTorch_DIR={cmakedir}", "-DCMAKE_PREFIX_PATH={prefix}"], ids=["AclnnTorch_DIR", "CMAKE_PREFIX_PATH"]
)
def test_cmake_package(find: str, prefix: Path, tmp_path: Path) -> None:
    define = find.format(cmakedir=config("--cmakedir"), prefix=prefix)
    run([need("cmake"), "-S", EXAMPLES, "-B", tmp_path, define])
    run(["cmake", "--build", tmp_path])
    assert run([tmp_path / "elu_backward"]) == OUTPUT


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_set_env_serves_a_cann_build_script(shell: str, prefix: Path, tmp_path: Path) -> None:
    """As on an Ascend machine: no rpath, everything from the environment. From a path with a space."""
    need("g++")
    installed = tmp_path / "with space"
    installed.symlink_to(prefix)
    script = """
        set -eu
        . "$1/set_env.sh"; . "$1/set_env.sh"
        g++ "$2" -I"$ASCEND_HOME_PATH/include" -L"$ASCEND_HOME_PATH/lib64" -lascendcl -lnnopbase -lopapi -o "$3"
        "$3"
        for directory in "$ASCEND_TOOLKIT_HOME/runtime" "$ASCEND_TOOLKIT_HOME/compiler" "$ASCEND_OPP_PATH"; do
          test -d "$directory"
        done
        echo "$LD_LIBRARY_PATH"
    """
    environment = ENVIRONMENT | {"LD_LIBRARY_PATH": "/somewhere/else"}
    output = run([need(shell), "-c", script, shell, installed, EXAMPLE, tmp_path / "program"], env=environment)
    assert output == f"{OUTPUT}{installed}/lib64:/somewhere/else\n"


def test_set_env_refuses_a_shell_that_hides_its_place(tmp_path: Path, prefix: Path) -> None:
    command = [need("dash"), "-c", f". '{prefix}/set_env.sh'"]
    result = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 1
    assert "change to its directory first" in result.stderr
    assert run([*command, "-c"], cwd=prefix) == ""


@pytest.mark.parametrize("standard", ["c99", "c11", "c++11", "c++20"])
@pytest.mark.parametrize("header", sorted(str(path.relative_to(HEADERS)) for path in HEADERS.rglob("*.h")))
def test_headers_stand_alone(header: str, standard: str) -> None:
    """Every header compiles by itself, twice included, as plain C and as C++, without a warning."""
    language = "c++" if "++" in standard else "c"
    command = [need("g++" if language == "c++" else "gcc"), f"-std={standard}", f"-I{HEADERS}", "-fsyntax-only"]
    command += ["-pedantic", "-Wall", "-Wextra", "-Werror", "-x", language, "-"]
    run(command, input=f'#include "{header}"\n#include "{header}"\n')


C_PROGRAM = """
#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

int main(void) {
  int64_t dims[] = {2, 3};
  uint64_t size = 0;
  aclOpExecutor* executor = NULL;
  aclTensor* tensor;
  if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  tensor = aclCreateTensor(dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, NULL);
  if (tensor == NULL) return 2;
  if (aclnnEluBackwardGetWorkspaceSize(tensor, NULL, NULL, NULL, false, tensor, tensor, &size, &executor) !=
      ACLNN_ERR_PARAM_NULLPTR) return 3;
  if (aclGetRecentErrMsg() == NULL) return 4;
  if (aclDestroyTensor(tensor) != ACL_SUCCESS) return 5;
  return aclFinalize();
}
"""


def test_c_programs_work(tmp_path: Path) -> None:
    program = tmp_path / "program"
    command = [need("gcc"), "-std=c99", "-Wall", "-Werror", "-x", "c", "-", "-x", "none", "-o", program]
    run([*command, *config("--cflags", "--libs").split()], input=C_PROGRAM)
    run([program])


def test_config_prints_what_was_asked(prefix: Path) -> None:
    include, lib = prefix / "include", prefix / "lib64"
    assert config("--includedir") == str(include)
    assert config("--libdir") == str(lib)
    assert config("--cflags") == f"-I{include}"
    assert config("--libs", "--cflags") == f"-I{include} -L{lib} -Wl,-rpath,{lib} -lascendcl -lnnopbase -lopapi"
    assert (Path(config("--cmakedir")) / "AclnnTorchConfig.cmake").is_file()
    everything = dict(line.split(": ", 1) for line in config().splitlines())
    assert everything["prefix"] == str(prefix)
    assert set(everything) == {"cflags", "libs", "prefix", "includedir", "libdir", "cmakedir"}


def test_embedded_host_calls_only_itself() -> None:
    """Beside a real CANN in one process, none of its functions may be bound to the other's of the same name."""
    library = ROOT / "aclnn_torch" / "lib" / "libaclnn_host.so"
    relocations = run([need("readelf"), "--wide", "--relocs", library])
    assert "JUMP_SLO" in relocations
    assert [line for line in relocations.splitlines() if " acl" in line or " Acl" in line] == []


def test_command_line_needs_no_torch() -> None:
    """The commands' module, without the package around it, answers before torch could be imported."""
    package = ROOT / "aclnn_torch"
    script = f"""
import sys, types
package = types.ModuleType("aclnn_torch")
package.__path__ = [{str(package)!r}]
sys.modules["aclnn_torch"] = package
from aclnn_torch.cli import main
status = main(["config", "--prefix"])
assert "torch" not in sys.modules
sys.exit(status)
"""
    assert run([sys.executable, "-c", script]).strip() == str(package / "cann")


def test_command_line_refuses_what_it_does_not_know() -> None:
    command = [sys.executable, "-m", "aclnn_torch"]
    for arguments in (["config", "--nonsense"], ["nonsense"], []):
        result = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 2
        assert "usage: aclnn-torch" in result.stderr
