"""The generated headers: every published function that exists has one, as published by CANN."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn_torch.host import PREFIX

from .cabi import exported_operators
from .published import c_type, functions, is_extension, refused_to_torch_npu, rows
from .test_cpp_prefix import HEADERS, ROOT, need
from .test_prototypes import UNPUBLISHED, as_passed

INCLUDE = PREFIX / "include"
LIBRARY = PREFIX / "lib64" / "libopapi.so"
PUBLISHED = exported_operators(LIBRARY) - UNPUBLISHED - set(refused_to_torch_npu())
PRESENT = sorted(name for name in PUBLISHED if not is_extension(name))
SECOND_STAGE = "void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream"


def declared(header: str) -> dict[str, str]:
    """The parameters of each function that a header declares, on one line."""
    text = re.sub(r"/\*.*?\*/", " ", (INCLUDE / "aclnnop" / header).read_text(), flags=re.DOTALL)
    found = re.findall(r"aclnnStatus\s+(acl\w+)\(([^)]*)\)\s*;", text)
    return {name: " ".join(parameters.split()) for name, parameters in found}


@pytest.mark.parametrize("name", PRESENT)
def test_functions_are_declared_where_cann_declares_them(name: str) -> None:
    published = functions()[name]
    found = declared(published.header)
    assert found[name].replace("const ", "") == SECOND_STAGE
    types = [as_passed(text.rpartition(" ")[0]) for text in found[f"{name}GetWorkspaceSize"].split(", ")]
    assert types == [*(as_passed(of) for of, _ in published.parameters), "uint64_t*", "aclOpExecutor**"]
    if name in rows(LIBRARY):  # the parameters that the library uses
        assert types[:-2] == [as_passed(c_type(kind)) for kind, _ in rows(LIBRARY)[name]]


def needs(header: Path) -> set[tuple[str, str]]:
    """The header's directives, with each type: they decide if it compiles alone."""
    text = header.read_text()
    directives = "\n".join(re.findall(r"^ *#.*", text, re.MULTILINE))
    if header.parent.name == "level2":
        return {(directives.replace(header.name, "itself"), "")}
    (guard,) = re.findall(r"#ifndef (\w+)\n#define \1\n", directives)
    types = {of.rpartition(" ")[0] for parameters in declared(header.name).values() for of in parameters.split(", ")}
    return {(directives.replace(guard, ""), of) for of in types}


@pytest.mark.parametrize("standard", ["c99", "c++11"])
def test_headers_compile_alone(standard: str) -> None:
    """Without a warning, under both paths; one of each set of equal headers."""
    by_hand = {path.name for path in (HEADERS / "aclnnop").glob("*.h")}
    headers = [path for path in sorted((INCLUDE / "aclnnop").rglob("*.h")) if path.name not in by_hand]
    assert len(headers) > 700
    covered: set[tuple[str, str]] = set()
    chosen = []
    for header in headers:
        if not needs(header) <= covered:
            covered |= needs(header)
            chosen.append(header)
    language = "c++" if "++" in standard else "c"
    command = [need("g++" if language == "c++" else "gcc"), f"-std={standard}", f"-I{INCLUDE}", "-fsyntax-only"]
    command += ["-pedantic", "-Wall", "-Wextra", "-Werror", "-x", language]
    result = subprocess.run([*command, *chosen], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("standard", ["c99", "c++11"])
def test_headers_compile_together(standard: str, tmp_path: Path) -> None:
    """In one program, with any other includes."""
    language = "c++" if "++" in standard else "c"
    program = tmp_path / "all.c"
    names = sorted(path.relative_to(INCLUDE) for path in (INCLUDE / "aclnnop").rglob("*.h"))
    program.write_text("".join(f'#include "{name}"\n' for name in names))
    command = [need("g++" if language == "c++" else "gcc"), f"-std={standard}", f"-I{INCLUDE}", "-fsyntax-only"]
    command += ["-pedantic", "-Wall", "-Wextra", "-Werror", "-x", language]
    result = subprocess.run([*command, program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


PROGRAM = """
#include <cstdio>
#include <vector>
#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/level2/aclnn_cumsum.h"

static aclTensor* make(void* memory) {
  const std::vector<int64_t> sizes{3}, strides{1};
  return aclCreateTensor(sizes.data(), 1, ACL_FLOAT, strides.data(), 0, ACL_FORMAT_ND, sizes.data(), 1, memory);
}

int main() {
  float x[] = {1, 2, 3}, y[] = {10, 20, 30}, alpha = 2;
  void* memory[3];
  aclrtStream stream;
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtCreateStream(&stream);
  for (void*& block : memory) aclrtMalloc(&block, sizeof(x), ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(memory[0], sizeof(x), x, sizeof(x), ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtMemcpy(memory[1], sizeof(y), y, sizeof(y), ACL_MEMCPY_HOST_TO_DEVICE);
  aclTensor *self = make(memory[0]), *other = make(memory[1]), *out = make(memory[2]);
  aclScalar* number = aclCreateScalar(&alpha, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  if (aclnnAddGetWorkspaceSize(self, other, number, out, &size, &executor) != 0 || size != 0) return 1;
  if (aclnnAdd(nullptr, size, executor, stream) != 0) return 2;
  if (aclnnCumsumGetWorkspaceSize(out, 0, ACL_FLOAT, self, &size, &executor) != 0 || size != 0) return 3;
  if (aclnnCumsum(nullptr, size, executor, stream) != 0) return 4;
  aclrtSynchronizeStream(stream);
  aclrtMemcpy(x, sizeof(x), memory[0], sizeof(x), ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("%g %g %g\\n", x[0], x[1], x[2]);
  for (aclTensor* tensor : {self, other, out}) aclDestroyTensor(tensor);
  aclDestroyScalar(number);
  for (void* block : memory) aclrtFree(block);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  aclFinalize();
}
"""


def test_a_program_calls_functions_that_aten_computes(tmp_path: Path) -> None:
    """self + 2 other is 21, 42, 63; its cumulative sum 21, 63, 126."""
    source = tmp_path / "program.cpp"
    source.write_text(PROGRAM)
    command = [sys.executable, "-m", "aclnn_torch", "check", source]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "21 63 126" in result.stdout
