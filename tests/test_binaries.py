"""Properties of the built files: their exports, and how they are loaded."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import aclnn_torch
from aclnn_torch import host

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(aclnn_torch.__file__).parent
EMBEDDED = PACKAGE / "lib" / "libaclnn_host.so"
PREFIX = sorted((PACKAGE / "cann" / "lib64").glob("*.so"))
# Aliases: libraries without code that depend on the library with the code.
ALIASES = {
    "libacl_rt.so": "libascendcl.so",
    "libhcomm.so": "libhccl.so",
    "libopapi_nn.so": "libopapi.so",
    "libopapi_math.so": "libopapi.so",
}
HOST = [EMBEDDED, *PREFIX]
NPU = [path for path in [PACKAGE / "lib" / "libaclnn_npu.so"] if path.exists()]
OPERATORS = PACKAGE / "libaclnn_torch.so"
LIBRARIES = [*HOST, *PACKAGE.glob("_C.*.so"), OPERATORS, *NPU]
KERNELS = ROOT / "build" / "release" / "csrc" / "host_cann" / "kernels" / "CMakeFiles"

library = pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)


@functools.cache
def output_of(program: str, *arguments: str | Path) -> str:
    """The output of a program of the binutils, in English."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    command = [program, *arguments]
    return subprocess.run(command, env=os.environ | {"LC_ALL": "C"}, capture_output=True, text=True, check=True).stdout


def symbols(path: Path, *options: str) -> list[str]:
    """The symbols that a file exports, each as "T name"."""
    lines = output_of("nm", "--demangle", "--defined-only", "--extern-only", *options, path).splitlines()
    return [line.split(maxsplit=1)[1] for line in lines if line]


def dynamic(path: Path) -> str:
    return output_of("readelf", "--wide", "--dynamic", path)


def test_everything_is_here() -> None:
    names = {f"lib{name}.so" for name in (*host.LIBRARIES, "aclnn_triton")} | set(ALIASES) | {"vllm_ascend_C.so"}
    assert {path.name for path in PREFIX} == names
    assert not [path for path in PACKAGE.rglob("*") if path.is_symlink()]  # a wheel cannot contain links
    assert len(LIBRARIES) == len(PREFIX) + 3 + len(NPU)


@pytest.mark.parametrize("alias", ALIASES)
def test_a_library_under_another_name_is_the_same(alias: str) -> None:
    """Linking with the alias, or opening it, gives the other library's functions; they and their state exist once."""
    code = f"""
import ctypes
alias, target = (ctypes.CDLL({str(PACKAGE / "cann" / "lib64")!r} + "/" + name) for name in {[alias, ALIASES[alias]]!r})
names = {[symbol.split()[1] for symbol in symbols(PACKAGE / "cann" / "lib64" / alias, "--dynamic")]!r}
print(len(names), [n for n in names if len({{ctypes.cast(l[n], ctypes.c_void_p).value for l in (alias, target)}}) > 1])
"""
    functions = [
        symbol
        for symbol in symbols(PACKAGE / "cann" / "lib64" / ALIASES[alias], "--dynamic")
        if re.fullmatch(r"\w \w+", symbol)
    ]
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == f"{len(functions)} []\n", result.stderr
    assert len(functions) > 40


# Libraries of a machine with this torch and, if needed, torch_npu: the C library, the compiler's, torch's.
FOREIGN = {"c", "dl", "m", "stdc++", "gcc_s", "gomp", "c10", "torch", "torch_cpu", "torch_python", "torch_npu"}


@library
def test_nothing_else_is_needed(library: Path) -> None:
    """A wheel includes its own libraries and needs only the lowest versions of the others."""
    needed = set(re.findall(r"\(NEEDED\).*\[lib([^.]*)\.so", dynamic(library)))
    assert needed <= FOREIGN | set(host.LIBRARIES) | {"aclnn_torch"}


# Symbols that headers use if available: libstdc++'s, and glibc's own; the last three were not functions before.
CHOSEN_BY_HEADERS = {"__libc_single_threaded", "pthread_cond_clockwait", "stat", "fstat", "lstat"}


@functools.cache
def functions_of_glibc(path: Path, newer: bool) -> set[str]:
    """The glibc functions that a file defines or needs in versions up to 2.28, or newer; some exist in both."""
    versions = re.findall(r" (\w+)@+GLIBC_2\.(\d+)", output_of("nm", "--dynamic", "--with-symbol-versions", path))
    return {name for name, minor in versions if (int(minor) > 28) == newer}


@library
def test_functions_newer_than_glibc_2_28_are_not_called(library: Path) -> None:
    """.github/workflows/release.yml builds wheels with it, so that they run on every machine that torch's run on."""
    paths = [Path(path) for path in re.findall(r"lib[cm]\.so\.6 => (\S+)", output_of("ldd", EMBEDDED))]
    older = set().union(*(functions_of_glibc(path, newer=False) for path in paths))
    assert {"dlopen", "exp"} <= older
    assert functions_of_glibc(library, newer=True) - older - CHOSEN_BY_HEADERS == set()


