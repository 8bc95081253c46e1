"""Calls with wrong argument types must not compile; the corrected version of each must."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builds import CXX

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [*CXX, "-std=c++20", f"-I{ROOT / 'csrc' / 'host_cann' / 'include'}", f"-I{ROOT / 'csrc'}"]

HEADER = """
#include "client/call.h"
#include "aclnnop/aclnn_elu_backward.h"

// Parameter types that the ELU family does not have.
extern "C" aclnnStatus aclnnMixedGetWorkspaceSize(const aclTensor* x, int groups, int64_t index, float epsilon,
                                                  double p, char* reduction, uint64_t*, aclOpExecutor**);
extern "C" aclnnStatus aclnnMixed(void*, uint64_t, aclOpExecutor*, aclrtStream);

ACLNN_DECLARE(EluBackward);
ACLNN_DECLARE(Mixed);
using namespace aclnn;

void* allocate(uint64_t size);
"""

FUNCTION = """
void user%d(const Library& library, aclrtStream stream, const TensorHandle& x, TensorHandle& out,
            const ScalarHandle& scalar, const aclTensor* raw_input, const aclScalar* raw_scalar, char* reduction) {
  %s;
}
"""

ELU = "call<EluBackward>(library, allocate, stream, %s)"
MIXED = "call<Mixed>(library, allocate, stream, %s)"
TYPE = "must have exactly the type Expected of the aclnn header's parameter"
COUNT = "must have as many arguments as the aclnn header's prototype"


@dataclass
class Case:
    """A mistake, its correction, and the compiler's expected message."""

    name: str
    wrong: str
    right: str
    message: str
    types: str = ""  # position, given and expected type in the compiler's message


def elu(name: str, wrong: str, right: str, message: str = TYPE, types: str = "") -> Case:
    return Case(name, ELU % wrong, ELU % right, message, types)


def mixed(name: str, wrong: str, right: str, types: str) -> Case:
    return Case(name, MIXED % wrong, MIXED % right, TYPE, types)


GOOD_ELU = "x, scalar, scalar, scalar, true, x, out"
CASES = [
    elu("int for bool", "x, scalar, scalar, scalar, 1, x, out", GOOD_ELU, types="5; Given = int; Expected = bool"),
    elu(
        "tensor for scalar",
        "x, x, scalar, scalar, true, x, out",
        GOOD_ELU,
        types="2; Given = aclnn::Handle<aclTensor>; Expected = const aclScalar*",
    ),
    elu(
        "swapped arguments",
        "x, scalar, scalar, true, scalar, x, out",
        GOOD_ELU,
        types="4; Given = bool; Expected = const aclScalar*",
    ),
    elu(
        "number for scalar",
        "x, 1.0f, scalar, scalar, true, x, out",
        "x, make_scalar(library, 1.0f), scalar, scalar, true, x, out",
        types="2; Given = float; Expected = const aclScalar*",
    ),
    elu(
        "nullptr for an absent tensor",
        "x, scalar, scalar, scalar, true, nullptr, out",
        "x, scalar, scalar, scalar, true, TensorHandle(), out",
        types="6; Given = std::nullptr_t; Expected = const aclTensor*",
    ),
    elu(
        "read-only tensor for an output",
        "x, scalar, scalar, scalar, true, x, raw_input",
        "raw_input, raw_scalar, scalar, scalar, true, x, out.get()",
        types="7; Given = const aclTensor*; Expected = aclTensor*",
    ),
    elu("missing argument", "x, scalar, scalar, scalar, true, x", GOOD_ELU, COUNT),
    elu("extra argument", "x, scalar, scalar, scalar, true, x, out, nullptr", GOOD_ELU, COUNT),
    mixed(
        "int64_t for int",
        "x, int64_t{1}, int64_t{0}, 1e-5f, 0.5, reduction",
        "x, 1, int64_t{0}, 1e-5f, 0.5, reduction",
        "2; Given = long int; Expected = int",
    ),
    mixed(
        "int for int64_t",
        "x, 1, 0, 1e-5f, 0.5, reduction",
        "x, 1, int64_t{0}, 1e-5f, 0.5, reduction",
        "3; Given = int; Expected = long int",
    ),
    mixed(
        "double for float",
        "x, 1, int64_t{0}, 1e-5, 0.5, reduction",
        "x, 1, int64_t{0}, 1e-5f, 0.5, reduction",
        "4; Given = double; Expected = float",
    ),
    mixed(
        "float for double",
        "x, 1, int64_t{0}, 1e-5f, 0.5f, reduction",
        "x, 1, int64_t{0}, 1e-5f, 0.5, reduction",
        "5; Given = float; Expected = double",
    ),
    Case(
        "literal for char*",
        MIXED % 'x, 1, int64_t{0}, 1e-5f, 0.5, "mean"',
        'char mean[] = "mean"; ' + MIXED % "x, 1, int64_t{0}, 1e-5f, 0.5, mean",
        TYPE,
        "6; Given = const char*; Expected = char*",
    ),
    Case(
        "stage 1 alone",
        "prepare<EluBackward>(library, x, scalar, scalar, scalar, 0, x, out)",
        "prepare<EluBackward>(library, x, scalar, scalar, scalar, false, x, out).launch(nullptr, stream)",
        TYPE,
        "5; Given = int; Expected = bool",
    ),
    Case(
        "copied handle",
        "TensorHandle copy = x",
        "TensorHandle moved = std::move(out)",
        "deleted",
    ),
    Case(
        "handle of an executor",
        "Handle<aclOpExecutor> handle",
        "Handle<aclTensor> handle",
        "constraints not satisfied",
    ),
    Case(
        "scalar of a type no scalar has",
        "make_scalar(library, 1.0L)",
        "make_scalar(library, 1.0)",
        "constraints not satisfied",
    ),
    Case(
        "allocator that returns no pointer",
        "call<EluBackward>(library, [](uint64_t size) { return size; }, stream, " + GOOD_ELU + ")",
        ELU % GOOD_ELU,
        "WorkspaceAllocator",
    ),
]


