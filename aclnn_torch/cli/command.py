"""The class of a sub-command, and code shared by several of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

from .. import host
from .prefix import is_built


@dataclass(frozen=True)
class Command:
    """A sub-command: its one-line help, its arguments, its action and examples."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    epilog: str


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that select the simulated NPUs."""
    parser.add_argument("--product", help="what they are, e.g. Ascend910B (the default), Ascend950 or a SoC name")
    parser.add_argument("--devices", type=int, metavar="N", help="how many there are, 1 (the default) to 64")
    parser.add_argument("--memory", metavar="SIZE", help="how much memory each has, e.g. 2G; the machine's otherwise")
    parser.add_argument(
        "--cann", help="the release of CANN whose checks they make: 8.5, 9.0, 9.1 or later (the default)"
    )
    parser.add_argument(
        "--strict", action="store_true", default=None, help="close device memory to the host, as on a real machine"
    )


def environment(arguments: argparse.Namespace) -> dict[str, str] | None:
    """The variables for these NPUs; or None, after printing the error."""
    if not is_built():
        return None
    try:
        return host.environment(
            arguments.product, arguments.devices, arguments.memory, arguments.strict, arguments.cann
        )
    except (RuntimeError, ValueError) as error:
        print(f"aclnn-torch: {error}", file=sys.stderr)
        return None
