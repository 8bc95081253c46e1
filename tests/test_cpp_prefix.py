"""The interface for C++ users: the prefix, laid out as an installed CANN, and the command that describes it."""

from __future__ import annotations

import functools
import math
import os
import platform
import re
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
from aclnn_torch import cli

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "cpp"
EXAMPLE = EXAMPLES / "elu_backward.cpp"
PROGRAMS_OF_USERS = ROOT / "tests" / "programs"
HEADERS = ROOT / "csrc" / "host_cann" / "include"
TORCH_LIB = Path(torch.__file__).parent / "lib"

# The program must find its libraries by itself, without the tests' environment.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD", "AclnnTorch_DIR")}


def run(command: Sequence[str | Path], **options: object) -> str:
    """Run a command that must succeed and return its output."""
    options = {"env": ENVIRONMENT, "capture_output": True, "text": True} | options
    result = subprocess.run(command, **options)  # type: ignore[call-overload]
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


@functools.cache
def config(*switches: str) -> str:
    """Return the command's output for these switches."""
    return run([sys.executable, "-m", "aclnn_torch", "config", *switches], cwd=ROOT).rstrip("\n")


@pytest.fixture(scope="module")
def prefix() -> Path:
    return Path(config("--prefix"))


def need(program: str) -> str:
    """The program's path: installed with the test requirements, or the system's."""
    path = shutil.which(program, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


# The results of a program, by the names in its output.
Results = dict[str, list[float]]


def printed(output: str) -> Results:
    """The results printed by a program in examples/cpp; its last line states that they are right."""
    *lines, verdict = output.splitlines()
    assert verdict == "right", output
    results: Results = {}
    for line in lines:
        found = re.fullmatch(r"(\w+)\[(\d+)\] = (\S+), formula \S+", line)
        assert found is not None, line
        results.setdefault(found[1], []).append(float(found[3]))
        assert int(found[2]) == len(results[found[1]]) - 1
    return results


def elu_backward() -> Results:
    x, g = np.array([-3, -1, -0.25, 0, 0.5, 2]), np.array([1, 2, 4, 1, -1, 3])
    gradient = (g * np.where(x > 0, 1, 1.5 * np.exp(x))).tolist()
    return {"from_input": gradient, "from_output": gradient}


def selu_backward() -> Results:
    """At SELU's lower limit 0; at -1 and 0 the negative branch; just above 0 and at 3 the scale."""
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return {"grad_input": [0, scale * alpha - 1, scale * alpha, scale, 2 * scale]}


def convolution_backward() -> Results:
    """From torch's autograd in float64, on the same small integers."""
    shapes = {"input": (1, 2, 3, 3), "weight": (2, 2, 2, 2), "grad": (1, 2, 2, 2)}
    numbers = {}
    for start, (name, shape) in enumerate(shapes.items(), 1):
        places = torch.arange(start, start + math.prod(shape), dtype=torch.float64)
        numbers[name] = ((places**2 + 3 * places) % 7 - 3).reshape(shape)
    bias = torch.zeros(2, dtype=torch.float64)
    wanted = [tensor.requires_grad_() for tensor in (numbers["input"], numbers["weight"], bias)]
    out = torch.nn.functional.conv2d(*wanted, stride=2, padding=1)
    gradients = torch.autograd.grad(out, wanted, numbers["grad"])
    names = ("grad_input", "grad_weight", "grad_bias")
    return {name: gradient.flatten().tolist() for name, gradient in zip(names, gradients, strict=True)}


def cross_entropy_loss_grad() -> Results:
    """From torch's autograd in float64."""
    logits = torch.tensor([[2, 0, -1, 1], [0, 0, 0, 0], [1, 3, 0.5, -2]], dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([1, 0.5, 2, 1], dtype=torch.float64)
    (0.5 * torch.nn.functional.cross_entropy(logits, torch.tensor([0, -100, 2]), weight)).backward()
    assert logits.grad is not None
    return {"grad_logits": logits.grad.flatten().tolist()}


def rms_norm_grad() -> Results:
    """From torch's autograd in float64."""
    x = torch.tensor([[1, -2, 3, 0.5], [-1, 4, 0.25, 2]], dtype=torch.float64, requires_grad=True)
    gamma = torch.tensor([1, 2, 0.5, -1], dtype=torch.float64, requires_grad=True)
    dy = torch.tensor([[1, 0.5, -1, 2], [3, -0.5, 1, 1]], dtype=torch.float64)
    gradients = torch.autograd.grad(torch.nn.functional.rms_norm(x, (4,), gamma, 1e-6), (x, gamma), dy)
    return {name: gradient.flatten().tolist() for name, gradient in zip(("dx", "dgamma"), gradients, strict=True)}


FORMULAS = {
    "elu_backward": elu_backward,
    "selu_backward": selu_backward,
    "convolution_backward": convolution_backward,
    "cross_entropy_loss_grad": cross_entropy_loss_grad,
    "rms_norm_grad": rms_norm_grad,
}
# The texts of programs that end with a refusal, according to the README.
REFUSED = {
    "cross_entropy_loss_grad": (("Ascend910", "Ascend310P"), "561003, aclnnCrossEntropyLossGrad: product "),
    "rms_norm_grad": (("Ascend910",), "561002, aclnnRmsNormGrad: gamma has shape [4], expected a multiple of 64 "),
    "attention_block": (("Ascend910", "Ascend310P"), "161002, aclnnMatmul: cubeMathType is 0 with FLOAT matrices"),
}
PROGRAMS = [*FORMULAS, "attention_block"]


def verify(program: str, output: str) -> None:
    """A program of examples/cpp found its result right, and printed the expected results."""
    if program == "attention_block":
        assert output == "42 calls in 3 blocks\nright\n"
        return
    found, expected = printed(output), FORMULAS[program]()
    assert list(found) == list(expected)
    for name, values in expected.items():
        # Six digits are printed. If ELU's gradient starts from the output, the output's rounding counts, too.
        assert found[name] == pytest.approx(values, rel=8e-6, abs=0), name


def test_every_program_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.cpp")} == set(PROGRAMS)


def build(source: Path, binary: Path, compiler: str = "g++", *flags: str) -> None:
    """As in the README: a compiler, the source and the command's output."""
    run([need(compiler), source, *flags, *shlex.split(config("--cflags", "--libs")), "-o", binary])


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(name, marks=() if name in ("elu_backward", "convolution_backward") else pytest.mark.test_all)
        for name in PROGRAMS
    ],
)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_example_runs_as_the_readme_says(compiler: str, program: str, tmp_path: Path) -> None:
    build(EXAMPLES / f"{program}.cpp", tmp_path / program, compiler, "-Wall", "-Wextra", "-Werror")
    verify(program, run([tmp_path / program]))
    for product in ("Ascend910", "Ascend310P", "Ascend910B", "Ascend950"):
        environment = ENVIRONMENT | {"ACLNN_TORCH_PRODUCT": product}
        result = subprocess.run([tmp_path / program], env=environment, capture_output=True, text=True)
        products, text = REFUSED.get(program, ((), ""))
        if product in products:
            assert (result.returncode, result.stdout) == (1, "")
            assert text in result.stderr
        else:
            assert result.returncode == 0, result.stderr
            verify(program, result.stdout)


