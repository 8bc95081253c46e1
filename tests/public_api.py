"""A program that uses the whole public API with its declared types; needs no other file of the tests."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from torch import Tensor
from typing_extensions import assert_type

import aclnn_torch
from aclnn_torch import functional as F
from aclnn_torch import host, nn


def functions(x: Tensor) -> None:
    """Functions of every kind; tests/wheel.py checks the types of all."""
    for y in (F.elu(x, 1.5), F.selu(x), F.celu(x, 2.0), F.gelu(x, "tanh")):
        assert_type(y, Tensor)
        assert y.shape == x.shape
    for y in (F.rms_norm(x, [6], torch.ones(6), eps=1e-6), F.layer_norm(x, [6], torch.ones(6))):
        assert_type(y, Tensor)
        assert y.shape == x.shape
    assert_type(F.cross_entropy(x, torch.tensor([0, 5, 3, 1]), reduction="sum", label_smoothing=0.1), Tensor)
    for dims, convolve, transposed in (
        (1, F.conv1d, F.conv_transpose1d),
        (2, F.conv2d, F.conv_transpose2d),
        (3, F.conv3d, F.conv_transpose3d),
    ):
        weight = torch.ones([2, 3, *[2] * dims])
        y = assert_type(convolve(torch.ones([1, 3, *[4] * dims]), weight, torch.ones(2), stride=2), Tensor)
        assert assert_type(transposed(y, weight, stride=2, output_padding=0), Tensor).shape[1] == 3


def modules(x: Tensor) -> None:
    """Classes of every kind, and the conversion of torch's."""
    layers = [nn.ELU(1.5), nn.SELU(), nn.CELU(), nn.GELU(), nn.RMSNorm(6), nn.LayerNorm(6)]
    model = torch.nn.Sequential(*layers)
    loss: Tensor = nn.CrossEntropyLoss()(model(x), torch.tensor([0, 5, 3, 1]))
    assert len(torch.autograd.grad(loss, list(model.parameters()))) == 3
    for dims, convolution, transposed in (
        (1, nn.Conv1d, nn.ConvTranspose1d),
        (2, nn.Conv2d, nn.ConvTranspose2d),
        (3, nn.Conv3d, nn.ConvTranspose3d),
    ):
        y: Tensor = convolution(3, 2, 2)(torch.ones([1, 3, *[4] * dims]))
        y = transposed(2, 3, 2)(y)
        assert y.shape[1:] == torch.Size([3, *[4] * dims])
    plain = torch.nn.Sequential(torch.nn.ELU())
    assert_type(aclnn_torch.convert(plain), dict[str, Any])
    assert_type(aclnn_torch.revert(plain), dict[str, Any])


def settings() -> None:
    """Products, memory, errors, tables."""
    before = assert_type(aclnn_torch.get_product(), str)
    with aclnn_torch.product("host"):
        assert aclnn_torch.get_product() == "host"
    aclnn_torch.set_product(before)
    release = assert_type(aclnn_torch.get_cann_release(), str)
    with aclnn_torch.cann_release("9.1"):
        assert aclnn_torch.get_cann_release() == "9.1"
    aclnn_torch.set_cann_release(release)
    assert_type(aclnn_torch.memory_stats(), dict[str, int])
    aclnn_torch.reset_peak_memory_stats()
    aclnn_torch.empty_cache()
    aclnn_torch.set_memory_limit(None)
    with (
        tempfile.TemporaryDirectory() as folder,
        aclnn_torch.profile_stages(),
        aclnn_torch.trace(f"{folder}/trace.json"),
    ):
        F.selu(torch.ones(2))
    assert torch.ops.aclnn.elu.default in aclnn_torch.decompositions()
    assert aclnn_torch.ops.__doc__
    assert_type(host.environment(devices=2), dict[str, str])
    assert callable(host.enable)  # for processes with torch_npu
    try:
        aclnn_torch.set_product("Ascend999")
    except aclnn_torch.AclnnError as error:
        assert_type(error.api, str)
        assert_type(error.status, int)
        assert_type(error.status_name, str)


def main() -> None:
    """Uses the whole API once."""
    x = torch.linspace(-2, 2, 24).reshape(4, 6).requires_grad_()
    functions(x)
    modules(x)
    settings()


if __name__ == "__main__":
    main()
