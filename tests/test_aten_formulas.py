"""Functions on ATen, compared with their formulas: see tests/aten_ops/formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import cabi
from tests.aten_ops.files import row_files
from tests.aten_ops.formulas import ABSENT, FILES, FORMULAS
from tests.aten_ops.sweep import LIBRARY, SAMPLES, Number, Tensor, contents, is_output, parse, run_call
from tests.cabi import SUCCESS, Dtype
from tests.published import rows

LINES = [line for line in SAMPLES.read_text().splitlines() if line.partition(" ")[0] in FORMULAS]
CALLS = LINES + [call for formula in FORMULAS.values() for call in formula.calls]


def dtype_of(tensor: Tensor) -> Dtype:
    return Dtype[tensor.dtype.replace("BFLOAT16", "BF16")]


def as_value(argument: Any) -> Any:
    """An argument of a call as a formula gets it."""
    if isinstance(argument, list):
        return [as_value(each) for each in argument]
    if isinstance(argument, Number):
        return argument.value
    return contents(argument) if isinstance(argument, Tensor) else argument


def tolerance(dtype: Dtype, error: float) -> float:
    """The relative error: half a unit in the last place for the rounding of 16 bits, `error` for FLOAT."""
    if dtype in (Dtype.DOUBLE, Dtype.COMPLEX128):
        return 1e-12
    return {Dtype.FLOAT16: 2**-11, Dtype.BF16: 2**-8, Dtype.COMPLEX32: 2**-11}.get(dtype, 0) + error


@pytest.mark.parametrize("line", CALLS, ids=[f"{line.partition(' ')[0]}-{i}" for i, line in enumerate(CALLS)])
def test_formula(line: str) -> None:
    name, arguments = parse(line)
    signature = [(kind, arguments[argument]) for kind, argument in rows(LIBRARY)[name]]
    formula = FORMULAS[name]
    with np.errstate(all="ignore"):
        expected = formula.function(*(as_value(value) for kind, value in signature if not is_output(kind)))
    written = [value for kind, value in signature if "Out" in kind and value is not None]
    tensors = [each for value in written for each in (value if isinstance(value, list) else [value])]
    *statuses, text, outputs = run_call(line)
    assert statuses == [SUCCESS, SUCCESS], text
    results = expected if isinstance(expected, (tuple, list)) else (expected,)
    for tensor, output, result in zip(tensors, outputs, results, strict=True):
        dtype = dtype_of(tensor)
        values = np.asarray(result)
        if np.iscomplexobj(values) or dtype.name.startswith("COMPLEX"):
            values = np.stack([values.real, values.imag], -1)
        assert np.shape(output) == values.shape
        if dtype in cabi.INTEGER:
            np.testing.assert_array_equal(output, values)
        else:
            np.testing.assert_allclose(
                output, values, rtol=tolerance(dtype, formula.error), atol=1e-7 if dtype != Dtype.DOUBLE else 1e-15
            )


def test_no_call_is_left_out() -> None:
    """A call of a function without a formula is not made: there are such calls of in-place forms that do not exist."""
    assert ABSENT.isdisjoint(rows(LIBRARY))


def test_each_formula_stands_in_the_file_of_its_row() -> None:
    files = {name: files[0].removesuffix(".cpp") for name, files in row_files().items()}
    of_modules = {
        name: formula.function.__module__.removeprefix("tests.aten_ops.formulas.").replace(".", "/")
        for name, formula in FORMULAS.items()
    }
    assert of_modules == {name: files[name] for name in FORMULAS}
    assert {str(path.with_suffix("")) for path in FILES} == set(of_modules.values())
