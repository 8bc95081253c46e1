"""Fixtures that all tests share."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

# Before torch brings OpenMP: threads of several processes that share the processors do not spin while they wait.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest
import torch
from hypothesis import HealthCheck, settings

import aclnn_torch
from aclnn_torch import _C

# Ctrl-C interrupts what tests start, also where a shell runs pytest in the background, which then ignores it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is meant for the pytest that was called, which has read it by now. The processes that tests start, other pytests
# among them whose words a test reads, shall do the same for every caller.
OF_THE_CALLER = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONWARNINGS", "FORCE_COLOR", "PY_COLORS", "COLUMNS")
for _name in OF_THE_CALLER:
    os.environ.pop(_name, None)

# How many examples a property is tried on: some with every test run, many with --hypothesis-profile=deep. They are the
# same every time; how fast the machine is tells nothing about the property.
for _name, _examples in (("quick", 50), ("deep", 2000)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sessions of torch_npu come first: no process waits for another's at the end."""
    items.sort(key=lambda item: item.path.name != "test_npu.py")


def pytest_collection_finish() -> None:
    """What pytest collected lives to the end: no collection of garbage looks at these hundred thousands of objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def same_numbers_every_time() -> None:
    """Random tensors are the same in every run."""
    torch.default_generator.manual_seed(0)  # torch.manual_seed keeps stacks of this call for devices that are not here


@pytest.fixture(autouse=True)
def default_product() -> Iterator[None]:
    """Every test begins on the default product, and leaves it as it was."""
    with aclnn_torch.product("Ascend910B"):
        yield


@pytest.fixture(scope="session")
def torch_npu_environment() -> None:
    """Skips where nothing can be run under torch_npu, which another process has to try."""
    from .test_npu import why_not

    if reason := why_not():
        pytest.skip(reason)


@pytest.fixture
def host_product(default_product: None) -> Iterator[None]:
    """The product that also computes float64."""
    with aclnn_torch.product("host"):
        yield


@pytest.fixture
def nothing_leaked() -> Iterator[None]:
    """Fails the test if host CANN objects outlive it."""
    gc.collect()  # of what other tests left
    gc.freeze()  # what is left stays: the next collection need not look at it
    before = _C.live_objects()
    yield
    assert _C.live_objects() == before
