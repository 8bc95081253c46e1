"""Tests the package for aarch64 on another machine: ``make test-aarch64``.

Compiles by CMake's preset ``aarch64`` with Debian's cross compiler against torch's wheel for aarch64, and runs under
QEMU's user-mode emulation: the C++ tests, ``doctor``, and Python tests on CPU tensors. Everything needed is created in
build/aarch64-machine, and nothing is installed:

- ``root``: Python and its libraries, unpacked from the distribution's packages;
- ``packages``: torch and the tests' requirements, from pip;
- ``emulate PROGRAM``, ``python``: scripts that run a program, and that interpreter, on an emulated processor, which
  ACLNN_TEST_PROCESSOR names as QEMU does.

Needs the programs of PROGRAMS, the network once, and 6 GB: torch's wheel on PyPI is a CUDA build for aarch64, too.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests import builds

ROOT = builds.ROOT
MACHINE = ROOT / "build" / "aarch64-machine"
TORCH = importlib.metadata.version("torch").partition("+")[0]
PROGRAMS = {
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "qemu-aarch64-static": "qemu-user-static",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}
OF_THE_DISTRIBUTION = ("python3-dev", "libgomp1", "libstdc++6")
# pytest needs the last two for a Python older than 3.11; pip would check the version of the Python that runs it.
OF_PIP = ("numpy", "pytest", "pytest-xdist", "hypothesis", "expecttest", "cmake", "ninja", "exceptiongroup", "tomli")
WHEELS = (
    *(option for minor in range(28, 16, -1) for option in ("--platform", f"manylinux_2_{minor}_aarch64")),
    *("--platform", "manylinux2014_aarch64", "--implementation", "cp", "--only-binary=:all:"),
)
# Processors by QEMU's names: one of ARMv8.2, like Kunpeng 920, and one that also has FEAT_BF16.
PROCESSOR = "neoverse-n1"
WITH_BFLOAT16 = "max,sve=off"
# oneDNN and cpuinfo read the processor from files, and would find the real one.
MIDR = "0x00000000413fd0c1\n"
CPUINFO = """processor\t: {}
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

"""
# The kernel may be unable to run foreign executables, so scripts replace the programs. Child processes find the
# emulator in a variable.
EMULATE = """#!/bin/sh
# Runs a program for aarch64.
ACLNN_TEST_EMULATOR="$0" exec qemu-aarch64-static -cpu "${{ACLNN_TEST_PROCESSOR:-{processor}}}" -L "{root}" "$@"
"""
PYTHON = """#!/bin/sh
# An interpreter for aarch64.
ACLNN_TEST_EMULATOR="${{0%/*}}/emulate" exec qemu-aarch64-static -0 "$0" \\
  -cpu "${{ACLNN_TEST_PROCESSOR:-{processor}}}" -L "{root}" -E PYTHONHOME="{root}/usr" "{root}/usr/bin/{python}" "$@"
"""
# Values and derivatives of every operator, conformance tables, errors, and independence of the number of threads.
TESTS = (
    *(f"test_{path.stem}.py" for path in sorted((ROOT / "tests" / "operators").glob("[!_]*.py"))),
    *("conformance", "test_operators.py", "test_determinism.py", "test_functional.py", "test_nn.py"),
)


CONVOLUTIONS = "test_convolution.py"


def files(*names: str) -> list[Path]:
    """Test files."""
    return [ROOT / "tests" / name for name in names]


def run(*command: str | Path, **options: object) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, check=True, **options)


def make_root() -> None:
    """Unpacks the distribution's packages for aarch64, with apt's state in a separate folder."""
    books = MACHINE / "apt"
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (books / folder).mkdir(parents=True, exist_ok=True)
    (books / "status").touch()
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures::": "arm64",
        "APT::Install-Recommends": "0",
        "Dir::State": books / "state",
        "Dir::State::status": books / "status",
        "Dir::Cache": books / "cache",
        "Debug::NoLocking": "1",
    }
    apt = ["apt-get", "--quiet=2", *(f"--option={name}={value}" for name, value in options.items())]
    run(*apt, "update")
    run(*apt, "install", "--yes", "--download-only", *OF_THE_DISTRIBUTION, stdout=subprocess.DEVNULL)
    for package in sorted((books / "cache" / "archives").glob("*.deb")):
        run("dpkg-deb", "--extract", package, MACHINE / "root")
    if not (MACHINE / "root" / "lib").exists():  # programs request /lib/ld-linux-aarch64.so.1
        (MACHINE / "root" / "lib").symlink_to("usr/lib")


def make_processor() -> None:
    """The system files in which programs look up the processor."""
    count = os.cpu_count() or 1
    for i in range(count):
        folder = MACHINE / "root" / f"sys/devices/system/cpu/cpu{i}/regs/identification"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "midr_el1").write_text(MIDR)
    (MACHINE / "root" / "proc").mkdir(exist_ok=True)
    (MACHINE / "root" / "proc" / "cpuinfo").write_text("".join(map(CPUINFO.format, range(count))))


def make_packages(python: str) -> None:
    """The same version of torch as here, and the tests' requirements; torch's CPU build, if an index has it."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    target = ["--target", MACHINE / "packages", "--upgrade", "--python-version", python.removeprefix("python"), *WHEELS]
    index = ["--extra-index-url", os.environ["TORCH_INDEX"]] if os.environ.get("TORCH_INDEX") else []
    once = ["--retries", "0", "--timeout", "15", *index, f"torch=={TORCH}+cpu"]
    if subprocess.run([*pip, *target, *once], stderr=subprocess.DEVNULL).returncode != 0:
        print("no build of torch for CPUs in reach: pip's own is 5 GB", flush=True)
        run(*pip, *target, f"torch=={TORCH}")
    run(*pip, *target, *OF_PIP)


