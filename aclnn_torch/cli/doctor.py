"""``doctor``: checks the installation and suggests remedies."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .. import host
from ..host import PREFIX
from . import coverage
from .command import Command

VARIABLES = "ACLNN_TORCH_"


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    name: str
    text: str
    works: bool = True
    advice: str | None = None


def installed_version(name: str) -> str | None:
    """The version of an installed package, without importing it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def built_for() -> str | None:
    """The torch_npu version that the NPU operators were built for, read from the library without loading it."""
    try:
        content = (PREFIX.parent / "lib" / "libaclnn_npu.so").read_bytes()
    except OSError:
        return None
    found = re.search(rb"built for torch_npu ([\w.+-]+)", content)
    return found[1].decode() if found else "unknown"


def _npu_operators() -> Finding:
    built, torch_npu = built_for(), installed_version("torch_npu")
    if built is None:
        return Finding(
            "NPU operators",
            "not built; needed for NPU tensors only",
            advice="build aclnn_torch where torch_npu is, or `cmake build/release -DACLNN_TORCH_NPU=DIR; make cann`",
        )
    if torch_npu and torch_npu.split(".")[:3] != built.split(".")[:3]:
        return Finding(
            "NPU operators",
            f"built for torch_npu {built}, and {torch_npu} is installed",
            works=False,
            advice="build aclnn_torch again",
        )
    return Finding("NPU operators", f"built for torch_npu {built}")


def _torch() -> Finding:
    import torch

    folder = os.path.dirname(torch.__file__)
    advice = f"torch.compile's Inductor cannot link, because the path of torch, {folder}, has a space"
    return Finding("torch", torch.__version__, advice=advice if " " in folder else None)


def _torch_npu() -> Finding:
    version = installed_version("torch_npu")
    if version is None:
        return Finding("torch_npu", "not installed; needed for NPU tensors only", advice="see docs/npu.md")
    problem = host.torch_npu_problem()
    if problem:
        return Finding("torch_npu", version, works=False, advice=problem)
    return Finding("torch_npu", f"{version}, fits torch")


def _cann() -> Finding:
    home = os.environ.get("ASCEND_HOME_PATH")
    if home:
        return Finding("CANN", home)
    advice = "source its set_env.sh, or run without an NPU by `aclnn-torch run`"
    if installed_version("torch_npu"):
        advice += (
            "; a program that imports torch or torch_npu without either ends in `libhccl.so: cannot open shared object "
            "file`"
        )
    return Finding("CANN", "none", advice=advice)


def _prefix() -> Finding:
    missing = host.missing_libraries()
    if len(missing) == len(host.LIBRARIES):
        return Finding("prefix", "not built yet; needed for C++ programs and torch_npu", advice="run `make cann`")
    if missing:
        return Finding("prefix", f"{PREFIX} lacks {', '.join(missing)}", works=False, advice="run `make cann`")
    return Finding("prefix", f"{PREFIX}, for C++ programs and torch_npu")


def _operators() -> Finding:
    """Every operator agrees with its decomposition into ATen's."""
    import torch

    from .. import decompositions, product
    from ..ops import OPERATORS

    overloads = [overload for operator in OPERATORS.values() for overload in operator.overloads]
    table, failures = decompositions(), {}
    with product("host"):  # the others refuse some of the calls, correctly
        for overload in overloads:
            try:
                ours, atens = overload.operator(*overload.example()), table[overload.operator](*overload.example())
                torch.testing.assert_close(ours, atens, rtol=1e-5, atol=1e-5)
            except (RuntimeError, AssertionError) as error:
                failures[overload.operator._schema.name.removeprefix("aclnn::")] = str(error).splitlines()[0]
    if failures:
        text = "; ".join(f"{name}: {error}" for name, error in failures.items())
        return Finding("operators", text, works=False, advice="build again: `make clean build`; if it stays, report it")
    return Finding("operators", f"{len(overloads)} of {len(overloads)} compute what ATen computes")


def _operators_here() -> Iterator[Finding]:
    """Checks that need the whole package."""
    import torch

    from .. import _C, __version__, get_cann_release, get_product, profiling

    yield Finding("aclnn_torch", f"{__version__} in {PREFIX.parent}")
    yield _torch()
    capability = torch.backends.cpu.get_cpu_capability()
    problem = "; ".join(filter(None, (_C.product_problem(), _C.cann_release_problem()))) or None
    yield Finding(
        "host CANN",
        f"embedded, as {get_product()}, with the checks of CANN {get_cann_release()}, on {capability} with "
        f"{torch.get_num_threads()} threads",
        works=problem is None,
        advice=problem,
    )
    yield _operators()
    if os.environ.get("ACLNN_TORCH_TRACE", "0") not in ("", "0"):
        problem = profiling.environments_problem()
        yield Finding("trace", "on", works=problem is None, advice=problem)


def findings() -> Iterator[Finding]:
    """All checks, in order of dependency."""
    from .. import __version__, problem

    yield Finding("Python", f"{platform.python_version()} on {platform.machine()}")
    if problem is None:
        yield from _operators_here()
    else:
        yield Finding("aclnn_torch", f"{__version__} in {PREFIX.parent}", works=False, advice=problem)
    yield _prefix()
    yield _npu_operators()
    if problem is None:
        yield _torch_npu()
    yield _cann()
    chosen = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)]
    yield Finding("variables", " ".join(chosen) or f"no {VARIABLES}* is set")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument(
        "--coverage",
        action="store_true",
        help="list the aclnn functions that the installed torch_npu calls, and whether the host CANN computes them",
    )


def _run(arguments: argparse.Namespace) -> int:
    if arguments.coverage:
        return coverage.run(arguments)
    everything = list(findings())
    if arguments.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in everything], indent=2))
    else:
        for finding in everything:
            mark = "" if finding.works else "does not work: "
            advice = f" ({finding.advice})" if finding.advice else ""
            print(f"{finding.name:<14} {mark}{finding.text}{advice}")
    return 0 if all(finding.works for finding in everything) else 1


COMMANDS = {
    "doctor": Command(
        "report what is installed, whether every operator works, and how to repair what does not",
        _add_arguments,
        _run,
        "examples:\n  aclnn-torch doctor\n  aclnn-torch doctor --json\n  aclnn-torch doctor --coverage\n"
        "  aclnn-torch run -m aclnn_torch doctor\n\n"
        "exit status: 1 if something that is there does not work",
    )
}
