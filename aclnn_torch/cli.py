"""The command line, `python -m aclnn_torch <command>`. Imports torch only in commands that need it."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import host
from .host import PREFIX

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


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """Which NPUs are simulated."""
    parser.add_argument("--product", help="what they are, e.g. Ascend910B (the default), Ascend950 or a SoC name")
    parser.add_argument("--devices", type=int, metavar="N", help="how many there are, 1 (the default) to 64")
    parser.add_argument("--memory", metavar="SIZE", help="how much memory each has, e.g. 2G; the machine's otherwise")
    parser.add_argument(
        "--strict", action="store_true", default=None, help="close device memory to the host, as on a real machine"
    )


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The NPUs, and what to start as one would give it to python."""
    add_device_arguments(parser)
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module, as `python -m` does")
    parser.add_argument("target", metavar="script.py | module", help="what to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")


def environment(arguments: argparse.Namespace) -> dict[str, str] | None:
    """The variables for these NPUs, or None, after a word about what is wrong."""
    try:
        return host.environment(arguments.product, arguments.devices, arguments.memory, arguments.strict)
    except (RuntimeError, ValueError) as error:
        print(f"aclnn-torch: {error}", file=sys.stderr)
        return None


def interpreter_options() -> list[str]:
    """What python itself was given before the program, such as -X and -W."""
    options = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    return options[:-2] if options[-2:-1] == ["-m"] else options[:-1]


def run_program(arguments: argparse.Namespace) -> int:
    """Become the program: its arguments, output, signals and exit status are its own, as are python's options."""
    variables = environment(arguments)
    if variables is None:
        return 1
    if problem := host.torch_npu_problem():
        print(f"aclnn-torch: {problem}", file=sys.stderr)
        return 1
    module = ["-m"] if arguments.is_module else []
    command = [sys.executable, *interpreter_options(), *module, arguments.target, *arguments.arguments]
    os.execve(sys.executable, command, os.environ | variables)


def run_env(arguments: argparse.Namespace) -> int:
    """Print the variables as shell commands."""
    variables = environment(arguments)
    if variables is None:
        return 1
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def no_arguments(parser: argparse.ArgumentParser) -> None:
    """A command without arguments."""


def built_for() -> str | None:
    """The torch_npu that the operators on NPU tensors were built for; the library says it without being loaded."""
    try:
        content = (PREFIX.parent / "lib" / "libaclnn_npu.so").read_bytes()
    except OSError:
        return None
    found = re.search(rb"built for torch_npu ([\w.+-]+)", content)
    return found[1].decode() if found else "unknown"


def installed_version(name: str) -> str | None:
    """The version of an installed package, which is not imported for that."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def run_doctor(arguments: argparse.Namespace) -> int:
    """Print what is here, what is not, and what to do about it."""
    import torch

    from . import __version__, get_product, ops  # noqa: F401

    works = True
    try:
        torch.ops.aclnn.elu(torch.zeros(1))
        host_cann = f"embedded, as {get_product()}, on {torch.backends.cpu.get_cpu_capability()}"
    except RuntimeError as error:
        works, host_cann = False, f"does not work: {error}; run `make build`"
    built, torch_npu = built_for(), installed_version("torch_npu")
    cann = os.environ.get("ASCEND_HOME_PATH")
    if built is None:
        npu = "not built: build aclnn_torch where torch_npu 2.13 is, or `python csrc/build.py --torch-npu DIR`"
    else:
        npu = f"built for torch_npu {built}"
        if torch_npu and torch_npu.split(".")[:3] != built.split(".")[:3]:
            npu += f", and {torch_npu} is installed: build aclnn_torch again"
    lines = {
        "aclnn_torch": f"{__version__} in {PREFIX.parent}",
        "torch": torch.__version__,
        "host CANN": host_cann,
        "NPU operators": npu,
        "torch_npu": f"{torch_npu}; {host.torch_npu_problem() or 'fits torch'}"
        if torch_npu
        else "not installed; needed for NPU tensors only (docs/npu.md)",
        "CANN": cann or "none: source its set_env.sh, or run without an NPU by `python -m aclnn_torch run`",
    }
    for name, text in lines.items():
        print(f"{name:<14} {text}")
    return 0 if works else 1


COMMANDS = {
    "config": Command("print how to compile and link programs against the host CANN", add_config_arguments, run_config),
    "run": Command("run a Python program with torch_npu on simulated NPUs", add_run_arguments, run_program),
    "env": Command(
        'set a shell up for torch_npu on simulated NPUs: eval "$(aclnn-torch env)"', add_device_arguments, run_env
    ),
    "doctor": Command("tell what is installed, what is not, and what to do about it", no_arguments, run_doctor),
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