def made_for() -> str:
    """The machine's variable inputs: the tree's location and torch's version."""
    return f"{ROOT}, torch {TORCH}\n"


def is_made() -> bool:
    """True if build/aarch64-machine is complete."""
    made = MACHINE / "made"
    return made.exists() and made.read_text() == made_for()


def headers(python: str) -> str:
    """The folders of an interpreter's headers, for ACLNN_PYTHON_INCLUDE."""
    return f"{MACHINE / 'root/usr/include' / python};{MACHINE / 'include'}"


def make_machine() -> str:
    """Creates build/aarch64-machine unless it exists; returns the name of its interpreter."""
    if not is_made():
        shutil.rmtree(MACHINE, ignore_errors=True)
        MACHINE.mkdir(parents=True)
        make_root()
        make_processor()
        (interpreter,) = (MACHINE / "root/usr/bin").glob("python3.[0-9]*[0-9]")
        make_packages(interpreter.name)
        # Debian's Python.h includes a file by its architecture; nothing else next to it may be found.
        (MACHINE / "include").mkdir()
        (MACHINE / "include/aarch64-linux-gnu").symlink_to("../root/usr/include/aarch64-linux-gnu")
        (MACHINE / "made").write_text(made_for())
    (interpreter,) = (MACHINE / "root/usr/bin").glob("python3.[0-9]*[0-9]")
    for name, text in (("emulate", EMULATE), ("python", PYTHON)):
        script = MACHINE / name
        script.write_text(text.format(processor=PROCESSOR, root=MACHINE / "root", python=interpreter.name))
        script.chmod(0o755)
    return interpreter.name


def build(python: str) -> Path:
    """Compiles everything; returns the folder of the package."""
    options = (f"-DACLNN_PYTHON_INCLUDE={headers(python)}",)
    folder = builds.build("aarch64", "all", "cpp_tests", "install", options=options)
    builds.copy_sources(folder / "package")
    return folder / "package"


def run_tests(package: Path) -> bool:
    """True if all pass: in C++, products of BFLOAT16 by BFDOT, doctor, and in Python."""
    python = MACHINE / "python"
    # The soak would measure the emulator, which keeps memory for every thread that has ended.
    ctest = [builds.CMAKE.parent / "ctest", "--preset", "aarch64", "--parallel", "2", "--exclude-regex", "test_soak"]
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses=2", "--dist=worksteal"]
    # Outside the tree, whose own package would come first.
    pytest += ["-c", ROOT / "pyproject.toml", "-o", "pythonpath=", "--import-mode=append"]
    paths = os.pathsep.join(map(str, (package, MACHINE / "packages", ROOT)))
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}

    def passes(name: str, command: list[str | Path], folder: Path, **variables: str) -> bool:
        begin = time.monotonic()
        print(f"== {name}", flush=True)
        status = subprocess.run(command, cwd=folder, env=environment | variables).returncode
        print(f"== {name}: ended with {status}, {time.monotonic() - begin:.0f} s", flush=True)
        return status == 0

    products = [*ctest, "--no-tests=error", "--tests-regex", "kernels_(matmul|convolution)"]
    # Without FEAT_BF16 the tests of BFLOAT16 products would pass without testing anything.
    has_bfloat16 = "import ctypes; assert ctypes.CDLL(None).getauxval(26) & 1 << 14, 'no FEAT_BF16'"
    # test_compilers would compile for the wrong machine.
    outcomes = [
        passes("C++ tests", ctest, ROOT),
        passes("FEAT_BF16", [python, "-c", has_bfloat16], package, ACLNN_TEST_PROCESSOR=WITH_BFLOAT16),
        passes("products by BFDOT", products, ROOT, ACLNN_TEST_PROCESSOR=WITH_BFLOAT16),
        passes(
            "convolutions by BFDOT",
            [*pytest, "-k", "bfloat16 or BFLOAT16", *files(CONVOLUTIONS)],
            package,
            ACLNN_TEST_PROCESSOR=WITH_BFLOAT16,
        ),
        passes("doctor", [python, "-m", "aclnn_torch", "doctor"], package),
        passes("Python tests", [*pytest, "-k", "not test_compilers", *files(*TESTS)], package),
    ]
    return all(outcomes)


def main() -> int:
    """Creates, builds and tests; returns 1 if anything failed, 2 if a program is missing."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if missing:
        print(f"tests.aarch64 needs programs that are not here: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 2
    known = subprocess.run(["qemu-aarch64-static", "-cpu", "help"], capture_output=True, text=True).stdout.split()
    if PROCESSOR not in known:
        print(f"tests.aarch64 needs QEMU 7.1 or newer: this one does not know {PROCESSOR}", file=sys.stderr)
        return 2
    return 0 if run_tests(build(make_machine())) else 1


if __name__ == "__main__":
    sys.exit(main())
