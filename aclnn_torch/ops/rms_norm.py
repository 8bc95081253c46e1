"""RMSNorm: see csrc/torch_ops/rms_norm.cpp."""

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
from ._functions import accepted, direct_call, overridden, wrong_kind
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

_rms_norm, _traced_rms_norm = direct_call("rms_norm", "rms_norm")


@public_function
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    r"""Root mean square normalisation: ``x / sqrt(mean(x^2) + eps) * weight``; as ``torch.nn.functional.rms_norm``.

    Calls aclnnRmsNorm, and aclnnRmsNormGrad for the gradient, which sums the weight's in float32.

    Args:
        input: a tensor of 1 to 8 dimensions, float32 or float16, bfloat16 from Ascend910B on, float64 on the ``host``
            product. The mean is taken over its last ``len(normalized_shape)`` dimensions.
        normalized_shape: the sizes of these dimensions.
        weight: of this shape and the input's dtype; from Ascend910B on also float32 for a 16-bit input. A 16-bit weight
            of a float32 input is widened. None: ones, which CANN needs a tensor for.
        eps: at least 0. None: the smallest step above 1 of the dtype computed in, float32 for 16-bit inputs.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        AclnnError: status 161002 for dtypes that are not accepted together, 561002 for shapes that do not match,
            rows of no elements (but on ``host``), or a negative eps.
    """
    if has_torch_function_variadic(input, weight):
        return overridden(rms_norm, (input, weight), input, normalized_shape, weight=weight, eps=eps)
    if not isinstance(input, Tensor):
        raise wrong_kind("rms_norm", "input", input, "a tensor")
    if weight is None or not isinstance(normalized_shape, (tuple, list)):
        normalized_shape = accepted("rms_norm", "normalized_shape", "List[int]", normalized_shape)
    if weight is None:
        weight = torch.ones(tuple(normalized_shape), dtype=input.dtype, device=input.device)
    elif not isinstance(weight, Tensor):
        raise wrong_kind("rms_norm", "weight", weight, "a tensor or None")
    elif tuple(weight.shape) != tuple(normalized_shape):
        raise RuntimeError(
            f"rms_norm: weight has shape {list(weight.shape)}, expected normalized_shape {list(normalized_shape)}"
        )
    elif input.dtype == torch.float32 and weight.dtype in (torch.float16, torch.bfloat16):
        weight = weight.float()
    if eps is None:
        eps = torch.finfo(torch.promote_types(input.dtype, torch.float32)).eps
    return (_traced_rms_norm if is_dynamo_compiling() else _rms_norm)(input, weight, eps)


@public_module
class RMSNorm(torch.nn.RMSNorm):
    """``torch.nn.RMSNorm`` through aclnn: see :func:`aclnn_torch.functional.rms_norm`."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalises over the last dimensions."""
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)


def _decomposed(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    real = working_dtype(x.dtype)
    wide = x.to(real)
    dims = list(range(x.dim() - gamma.dim(), x.dim()))
    rstd = torch.rsqrt((wide * wide).mean(dims, keepdim=True) + epsilon)
    return (wide * rstd * gamma.to(real)).to(x.dtype), rstd


def _decomposed_grad(dy: Tensor, x: Tensor, rstd: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    real = working_dtype(x.dtype)
    rows = x.dim() - gamma.dim()
    # rstd may have fewer dimensions than x, if x's are 1.
    rstd = rstd.reshape([*x.shape[:rows], *[1] * gamma.dim()])
    normed, scaled = x.to(real) * rstd, dy.to(real) * gamma.to(real)
    mean = (scaled * normed).mean(list(range(rows, x.dim())), keepdim=True)
    dx = (rstd * (scaled - normed * mean)).to(x.dtype)
    dgamma = dy.to(real) * normed
    return dx, dgamma.sum(list(range(rows))) if rows else dgamma


def _batched(
    info: Any, in_dims: tuple[int | None, ...], x: Tensor, gamma: Tensor, *epsilon: float
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    dim, gamma_dim = in_dims[:2]
    if dim is None or gamma_dim is not None:
        return map_over_batch(aclnn.rms_norm, info, in_dims, (x, gamma, *epsilon))
    x = x.movedim(dim, 0)
    if x.dim() <= MAX_RANK:
        return aclnn.rms_norm(x, gamma, *epsilon), (0, 0)
    # Flattened, so that the batch dimension cannot exceed the maximum rank.
    y, rstd = aclnn.rms_norm(x.reshape(-1, gamma.numel()), gamma.flatten(), *epsilon)
    rows = x.shape[: x.dim() - gamma.dim()]
    return (y.reshape(x.shape), rstd.reshape(*rows, *[1] * gamma.dim())), (0, 0)


def _sharding(x: Any, gamma: Any, epsilon: Any = None) -> Sequence[Sharding]:
    rows = map(shard, range(x.ndim - gamma.ndim))
    return [([row, row], [row, REPLICATE]) for row in (REPLICATE, *rows)]


def _sharding_of_grad(dy: Any, x: Any, rstd: Any, gamma: Any) -> Sequence[Sharding]:
    shardings: list[Sharding] = [([REPLICATE] * 2, [REPLICATE] * 4)]
    for dim in range(x.ndim - gamma.ndim):
        if dim < rstd.ndim and rstd.shape[dim] == x.shape[dim]:
            shardings.append(([shard(dim), PARTIAL], [*[shard(dim)] * 3, REPLICATE]))
    return shardings


OPERATOR = Operator(
    functions=(rms_norm,),
    modules=(RMSNorm,),
    overloads=(
        Overload(
            operator=aclnn.rms_norm.default,
            decomposition=_decomposed,
            example=lambda: (example_rows(), torch.linspace(0.5, 1.5, 6)),
            batching=_batched,
            nested=rowwise_nested(aclnn.rms_norm.default, "gamma"),
            sharding=_sharding,
        ),
        Overload(
            operator=aclnn.rms_norm_grad.default,
            decomposition=_decomposed_grad,
            example=lambda: (
                *(example_rows(1, -1), example_rows()),
                *(torch.linspace(0.5, 2, 4).reshape(4, 1), torch.linspace(0.5, 1.5, 6)),
            ),
            # Each sample has its own weight gradients, summed over its rows.
            batching=one_by_one(aclnn.rms_norm_grad.default),
            nested=rowwise_nested(aclnn.rms_norm_grad.default, "gamma"),
            sharding=_sharding_of_grad,
        ),
    ),
)
