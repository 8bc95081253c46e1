"""The allocator of vllm-ascend's sleep mode under torch_npu, as vllm-ascend 0.23.0 uses it
(vllm_ascend/device_allocator/camem.py); tests/cpp/test_vllm_allocator.cpp has its errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import acl
import aclnn_vllm
import pytest
import torch

MIB = 2**20
TO_DEVICE, TO_HOST = 1, 2  # ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST


def library() -> str:
    """The file that vllm-ascend loads functions from: the first one of the process with its module's name."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    path = next(line for line in lines if "vllm_ascend_C" in line)
    return path[path.index("/") :]


class Blocks:
    """vllm-ascend's part of the allocator: the handles of blocks, and copies of their contents."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.handles: dict[int, tuple[int, int, int, int]] = {}
        self.copies: dict[int, torch.Tensor] = {}
        module.init_module(self.malloc, self.free)
        allocator = torch.npu.memory.NPUPluggableAllocator(library(), "my_malloc", "my_free")
        self.pool = torch.npu.memory.MemPool(allocator.allocator())

    def malloc(self, handle: tuple[int, int, int, int]) -> None:
        self.handles[handle[2]] = handle

    def free(self, address: int) -> tuple[int, int, int, int]:
        return self.handles.pop(address)

    def sleep(self, with_copies: bool) -> None:
        for address, handle in self.handles.items():
            if with_copies:
                size = handle[1]
                copy = torch.empty(size, dtype=torch.uint8, pin_memory=True)
                assert acl.rt.memcpy(copy.data_ptr(), size, address, size, TO_HOST) == 0
                self.copies[address] = copy
            self.module.python_unmap_and_release(*handle)

    def wake_up(self) -> None:
        for address, handle in self.handles.items():
            self.module.python_create_and_map(*handle)
            copy = self.copies.pop(address, None)
            if copy is not None:
                size = handle[1]
                assert acl.rt.memcpy(address, size, copy.data_ptr(), size, TO_DEVICE) == 0


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    """What vllm-ascend imports."""
    package = ModuleType("vllm_ascend")
    package.__path__ = []
    sys.modules["vllm_ascend"] = package
    aclnn_vllm.register()
    import vllm_ascend.vllm_ascend_C as module  # type: ignore[import-not-found]

    yield module
    del sys.modules["vllm_ascend"], sys.modules["vllm_ascend.vllm_ascend_C"]


@pytest.fixture
def blocks(module: Any) -> Iterator[Blocks]:
    """A pool of memory. Its blocks are freed with it."""
    torch.npu.empty_cache()
    made = Blocks(module)
    yield made
    del made.pool
    torch.npu.empty_cache()
    assert made.handles == {}


def free_memory(device: int = 0) -> int:
    return torch.npu.mem_get_info(device)[0]


def numbers(count: int, seed: int) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed))


def test_its_file_has_the_name_of_the_module(module: Any) -> None:
    """vllm-ascend asserts that the file's name begins with the module's."""
    assert Path(library()).name == "vllm_ascend_C.so"


def test_weights_survive_and_their_memory_is_free_while_they_sleep(blocks: Blocks) -> None:
    """The sums are those of the same weights; a block is a multiple of the 2 MiB of torch_npu's small blocks."""
    first, second = numbers(MIB, 1), numbers(6 * MIB, 2)
    with torch.npu.memory.use_mem_pool(blocks.pool):
        weights = [first.npu(), second.npu()]
    addresses = [weight.data_ptr() for weight in weights]
    torch.npu.synchronize()
    awake = free_memory()
    size = sum(handle[1] for handle in blocks.handles.values())
    assert size >= 28 * MIB

    blocks.sleep(with_copies=True)
    assert free_memory() == awake + size
    other = torch.full((size // 8,), 7.0, device="npu")  # uses the memory
    torch.npu.synchronize()
    del other
    torch.npu.empty_cache()
    blocks.wake_up()
    assert free_memory() == awake
    assert [weight.data_ptr() for weight in weights] == addresses
    assert torch.equal(weights[0].cpu(), first)
    assert torch.equal((weights[1] * 2).cpu(), second * 2)


def test_without_copies_new_contents_can_be_loaded(blocks: Blocks) -> None:
    with torch.npu.memory.use_mem_pool(blocks.pool):
        cache = torch.ones(8 * MIB, device="npu")
    torch.npu.synchronize()
    blocks.sleep(with_copies=False)
    blocks.wake_up()
    cache.copy_(numbers(8 * MIB, 3))
    assert torch.equal(cache.cpu(), numbers(8 * MIB, 3))


@pytest.mark.skipif(os.environ.get("TASK_QUEUE_ENABLE") == "2", reason="torch_npu captures with 0 and 1 alone")
def test_a_graph_replays_on_memory_that_slept(blocks: Blocks) -> None:
    """Captured calls have addresses, which stay."""
    with torch.npu.memory.use_mem_pool(blocks.pool):
        weight = torch.full((MIB,), 3.0, device="npu")
    x = torch.ones(MIB, device="npu")
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = x * weight
    blocks.sleep(with_copies=True)
    blocks.wake_up()
    x.fill_(5)
    graph.replay()
    assert y.cpu().unique().tolist() == [15.0]


@pytest.mark.skipif(torch.npu.device_count() < 2, reason="needs two NPUs")
def test_each_block_is_on_its_device(module: Any) -> None:
    """A pool belongs to the device on which it is made."""
    before = [free_memory(0), free_memory(1)]
    with torch.npu.device(1):
        blocks = Blocks(module)
        with torch.npu.memory.use_mem_pool(blocks.pool):
            weight = torch.ones(5 * MIB, device="npu")
    assert [handle[0] for handle in blocks.handles.values()] == [1]
    assert free_memory(0) == before[0]
    assert free_memory(1) <= before[1] - 20 * MIB
    torch.npu.synchronize(1)
    blocks.sleep(with_copies=False)
    blocks.wake_up()
    assert weight.fill_(2).sum().item() == 10 * MIB


def test_copies_of_memory_that_sleeps_are_an_error(blocks: Blocks) -> None:
    with torch.npu.memory.use_mem_pool(blocks.pool):
        weight = torch.ones(MIB, device="npu")
    torch.npu.synchronize()
    blocks.sleep(with_copies=False)
    status = acl.rt.memcpy(torch.empty(4, pin_memory=True).data_ptr(), 16, weight.data_ptr(), 16, TO_HOST)
    assert status == 107000
    blocks.wake_up()


def test_out_of_memory_is_an_error_with_the_reason(blocks: Blocks) -> None:
    total = torch.npu.mem_get_info()[1]
    acl.rt.memcpy(0, 1, 0, 1, TO_HOST)  # fails; its message is not that of the allocation
    expected = r"^aclrtMallocPhysical: .*\(status 207001\)$"
    with torch.npu.memory.use_mem_pool(blocks.pool), pytest.raises(RuntimeError, match=expected):
        torch.empty(total + MIB, dtype=torch.uint8, device="npu")
    assert blocks.handles == {}
    assert torch.ones(3, device="npu").sum().item() == 3


@pytest.mark.parametrize("error", [ValueError("no tag"), KeyboardInterrupt("no tag")], ids=repr)
def test_errors_of_python_are_errors_of_the_allocation(blocks: Blocks, module: Any, error: BaseException) -> None:
    def refuse(handle: tuple[int, int, int, int]) -> None:
        raise error

    before = free_memory()
    module.init_module(refuse, blocks.free)
    expected = f"^my_malloc: the first function of init_module raised {type(error).__name__}: no tag "
    with torch.npu.memory.use_mem_pool(blocks.pool), pytest.raises(RuntimeError, match=expected):
        torch.empty(30 * MIB, dtype=torch.uint8, device="npu")
    assert free_memory() == before


def test_errors_of_python_do_not_keep_a_block(blocks: Blocks, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They go where Python sends the exceptions of destructors."""
    errors: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: errors.append(event.exc_value))

    def refuse(address: int) -> None:
        blocks.free(address)
        raise ValueError("no tag")

    before = free_memory()
    module.init_module(blocks.malloc, refuse)
    with torch.npu.memory.use_mem_pool(blocks.pool):
        weight = torch.ones(8 * MIB, device="npu")
    torch.npu.synchronize()
    del weight, blocks.pool
    torch.npu.empty_cache()
    assert [str(error) for error in errors] == ["no tag"]
    assert free_memory() == before
    blocks.pool = None


def test_handles_that_are_none_are_refused(blocks: Blocks, module: Any) -> None:
    expected = "python_unmap_and_release: 0x0 is not the address of a block of my_malloc, or was freed"
    with pytest.raises(RuntimeError, match=expected):
        module.python_unmap_and_release(0, 2 * MIB, 0, 0)
    with pytest.raises(RuntimeError, match="python_create_and_map: 0x1000 is not the address of a block"):
        module.python_create_and_map(0, 2 * MIB, 0x1000, 0)
    with pytest.raises(TypeError, match="missing 3 required positional arguments"):
        module.python_create_and_map(0)
    with pytest.raises(TypeError, match="init_module takes two functions, and got None and None"):
        module.init_module(None, None)
