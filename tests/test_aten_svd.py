"""aclnnSvd, whose singular vectors have open signs, by the properties of its results (ops-math: aclnnSvd.md)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formula_helpers.types import unwritten
from tests.aten_ops.sweep import parse, run_call
from tests.cabi import SUCCESS


def results_of(line: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """The input and the outputs, in which complex numbers are not pairs."""
    *statuses, text, outputs = run_call(line)
    assert statuses == [SUCCESS, SUCCESS], text
    given = parse(line)[1]["input"]
    arrays = [np.asarray(output) for output in outputs]
    if given.dtype.startswith("COMPLEX"):
        arrays = [each[..., 0] + 1j * each[..., 1] for each in arrays]
    return np.resize(given.values, given.shape), arrays


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("dtype", "batch", "rows", "columns"),
    [
        ("FLOAT", "2,", 4, 3),
        ("FLOAT", "", 3, 5),
        ("FLOAT", "2,3,", 3, 3),
        ("DOUBLE", "", 4, 3),
        ("COMPLEX64", "", 3, 4),
    ],
)
def test_singular_values_and_vectors(dtype: str, batch: str, rows: int, columns: int, full: bool) -> None:
    """The input is u diag(sigma) v^H, and the columns of u and of v are orthonormal."""
    least = min(rows, columns)
    line = (
        f"aclnnSvd input={signed(f'{batch}{rows},{columns}', 1, dtype)} fullMatrices={str(full).lower()} "
        f"computeUV=true sigma={dtype}[{batch}{least}] u={dtype}[{batch}{rows},{rows if full else least}] "
        f"v={dtype}[{batch}{columns},{columns if full else least}]"
    )
    matrix, (sigma, u, v) = results_of(line)
    error = 1e-12 if dtype == "DOUBLE" else 1.5e-6
    expected = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(sigma, expected, rtol=0, atol=error * expected.max())
    for vectors in (u, v):
        products = np.swapaxes(vectors, -1, -2).conj() @ vectors
        np.testing.assert_allclose(products, np.broadcast_to(np.eye(vectors.shape[-1]), products.shape), atol=error)
    product = u[..., :least] * sigma[..., None, :] @ np.swapaxes(v, -1, -2).conj()[..., :least, :]
    np.testing.assert_allclose(product, matrix, rtol=0, atol=error * expected.max())


def test_vectors_that_are_not_asked_for_are_not_written() -> None:
    line = f"aclnnSvd input={signed('3,2', 2)} fullMatrices=false computeUV=false sigma=FLOAT[2] u=FLOAT[1] v=FLOAT[3]"
    matrix, (sigma, u, v) = results_of(line)
    np.testing.assert_allclose(sigma, np.linalg.svd(matrix, compute_uv=False), rtol=1e-6)
    arguments = parse(line)[1]
    np.testing.assert_array_equal(u, unwritten(arguments["u"]))
    np.testing.assert_array_equal(v, unwritten(arguments["v"]))
