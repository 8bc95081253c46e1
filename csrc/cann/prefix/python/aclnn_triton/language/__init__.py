"""What triton-ascend adds to Triton's language, for upstream's Triton."""

from __future__ import annotations

import functools
import importlib
import math
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

EXTRA = "triton.language.extra"
FOLDER = str(Path(__file__).resolve().parent)


class _Finder:
    """Lets ``triton.language.extra`` find the package ``cann`` beside its own packages, ``cuda`` and ``hip``."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Triton's own module, with one folder more."""
        if name != EXTRA:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(FOLDER)
        return spec


def install() -> None:
    """Adds ``triton.language.extra.cann``."""
    extra = sys.modules.get(EXTRA)
    if extra is None:
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
    elif not hasattr(extra, "cann"):
        extra.__path__.append(FOLDER)
        importlib.import_module(f"{EXTRA}.cann")


@functools.lru_cache(maxsize=1)
def extend() -> None:
    """Lets upstream's Triton take what triton-ascend takes.

    These are sizes that are no powers of two, numbers as conditions of ``and`` and ``or``, ``care_padding``, HF32.
    """
    import triton.language as tl
    from triton import _utils
    from triton._C.libtriton import ir
    from triton.language import core, semantic

    def validate_block_shape(shape: Sequence[int]) -> int:
        for index, size in enumerate(shape):
            if isinstance(size, core.constexpr):
                size = size.value
            if not isinstance(size, int):
                raise TypeError(f"shape element {index} must be a constexpr int, got {type(size).__name__}")
            if size < 1:
                raise ValueError(f"shape element {index} is {size}, expected 1 or more")
        return math.prod(shape)

    _utils.validate_block_shape = validate_block_shape
    core.validate_block_shape = validate_block_shape

    def arange(self: Any, start: Any, end: Any, *, ret_ty: Any = None) -> Any:
        if not isinstance(start, int) or not isinstance(end, int):
            raise ValueError("tl.arange: start and end must be of the type tl.constexpr")
        if end <= start or not -(1 << 31) <= start < end <= 1 << 31:
            raise ValueError(f"tl.arange({start}, {end}): expected numbers of 32 bits, end greater than start")
        kind = tl.block_type(tl.int32, [end - start]) if ret_ty is None else ret_ty
        return self.tensor(self.builder.create_make_range(kind.to_ir(self.builder), start, end), kind)

    semantic.TritonSemantic.arange = arange
    # MLIR's check of the sizes. lowering.py refuses what it does not know.
    for part in (ir.module, ir.OpState):
        part.verify = lambda self: True

    def truth(method: Callable[..., Any]) -> Callable[..., Any]:
        def logical(self: Any, input: Any, other: Any) -> Any:
            return method(self, *(x if x.type.scalar.is_int1() else self.not_equal(x, 0) for x in (input, other)))

        return logical

    for name in ("logical_and", "logical_or"):
        setattr(semantic.TritonSemantic, name, truth(getattr(semantic.TritonSemantic, name)))

    precision = semantic.TritonSemantic._str_to_dot_input_precision

    def precision_of(self: Any, name: str) -> Any:
        return precision(self, "ieee" if name.lower() == "hf32" else name)

    semantic.TritonSemantic._str_to_dot_input_precision = precision_of

    load = tl.load

    @core.builtin
    @functools.wraps(load)
    def load_with_padding(*arguments: Any, care_padding: bool = True, **named: Any) -> Any:
        return load(*arguments, **named)

    tl.load = core.load = load_with_padding
