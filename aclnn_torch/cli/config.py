"""``config``: flags to compile and link programs against the host CANN."""

from __future__ import annotations

import argparse
import shlex

from ..host import PREFIX
from .command import Command
from .prefix import is_built

LIBRARIES = ("ascendcl", "nnopbase", "opapi")


def compile_flags() -> list[str]:
    """The compiler's flags."""
    return [f"-I{PREFIX / 'include'}"]


def link_flags() -> list[str]:
    """The linker's flags; the program then finds the libraries at run time."""
    lib = PREFIX / "lib64"
    return [f"-L{lib}", f"-Wl,-rpath,{lib}", *(f"-l{name}" for name in LIBRARIES)]


def config_values() -> dict[str, tuple[str, str]]:
    """Return the values that `config` can print, as option -> (value, help)."""
    include, lib = PREFIX / "include", PREFIX / "lib64"
    return {
        "cflags": (shlex.join(compile_flags()), "flags to compile with"),
        "libs": (shlex.join(link_flags()), "flags to link with"),
        "prefix": (str(PREFIX), "the directory that looks like an installed CANN"),
        "includedir": (str(include), "its headers"),
        "libdir": (str(lib), "its libraries"),
        "cmakedir": (str(PREFIX / "share" / "cmake" / "AclnnTorch"), "its CMake package, a value for AclnnTorch_DIR"),
        "pkgconfigdir": (str(lib / "pkgconfig"), "its pkg-config file aclnn_torch.pc, a value for PKG_CONFIG_PATH"),
    }


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """One switch per value; printed in the order of the table, as in pkg-config."""
    for name, (_, text) in config_values().items():
        parser.add_argument(f"--{name}", dest="names", action="append_const", const=name, help=text)


def _run(arguments: argparse.Namespace) -> int:
    """Print the selected values on one line, or all of them by name."""
    if not is_built():
        return 1
    values = config_values()
    if arguments.names:
        print(" ".join(values[name][0] for name in values if name in arguments.names))
    else:
        for name, (value, _) in values.items():
            print(f"{name}: {value}")
    return 0


COMMANDS = {
    "config": Command(
        "print how to compile and link programs against the host CANN",
        _add_arguments,
        _run,
        "example:\n  g++ program.cpp $(aclnn-torch config --cflags --libs) -o program\n\n"
        "Flags of a path with a space are quoted, for a shell that reads them again:\n"
        '  eval "g++ program.cpp $(aclnn-torch config --cflags --libs) -o program"\n\n'
        "In a source tree the first use builds the host CANN.\n\nexit status: 1 if it cannot be built",
    )
}
