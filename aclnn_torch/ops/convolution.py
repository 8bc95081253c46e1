"""``torch.ops.aclnn.convolution`` and ``convolution_backward``: see csrc/torch_ops/convolution.cpp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverloadPacket
from torch.utils.flop_counter import flop_registry, register_flop_formula

from ._batching import map_over_batch


def _into_batch(tensor: Tensor, dim: int) -> Tensor:
    """Makes the batch of ``torch.vmap`` part of the batch of the convolution."""
    return tensor.movedim(dim, 0).flatten(0, 1)


def _out_of_batch(tensor: Tensor, batch_size: int) -> Tensor:
    """The way back."""
    return tensor.reshape(batch_size, tensor.shape[0] // batch_size, *tensor.shape[1:])


def _convolution(info: Any, in_dims: tuple[Any, ...], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    operator = torch.ops.aclnn.convolution.default
    input_dim, *others = in_dims
    if input_dim is None or any(dim is not None for dim in others[:2]) or info.batch_size == 0:
        return map_over_batch(operator, info, in_dims, args, **kwargs)
    input, *rest = args
    result = operator(_into_batch(input, input_dim), *rest, **kwargs)
    return _out_of_batch(result, info.batch_size), 0


def _convolution_backward(info: Any, in_dims: tuple[Any, ...], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    return map_over_batch(torch.ops.aclnn.convolution_backward.default, info, in_dims, args, **kwargs)


torch.library.register_vmap(torch.ops.aclnn.convolution.default, _convolution)
torch.library.register_vmap(torch.ops.aclnn.convolution_backward.default, _convolution_backward)


def _register_flops(operator: OpOverloadPacket, atens: OpOverloadPacket) -> None:
    """Lets ``torch.utils.flop_counter`` count an operator as ATen's; of the other operators it counts none in ATen."""
    formula: Callable[..., int] = flop_registry[atens]

    def flops(*args: Any, cube_math_type: int | None = None, **kwargs: Any) -> int:
        return formula(*args, **kwargs)

    register_flop_formula(operator, get_raw=True)(flops)


_register_flops(torch.ops.aclnn.convolution, torch.ops.aten.convolution)
_register_flops(torch.ops.aclnn.convolution_backward, torch.ops.aten.convolution_backward)
