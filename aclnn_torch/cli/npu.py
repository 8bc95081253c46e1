"""``run`` and ``env``: torch_npu on simulated NPUs."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from .. import host
from . import launcher
from .command import Command, add_device_arguments, environment


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The NPUs, and the program with its arguments, as for python."""
    add_device_arguments(parser)
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module, as `python -m` does")
    parser.add_argument("target", metavar="script.py | module", help="what to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")


def _interpreter_options() -> list[str]:
    """The options of python itself, such as -X and -W."""
    options = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    return options[:-2] if options[-2:-1] == ["-m"] else options[:-1]


def _run(arguments: argparse.Namespace) -> int:
    """Replace this process by the program's launcher; options, output, signals and exit status are as with python.

    The launcher stays the program's parent, and reports unreported failures at its end.
    """
    variables = environment(arguments)
    if variables is None:
        return 1
    if problem := host.torch_npu_problem():
        print(f"aclnn-torch: {problem}", file=sys.stderr)
        return 1
    module = ["-m"] if arguments.is_module else []
    command = [sys.executable, *_interpreter_options(), *module, arguments.target, *arguments.arguments]
    os.execve(sys.executable, [sys.executable, "-I", "-S", launcher.__file__, *command], os.environ | variables)


def _env(arguments: argparse.Namespace) -> int:
    """Print the variables as shell commands."""
    variables = environment(arguments)
    if variables is None:
        return 1
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


COMMANDS = {
    "run": Command(
        "run a Python program with torch_npu on simulated NPUs",
        _add_run_arguments,
        _run,
        "examples:\n  aclnn-torch run train.py --epochs 3\n"
        "  aclnn-torch run --devices 2 --strict -m pytest tests\n\n"
        "exit status: the program's own; 1 if it cannot be started\n"
        "A failure on an NPU that the program never waited for is told on standard error as the program ends.",
    ),
    "env": Command(
        "set a shell up for torch_npu on simulated NPUs",
        add_device_arguments,
        _env,
        'example:\n  eval "$(aclnn-torch env --devices 2)"\n\nexit status: 1 if there can be no such NPUs',
    ),
}
