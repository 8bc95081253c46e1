"""CANN's Python interface beside torch_npu, as vllm-ascend, MindSpeed and others use it."""

from __future__ import annotations

import acl
import pytest
import torch
from acl.rt import memcpy

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3


def test_a_tensor_is_moved_to_the_host_and_back() -> None:
    """How vllm-ascend puts weights to sleep: dest_max is an address there, which is only a large number."""
    x = torch.arange(1000, dtype=torch.int32).npu()
    size = x.numel() * x.element_size()
    backup = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    torch.npu.synchronize()
    assert memcpy(backup.data_ptr(), backup.data_ptr() + size * 2, x.data_ptr(), size, DEVICE_TO_HOST) == 0
    assert torch.equal(backup.view(torch.int32), torch.arange(1000, dtype=torch.int32))
    x.zero_()
    torch.npu.synchronize()
    assert memcpy(x.data_ptr(), x.data_ptr() + size * 2, backup.data_ptr(), size, HOST_TO_DEVICE) == 0
    assert torch.equal(x.cpu(), torch.arange(1000, dtype=torch.int32))


def test_devices_and_memory_are_those_of_torch_npu() -> None:
    """MindSpeed asks for the memory of attribute 1, ACL_HBM_MEM."""
    x = torch.ones(3).npu()
    assert acl.rt.get_device() == (x.device.index, 0)
    assert acl.rt.get_device_count() == (torch.npu.device_count(), 0)
    assert acl.get_soc_name() == torch.npu.get_device_name()
    free, total, ret = acl.rt.get_mem_info(1)
    assert ((free, total), ret) == (torch.npu.mem_get_info(), 0)
    assert acl.init() == 100002  # torch_npu has called it


def test_work_of_torch_npus_streams() -> None:
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        x = torch.full((1 << 16,), 3.0, device="npu")
        y = torch.empty_like(x)
    stream.synchronize()  # what torch_npu's queue holds is on the stream then
    size = 4 * x.numel()
    assert acl.rt.memcpy_async(y.data_ptr(), size, x.data_ptr(), size, DEVICE_TO_DEVICE, stream.npu_stream) == 0
    assert acl.rt.synchronize_stream(stream.npu_stream) == 0
    assert torch.equal(y.cpu(), torch.full((1 << 16,), 3.0))


def test_an_error_is_a_status_with_a_text() -> None:
    x = torch.ones(4).npu()
    torch.npu.synchronize()
    acl.get_recent_err_msg()
    assert memcpy(x.data_ptr(), 16, 0, 16, HOST_TO_DEVICE) == 100000  # null
    assert "aclrtMemcpy" in acl.get_recent_err_msg()


def test_models_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"^acl\.mdl\.execute is not in the host CANN: offline models"):
        _ = acl.mdl.execute