# Uses the examples' shared header, and prints the errors on stderr.
MISTAKEN = """
#include <cstring>
#include "aclnn_raii.h"
#include "aclnnop/aclnn_selu_backward.h"

static bool mismatched(Stream& stream) {
  const Tensor grad({2}, std::vector<float>{1, 2}), result({3}, std::vector<float>{1, 2, 3}), out({2});
  stream.call(ACLNN(aclnnSeluBackward), grad, result, out);
  return true;
}
static bool short_of_values(Stream&) { return Tensor({3}, std::vector<float>{1, 2}) != nullptr; }
static bool far(Stream&) { return agree("far", {1, 2.5f}, {1, 2}, 0.2); }
static bool near(Stream&) { return agree("near", {1, 2.5f}, {1, 2}, 0.25); }
static bool shorter(Stream&) { return agree("shorter", {1}, {1, 2}, 0); }
static bool unwritten(Stream&) { return agree("unwritten", Tensor({1}).read(), {1}, 9); }

int main(int, char** arguments) {
  const struct { const char* name; bool (*program)(Stream&); } programs[] = {
      {"mismatched", mismatched}, {"short_of_values", short_of_values}, {"far", far}, {"near", near},
      {"shorter", shorter}, {"unwritten", unwritten}};
  for (const auto& each : programs) {
    if (std::strcmp(each.name, arguments[1]) == 0) return run(each.program);
  }
  return 9;
}
"""
MISTAKES = {
    "mismatched": (
        1,
        "",
        "aclnnSeluBackward: status 161002, aclnnSeluBackward: result has shape [3], expected [2] as gradOutput has; "
        "shapes are not broadcast, expand first (product Ascend910B)\n",
    ),
    "short_of_values": (1, "", "a tensor needs a value for each element\n"),
    "far": (1, "far[0] = 1, formula 1\nfar[1] = 2.5, formula 2: wrong\nwrong\n", ""),
    "near": (0, "near[0] = 1, formula 1\nnear[1] = 2.5, formula 2\nright\n", ""),
    "shorter": (1, "shorter[0] = 1, formula 1\nwrong\n", ""),
    "unwritten": (1, "unwritten[0] = nan, formula 1: wrong\nwrong\n", ""),
}


