"""The cost of compiling: ``make build-cost``, in CPU seconds and relative to one file that includes torch/extension.h.

Builds the core from scratch, and with --all also the prefix and the C++ tests, without a compiler cache. It builds in
build/release if that is empty, otherwise in a separate folder. The ratio to the one file, in the same run, separates
changes of the project from changes of the machine; the command fails if the core's ratio exceeds its bar.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import cmake
import ninja
from torch.utils import cpp_extension

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
CMAKE = Path(cmake.CMAKE_BIN_DIR) / "cmake"
# The core's limit, in such files. It was 9.2 to 9.7 when this was written; runs differ by a tenth.
BAR = 12.0


def cpu_seconds(command: list[str | Path], *, times: int = 1) -> float:
    """The CPU time of a command that must succeed, with its child processes; the minimum of several in parallel."""
    processes = [subprocess.Popen(command) for _ in range(times)]
    costs = []
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command)
        costs.append(usage.ru_utime + usage.ru_stime)
    return min(costs)


def main() -> int:
    """Prints a line for each part; returns 1 if the core costs too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="the other component and the C++ tests, too")
    arguments = parser.parse_args()
    for name in [name for name in os.environ if name.startswith(("CCACHE", "CMAKE_"))]:
        del os.environ[name]
    os.environ["CCACHE_DISABLE"] = "1"
    parts = {"the core": "core"}
    if arguments.all:
        parts |= {"the CANN that looks installed": "all", "the C++ tests": "cpp_tests"}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        folder = scratch / "build" if BUILD.exists() else BUILD
        ninja_program = Path(ninja.BIN_DIR) / "ninja"
        options = [f"-DCMAKE_MAKE_PROGRAM={ninja_program}", f"-DACLNN_PYTHON={sys.executable}"]
        configure = [CMAKE, "-S", ROOT, "-B", folder, "-G", "Ninja", *options]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        costs = {
            part: cpu_seconds([CMAKE, "--build", folder, "--target", target, "--", "--quiet"])
            for part, target in parts.items()
        }
        # Compiled as torch's own extensions are; two files at a time, as in the build on two cores.
        source = scratch / "reference.cpp"
        source.write_text("#include <torch/extension.h>\n")
        folders = [*cpp_extension.include_paths(), sysconfig.get_path("include")]
        compiler = [*shlex.split(os.environ.get("CXX", "g++")), "-std=c++20", "-O3", "-fPIC"]
        command = [*compiler, *(f"-I{each}" for each in folders), "-c", source, "-o", "/dev/null"]
        one = cpu_seconds(command, times=2)
    print(f"a file with torch/extension.h: {one:.1f} s of CPU")
    for part, cost in costs.items():
        print(f"{part}: {cost:.0f} s of CPU, {cost / one:.1f} such files")
    if costs["the core"] > BAR * one:
        print(f"the core costs more than {BAR:.0f} such files; what is compiled anew in each file?", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
