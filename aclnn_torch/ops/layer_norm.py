"""LayerNorm: see csrc/torch_ops/layer_norm.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function_variadic

from ._batching import map_over_batch, one_by_one
from ._decomposing import working_dtype
from ._elementwise import MAX_RANK
from ._functions import direct_call, overridden
from ._nested import rowwise_nested
from ._operator import (
    PARTIAL,
    REPLICATE,
    Operator,
    Overload,
    Sharding,
    example_rows,
    public_function,
    public_module,
    shard,
)

aclnn = torch.ops.aclnn

_layer_norm, _traced_layer_norm = direct_call("layer_norm", "layer_norm")


@public_function
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Layer normalisation: ``(x - mean) / sqrt(var + eps) * weight + bias``; as ``torch.nn.functional.layer_norm``.

    Calls aclnnLayerNorm, and aclnnLayerNormBackward for the gradients, which sums the weights' in float32.

    Args:
        input: a tensor of 1 to 8 dimensions, float32 or float16, bfloat16 from Ascend910B on, float64 on the ``host``
            product. Mean and variance are those of its last ``len(normalized_shape)`` dimensions.
        normalized_shape: the sizes of these dimensions.
        weight: of this shape and the input's dtype, or float32. None: ones.
        bias: of this shape and the weight's dtype; without a weight, as for a weight. None: zeros.
        eps: added to the variance.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for dtypes that are not accepted together, and shapes that do not match.
    """
    if has_torch_function_variadic(input, weight, bias):
        return overridden(layer_norm, (input, weight, bias), input, normalized_shape, weight=weight, bias=bias, eps=eps)
    return (_traced_layer_norm if is_dynamo_compiling() else _layer_norm)(input, normalized_shape, weight, bias, eps)


@public_module
class LayerNorm(torch.nn.LayerNorm):
    """``torch.nn.LayerNorm`` through aclnn: see :func:`aclnn_torch.functional.layer_norm`."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalises over the last dimensions."""
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


def _decomposed(
    input: Tensor, normalized_shape: Sequence[Any], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    real = working_dtype(input.dtype)
    wide = input.to(real)
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    mean = wide.mean(dims, keepdim=True)
    centered = wide - mean
    rstd = torch.rsqrt((centered * centered).mean(dims, keepdim=True) + eps)
    y = centered * rstd
    y = y if weight is None else y * weight.to(real)
    y = y if bias is None else y + bias.to(real)
    return y.to(input.dtype), mean, rstd


def _decomposed_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[Any],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    real = working_dtype(input.dtype)
    outer = list(range(input.dim() - len(normalized_shape)))
    inner = list(range(len(outer), input.dim()))
    dy = grad_out.to(real)
    xhat = (input.to(real) - mean) * rstd
    a = dy if weight is None else dy * weight.to(real)
    dx = rstd * (a - a.mean(inner, keepdim=True) - xhat * (a * xhat).mean(inner, keepdim=True))

    def of_weight(terms: Tensor, like: Tensor | None) -> Tensor:
        return (terms.sum(outer) if outer else terms).to(real if like is None else like.dtype)

    return (
        dx.to(input.dtype) if output_mask[0] else None,
        of_weight(dy * xhat, weight) if output_mask[1] else None,
        of_weight(dy, weight if bias is None else bias) if output_mask[2] else None,
    )


def _batched(info: Any, in_dims: Sequence[Any], input: Tensor, *rest: Any) -> tuple[Any, Any]:
    dim, _, *others = in_dims
    if dim is None or any(isinstance(other, int) for other in others) or input.dim() > MAX_RANK:
        return map_over_batch(aclnn.layer_norm, info, in_dims, (input, *rest))
    return aclnn.layer_norm(input.movedim(dim, 0), *rest), (0, 0, 0)


def _sharding(input: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Sequence[Sharding]:
    weights = [REPLICATE] * sum(each is not None for each in (weight, bias))
    rows = map(shard, range(input.ndim - len(normalized_shape)))
    return [([row] * 3, [row, *weights]) for row in (REPLICATE, *rows)]


def _sharding_of_backward(
    grad_out: Any,
    input: Any,
    normalized_shape: Sequence[int],
    mean: Any,
    rstd: Any,
    weight: Any,
    bias: Any,
    output_mask: Sequence[bool],
) -> Sequence[Sharding]:
    weights = [REPLICATE] * sum(each is not None for each in (weight, bias))
    shardings: list[Sharding] = []
    for row in (REPLICATE, *map(shard, range(input.ndim - len(normalized_shape)))):
        of_weights = REPLICATE if row == REPLICATE else PARTIAL
        results = [
            place if wanted else None for place, wanted in zip([row, of_weights, of_weights], output_mask, strict=True)
        ]
        shardings.append((results, [row, row, row, row, *weights]))
    return shardings


def _statistics() -> Tensor:
    """Statistics of four rows, for an example."""
    return torch.linspace(0.5, 2, 4).reshape(4, 1)


def _weights() -> Tensor:
    """A weight of six columns, for an example."""
    return torch.linspace(0.5, 1.5, 6)


OPERATOR = Operator(
    functions=(layer_norm,),
    modules=(LayerNorm,),
    overloads=(
        Overload(
            operator=aclnn.layer_norm.default,
            decomposition=_decomposed,
            example=lambda: (example_rows(), [6], _weights(), _weights(), 1e-5),
            batching=_batched,
            nested=rowwise_nested(aclnn.layer_norm.default, "normalized_shape"),
            sharding=_sharding,
            accepts_empty=True,
        ),
        Overload(
            operator=aclnn.layer_norm_backward.default,
            decomposition=_decomposed_backward,
            example=lambda: (
                *(example_rows(1, -1), example_rows(), [6], _statistics(), _statistics()),
                *(_weights(), _weights(), [True] * 3),
            ),
            # Each sample has its own weight gradients, summed over its rows.
            batching=one_by_one(aclnn.layer_norm_backward.default),
            nested=rowwise_nested(aclnn.layer_norm_backward.default, "normalized_shape"),
            sharding=_sharding_of_backward,
            accepts_empty=True,
        ),
    ),
)
