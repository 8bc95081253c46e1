"""Selects the Ascend product whose rules the host CANN follows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import _C
from ._warning import warn

if _problem := _C.product_problem():
    warn(_problem)

PRODUCTS = ("Ascend310P", "Ascend910", "Ascend910B", "Ascend910_93", "Ascend950", "host")


def set_product(name: str) -> None:
    """Selects the product whose dtypes and rules the operators on CPU tensors follow, for the whole process.

    Args:
        name: one of ``Ascend310P``, ``Ascend910``, ``Ascend910B`` (the default, unless the environment variable
            ``ACLNN_TORCH_PRODUCT`` is set), ``Ascend910_93``, ``Ascend950``, or ``host``, which accepts whatever any
            product accepts and float64 everywhere. A SoC name such as ``Ascend910B2`` selects its product.

    Raises:
        AclnnError: status 100000 for another name.
    """
    _C.set_product(name)


def get_product() -> str:
    """The name of the current product."""
    return _C.get_product()


@contextmanager
def product(name: str) -> Iterator[None]:
    """Selects a product for the body of a ``with`` statement, for the whole process."""
    before = get_product()
    set_product(name)
    try:
        yield
    finally:
        set_product(before)
