"""How csrc/ becomes binaries: writes a ninja file and runs ninja.

Sources are found by globs, so that an operator costs no edit here. What stands directly in csrc/host_cann/kernels is
compiled once per CPU capability; the rest for the baseline of the architecture. csrc is the one root of includes; the
published headers have theirs, csrc/host_cann/include. The outputs:

    <package>/lib/libaclnn_host.so    the embedded host CANN, one file that exports the ABI only
    <package>/cann/                   the same objects as a prefix that looks like an installed CANN
    <package>/libaclnn_torch.so       the client and the PyTorch operators, which know nothing of Python
    <package>/_C.*.so                 the Python module above them
    <package>/lib/libaclnn_npu.so     what these need of torch_npu, where it is installed (or --torch-npu names it)
    <build>/tests/                    the C++ tests, and what other tests need (on request)
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import ninja
import pybind11

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # beside torch_npu, torch would want a CANN here

import torch
from ninja import ninja_syntax
from torch.utils import cpp_extension

CSRC = Path(__file__).resolve().parent
ROOT = CSRC.parent
HOST = CSRC / "host_cann"
TORCH_LIB = Path(torch.__file__).parent / "lib"

# Flags per capability, as PyTorch's own build has them; the first is the architecture's baseline.
CAPABILITIES = {
    "x86_64": {
        "DEFAULT": [],
        "AVX2": ["-mavx2", "-mfma", "-mf16c"],
        "AVX512": [
            *("-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mfma", "-mf16c"),
            # GCC 12 warns of its own intrinsics' undefined operands.
            *("-Wno-maybe-uninitialized", "-Wno-uninitialized"),
        ],
    },
    "aarch64": {"DEFAULT": []},
}

# Names under which newer CANN releases ship the same functions: libraries of names alone.
ALIASES = {"libacl_rt.so": "libascendcl.so", "libopapi_nn.so": "libopapi.so", "libopapi_math.so": "libopapi.so"}

# Libraries that torch_npu is linked against for functions that libascendcl.so has here, or that it
# looks up only when used (HCCL's communication).
EMPTY_LIBRARIES = ("libhccl.so", "libacl_op_compiler.so", "libge_runner.so", "libgraph.so", "libacl_tdt_channel.so")

# The torch_npu that csrc/torch_npu is written for; it and torch change together.
TORCH_NPU_VERSION = "2.13"

# Optimising what these instrument takes minutes, for one kernel.
ADDRESS = ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
COVERAGE = "sanitize-coverage=trace-pc,trace-cmp"
SANITIZERS = {
    None: [],
    "address": ADDRESS,
    "thread": ["-O1", "-fsanitize=thread"],
    "fuzz": [*ADDRESS, f"-f{COVERAGE}"],
}


def version() -> str:
    """The package's, from the one place where it stands."""
    text = (ROOT / "aclnn_torch" / "__init__.py").read_text()
    return re.search(r'^__version__ = "(.*)"$', text, re.MULTILINE)[1]


def installed_torch_npu() -> Path | None:
    """The folder of the torch_npu beside this torch, which is not imported for that: it would want a CANN."""
    spec = importlib.util.find_spec("torch_npu")
    return Path(spec.origin).parent if spec and spec.origin else None


def torch_npu_for(directory: Path, given: Path | None) -> Path | None:
    """The folder to build against: the one given, now or to the last build in this directory, or the installed one."""
    note = directory / "torch_npu.txt"
    if given:
        given = given.resolve()  # ninja runs in another directory
        directory.mkdir(parents=True, exist_ok=True)
        note.write_text(str(given))
    elif note.exists() and Path(note.read_text()).is_dir():
        given = Path(note.read_text())
    return given or installed_torch_npu()


def libfuzzer() -> Path:
    """LLVM's libFuzzer as a library, from the package atheris; ends the build with a word if it is not installed."""
    path = Path(sysconfig.get_path("platlib")) / "libclang_rt.fuzzer_no_main.a"
    if not path.exists():
        raise SystemExit(f"no libFuzzer: {path} comes with `pip install atheris`, which exists for x86-64")
    return path


