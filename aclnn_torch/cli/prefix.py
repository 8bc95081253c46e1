"""The prefix, laid out as an installed CANN, which is built when a command first needs it."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
import sys

from ..host import PREFIX, missing_libraries

TREE = PREFIX.parents[1]
NEEDED = ("cmake", "ninja", "pybind11", "setuptools")  # in this Python's environment, to build


def is_built() -> bool:
    """True if there is a CANN to use, built now if this is a source tree with its environment; else prints why."""
    if not missing_libraries():
        return True
    if not (TREE / "setup.py").exists() or not all(importlib.util.find_spec(name) for name in NEEDED):
        return _refused(f"{PREFIX / 'lib64'} lacks {', '.join(missing_libraries())}")
    try:
        (TREE / "build").mkdir(exist_ok=True)
        lock = os.open(TREE / "build" / "lock", os.O_CREAT | os.O_RDWR)
    except OSError as error:
        return _refused(str(error))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several commands that start together, one builds
        return not missing_libraries() or _build()
    finally:
        os.close(lock)


def _build() -> bool:
    # A command's stdout is for its result only.
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "--cann"]
    if subprocess.run(command, cwd=TREE, stdout=sys.stderr).returncode == 0:
        return True
    return _refused("what is missing or wrong is said above")


def _refused(problem: str) -> bool:
    print(f"aclnn-torch: the host CANN is not built: {problem}; run `make cann` in the repository", file=sys.stderr)
    return False
