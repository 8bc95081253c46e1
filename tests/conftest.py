"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

# Set before torch loads OpenMP: threads of processes that share the processors do not spin while they wait.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest
import torch
from hypothesis import HealthCheck, settings

import aclnn_torch
from aclnn_torch import _C
from tests import OF_THE_CALLER
from tests.aten_ops import server

# Lets Ctrl-C interrupt child processes even if a shell runs pytest in the background, which makes it ignore SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for _name in OF_THE_CALLER:
    os.environ.pop(_name, None)

# Examples per property: few in every test run, many with --hypothesis-profile=deep. They are the same every time; the
# machine's speed says nothing about the property.
for _name, _examples in (("quick", 25), ("deep", 2000)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs sessions of torch_npu first, so that no process waits for another's at the end."""
    items.sort(key=lambda item: item.path.name != "test_npu.py")


def pytest_collection_finish() -> None:
    """Exempts pytest's hundred thousands of collected objects, which live to the end, from garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def servers_end_well() -> Iterator[None]:
    """The processes that run calls for tests print nothing at their end, and end with status 0."""
    yield
    server.close_all()


@pytest.fixture(autouse=True)
def same_numbers_every_time() -> None:
    """Random tensors are the same in every run."""
    # torch.manual_seed also queues the seed, with a formatted stack, for each type of device that is missing: 0.5 ms.
    torch.default_generator.manual_seed(0)
    if npu := getattr(torch, "npu", None):
        npu.manual_seed_all(0)


@pytest.fixture(autouse=True)
def default_product() -> Iterator[None]:
    """Every test begins on the default product with the newest checks, and restores both."""
    with aclnn_torch.product("Ascend910B"), aclnn_torch.cann_release("later"):
        yield


@pytest.fixture(scope="session")
def torch_npu_environment() -> None:
    """Skips tests if nothing can run under torch_npu, which a child process tests."""
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
    """Fails the test if it leaks objects of the host CANN."""
    gc.collect()  # garbage of other tests
    gc.freeze()  # the next collection ignores survivors
    before = _C.live_objects()
    yield
    assert _C.live_objects() == before
