"""``verify``: compares the installed CANN with the host CANN."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path

from .command import Command

PACKAGES = ("numpy", "hypothesis")


def _source_tree() -> Path | None:
    """The location of the tables and of the code that runs them: the package's tree, or the working directory."""
    for folder in (Path(__file__).resolve().parents[2], Path.cwd()):
        if (folder / "tests" / "verify" / "main.py").exists():
            return folder
    return None


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--filter", default="", metavar="REGEX", help="only cases whose name contains it")
    parser.add_argument("--output", type=Path, default=Path("verification"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--fresh", action="store_true", help="begin anew instead of going on with what is in --output")
    parser.add_argument("--product", help="which product the NPU is, if its SoC is not known")
    parser.add_argument(
        "--cann",
        choices=("8.5", "9.0", "9.1", "later"),
        help="the release whose checks the host CANN makes, if not that of the installed CANN",
    )
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help="of a case, in seconds; default 120")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _run(arguments: argparse.Namespace) -> int:
    tree = _source_tree()
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    problem = None
    if tree is None:
        problem = "what it runs is in the source tree; change to the folder of the repository, and run it there"
    elif missing:
        problem = f"it needs {' and '.join(missing)}; `pip install {' '.join(missing)}`"
    if problem:
        print(f"aclnn-torch verify: {problem}", file=sys.stderr)
        return 2
    sys.path.insert(0, str(tree))
    return int(importlib.import_module("tests.verify.main").run(arguments))


COMMANDS = {
    "verify": Command(
        "compare the installed CANN with the host CANN, on an Ascend machine",
        _add_arguments,
        _run,
        "The cases are those of the conformance tables, values, views, streams and times, the operators under\n"
        "torch_npu, and a training. Each runs in a process that may die. What is seen is kept in the output folder\n"
        "as it comes: the same command goes on where it was interrupted.\n\n"
        "examples:\n  aclnn-torch verify\n  aclnn-torch verify --filter aclnnElu\n"
        "  aclnn-torch run --strict -m aclnn_torch verify   # the host CANN in the place of an installed one\n\n"
        "exit status: 1 if there is a difference that docs/emulation does not explain, 2 if it cannot begin",
    )
}
