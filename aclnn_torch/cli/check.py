"""``check``: tells if a C++ program written for CANN compiles, runs and releases its objects."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..host import PREFIX
from .command import Command, add_device_arguments, environment
from .config import compile_flags, link_flags

INCLUDE = PREFIX / "include"
# Linked into the program: reports the objects left at its end, after the program's own exit handlers.
REPORTER = """
#include <cstdio>
#include <cstdlib>
#include "acl/acl_host.h"
namespace {
void report() {
  const char* path = std::getenv("ACLNN_TORCH_CHECK_FILE");
  std::FILE* file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  const char* const kinds[] = {@KINDS@};
  for (const char* kind : kinds) {
    std::fprintf(file, "%s %lld\\n", kind, static_cast<long long>(aclHostLiveObjects(kind)));
  }
  std::fclose(file);
}
const int registered = std::atexit(report);
}
"""
# Kind of object -> function that releases it.
RELEASED_BY = {
    "tensor": "aclDestroyTensor",
    "scalar": "aclDestroyScalar",
    "array": "aclDestroyIntArray and its like",
    "list": "aclDestroyTensorList, aclDestroyScalarList",
    "executor": "the second stage, or aclDestroyAclOpExecutor if it is repeatable",
    "device_block": "aclrtFree",
    "host_block": "aclrtFreeHost",
    "stream": "aclrtDestroyStream",
    "event": "aclrtDestroyEvent",
    "context": "aclrtDestroyContext, or aclrtResetDevice for that of aclrtSetDevice",
    "description": "aclDestroyTensorDesc, aclDestroyDataBuffer, aclopDestroyAttr",
    "physical_memory": "aclrtFreePhysical",
}


def missing(sources: list[str]) -> dict[str, list[str]]:
    """A program's headers and functions of CANN that the host CANN does not have."""
    texts = [Path(source).read_text(errors="replace") for source in sources if Path(source).is_file()]
    program = re.sub(r"//[^\n]*|/\*.*?\*/", " ", "\n".join(texts), flags=re.DOTALL)
    known = {word for header in INCLUDE.rglob("*.h") for word in re.findall(r"\w+", header.read_text())}
    folders = "|".join(sorted(path.name for path in INCLUDE.iterdir()))
    included = re.findall(rf'^\s*#\s*include\s*[<"]((?:{folders})/[^>"]+)[>"]', program, re.MULTILINE)
    called = set(re.findall(r"\b((?:acl(?:nn|rt|mdl|op|prof)?|Hccl)[A-Z]\w*)\s*\(", program))
    its_own = set(re.findall(r"\b(\w+)\s*\([^;{}]*\)\s*{|#\s*define\s+(\w+)", program))
    defined = {name for names in its_own for name in names}
    functions = {name.removesuffix("GetWorkspaceSize") if name.startswith("aclnn") else name for name in called - known}
    return {
        "headers": sorted({header for header in included if not (INCLUDE / header).is_file()}),
        "functions": sorted(functions - defined),
    }


def check(
    sources: list[str], arguments: list[str], variables: dict[str, str], compiler: str, flags: list[str]
) -> dict[str, Any]:
    """Compile and run a program; its output goes to this process's output."""
    result: dict[str, Any] = {"files": sources, "compiled": False, "compiler_output": ""}
    with tempfile.TemporaryDirectory() as folder:
        program, reporter, left = (Path(folder) / name for name in ("program", "reporter.cpp", "left"))
        reporter.write_text(REPORTER.replace("@KINDS@", ", ".join(f'"{kind}"' for kind in RELEASED_BY)))
        command = [
            *shlex.split(compiler),
            "-std=c++17",
            "-g",
            *flags,
            str(reporter),
            *sources,
            *compile_flags(),
            *link_flags(),
        ]
        compiled = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
        result["compiler_output"] = compiled.stdout + compiled.stderr
        if compiled.returncode != 0:
            return result | {"missing": missing(sources)}
        result["compiled"] = True
        environment = os.environ | variables | {"ACLNN_TORCH_CHECK_FILE": str(left)}
        ran = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, errors="replace")
        result |= {"exit_status": ran.returncode, "stdout": ran.stdout, "stderr": ran.stderr, "left": None}
        if left.exists():
            counts = (line.split() for line in left.read_text().splitlines())
            result["left"] = {kind: int(count) for kind, count in counts if int(count) != 0}
    return result


def _describe(result: dict[str, Any]) -> list[str]:
    """The same as text."""
    if not result["compiled"]:
        absent = result["missing"]
        lines = [f"the host CANN has no {each}" for each in (*absent["headers"], *absent["functions"])]
        return ["does not compile", *lines]
    status = result["exit_status"]
    lines = [f"exit status {status}" if status >= 0 else f"ended by signal {-status}"]
    if result["left"] is None:
        lines.append("what it left behind is unknown: it did not end by itself")
    elif not result["left"]:
        lines.append("released everything")
    else:
        lines += [f"left {count} x {kind}: {RELEASED_BY[kind]}" for kind, count in result["left"].items()]
    return lines


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_device_arguments(parser)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"), help="default: $CXX, or g++")
    parser.add_argument("--flag", action="append", default=[], metavar="FLAG", help="one more flag for the compiler")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    parser.add_argument("files", nargs="+", metavar="FILE.cpp", help="the program's sources")
    parser.add_argument("--args", nargs=argparse.REMAINDER, default=[], metavar="...", help="the program's arguments")


def _run(arguments: argparse.Namespace) -> int:
    variables = environment(arguments)
    if variables is None:
        return 2
    try:
        result = check(arguments.files, arguments.args, variables, arguments.compiler, arguments.flag)
    except OSError as error:
        print(
            f"aclnn-torch: cannot start {error.filename}: {error.strerror}; --compiler names another", file=sys.stderr
        )
        return 2
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        sys.stderr.write(result["compiler_output"] + result.get("stderr", ""))
        sys.stdout.write(result.get("stdout", ""))
        for line in _describe(result):
            print(f"aclnn-torch: {line}")
    if not result["compiled"]:
        return 2
    return 0 if result["exit_status"] == 0 and result["left"] == {} else 1


COMMANDS = {
    "check": Command(
        "compile and run a C++ program written for CANN, and report what it did not release",
        _add_arguments,
        _run,
        "examples:\n  aclnn-torch check examples/cpp/elu_backward.cpp\n"
        "  aclnn-torch check --product Ascend950 --strict --flag=-O2 main.cpp operators.cpp --args 16 32\n\n"
        "exit status: 1 if the program fails or leaves objects behind, 2 if it cannot be compiled",
    )
}