Compile = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def compile_snippets(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compile functions with the given bodies. The header is compiled once, for speed."""
    if shutil.which(CXX[0]) is None:
        pytest.skip(f"{CXX[0]} is not installed")
    environment = {**os.environ, "LC_ALL": "C"}  # messages in plain English
    header = tmp_path_factory.mktemp("types") / "header.h"
    header.write_text(HEADER)
    subprocess.run([*COMMAND, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True, env=environment)

    def run(*snippets: str) -> subprocess.CompletedProcess[str]:
        program = "".join(FUNCTION % item for item in enumerate(snippets))
        command = [*COMMAND, "-fsyntax-only", "-include", header, "-x", "c++", "-"]
        return subprocess.run(command, input=program, capture_output=True, text=True, env=environment)

    return run


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_wrong_types_do_not_compile(case: Case, compile_snippets: Compile) -> None:
    wrong = compile_snippets(case.wrong)
    assert wrong.returncode != 0, f"compiles: {case.wrong}"
    assert case.message in wrong.stderr
    if "Free Software Foundation" in compiler_version():  # other compilers print types differently
        assert case.types in wrong.stderr


def test_corrected_twins_compile(compile_snippets: Compile) -> None:
    result = compile_snippets(*(case.right for case in CASES))
    assert result.returncode == 0, result.stderr


def compiler_version() -> str:
    return subprocess.run([*CXX, "--version"], capture_output=True, text=True).stdout


def test_every_status_code_of_the_headers_has_its_name() -> None:
    """The client names statuses by number, so its table must match the headers."""
    table = (ROOT / "csrc" / "client" / "error.h").read_text()
    named = {int(code): name for code, name in re.findall(r'\{(\d+), "(\w+)"\}', table)}
    include = ROOT / "csrc" / "host_cann" / "include"
    constants: dict[str, int] = {}
    for header in sorted(include.rglob("*.h")):
        text = header.read_text()
        constants |= {n: int(c) for n, c in re.findall(r"\b(ACL_ERROR_\w+) = (\d+);", text)}
        constants |= {n: int(c) for n, c in re.findall(r"#define (ACLNN_\w+) (\d+)\b", text)}
    del constants["ACL_ERROR_NONE"]  # success
    assert len(constants) > 60
    assert {name: code for code, name in named.items()} == constants
