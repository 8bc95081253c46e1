"""The cost of compiling: ``make build-cost``, in CPU seconds and relative to one file that includes torch/extension.h.

Builds the core from scratch, and with --all also the prefix and the C++ tests, without a compiler cache. It builds in
build/release if that is empty, otherwise in a separate folder. The ratio to the one file, in the same run, separates
changes of the project from changes of the machine; the command fails if the core's ratio exceeds its bar.

With --all it then measures what a day's work costs: the rebuild after a change of a file of rows, of a kernel, and of a
header that all rows include; and how long `import aclnn_torch` takes beyond `import torch`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import cmake
import ninja
from torch.utils import cpp_extension

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
CMAKE = Path(cmake.CMAKE_BIN_DIR) / "cmake"
# The core's limit, in such files. It was 9.0 to 9.7 when this was written; runs differ by a tenth. Before the core was
# a component of its own, every build compiled everything, about 85 such files.
BAR = 12.0
CHANGES = {
    "a file of rows": "csrc/cann/rows/elementwise/arithmetic.cpp",
    "a kernel": "csrc/host_cann/kernels/elu.cpp",
    "a header of all rows": "csrc/cann/rows/engine/kinds.h",
}
IMPORT = """
import time
times = [time.perf_counter()]
import torch
times.append(time.perf_counter())
import aclnn_torch
times.append(time.perf_counter())
print(times[2] - times[1])
"""


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


def print_days_work(build: list[str | Path]) -> None:
    """Prints a line for each kind of change, and one for the import."""
    for name, path in CHANGES.items():
        changed = os.stat(ROOT / path).st_mtime_ns
        (ROOT / path).touch()
        start = time.monotonic()
        cost = cpu_seconds([*build, "--target", "all", "--", "--quiet"])
        os.utime(ROOT / path, ns=(changed, changed))
        print(f"after a change of {name}: {cost:.0f} s of CPU, {time.monotonic() - start:.0f} s")
    if not (ROOT / "aclnn_torch" / "lib").exists():
        print("import aclnn_torch after torch: not measured, as `make build` did not run yet")
        return
    imports = [float(subprocess.check_output([sys.executable, "-c", IMPORT], cwd=ROOT)) for _ in range(5)]
    print(f"import aclnn_torch after torch: {min(imports):.3f} s")


def main() -> int:
    """Prints a line for each part; returns 1 if the core costs too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="the other component, the C++ tests, and rebuilds, too")
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
        if arguments.all:
            print_days_work([CMAKE, "--build", folder])
    print(f"a file with torch/extension.h: {one:.1f} s of CPU")
    for part, cost in costs.items():
        print(f"{part}: {cost:.0f} s of CPU, {cost / one:.1f} such files")
    if costs["the core"] > BAR * one:
        print(f"the core costs more than {BAR:.0f} such files; what is compiled anew in each file?", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