def test_examples_notice_what_is_wrong(tmp_path: Path) -> None:
    source, program = tmp_path / "mistaken.cpp", tmp_path / "mistaken"
    source.write_text(MISTAKEN)
    build(source, program, "g++", f"-I{EXAMPLES}")
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "ACLNN_TORCH_PRODUCT"}
    for mistake, expected in MISTAKES.items():
        result = subprocess.run([program, mistake], env=environment, capture_output=True, text=True)
        assert (result.returncode, result.stdout, result.stderr) == expected


# Chinese, the language of CANN's documents, and the helpers of their examples.
OF_THE_DOCUMENTS = re.compile(r"[\u4e00-\u9fff]|\b(?:CHECK_RET|LOG_PRINT|GetShapeSize|CreateAclTensor)\b")


def test_no_text_is_from_the_documents() -> None:
    folders = ("aclnn_torch", "benchmarks", "csrc", "docs", "examples", "tests", "tools")
    suffixes = {".cpp", ".h", ".md", ".py", ".sh", ".txt"}
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    assert EXAMPLE in paths
    copied = [path for path in paths if path != Path(__file__) and OF_THE_DOCUMENTS.search(path.read_text("utf-8"))]
    assert copied == []


def plain_style_prints() -> list[str]:
    """ELU from its output y: 1 above 0, else inputScale * (y + alpha * scale). All but SELU and exp are exact."""
    scale, alpha = np.float32(1.0507009873554805), 1.0507009873554805 * 1.6732632423543772
    halves = np.array([[2, 4, 2, 2], [2 + 2 + 1 + 2, 5, 0, 0]], np.float16).view(np.uint16)  # g * w; g * x, sum of g
    of_x = []
    for dy, x, rstd in (((1, 2), (3, 4), 0.25), ((0, 1), (1, 2), 0.5)):
        scaled = [dy[0] * 2, dy[1] * 4]  # gamma
        mean = sum(s * a * rstd for s, a in zip(scaled, x, strict=True)) / 2
        of_x += [rstd * (s - a * rstd * mean) for s, a in zip(scaled, x, strict=True)]
    of_gamma = [1 * 3 * 0.25 + 0 * 1 * 0.5, 2 * 4 * 0.25 + 1 * 2 * 0.5]
    results = {
        "elu": [5 * 0.5 * (-0.5 + 2), 4, 3 * 0.5 * (-0.25 + 2), 2, 1 * 0.5 * (0 + 2), 6 * 0.5 * (-1 + 2)],
        "selu": [alpha - 1, 2 * alpha, 3 * scale],
        "convolution, input": halves[0],
        "convolution, weight": halves[1, :1],
        "convolution, bias": halves[1, 1:2],
        "cross entropy": [3 * math.exp(-1), 3 * math.exp(-2) - 3, 3 * math.exp(-0.5) - 3, 3 * math.exp(-3)],
        "rms norm, x": of_x,
        "rms norm, gamma": of_gamma,
    }
    return [f"{name}: {' '.join(f'{value:g}' for value in values)}" for name, values in results.items()]


