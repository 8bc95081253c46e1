"""The command line, `python -m aclnn_torch <command>`. Imports torch only in commands that need it."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PREFIX = Path(__file__).resolve().parent / "cann"
LIBRARIES = ("ascendcl", "nnopbase", "opapi")


@dataclass(frozen=True)
class Command:
    """A sub-command: its one-line help, the arguments it takes, and what it does with them."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def config_values() -> dict[str, tuple[str, str]]:
    """Return what `config` can print, as option -> (value, help)."""
    include, lib = PREFIX / "include", PREFIX / "lib64"
    link = [f"-L{lib}", f"-Wl,-rpath,{lib}", *(f"-l{name}" for name in LIBRARIES)]
    return {
        "cflags": (shlex.join([f"-I{include}"]), "flags to compile with"),
        "libs": (shlex.join(link), "flags to link with"),
        "prefix": (str(PREFIX), "the directory that looks like an installed CANN"),
        "includedir": (str(include), "its headers"),
        "libdir": (str(lib), "its libraries"),
        "cmakedir": (str(PREFIX / "share" / "cmake" / "AclnnTorch"), "its CMake package, a value for AclnnTorch_DIR"),
    }


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """One switch per value; they are printed in the order of the table, as pkg-config does."""
    for name, (_, text) in config_values().items():
        parser.add_argument(f"--{name}", dest="names", action="append_const", const=name, help=text)


def run_config(arguments: argparse.Namespace) -> int:
    """Print the values asked for on one line, or all of them by name."""
    values = config_values()
    if not (PREFIX / "lib64" / "libopapi.so").exists():
        print(f"the host CANN is not built: no libraries in {PREFIX / 'lib64'}; run `make build`", file=sys.stderr)
        return 1
    if arguments.names:
        print(" ".join(values[name][0] for name in values if name in arguments.names))
    else:
        for name, (value, _) in values.items():
            print(f"{name}: {value}")
    return 0


COMMANDS = {
    "config": Command("print how to compile and link programs against the host CANN", add_config_arguments, run_config),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    parser = argparse.ArgumentParser(prog="aclnn-torch", description="Tools around aclnn_torch and its host CANN.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.help, description=command.help)
        command.add_arguments(sub)
    arguments = parser.parse_args(argv)
    return COMMANDS[arguments.command].run(arguments)
