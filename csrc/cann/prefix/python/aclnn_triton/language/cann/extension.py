"""The functions of ``triton.language.extra.cann.extension`` that have a meaning on simulated NPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton.language import core

parallel = core.range  # a loop whose iterations may run at once


def _number(value: Any) -> int:
    """A number that the kernel knows when it is compiled."""
    return int(core._unwrap_if_constexpr(value))


def _numbers(values: Any) -> list[int]:
    return [_number(value) for value in core._unwrap_if_constexpr(values)]


def _call(symbol: str, operands: Sequence[Any], kind: Any, shape: Sequence[int] | None, semantic: Any) -> Any:
    """A value of the operation ``symbol`` of lowering.py."""
    result = kind if shape is None else core.block_type(kind, list(shape))
    handles = [semantic.to_tensor(operand).handle for operand in operands]
    handle = semantic.builder.create_extern_elementwise(
        "aclnn", "", symbol, handles, result.to_ir(semantic.builder), True
    )
    return core.tensor(handle, result)


def _text(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _check(name: str, shape: Sequence[int], **lists: Sequence[Any]) -> None:
    for what, values in lists.items():
        if len(values) != len(shape):
            raise ValueError(
                f"{name}: {what} has {len(values)} numbers, expected one for each of {len(shape)} dimensions"
            )


@core.builtin
def extract_slice(ful: Any, offsets: Any, sizes: Any, strides: Any, _semantic: Any = None) -> Any:
    """The elements of a tensor that begin at offsets, as many as sizes, at distances of strides."""
    offsets, sizes, strides = list(core._unwrap_if_constexpr(offsets)), _numbers(sizes), _numbers(strides)
    _check("extract_slice", ful.shape, offsets=offsets, sizes=sizes, strides=strides)
    symbol = f"extract_slice {_text(sizes)} {_text(strides)}"
    return _call(symbol, [ful, *offsets], ful.dtype, sizes, _semantic)


@core.builtin
def insert_slice(ful: Any, sub: Any, offsets: Any, sizes: Any, strides: Any, _semantic: Any = None) -> Any:
    """The first tensor with those elements replaced by the second tensor's."""
    offsets, sizes, strides = list(core._unwrap_if_constexpr(offsets)), _numbers(sizes), _numbers(strides)
    _check("insert_slice", ful.shape, offsets=offsets, sizes=sizes, strides=strides)
    if list(map(_number, sub.shape)) != sizes:
        raise ValueError(f"insert_slice: the second tensor has the shape {list(sub.shape)}, expected the sizes {sizes}")
    sub = _semantic.cast(sub, ful.dtype)
    symbol = f"insert_slice {_text(sizes)} {_text(strides)}"
    return _call(symbol, [ful, sub, *offsets], ful.dtype, ful.shape, _semantic)


@core.builtin
def get_element(src: Any, indice: Any, _semantic: Any = None) -> Any:
    """One element of a tensor."""
    indices = list(core._unwrap_if_constexpr(indice))
    _check("get_element", src.shape, indice=indices)
    return _call("get_element", [src, *indices], src.dtype, None, _semantic)


@core.builtin
def flip(ptr: Any, dim: Any = -1, _semantic: Any = None) -> Any:
    """A tensor with a dimension in reverse order."""
    axis = _number(dim) % len(ptr.shape)
    return _call(f"flip {axis}", [ptr], ptr.dtype, ptr.shape, _semantic)


@core.builtin
def sort(ptr: Any, dim: Any = -1, descending: Any = False, _semantic: Any = None) -> Any:
    """A tensor whose last dimension is in order; NaN is the largest."""
    axis = _number(dim) % len(ptr.shape)
    if axis != len(ptr.shape) - 1:
        raise ValueError(f"sort: dim is {_number(dim)}, expected the last one")
    return _call(f"sort {int(_number(descending))}", [ptr], ptr.dtype, ptr.shape, _semantic)


@core.builtin
def cast(
    input: Any,
    dtype: Any,
    fp_downcast_rounding: Any = None,
    bitcast: Any = False,
    overflow_mode: Any = None,
    _semantic: Any = None,
) -> Any:
    """``tl.cast``; values out of range become the nearest, in every overflow mode."""
    return core.cast(input, dtype, fp_downcast_rounding, bitcast, _semantic=_semantic)


@core.builtin
def compile_hint(ptr: Any, hint_name: Any, hint_val: Any = None, _semantic: Any = None) -> None:
    """A hint for a device's compiler: no effect."""


@core.builtin
def multibuffer(src: Any, size: Any, _semantic: Any = None) -> None:
    """A hint for a device's compiler: no effect."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"{__name__}.{name} is not on simulated NPUs: it programs the units of a device")
