"""The rules of convolution and its gradient: batching, decomposition, sharding, flops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverloadPacket

from ._batching import map_over_batch, one_by_one
from ._operator import PARTIAL, REPLICATE, Overload, Placement, Sharding, example_rows, shard

aclnn, aten = torch.ops.aclnn, torch.ops.aten


def _into_batch(tensor: Tensor, dim: int) -> Tensor:
    """Merges the batch of ``torch.vmap`` into the batch of the convolution."""
    return tensor.movedim(dim, 0).flatten(0, 1)


def _out_of_batch(tensor: Tensor, batch_size: int) -> Tensor:
    """The inverse."""
    return tensor.reshape(batch_size, tensor.shape[0] // batch_size, *tensor.shape[1:])


def _batched(info: Any, in_dims: tuple[Any, ...], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    operator = aclnn.convolution.default
    input_dim, *others = in_dims
    if input_dim is None or any(dim is not None for dim in others[:2]) or info.batch_size == 0:
        return map_over_batch(operator, info, in_dims, args, **kwargs)
    input, *rest = args
    result = operator(_into_batch(input, input_dim), *rest, **kwargs)
    return _out_of_batch(result, info.batch_size), 0


def _for_each(spatial: int, *values: Sequence[Any]) -> list[list[Any]]:
    """One value per spatial dimension, as ATen requires."""
    return [list(value) * spatial if len(value) == 1 else list(value) for value in values]


def _decomposed(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[Any],
    padding: Sequence[Any],
    dilation: Sequence[Any],
    transposed: bool,
    output_padding: Sequence[Any],
    groups: Any,
    *,
    cube_math_type: int | None = None,
) -> Any:
    stride, padding, dilation, output_padding = _for_each(input.dim() - 2, stride, padding, dilation, output_padding)
    return aten.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _decomposed_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[Any] | None,
    stride: Sequence[Any],
    padding: Sequence[Any],
    dilation: Sequence[Any],
    transposed: bool,
    output_padding: Sequence[Any],
    groups: Any,
    output_mask: Sequence[bool],
    *,
    cube_math_type: int | None = None,
) -> Any:
    stride, padding, dilation, output_padding = _for_each(input.dim() - 2, stride, padding, dilation, output_padding)
    return aten.convolution_backward(
        grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
        output_mask,
    )  # fmt: skip


def _channels(transposed: bool) -> tuple[Placement, Placement]:
    """The weight's dimensions of output and input channels."""
    return (shard(1), shard(0)) if transposed else (shard(0), shard(1))


def _sharding(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    **_: Any,
) -> Sequence[Sharding]:
    def with_bias(placement: Placement) -> list[Placement]:
        return [] if bias is None else [placement]

    replicated, examples, channels = REPLICATE, shard(0), shard(1)
    shardings: list[Sharding] = [
        ([replicated], [replicated, replicated, *with_bias(replicated)]),
        ([examples], [examples, replicated, *with_bias(replicated)]),
    ]
    if groups == 1:
        out_channels, in_channels = _channels(transposed)
        shardings.append(([channels], [replicated, out_channels, *with_bias(shard(0))]))
        if bias is None:
            shardings.append(([PARTIAL], [channels, in_channels]))
    return shardings


def _sharding_of_backward(
    grad_output: Any,
    input: Any,
    weight: Any,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
    **_: Any,
) -> Sequence[Sharding]:
    def results(*placements: Placement) -> list[Placement | None]:
        return [placement if wanted else None for placement, wanted in zip(placements, output_mask, strict=True)]

    replicated, examples, channels = REPLICATE, shard(0), shard(1)
    shardings: list[Sharding] = [
        (results(replicated, replicated, replicated), [replicated] * 3),
        (results(examples, PARTIAL, PARTIAL), [examples, examples, replicated]),
    ]
    if groups == 1:
        out_channels, in_channels = _channels(transposed)
        shardings.append((results(channels, in_channels, replicated), [replicated, channels, in_channels]))
        if not output_mask[2]:  # bias_sizes count all channels
            shardings.append((results(PARTIAL, out_channels, replicated), [channels, replicated, out_channels]))
    return shardings


def _flops_of(operator: OpOverloadPacket) -> Callable[..., int]:
    """The flop count of ATen's operator with the same arguments."""

    def flops(*args: Any, cube_math_type: int | None = None, **kwargs: Any) -> int:
        from torch.utils.flop_counter import flop_registry

        count: int = flop_registry[operator](*args, **kwargs)
        return count

    return flops


def _example() -> tuple[tuple[Tensor, Tensor], tuple[Any, ...]]:
    """An image of two channels, three filters, and the arguments after the bias."""
    return (example_rows().reshape(1, 2, 3, 4), example_rows(-1, 1).reshape(3, 2, 2, 2)), ([1], [0], [1], False, [0], 1)


def _forward_example() -> tuple[Any, ...]:
    tensors, parameters = _example()
    return *tensors, None, *parameters


def _backward_example() -> tuple[Any, ...]:
    tensors, parameters = _example()
    return torch.linspace(-1, 1, 18).reshape(1, 3, 2, 3), *tensors, [3], *parameters, [True] * 3


OVERLOADS = (
    Overload(
        operator=aclnn.convolution.default,
        decomposition=_decomposed,
        example=_forward_example,
        batching=_batched,
        sharding=_sharding,
        flops=_flops_of(aten.convolution),
    ),
    Overload(
        operator=aclnn.convolution_backward.default,
        decomposition=_decomposed_backward,
        example=_backward_example,
        batching=one_by_one(aclnn.convolution_backward.default),
        sharding=_sharding_of_backward,
        flops=_flops_of(aten.convolution_backward),
    ),
)
