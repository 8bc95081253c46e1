"""What C++ users get: the prefix that looks like an installed CANN, and the command that describes it."""

from __future__ import annotations

import functools
import hashlib
import math
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

import aclnn_torch

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "cpp"
EXAMPLE = EXAMPLES / "elu_backward.cpp"
OUTPUT = "result[0] is: 2.000000\nresult[1] is: -0.000000\nresult[2] is: 0.000000\nresult[3] is: 1.000000\n"
HEADERS = ROOT / "csrc" / "host_cann" / "include"
TORCH_LIB = Path(torch.__file__).parent / "lib"

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
    """The program's path: what came with the test requirements, or the system's."""
    path = shutil.which(program, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


# The words of the C++ part of CANN's documents; one of them has it all on one line.
DOCUMENTS = {
    "elu_backward": "c2e45fd340cf841341a4e4c0cab5fb152f138edec3031c148876a78e21dec73e",
    "convolution_backward": "cb9952585944b9918e368cbf2527f04be5898aa4df691ab340dccc488f26df0b",
    "rms_norm_grad": "14272af6a7045064d4ead2160b98d49b5d023c23293b8b523fec7a19c414f409",
}


@pytest.mark.parametrize("program", DOCUMENTS)
def test_example_is_the_documents_own(program: str) -> None:
    """Word for word, line breaks aside: whoever edits it no longer tests what users have."""
    words = (EXAMPLES / f"{program}.cpp").read_text(encoding="utf-8").split()
    assert hashlib.sha256(" ".join(words).encode()).hexdigest() == DOCUMENTS[program]


def printed(name: str, values: Sequence[float]) -> list[str]:
    """The lines in which the programs print values."""
    return [f"{name}[{i}] is: {value:f}" for i, value in enumerate(values)]


def elu_backward_prints() -> list[str]:
    """From its result y, ELU has the derivative 1 above zero and y + 1 elsewhere."""
    return printed("result", [g * (1 if g > 0 else g + 1) for g in (-2.0, -1.0, 0.0, 1.0)])


def selu_backward_prints() -> list[str]:
    """At 0 the negative branch, scale * alpha; at its lower limit 0; just above 0 and at 3 the scale."""
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return printed("result", [scale * alpha, 0, scale, 2 * scale])


def convolution_backward_prints() -> list[str]:
    """The program writes floats of 1.0 and calls them FLOAT16: the numbers alternate between 0 and 1.875.

    It reads results back as floats too, each from a pair of FLOAT16, from buffers of twice the tensors' size, whose
    second half keeps its 1.0; and for gradBias it reads gradInput's buffer.
    """
    ones = np.frombuffer(np.ones(98, np.float32).tobytes(), np.float16).astype(np.float64)
    tensor = ones.reshape(2, 2, 49)  # gradOutput and input alike; the kernel is 1 x 1
    weight = ones[:4].reshape(2, 2)
    grad_input = np.einsum("nop,oi->nip", tensor, weight)
    grad_weight = np.einsum("nop,nip->oi", tensor, tensor)
    assert (grad_input[:, 0] == 0).all()
    assert (grad_input[:, 1] == 3.515625).all()
    assert grad_weight.tolist() == [[168.75, 0], [0, 175.78125]]  # 175.75 in FLOAT16

    def floats(values: np.ndarray) -> list[float]:
        return np.frombuffer(values.astype(np.float16).tobytes(), np.float32).tolist() + [1.0] * (values.size // 2)

    found = floats(grad_input)
    return [
        *printed("gradInputResult", found),
        *printed("gradWeightResult", floats(grad_weight)),
        *printed("gradBiasResult", found[:2]),
    ]


def cross_entropy_loss_grad_prints() -> list[str]:
    """Both labels are 0; the mean of two rows of weight 1 gives each half of the loss's gradient, 0.1."""
    row = [0.05 * (math.exp(-0.2) - (c == 0)) for c in range(3)]
    assert [round(value, 5) for value in row] == [-0.00906, 0.04094, 0.04094]
    return printed("result", row * 2)


def rms_norm_grad_prints() -> list[str]:
    """dx, then dgamma, by the formula; all numbers are integers below 2**24, exact in any order of summation."""
    x = np.arange(1.0, 33).reshape(2, 16)
    gamma, rstd = np.arange(1.0, 17), np.array([[1.0], [2.0]])
    normalised = x * rstd
    dx = rstd * (x * gamma - normalised * (x * gamma * normalised).mean(1, keepdims=True))
    dgamma = (x * normalised).sum(0)
    assert dx[0, 0] == -1155
    assert dx[1, 15] == -1617920
    assert dgamma.tolist()[::15] == [579, 2304]
    return printed("result", dx.ravel().tolist()) + printed("result", dgamma.tolist())


PRINTS = {
    "attention_block": lambda: ["42 calls in 3 blocks", "right by the reference in double"],
    "elu_backward": elu_backward_prints,
    "selu_backward": selu_backward_prints,
    "convolution_backward": convolution_backward_prints,
    "cross_entropy_loss_grad": cross_entropy_loss_grad_prints,
    "rms_norm_grad": rms_norm_grad_prints,
}


def test_every_program_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.cpp")} == set(PRINTS)
    assert elu_backward_prints() == OUTPUT.splitlines()


@pytest.mark.parametrize("program", PRINTS)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_example_runs_as_the_readme_says(compiler: str, program: str, tmp_path: Path) -> None:
    binary = tmp_path / program
    run([need(compiler), EXAMPLES / f"{program}.cpp", *shlex.split(config("--cflags", "--libs")), "-o", binary])
    assert run([binary]).splitlines() == PRINTS[program]()


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
    ("find", "programs"),
    [("-DAclnnTorch_DIR={cmakedir}", list(PRINTS)), ("-DCMAKE_PREFIX_PATH={prefix}", ["elu_backward"])],
    ids=["AclnnTorch_DIR", "CMAKE_PREFIX_PATH"],
)
def test_cmake_package(find: str, programs: list[str], prefix: Path, tmp_path: Path) -> None:
    define = find.format(cmakedir=config("--cmakedir"), prefix=prefix)
    run([need("cmake"), "-S", EXAMPLES, "-B", tmp_path, define])
    run([need("cmake"), "--build", tmp_path, "--target", *programs])
    for program in programs:
        assert run([tmp_path / program]).splitlines() == PRINTS[program]()


@pytest.mark.parametrize("version", ["0.2", "1.0", "0.1.99"])
def test_cmake_package_of_another_version_is_refused(version: str, tmp_path: Path) -> None:
    """Before 1.0 a minor version may change what there is."""
    project = "cmake_minimum_required(VERSION 3.13)\nproject(p CXX)\n"
    (tmp_path / "CMakeLists.txt").write_text(f"{project}find_package(AclnnTorch {version} CONFIG REQUIRED)\n")
    command = [need("cmake"), "-S", tmp_path, "-B", tmp_path / "build", f"-DAclnnTorch_DIR={config('--cmakedir')}"]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode != 0
    assert f"AclnnTorchConfig.cmake, version: {aclnn_torch.__version__}" in result.stderr


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


@pytest.mark.parametrize(
    ("variables", "product", "devices"),
    [({}, "910B2", 1), ({"ACLNN_TORCH_PRODUCT": "Ascend310P", "ACLNN_TORCH_DEVICES": "3"}, "310P3", 3)],
)
def test_npu_smi_tells_build_scripts_the_product(
    variables: dict[str, str], product: str, devices: int, prefix: Path
) -> None:
    """In the seventh line as the third word, where they read it; found on PATH after set_env.sh."""
    script = '. "$1/set_env.sh"; npu-smi info'
    table = run([need("bash"), "-c", script, "bash", prefix], env=ENVIRONMENT | variables).splitlines()
    assert [line.split()[:3] for line in table[6::3]] == [["|", str(device), product] for device in range(devices)]
    assert len({len(line) for line in table}) == 1


def test_npu_smi_explains_itself(prefix: Path) -> None:
    for arguments in ([], ["set", "-t"]):
        result = subprocess.run([prefix / "bin" / "npu-smi", *arguments], capture_output=True, text=True)
        assert result.returncode == 2
        assert result.stderr.startswith("usage: npu-smi info\n")


def test_set_env_refuses_a_shell_that_hides_its_place(tmp_path: Path, prefix: Path) -> None:
    command = [need("dash"), "-c", f". '{prefix}/set_env.sh'"]
    result = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 1
    assert "change to its directory first" in result.stderr
    assert run([*command, "-c"], cwd=prefix) == ""


# Those of aclnn/opdev are classes of C++, and are compiled as that alone.
STANDARDS = [
    (str(path.relative_to(HEADERS)), standard)
    for path in sorted(HEADERS.rglob("*.h"))
    for standard in ("c99", "c11", "c++11", "c++20")
    if path.parent.name != "opdev" or standard.startswith("c++")
]


@pytest.mark.parametrize(("header", "standard"), STANDARDS)
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
    run([*command, *shlex.split(config("--cflags", "--libs"))], input=C_PROGRAM)
    run([program])


SMALL_NUMBERS = """
#include <cstdio>
#include <vector>
#include "aclnn/opdev/float4_e2m1.h"
#include "aclnn/opdev/fp16_t.h"

int main() {
  for (float x : {0.25f, 0.26f, 0.75f, 2.5f, 3.5f, 5.0f, 100.0f, -1.25f, -0.0f}) {
    const op::Float4E2M1 number(x);
    std::printf("%d:%g ", number.value, static_cast<float>(number));
  }
  const std::vector<op::fp16_t> halves(2, 1.0);
  std::printf("%d %g %g", halves[1].val, static_cast<float>(op::fp16_t(0.1f)), halves[0] + 0.5f);
}
"""


def test_small_numbers_are_rounded(tmp_path: Path) -> None:
    program = tmp_path / "program"
    command = [need("g++"), "-std=c++17", "-Wall", "-Werror", "-x", "c++", "-", "-x", "none", "-o", program]
    run([*command, *shlex.split(config("--cflags", "--libs"))], input=SMALL_NUMBERS)
    four_bits = "0:0 1:0.5 2:1 4:2 6:4 6:4 7:6 10:-1 8:-0"
    assert run([program]) == f"{four_bits} 15360 0.0999756 1.5"


def test_config_prints_what_was_asked(prefix: Path) -> None:
    include, lib = prefix / "include", prefix / "lib64"
    assert config("--includedir") == str(include)
    assert config("--libdir") == str(lib)
    assert shlex.split(config("--cflags")) == [f"-I{include}"]
    libraries = ["-lascendcl", "-lnnopbase", "-lopapi"]
    flags = [f"-I{include}", f"-L{lib}", f"-Wl,-rpath,{lib}", *libraries]
    assert shlex.split(config("--libs", "--cflags")) == flags
    assert (Path(config("--cmakedir")) / "AclnnTorchConfig.cmake").is_file()
    everything = dict(line.split(": ", 1) for line in config().splitlines())
    assert everything["prefix"] == str(prefix)
    assert set(everything) == {"cflags", "libs", "prefix", "includedir", "libdir", "cmakedir", "pkgconfigdir"}


def test_pkg_config_describes_a_moved_prefix_too(prefix: Path, tmp_path: Path) -> None:
    for place in (prefix, tmp_path / "moved to a place"):
        if place != prefix:
            shutil.copytree(prefix, place, symlinks=True)
        environment = ENVIRONMENT | {"PKG_CONFIG_PATH": str(place / "lib64" / "pkgconfig")}
        flags = shlex.split(run([need("pkg-config"), "--cflags", "--libs", "aclnn_torch"], env=environment))
        run(["g++", EXAMPLE, *flags, f"-Wl,-rpath-link,{TORCH_LIB}", "-o", tmp_path / "program"])
        environment = ENVIRONMENT | {"LD_LIBRARY_PATH": str(TORCH_LIB)}  # found beside the package, which did not move
        assert run([tmp_path / "program"], env=environment) == OUTPUT


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
package.problem, package.__version__ = None, ""
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
