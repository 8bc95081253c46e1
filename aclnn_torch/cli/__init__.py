"""The command line, ``aclnn-torch <command>`` or ``python -m aclnn_torch <command>``.

One module per subject; each exports its commands as a table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import __version__, problem
from . import bench, check, config, doctor, npu, verify

__all__ = ["main"]

COMMANDS = config.COMMANDS | check.COMMANDS | npu.COMMANDS | doctor.COMMANDS | bench.COMMANDS | verify.COMMANDS
# Commands that need the whole package.
NEEDS_PACKAGE = bench.COMMANDS | verify.COMMANDS


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status: 0, or the status in the command's help; 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="aclnn-torch", description="Tools around aclnn_torch and its host CANN.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=command.help,
            description=f"{command.help}.",
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(sub)
    arguments = parser.parse_args(argv)
    if problem and arguments.command in NEEDS_PACKAGE:
        print(f"aclnn-torch: {problem}", file=sys.stderr)
        return 1
    return COMMANDS[arguments.command].run(arguments)