def version_of_torch_npu(folder: Path) -> str:
    """Its version; ends the build with a word about one that it cannot use."""
    try:
        found = re.search(r"__version__ = '([^']*)'", (folder / "version.py").read_text())
    except OSError as error:
        raise SystemExit(f"--torch-npu wants the folder of the installed package: {error}") from None
    version = found[1] if found else "unknown"
    if not version.startswith(f"{TORCH_NPU_VERSION}."):
        raise SystemExit(f"torch_npu {version} in {folder}: expected {TORCH_NPU_VERSION}, which goes with torch here")
    return version


def words(flags: Iterable[str]) -> str:
    """Flags, a word each, as ninja's file has them: the command goes through a shell, and paths may have spaces."""
    return ninja_syntax.escape(shlex.join(flags))


def system_includes(*folders: str | Path) -> list[str]:
    """The flags for headers that are not ours."""
    return [word for folder in folders for word in ("-isystem", str(folder))]


@dataclass
class Build:
    """One build: where it goes and what it contains."""

    package: Path  # receives lib/, cann/ and _C
    directory: Path  # receives objects and tests
    sanitizer: str | None = None
    extension: bool = True  # build _C
    tests: bool = False  # build the C++ tests
    torch_npu: Path | None = None  # its folder; with it, what the operators need of it is built
    relocatable: bool = False  # find torch beside the package (a wheel) rather than where it is now
    out: ninja_syntax.Writer = field(init=False)

    def run(self, jobs: int = 2) -> None:
        """Writes build.ninja and builds what is out of date."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.torch_npu is None:  # one of an earlier build would not fit the rest
            (self.package / "lib" / "libaclnn_npu.so").unlink(missing_ok=True)
        path = self.directory / "build.ninja"
        with path.open("w") as file:
            self.out = ninja_syntax.Writer(file, width=1 << 20)  # a line that is folded loses one of two spaces
            self._write()
        command = [Path(ninja.BIN_DIR) / "ninja", "-C", self.directory, "--quiet"]
        subprocess.run([*command, f"-j{jobs}"], check=True)
        if self.sanitizer:  # of which every program is run
            subprocess.run([*command, "-t", "cleandead"], check=True, stdout=subprocess.DEVNULL)

    def _write(self) -> None:
        sanitize = SANITIZERS[self.sanitizer]
        compile_flags = [
            "-std=c++20 -O3 -g1 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -ffp-contract=off",
            "-Wall -Wextra -Wno-unused-parameter -Wno-psabi -fstack-protector-strong",
            *sanitize,
        ]
        if not sanitize:
            compile_flags.append("-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2")
        else:
            compile_flags.append("-Wno-return-type")  # of a switch over every value of an enumeration, unoptimised
        link_flags = ["-Wl,-z,relro,-z,now,-z,noexecstack,-z,defs", *sanitize]
        out = self.out
        out.variable("cxx", os.environ.get("CXX", "g++"))
        out.rule(
            "cxx",
            f"$cxx -MMD -MF $out.d {' '.join(compile_flags)} $flags -c $in -o $out",
            depfile="$out.d",
            deps="gcc",
            description="CXX $out",
        )
        if sanitize:  # the sanitizer's runtime is in the executable
            link_flags[0] = link_flags[0].replace(",-z,defs", "")
        out.rule("shared", f"$cxx -shared {' '.join(link_flags)} $in -o $out $flags", description="LINK $out")
        out.rule("program", f"$cxx {' '.join(link_flags)} $in -o $out $flags", description="LINK $out")
        # The functions' names alone: who links against them is bound, when it runs, to the library that has them.
        line = '".globl " $$3 "; .type " $$3 ",%function; " $$3 ":"'
        names = f"nm -D --defined-only $in | awk '$$3 !~ /^_Z/ {{ print {line} }}'"
        out.rule("names", f"({names}; echo .long 0) > $out", description="NAMES $out")
        out.rule("copy", "cp $in $out")
        out.rule("configure", f"sed s/@VERSION@/{version()}/ $in > $out")

        host = [f"-I{HOST / 'include'}", f"-I{CSRC}"]
        torch_flags = system_includes(*cpp_extension.include_paths())
        torch_flags += ["-fopenmp", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
        runtime = [self._object(source, host) for source in sorted((HOST / "runtime").glob("*.cpp"))]
        meta = [self._object(source, host) for source in sorted((HOST / "descriptors").glob("*.cpp"))]
        ops = [
            self._object(source, host + torch_flags)
            for folder in ("ops", "ops/convolution", "kernels/dispatch", "kernels/reference")
            for source in sorted((HOST / folder).glob("*.cpp"))
        ]
        for name, flags in CAPABILITIES[platform.machine()].items():
            defines = [f"-DCPU_CAPABILITY={name}", f"-DCPU_CAPABILITY_{name}"]
            ops += [
                self._object(source, host + torch_flags + flags + defines, suffix=name)
                for source in sorted((HOST / "kernels").glob("*.cpp"))
            ]

        # The operators that only torch_npu asks for, of which ATen does the work. Not fuzzed, tested on one thread.
        folder = [] if self.sanitizer in ("fuzz", "thread") else sorted((HOST / "aten_ops").glob("*.cpp"))
        less = ["-O1"] if self.sanitizer is None else []
        aten_ops = [self._object(source, [*host, *torch_flags, *less]) for source in folder]

        lib64 = self.package / "cann" / "lib64"
        torch_libs = [f"-L{TORCH_LIB}", "-ltorch_cpu", "-lc10", "-fopenmp"]
        prefix = [
            self._prefix_library("libascendcl.so", runtime, ["-pthread"]),
            self._prefix_library("libnnopbase.so", meta, ["-lascendcl"], [lib64 / "libascendcl.so"]),
            self._prefix_library(
                "libopapi.so",
                ops + aten_ops,
                ["-lnnopbase", "-lascendcl", *torch_libs, self._torch_rpath("../../../torch/lib")],
                [lib64 / "libascendcl.so", lib64 / "libnnopbase.so"],
            ),
        ]
        for name in EMPTY_LIBRARIES:
            # Functions asked for in this library are found in the one it depends on.
            self._prefix_library(name, [], ["-Wl,--no-as-needed", "-lascendcl"], [lib64 / "libascendcl.so"])
        for alias, target in ALIASES.items():
            # A file of its own, since wheels hold no links; a filter, so that the functions are nowhere twice.
            names = str(self.directory / "obj" / f"{alias}.s")
            out.build(names, "names", str(lib64 / target))
            self._prefix_library(alias, [names], [f"-Wl,--filter={target}"])
        for header in sorted((HOST / "include").rglob("*.h")):
            relative = header.relative_to(HOST / "include")
            out.build(str(self.package / "cann" / "include" / relative), "copy", str(header))
        for source in sorted((HOST / "prefix").rglob("*")):
            if source.is_file():
                out.build(str(self.package / "cann" / source.relative_to(HOST / "prefix")), "configure", str(source))
        self._library(
            self.package / "lib" / "libaclnn_host.so",
            runtime + meta + ops,
            "embedded.map",
            # Bound to itself: a real CANN in the process has the same names.
            ["-Wl,-soname,libaclnn_host.so,-Bsymbolic", *torch_libs, self._torch_rpath("../../torch/lib"), "-pthread"],
        )
        if self.extension:
            self._extension(host, torch_flags, torch_libs)
        if self.torch_npu:
            self._npu(self.package / "lib" / "libaclnn_npu.so", torch_flags, torch_libs, prefix)
            if self.tests:
                self._misordered_npu(torch_flags, torch_libs)
        if self.tests:
            self._fuzz(host, prefix)
        if self.tests and self.sanitizer != "fuzz":
            self._tests(host, prefix, ops, torch_flags, torch_libs)

    def _extension(self, host: list[str], torch_flags: list[str], torch_libs: list[str]) -> None:
        flags = [
            *host,
            *torch_flags,
            *system_includes(pybind11.get_include(), sysconfig.get_path("include")),
        ]
        sources = sorted((CSRC / "client").glob("*.cpp")) + sorted((CSRC / "torch_ops").glob("*.cpp"))
        # The module calls what these define.
        operators = ("call", "error", "memory_pool", "stage_span")
        exported = {CSRC / "client" / "library.cpp", *(CSRC / "torch_ops" / f"{name}.cpp" for name in operators)}
        objects = [
            self._object(source, [*flags, "-fvisibility=default"], suffix="exported")
            if source in exported
            else self._object(source, flags)
            for source in sources
        ]
        libs = [*torch_libs, "-ltorch", self._torch_rpath("../torch/lib"), "-ldl"]
        operators = self.package / "libaclnn_torch.so"
        variables = {"flags": words([f"-Wl,-soname,{operators.name},-Bsymbolic-functions", *libs])}
        self.out.build(str(operators), "shared", objects, variables=variables)
        module = self.package / ("_C" + sysconfig.get_config_var("EXT_SUFFIX"))
        # Python's own symbols come from the interpreter.
        libs = ["-ltorch_python", *libs, f"-L{self.package}", "-laclnn_torch", "-Wl,-rpath,$ORIGIN", "-Wl,-z,undefs"]
        objects = [self._object(source, flags) for source in sorted((CSRC / "python").glob("*.cpp"))]
        self.out.build(str(module), "shared", objects, [str(operators)], variables={"flags": words(libs)})

    def _npu(self, target: Path, torch_flags: list[str], torch_libs: list[str], prefix: list[Path]) -> None:
        """What the operators need of torch_npu. Its headers bring CANN's, which ours must not meet."""
        include = self.torch_npu / "include"
        flags = [
            f"-I{CSRC}",
            f'-DACLNN_TORCH_NPU_VERSION="{version_of_torch_npu(self.torch_npu)}"',
            *system_includes(include, include / "third_party" / "acl" / "inc"),
            *torch_flags,
            *system_includes(pybind11.get_include(), sysconfig.get_path("include")),
        ]
        objects = [self._object(source, flags) for source in sorted((CSRC / "torch_npu").glob("*.cpp"))]
        # No path to torch_npu: it is in the process already, or there are no NPU tensors. Its own libraries are CANN's.
        libs = [
            *("-Wl,-soname,libaclnn_npu.so", f"-L{self.torch_npu / 'lib'}", "-ltorch_npu"),
            *(f"-Wl,-rpath-link,{self.package / 'cann' / 'lib64'}", f"-Wl,-rpath-link,{TORCH_LIB}"),
            *(*torch_libs, self._torch_rpath("../../torch/lib"), "-Wl,-z,undefs"),
        ]
        self.out.build(str(target), "shared", objects, [str(path) for path in prefix], variables={"flags": words(libs)})

    def _misordered_npu(self, torch_flags: list[str], torch_libs: list[str]) -> None:
        """A wrong libaclnn_npu.so, for the test of the order."""
        source = ROOT / "tests" / "npu" / "misordered.cpp"
        target = self.directory / "tests" / "libaclnn_npu_misordered.so"
        flags = [*torch_libs, f"-Wl,-rpath,{TORCH_LIB}", "-ldl"]
        objects = [self._object(source, [f"-I{CSRC}", *torch_flags])]
        self.out.build(str(target), "shared", objects, variables={"flags": words(flags)})

    def _tests(
        self, host: list[str], prefix: list[Path], ops: list[str], torch_flags: list[str], torch_libs: list[str]
    ) -> None:
        flags = [*host, f"-I{ROOT / 'tests' / 'cpp'}"]
        client = [self._object(source, host) for source in sorted((CSRC / "client").glob("*.cpp"))]
        # What a test puts in the place of a function, libraries call too.
        libs = [*self._prefix_libs(), "-ldl", "-rdynamic"]
        # Kernels are internal to libopapi.so, so their tests link them anew.
        kernels = [path for path in ops if "/host_cann/kernels/" in path]
        own_torch_libs = [*torch_libs, f"-Wl,-rpath,{TORCH_LIB}"]
        for source in sorted((ROOT / "tests" / "cpp").glob("test_*.cpp")):
            of_kernels = source.stem.startswith("test_kernels")
            if self.sanitizer == "thread" and (of_kernels or source.stem == "test_aten_ops"):
                continue  # they start no thread of ours
            self.out.build(
                str(self.directory / "tests" / source.stem),
                "program",
                [self._object(source, flags), *client, *(kernels if of_kernels else [])],
                [str(path) for path in prefix],
                variables={"flags": words([*libs, *own_torch_libs] if of_kernels else libs)},
            )
        reliability = ROOT / "tests" / "reliability"
        faults = str(self.directory / "tests" / "libfaults.so")
        if not self.sanitizer:
            objects = [self._object(reliability / "libfaults.cpp", flags)]
            self.out.build(faults, "shared", objects, variables={"flags": words(["-ldl"])})
        for source in sorted(reliability.glob("test_*.cpp")):
            of_faults = source.stem == "test_faults"
            if of_faults and self.sanitizer:  # both would take the place of the allocator
                continue
            self.out.build(
                str(self.directory / "tests" / source.stem),
                "program",
                # Before the C library, whose functions it takes the place of.
                [self._object(source, flags), *client, *([faults] if of_faults else [])],
                [str(path) for path in prefix],
                variables={"flags": words(["-Wl,-rpath,$ORIGIN", *libs])},
            )

    def _fuzz(self, host: list[str], prefix: list[Path]) -> None:
        """The program that runs made-up calls: given ones, or in a variant of its own those of libFuzzer."""
        # What makes the calls up is not what is to be covered.
        flags = [*host, f"-I{ROOT / 'tests' / 'cpp'}", *([f"-fno-{COVERAGE}"] if self.sanitizer == "fuzz" else [])]
        folder = ROOT / "tests" / "cpp" / "fuzz"
        common = [self._object(folder / f"{name}.cpp", flags) for name in ("case", "functions", "run")]
        libs = self._prefix_libs()
        name = "replay"
        if self.sanitizer == "fuzz":
            name = "libfuzzer"
            # What GCC's instrumentation calls is defined anew; see libfuzzer.cpp.
            libs += [str(libfuzzer()), "-ldl", "-Wl,--allow-multiple-definition"]
        self.out.build(
            str(self.directory / "tests" / f"fuzz_{name}"),
            "program",
            [self._object(folder / f"{name}.cpp", flags), *common],
            [str(path) for path in prefix],
            variables={"flags": words(libs)},
        )

    def _torch_rpath(self, beside: str) -> str:
        return f"-Wl,-rpath,{f'$ORIGIN/{beside}' if self.relocatable else TORCH_LIB}"

    def _prefix_libs(self) -> list[str]:
        """What links a program of the build against the prefix."""
        lib64 = self.package / "cann" / "lib64"
        libs = ["-lopapi", "-lnnopbase", "-lascendcl"]
        return [f"-L{lib64}", *libs, f"-Wl,-rpath,{lib64}", f"-Wl,-rpath-link,{TORCH_LIB}", "-pthread"]

    def _object(self, source: Path, flags: list[str], suffix: str = "") -> str:
        relative = source.relative_to(ROOT).with_suffix(f".{suffix}.o" if suffix else ".o")
        target = self.directory / "obj" / relative
        if str(target) not in self._seen:
            self._seen.add(str(target))
            self.out.build(str(target), "cxx", str(source), variables={"flags": words(flags)})
        return str(target)

    def _prefix_library(self, name: str, objects: list[str], libs: list[str], needs: list[Path] | None = None) -> Path:
        lib64 = self.package / "cann" / "lib64"
        flags = [f"-Wl,-soname,{name}", f"-L{lib64}", "-Wl,-rpath,$ORIGIN", *libs]
        return self._library(lib64 / name, objects, "prefix.map", flags, needs)

    def _library(
        self, target: Path, objects: list[str], version_script: str, libs: list[str], needs: list[Path] | None = None
    ) -> Path:
        script = HOST / version_script
        # Never unloaded: it has threads, and state that lasts as long as the process.
        flags = [f"-Wl,--version-script={script}", "-Wl,-z,nodelete", *libs]
        implicit = [str(script), *(str(path) for path in needs or [])]
        self.out.build(str(target), "shared", objects, implicit, variables={"flags": words(flags)})
        return target

    def __post_init__(self) -> None:
        self._seen: set[str] = set()


def main() -> None:
    """Builds into the source tree, or a sanitizer's variant below build/."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--sanitizer", choices=[name for name in SANITIZERS if name])
    parser.add_argument("--tests", action="store_true", help="build the C++ tests too")
    parser.add_argument("--torch-npu", type=Path, metavar="DIR", help="the folder of an installed torch_npu 2.13")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.sanitizer:
        directory = ROOT / "build" / arguments.sanitizer
        package = directory / "package" / "aclnn_torch"
        build = Build(package, directory, arguments.sanitizer, extension=arguments.sanitizer == "address", tests=True)
    else:
        directory = ROOT / "build" / "release"
        torch_npu = torch_npu_for(directory, arguments.torch_npu)
        build = Build(ROOT / "aclnn_torch", directory, tests=arguments.tests, torch_npu=torch_npu)
    build.run(arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
