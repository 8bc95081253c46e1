"""The package on aarch64, from another machine: ``make test-aarch64``.

Compiles by CMake's preset ``aarch64`` with Debian's cross compiler against torch's wheel for aarch64, and runs under
QEMU's user-mode emulation: the C++ tests, ``doctor``, and Python tests on CPU tensors. What that takes is made in
build/aarch64-machine, and nothing of it is installed:

- ``root``: Python and the libraries that it needs, unpacked from the distribution's packages;
- ``packages``: torch and what the tests need, from pip;
- ``emulate PROGRAM``, ``python``: scripts that run a program, and that interpreter, on an emulated processor, which
  ACLNN_TEST_PROCESSOR names as QEMU does.

It needs the programs of PROGRAMS, the network once, and 6 GB: torch's wheel on PyPI is built for CUDA here, too.
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
# pytest wants the last two of a Python older than 3.11; pip would look at the Python that runs it.
OF_PIP = ("numpy", "pytest", "pytest-xdist", "hypothesis", "expecttest", "cmake", "ninja", "exceptiongroup", "tomli")
WHEELS = (
    *(option for minor in range(28, 16, -1) for option in ("--platform", f"manylinux_2_{minor}_aarch64")),
    *("--platform", "manylinux2014_aarch64", "--implementation", "cp", "--only-binary=:all:"),
)
# Processors by QEMU's names: one of ARMv8.2, as Kunpeng 920 is, and one that has FEAT_BF16, too.
PROCESSOR = "neoverse-n1"
WITH_BFLOAT16 = "max,sve=off"
# oneDNN and cpuinfo read from files what processor this is, and would find the one that emulates.
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
# The kernel may be unable to start what is not for it, so that scripts stand in the programs' places. What they start
# finds the emulator in a variable.
EMULATE = """#!/bin/sh
# Runs a program for aarch64.
ACLNN_TEST_EMULATOR="$0" exec qemu-aarch64-static -cpu "${{ACLNN_TEST_PROCESSOR:-{processor}}}" -L "{root}" "$@"
"""
PYTHON = """#!/bin/sh
# An interpreter for aarch64.
ACLNN_TEST_EMULATOR="${{0%/*}}/emulate" exec qemu-aarch64-static -0 "$0" \\
  -cpu "${{ACLNN_TEST_PROCESSOR:-{processor}}}" -L "{root}" -E PYTHONHOME="{root}/usr" "{root}/usr/bin/{python}" "$@"
"""
# Values and derivatives of every operator, conformance tables, errors, and the same bits for any number of threads.
TESTS = (
    *(f"test_{path.stem}.py" for path in sorted((ROOT / "tests" / "operators").glob("[!_]*.py"))),
    *("conformance", "test_operators.py", "test_determinism.py", "test_functional.py", "test_nn.py"),
)


CONVOLUTIONS = "test_convolution.py"


def files(*names: str) -> list[Path]:
    """Files of tests."""
    return [ROOT / "tests" / name for name in names]


def run(*command: str | Path, **options: object) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, check=True, **options)


def make_root() -> None:
    """Unpacks what the distribution has for aarch64; apt keeps its books in a folder of ours."""
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
    if not (MACHINE / "root" / "lib").exists():  # programs ask for /lib/ld-linux-aarch64.so.1
        (MACHINE / "root" / "lib").symlink_to("usr/lib")


def make_processor() -> None:
    """The files of the system in which programs look for the processor."""
    count = os.cpu_count() or 1
    for i in range(count):
        folder = MACHINE / "root" / f"sys/devices/system/cpu/cpu{i}/regs/identification"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "midr_el1").write_text(MIDR)
    (MACHINE / "root" / "proc").mkdir(exist_ok=True)
    (MACHINE / "root" / "proc" / "cpuinfo").write_text("".join(map(CPUINFO.format, range(count))))


def make_packages(python: str) -> None:
    """torch of the version that is here, and what the tests need; as a build for CPUs, if one is in reach."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    target = ["--target", MACHINE / "packages", "--upgrade", "--python-version", python.removeprefix("python"), *WHEELS]
    index = ["--extra-index-url", os.environ["TORCH_INDEX"]] if os.environ.get("TORCH_INDEX") else []
    once = ["--retries", "0", "--timeout", "15", *index, f"torch=={TORCH}+cpu"]
    if subprocess.run([*pip, *target, *once], stderr=subprocess.DEVNULL).returncode != 0:
        print("no build of torch for CPUs in reach: pip's own is 5 GB", flush=True)
        run(*pip, *target, f"torch=={TORCH}")
    run(*pip, *target, *OF_PIP)


def made_for() -> str:
    """What the machine depends on, which may change: the tree's place and torch's version."""
    return f"{ROOT}, torch {TORCH}\n"


def is_made() -> bool:
    """Whether build/aarch64-machine is complete."""
    made = MACHINE / "made"
    return made.exists() and made.read_text() == made_for()


def headers(python: str) -> str:
    """The folders of an interpreter's headers, as ACLNN_PYTHON_INCLUDE has them."""
    return f"{MACHINE / 'root/usr/include' / python};{MACHINE / 'include'}"


def make_machine() -> str:
    """All of build/aarch64-machine, unless it is there; the name of its interpreter."""
    if not is_made():
        shutil.rmtree(MACHINE, ignore_errors=True)
        MACHINE.mkdir(parents=True)
        make_root()
        make_processor()
        (interpreter,) = (MACHINE / "root/usr/bin").glob("python3.[0-9]*[0-9]")
        make_packages(interpreter.name)
        # Debian's Python.h includes a file by its architecture; nothing else is to be found beside it.
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
    """Compiles everything; returns the folder that has the package."""
    options = (f"-DACLNN_PYTHON_INCLUDE={headers(python)}",)
    folder = builds.build("aarch64", "all", "cpp_tests", "install", options=options)
    builds.copy_sources(folder / "package")
    return folder / "package"


def run_tests(package: Path) -> bool:
    """Whether all of them pass: in C++, of products of BFLOAT16 by BFDOT, doctor, in Python."""
    python = MACHINE / "python"
    # The soak would measure the emulator, which keeps memory of every thread that has ended.
    ctest = [builds.CMAKE.parent / "ctest", "--preset", "aarch64", "--parallel", "2", "--exclude-regex", "test_soak"]
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses=2", "--dist=worksteal"]
    # Not in the tree, whose own package would come first.
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
    # Without it the tests of products of BFLOAT16 would pass, because there is nothing to test.
    has_bfloat16 = "import ctypes; assert ctypes.CDLL(None).getauxval(26) & 1 << 14, 'no FEAT_BF16'"
    # What test_compilers makes would be for this machine.
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
    """Makes, builds and tests; 1 if something did not pass, 2 if a program is missing."""
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
