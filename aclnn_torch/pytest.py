"""A plugin of pytest, ``-p aclnn_torch.pytest``: tests run on simulated NPUs, or on those that the machine has.

In a project's pyproject.toml::

    [tool.pytest.ini_options]
    addopts = "-p aclnn_torch.pytest --npu-devices 2 --npu-memory 2G"

Under ``aclnn-torch run``, and in a shell that ``aclnn-torch env`` set up, the NPUs are those that were chosen there.
"""

from __future__ import annotations

import glob
import importlib
import os
import sys
from collections.abc import Generator

import pytest

from . import __version__, host
from ._problem import TorchNpuError

NODES = "/dev/davinci[0-9]*"  # of the driver, one for each NPU of the machine

_lost: set[int] = set()  # NPUs on which something failed: in this process they do not work again


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of ``aclnn-torch run``."""
    group = parser.getgroup("simulated NPUs", "simulated NPUs (aclnn_torch)")
    group.addoption("--npu-product", metavar="NAME", help="what they are: Ascend910B (the default), Ascend950, ...")
    group.addoption("--npu-devices", metavar="N", type=int, help="how many there are, 1 (the default) to 64")
    group.addoption("--npu-memory", metavar="SIZE", help="how much memory each has, e.g. 2G; the machine's otherwise")
    group.addoption(
        "--npu-cann", metavar="RELEASE", help="whose checks they make: 8.5, 9.0, 9.1 or later (the default)"
    )
    group.addoption("--npu-strict", action="store_true", default=None, help="close their memory to the host")


def chosen_by() -> str | None:
    """What gives this process NPUs without the plugin; None if nothing does."""
    home = os.environ.get("ASCEND_HOME_PATH")
    if home == str(host.PREFIX):
        return "the environment"  # of `run`, or of a process with this plugin
    return f"this machine, with the CANN in {home}" if glob.glob(NODES) else None


_chosen_by = chosen_by()  # before this plugin changes the environment


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Gives the process its NPUs, and imports torch_npu, before a conftest.py can."""
    given = early_config.known_args_namespace
    try:
        if _chosen_by is None:
            host.enable(given.npu_product, given.npu_devices, given.npu_memory, given.npu_strict, given.npu_cann)
        importlib.import_module("torch_npu")
    except (RuntimeError, ValueError) as error:
        raise pytest.UsageError(f"aclnn_torch: {error}") from error
    except ImportError as error:
        raise pytest.UsageError(f"aclnn_torch: {TorchNpuError(error)}") from error
    # vllm-ascend's operators are in a plugin of pytest, too. Its folder was not known when pytest looked for plugins.
    if not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        early_config.pluginmanager.load_setuptools_entrypoints("pytest11", name="aclnn_vllm")


def pytest_report_header() -> str:
    """The NPUs of the session, which are not used for this."""
    words = []
    if os.environ.get("ASCEND_HOME_PATH") == str(host.PREFIX):
        of = os.environ.get
        words.append(f"{of('ACLNN_TORCH_DEVICES', '1')} simulated {of('ACLNN_TORCH_PRODUCT', 'Ascend910B')}")
        if memory := of("ACLNN_TORCH_DEVICE_MEMORY"):
            words.append(f"{memory} of memory each")
        if release := of("ACLNN_TORCH_CANN"):
            words.append(f"checks of CANN {release}")
        if of("ACLNN_TORCH_STRICT", "0") != "0":
            words.append("strict")
        words[-1] += f" (aclnn_torch {__version__})"
    if _chosen_by:
        words.append(f"chosen by {_chosen_by}; options --npu-* have no effect")
    return f"NPUs: {', '.join(words)}"


def _failures() -> str:
    """What failed on the NPUs since the last call, after a wait for those that have memory in use; empty if nothing."""
    npu = sys.modules["torch"].npu
    found = []
    for device in range(npu.device_count() if npu.is_initialized() else 0):
        if device in _lost or not npu.memory_reserved(device):
            continue
        try:
            npu.synchronize(device)
        except RuntimeError as error:
            _lost.add(device)
            found.append(f"npu:{device} failed during this test: {error}")
    return "\n".join(found)


def _checked(item: pytest.Item, when: str) -> Generator[None, None, None]:
    """Fails a step of a test that has left an error on an NPU, which otherwise a later test would raise."""
    try:
        yield
    except BaseException:
        if failures := _failures():
            item.add_report_section(when, "NPUs", failures)
        raise
    if failures := _failures():
        pytest.fail(failures, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """The test itself, after its fixtures."""
    yield from _checked(item, "call")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """The ends of its fixtures."""
    yield from _checked(item, "teardown")