@library
def test_other_libraries_are_searched_in_named_places_only(library: Path) -> None:
    """An empty entry would be the current directory of the process that loads the library."""
    paths = re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic(library))
    assert all(entry.startswith(("/", "$ORIGIN")) for path in paths for entry in path.split(":")), paths


def wide_kernels() -> list[Path]:
    return sorted(KERNELS.glob("kernels_AVX*.dir/*.o"))


@pytest.mark.skipif(not (KERNELS / "kernels_AVX2.dir" / "elu.cpp.o").exists(), reason="a machine without AVX2 kernels")
def test_there_are_wide_kernels() -> None:
    assert {path.parent.name for path in wide_kernels() if path.name == "elu.cpp.o"} == {
        "kernels_AVX2.dir",
        "kernels_AVX512.dir",
    }


@pytest.mark.parametrize("path", wide_kernels(), ids=lambda path: f"{path.parent.stem}/{path.name}")
def test_wide_kernels_share_nothing_but_their_entry(path: Path) -> None:
    """The linker keeps one copy of an inline function: a copy with wide instructions would crash on old CPUs."""
    operator = path.name.split(".")[0]
    (entry,) = symbols(path)
    assert re.match(rf"T .*\baclnn_host::{operator}_kernels<", entry), entry


def test_the_embedded_library_exports_the_abi_only() -> None:
    exported = symbols(EMBEDDED, "--dynamic")
    strange = [symbol for symbol in exported if not re.fullmatch(r"[TW] [aA]cl\w+", symbol)]
    assert strange == []
    assert {"T aclnnEluBackward", "T aclCreateTensor", "T aclrtMalloc"} <= set(exported)


def test_the_operators_for_programs_want_no_python() -> None:
    assert not [name for name in imported(OPERATORS) if name.startswith(("Py", "_Py"))]
    assert "libtorch_python" not in dynamic(OPERATORS)


@pytest.mark.parametrize("order", [("load", "import"), ("import", "load")], ids=" ".join)
def test_a_process_may_have_the_operators_twice(order: tuple[str, str]) -> None:
    """A program that links them, with an interpreter inside: they are registered once."""
    steps = {"load": f"torch.ops.load_library({str(OPERATORS)!r})", "import": "import aclnn_torch"}
    code = "; ".join(["import torch", *(steps[step] for step in order)])
    code += "; print(torch.ops.aclnn.elu(torch.zeros(2)).tolist())"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout == "[0.0, 0.0]\n", result.stderr


@library
def test_relocations_end_when_a_library_is_loaded(library: Path) -> None:
    """RELRO and BIND_NOW: relocation tables are read-only after loading."""
    assert "GNU_RELRO" in output_of("readelf", "--wide", "--program-headers", library)
    assert re.search(r"\(FLAGS_1\).*\bNOW\b|\(BIND_NOW\)", dynamic(library))


@library
def test_memory_is_never_writable_and_executable(library: Path) -> None:
    headers = output_of("readelf", "--wide", "--program-headers", library)
    flags = re.findall(r"^ +(LOAD|GNU_STACK)(?: +0x\w+){5} +([RWE ]+?) +0x", headers, re.MULTILINE)
    assert {kind for kind, _ in flags} == {"LOAD", "GNU_STACK"}
    assert not [flag for _, flag in flags if "W" in flag and "E" in flag]
    assert "TEXTREL" not in dynamic(library)


@pytest.mark.parametrize("library", HOST, ids=lambda path: path.name)
def test_the_host_cann_is_never_unloaded(library: Path) -> None:
    """Its streams' threads run its code, and its objects live as long as the process."""
    assert re.search(r"\(FLAGS_1\).*\bNODELETE\b", dynamic(library))


def imported(path: Path) -> set[str]:
    """The functions that a file imports."""
    lines = output_of("nm", "--dynamic", "--undefined-only", path).splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines}


def has_code(path: Path) -> bool:
    """False for the libraries that exist only for their names."""
    return path.name not in ALIASES and any(symbol.startswith("T ") for symbol in symbols(path, "--dynamic"))


@library
def test_a_stack_that_was_written_past_its_end_ends_the_process(library: Path) -> None:
    """-fstack-protector-strong. The refusals of these two libraries have no arrays to protect."""
    if library.name not in ("libatb.so", "libge_runner.so"):
        assert not has_code(library) or "__stack_chk_fail" in imported(library)


@pytest.mark.parametrize("name", ["libaclnn_host.so", "libascendcl.so", "libnnopbase.so", "libopapi.so"])
def test_copies_into_buffers_of_known_size_are_checked(name: str) -> None:
    """_FORTIFY_SOURCE: formatting uses the checked functions of the C library only."""
    calls = imported(next(path for path in LIBRARIES if path.name == name))
    checked = {call for call in calls if re.fullmatch(r"__\w+_chk", call)} - {"__stack_chk_fail"}
    assert checked or name == "libnnopbase.so", calls  # it formats nothing
    assert not calls & {"sprintf", "snprintf", "vsprintf", "vsnprintf", "strcpy", "strcat"}