@pytest.mark.parametrize("arguments", [[], ["keep"]], ids=["releases", "keeps"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_programs_in_plain_style_compile_unchanged(compiler: str, arguments: list[str], tmp_path: Path) -> None:
    """Only the flags that the command prints; objects that are not released at the end are harmless."""
    build(PROGRAMS_OF_USERS / "plain_style.cpp", tmp_path / "program", compiler)
    assert run([tmp_path / "program", *arguments]).splitlines() == plain_style_prints()


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
    verify("elu_backward", run([program]))


@pytest.mark.test_all
@pytest.mark.parametrize(
    ("find", "programs"),
    [("-DAclnnTorch_DIR={cmakedir}", PROGRAMS), ("-DCMAKE_PREFIX_PATH={prefix}", ["elu_backward"])],
    ids=["AclnnTorch_DIR", "CMAKE_PREFIX_PATH"],
)
def test_cmake_package(find: str, programs: list[str], prefix: Path, tmp_path: Path) -> None:
    define = find.format(cmakedir=config("--cmakedir"), prefix=prefix)
    run([need("cmake"), "-S", EXAMPLES, "-B", tmp_path, define])
    run([need("cmake"), "--build", tmp_path, "--target", *programs])
    for program in programs:
        verify(program, run([tmp_path / program]))


@pytest.mark.parametrize("version", ["0.2", "1.0", "0.1.99"])
def test_cmake_package_of_another_version_is_refused(version: str, tmp_path: Path) -> None:
    """Before 1.0, a minor version may change the interface."""
    project = "cmake_minimum_required(VERSION 3.13)\nproject(p CXX)\n"
    (tmp_path / "CMakeLists.txt").write_text(f"{project}find_package(AclnnTorch {version} CONFIG REQUIRED)\n")
    command = [need("cmake"), "-S", tmp_path, "-B", tmp_path / "build", f"-DAclnnTorch_DIR={config('--cmakedir')}"]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode != 0
    assert f"AclnnTorchConfig.cmake, version: {aclnn_torch.__version__}" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_set_env_serves_a_cann_build_script(shell: str, prefix: Path, tmp_path: Path) -> None:
    """As on an Ascend machine: no rpath, all paths from the environment. From a path with a space."""
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
    results, _, path = output.rstrip("\n").rpartition("\n")
    verify("elu_backward", results)
    assert path == f"{installed}/lib64:/somewhere/else"


# A sum by ATB, NNAL's library of operations.
ATB_PROGRAM = """
#include <cstdio>
#include "acl/acl.h"
#include "atb/atb_infer.h"

int main() {
  aclInit(nullptr);
  aclrtSetDevice(0);
  atb::infer::ElewiseParam param;
  param.elewiseType = atb::infer::ElewiseParam::ELEWISE_ADD;
  atb::Operation* operation = nullptr;
  atb::Context* context = nullptr;
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  int status = atb::CreateOperation(param, &operation) + atb::CreateContext(&context);
  status += context->SetExecuteStream(stream);
  const float values[] = {1, 2, 3};
  atb::Tensor x;
  x.desc.dtype = ACL_FLOAT;
  x.desc.format = ACL_FORMAT_ND;
  x.desc.shape.dimNum = 1;
  x.desc.shape.dims[0] = 3;
  x.dataSize = atb::Utils::GetTensorSize(x);
  aclrtMalloc(&x.deviceData, x.dataSize, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(x.deviceData, x.dataSize, values, sizeof values, ACL_MEMCPY_HOST_TO_DEVICE);
  atb::VariantPack pack;
  pack.inTensors = {x, x};
  pack.outTensors = {x};
  uint64_t size = 0;
  status += operation->Setup(pack, size, context) + operation->Execute(pack, nullptr, size, context);
  aclrtSynchronizeStream(stream);
  float sums[3];
  aclrtMemcpy(sums, sizeof sums, x.deviceData, x.dataSize, ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("%d %g %g %g\\n", status, sums[0], sums[1], sums[2]);
  atb::DestroyOperation(operation);
  atb::DestroyContext(context);
  aclrtDestroyStream(stream);
  aclrtFree(x.deviceData);
  aclFinalize();
}
"""


@pytest.mark.parametrize("standard", ["c++14", "c++20"])
def test_set_env_serves_a_program_for_atb(standard: str, prefix: Path, tmp_path: Path) -> None:
    """As the scripts of ATB's samples build them, with NNAL's variable."""
    (tmp_path / "sum.cpp").write_text(ATB_PROGRAM)
    script = """
        set -eu
        . "$1/set_env.sh"; cd "$2"
        g++ -std=$3 -Wall -Werror -I "$ATB_HOME_PATH/include" -I "$ASCEND_HOME_PATH/include" \\
            -L "$ATB_HOME_PATH/lib" -L "$ASCEND_HOME_PATH/lib64" sum.cpp -l atb -l ascendcl -o sum
        ./sum
    """
    assert run([need("bash"), "-c", script, "bash", prefix, tmp_path, standard]) == "0 2 4 6\n"


@pytest.mark.parametrize(
    ("variables", "product", "devices"),
    [
        ({}, "910B2", 1),
        ({"ACLNN_TORCH_PRODUCT": "Ascend310P", "ACLNN_TORCH_DEVICES": "3"}, "310P3", 3),
        ({"ACLNN_TORCH_DEVICES": "2", "ASCEND_RT_VISIBLE_DEVICES": "1"}, "910B2", 2),
    ],
)
def test_npu_smi_tells_build_scripts_the_product(
    variables: dict[str, str], product: str, devices: int, prefix: Path
) -> None:
    """It is the third word of the seventh line, where scripts read it; found on PATH after set_env.sh."""
    script = '. "$1/set_env.sh"; npu-smi info'
    table = run([need("bash"), "-c", script, "bash", prefix], env=ENVIRONMENT | variables).splitlines()
    assert [line.split()[:3] for line in table[6::3]] == [["|", str(device), product] for device in range(devices)]
    assert len({len(line) for line in table}) == 1


def test_npu_smi_tells_programs_about_a_device(prefix: Path) -> None:
    """As verl and vllm-ascend ask, in processes that see one device of two.

    A driver of 25.3.RC1 or later would share device memory between processes.
    """
    variables = ENVIRONMENT | {"ACLNN_TORCH_DEVICES": "2", "ASCEND_RT_VISIBLE_DEVICES": "0"}
    command = [prefix / "bin" / "npu-smi", "info"]
    board = run([*command, "-t", "board", "-i", "1"], env=variables)
    assert [[part.strip() for part in line.split(":")] for line in board.splitlines()] == [
        ["NPU ID", "1"],
        ["Software Version", "25.2.0"],
        ["Chip Count", "1"],
    ]
    health = run([*command, "-i", "0", "-t", "health"], env=variables)
    assert [line.split(":")[-1].strip() for line in health.splitlines() if "Health" in line] == ["OK"]
    for device in ("2", "-1", "1x", "", "4294967296"):
        result = subprocess.run([*command, "-t", "board", "-i", device], env=variables, capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == f"npu-smi: there is no device {device}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["set", "-t"],
        ["info", "-t"],
        ["info", "-t", "board"],
        ["info", "-t", "topo", "-i", "0"],
        ["info", "-t", "board", "-t", "board"],
        ["set", "-t", "board", "-i", "0"],
    ],
)
def test_npu_smi_explains_itself(arguments: list[str], prefix: Path) -> None:
    result = subprocess.run([prefix / "bin" / "npu-smi", *arguments], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("usage: npu-smi info [-t board|health -i DEVICE]\n")


def test_the_prefix_has_its_release_in_a_file(prefix: Path) -> None:
    """Where verl reads it, in the folder of the machine; the same as pyACL gives."""
    file = prefix / f"{platform.machine()}-linux" / "ascend_toolkit_install.info"
    versions = [line.removeprefix("version=") for line in file.read_text().splitlines() if line.startswith("version=")]
    script = "import acl; print(acl.get_cann_version(0)[0]['version'])"
    variables = ENVIRONMENT | {"PYTHONPATH": str(prefix / "python" / "site-packages")}
    variables |= {"LD_LIBRARY_PATH": str(prefix / "lib64"), "ASCEND_HOME_PATH": str(prefix)}
    assert versions == [run([sys.executable, "-c", script], env=variables).strip()]


def test_set_env_refuses_a_shell_that_hides_its_place(tmp_path: Path, prefix: Path) -> None:
    command = [need("dash"), "-c", f". '{prefix}/set_env.sh'"]
    result = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 1
    assert "change to its directory first" in result.stderr
    assert run([*command, "-c"], cwd=prefix) == ""


# The headers of aclnn/opdev define C++ classes, and are only compiled as C++.
STANDARDS = [
    (str(path.relative_to(HEADERS)), standard)
    for path in sorted(HEADERS.rglob("*.h"))
    for standard in ("c99", "c11", "c++11", "c++20")
    if path.parent.name != "opdev" or standard.startswith("c++")
]


@pytest.mark.parametrize(("header", "standard"), STANDARDS)
def test_headers_stand_alone(header: str, standard: str) -> None:
    """Every header compiles alone, included twice, as plain C and as C++, without a warning."""
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


@pytest.mark.test_all
def test_config_prints_what_was_asked(prefix: Path) -> None:
    include, lib = prefix / "include", prefix / "lib64"
    assert config("--includedir") == str(include)
    libraries = ["-lascendcl", "-lnnopbase", "-lopapi"]
    flags = [f"-I{include}", f"-L{lib}", f"-Wl,-rpath,{lib}", *libraries]
    assert shlex.split(config("--libs", "--cflags")) == flags
    everything = dict(line.split(": ", 1) for line in config().splitlines())
    assert set(everything) == {"cflags", "libs", "prefix", "includedir", "libdir", "cmakedir", "pkgconfigdir"}
    assert everything["prefix"] == str(prefix)
    assert everything["libdir"] == str(lib)
    assert shlex.split(everything["cflags"]) == [f"-I{include}"]
    assert (Path(everything["cmakedir"]) / "AclnnTorchConfig.cmake").is_file()


def test_pkg_config_describes_a_moved_prefix_too(prefix: Path, tmp_path: Path) -> None:
    for place in (prefix, tmp_path / "moved to a place"):
        if place != prefix:
            shutil.copytree(prefix, place, symlinks=True)
        environment = ENVIRONMENT | {"PKG_CONFIG_PATH": str(place / "lib64" / "pkgconfig")}
        flags = shlex.split(run([need("pkg-config"), "--cflags", "--libs", "aclnn_torch"], env=environment))
        run(["g++", EXAMPLE, *flags, f"-Wl,-rpath-link,{TORCH_LIB}", "-o", tmp_path / "program"])
        environment = ENVIRONMENT | {"LD_LIBRARY_PATH": str(TORCH_LIB)}  # found next to the package, which did not move
        verify("elu_backward", run([tmp_path / "program"], env=environment))


def test_embedded_host_calls_only_itself() -> None:
    """In a process with a real CANN, none of its functions may be bound to the other's of the same name."""
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


@pytest.mark.parametrize("arguments", [["config", "--nonsense"], ["nonsense"], []], ids=" ".join)
def test_command_line_refuses_what_it_does_not_know(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2
    assert "usage: aclnn-torch" in capsys.readouterr().err
