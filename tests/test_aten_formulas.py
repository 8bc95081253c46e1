"""Functions on ATen, compared with their formulas: see tests/aten_ops/formulas."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import cabi
from tests.aten_ops.abuse import fault_of_text
from tests.aten_ops.files import row_files
from tests.aten_ops.formula_helpers.types import unwritten
from tests.aten_ops.formulas import ABSENT, FILES, FORMULAS, WITHOUT_FORMULA
from tests.aten_ops.made_up import made_up
from tests.aten_ops.stored import is_stored_apart
from tests.aten_ops.sweep import LIBRARY, ROOT, SAMPLES, Number, Tensor, contents, dtype_of, is_output, parse, run_call
from tests.cabi import AICORE_EXCEPTION, PARAM_INVALID, PARAM_NULLPTR, SUCCESS, Dtype
from tests.published import rows

ALL = SAMPLES.read_text().splitlines()
LINES = [line for line in ALL if line.partition(" ")[0] in FORMULAS]
CALLS = LINES + [call for formula in FORMULAS.values() for call in formula.calls]


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


def computes_its_formula(line: str, *, strided: bool = False, may_refuse: bool = False) -> None:
    """A call has the results of its formula; one that may be refused says why."""
    name, arguments = parse(line)
    signature = [(kind, arguments[argument]) for kind, argument in rows(LIBRARY)[name]]
    formula = FORMULAS[name]
    *statuses, text, outputs = run_call(line, strided=strided)
    if may_refuse and statuses != [SUCCESS, SUCCESS]:
        assert statuses in ([PARAM_INVALID, SUCCESS], [PARAM_NULLPTR, SUCCESS], [SUCCESS, AICORE_EXCEPTION]), text
        assert text.startswith(name) and fault_of_text(text) == ""
        return
    assert statuses == [SUCCESS, SUCCESS], text
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "Mean of empty slice" is no error
        inputs = [as_value(value) for kind, value in signature if not is_output(kind)]
        outputs_of = {argument: arguments[argument] for kind, argument in rows(LIBRARY)[name] if "Out" in kind}
        further = {"outputs": outputs_of} if formula.reads_outputs else {}
        expected = formula.function(*inputs, **further)
    written = [value for kind, value in signature if "Out" in kind and value is not None]
    tensors = [each for value in written for each in (value if isinstance(value, list) else [value])]
    results = expected if isinstance(expected, (tuple, list)) else (expected,)
    for tensor, output, result in zip(tensors, outputs, results, strict=True):
        dtype = dtype_of(tensor)
        values = np.asarray(result)
        if np.iscomplexobj(values) or dtype.name.startswith("COMPLEX"):
            values = np.stack([values.real, values.imag], -1)
        if values.size == 0:  # the outputs arrive as JSON, which does not tell the shape of an empty array
            assert np.size(output) == 0
            continue
        assert np.shape(output) == values.shape
        if dtype in cabi.INTEGER:
            np.testing.assert_array_equal(output, values)
        else:
            atol = 0 if is_stored_apart(dtype, "") else 1e-15 if dtype == Dtype.DOUBLE else 1e-7
            np.testing.assert_allclose(output, values, rtol=tolerance(dtype, formula.error), atol=atol)
            held = np.real(unwritten(tensor).flat[0])
            if abs(held) < atol:  # it is close to 0, and so to an element that is written
                np.testing.assert_array_equal(np.asarray(output) == held, values == held)


@pytest.mark.parametrize("line", CALLS, ids=[f"{line.partition(' ')[0]}-{i}" for i, line in enumerate(CALLS)])
def test_formula(line: str) -> None:
    computes_its_formula(line)


# Optimizers that compute large tensors piece by piece, in a type that all their tensors may have.
IN_PIECES = {
    "FLOAT": ("Adadelta", "Adam", "AdamD", "AdamW", "Adamax", "Ftrl", "FusedEmaAdam", "GradientDescent"),
    "BFLOAT16": ("AdamD", "AdamW", "FusedEmaAdam", "GradientDescent"),
}


@pytest.mark.parametrize(("dtype", "name"), [(dtype, name) for dtype, names in IN_PIECES.items() for name in names])
def test_optimizers_of_large_tensors(dtype: str, name: str) -> None:
    """The formula of more elements than a piece has, whose number no piece divides; they repeat after 61."""
    line = next(line for line in LINES if line.startswith(f"aclnnApply{name} "))
    shape = next(each.shape for each in parse(line)[1].values() if isinstance(each, Tensor))
    of_shape = "FLOAT[" + ",".join(map(str, shape)) + "]"
    values = (",".join(str((i * step % 61 + 1) / 32) for i in range(61)) for step in (7, 11, 13, 17, 19, 23, 29))
    *pieces, end = line.split(of_shape)
    grown = "".join(f"{piece}FLOAT[40009]:{value}" for piece, value in zip(pieces, values, strict=False)) + end
    computes_its_formula(grown.replace("FLOAT", dtype))


# Functions of which a made-up call may have several right results, or an error that its sizes do not bound.
NOT_MADE_UP = {
    "the indices of equal elements are open": ("Cummax", "Cummin", "Kthvalue", "LightningIndexer", "Sort"),
    "the error grows with the matrix's condition": (
        *("Inverse", "LinalgCholesky", "LinalgQr", "Logdet", "Qr", "Slogdet", "TriangularSolve"),
    ),
    "near 0 the terms of x * scale + shift cancel": (
        *("BatchNormElemt", "FastLayerNorm", "GroupNormSilu", "GroupNormSiluV2", "GroupNormSwish", "InstanceNorm"),
        "LayerNormWithImplMode",
    ),
    "the distances are beside the points": ("CdistBackward",),
    "two sizes of the output are accepted": ("Resize",),
    "the input is bytes of any type": ("HansDecode",),
    "an integer output rounds as CANN's cast does": ("Linspace",),
    "a group without channels has no mean": ("GroupNorm",),
    "sums cancel, so the error is not relative to the result": ("FusedMatmul", "FusedPatchMlp", "GeGluV3Backward"),
    "the rounding of a checksum, which depends on the type, decides about a small error": ("MatmulAbftVerify",),
    "the median of nothing is no number, which integers do not have": ("Median", "NanMedian"),
    "the blocks of another size have another order": ("WeightQuantPreprocess",),
    "values that repeat are not sorted": ("MoeComputeExpertTokens",),
    "an element over its scale may be a tie": (
        *("AddRmsNormDynamicQuant", "AddRmsNormDynamicQuantV2", "DynamicQuantV2", "DynamicQuantV3", "DynamicQuantV4"),
        "RmsNormDynamicQuant",
    ),
    "the maxima and sums do not fit the scores, so that large terms cancel": ("FlashAttentionScoreGrad",),
    "the states grow and cancel": ("ChunkGatedDeltaRule", "RecurrentGatedDeltaRule"),
    "most sizes are fixed, and other calls are those of an empty query, which the documents leave open": (
        *("LightningIndexerGrad", "SparseFlashAttentionGrad", "SparseLightningIndexerGradKLLoss"),
    ),
    "almost all sizes are fixed, and large": ("MlaPreprocess", "MlaPreprocessV2"),
    "the norm may be of order 0, by which the document divides": ("EmbeddingRenorm",),
    "an index is not read, and may be any, where there is nothing to select": (
        *("Index", "IndexAddV2", "IndexAdd", "IndexCopy", "InplaceIndexCopy"),
    ),
    "the lengths of sequences are beside the sizes": ("CtcLoss", "DenseLightningIndexerSoftmaxLse"),
    "ATen copies images of one size whatever the scales, which are beside the sizes": (
        *("UpsampleBicubic2d", "UpsampleBicubic2dAA", "UpsampleBicubic2dAAGrad", "UpsampleBicubic2dBackward"),
        *("UpsampleBilinear2d", "UpsampleBilinear2dAA"),
        *("UpsampleBilinear2dAABackward", "UpsampleBilinear2dBackward", "UpsampleBilinear2dBackwardV2"),
        *("UpsampleLinear1d", "UpsampleLinear1dBackward", "UpsampleNearest2dBackward", "UpsampleNearest2dV2"),
        *("UpsampleNearest3dBackward", "UpsampleTrilinear3d", "UpsampleTrilinear3dBackward"),
    ),
}
MADE_UP_OF = [
    line
    for line in CALLS
    if line.partition(" ")[0].removeprefix("aclnn") not in {name for names in NOT_MADE_UP.values() for name in names}
]


# There are many files and folders, each with a property of its own.
some = settings(max_examples=max(10, settings().max_examples // 5))


@some
@given(data=st.data())
@pytest.mark.parametrize("file", sorted({FORMULAS[line.partition(" ")[0]].file for line in MADE_UP_OF}))
def test_made_up_calls(file: str, data: st.DataObject) -> None:
    line = data.draw(st.sampled_from([line for line in MADE_UP_OF if FORMULAS[line.partition(" ")[0]].file == file]))
    computes_its_formula(data.draw(made_up(line)), strided=data.draw(st.booleans()), may_refuse=True)


FOLDERS = {name: str(Path(files[0]).parent) for name, files in row_files().items()}


# Functions with an output that a mode or an absent argument leaves as it is, or rows that belong to no group.
KEEPING = {
    *("GroupedMatmul", "GroupedMatmulV2", "GroupedMatmulV3", "GroupedMatmulV4", "GroupedMatmulV5"),
    *("GroupedMatmulWeightNz", "LogSigmoidForward"),
    *("AddLayerNormQuant", "AddLayerNormQuantV2", "AddRmsNormDynamicQuant", "AddRmsNormDynamicQuantV2"),
    *("AddRmsNormQuant", "AddRmsNormQuantV2", "DequantSwigluQuant", "DequantSwigluQuantV2", "GroupedMatmulSwigluQuant"),
    *("GroupedMatmulSwigluQuantWeightNZ", "LayerNormQuant", "MoeInitRoutingQuantV2", "SwiGluQuant", "SwigluGroupQuant"),
    *("MoeTokenPermuteV2", "TopKTopPSample", "TopKTopPSampleV2", "BlockSparseAttention", "BlockSparseAttentionV2"),
}


@some
@given(data=st.data())
@pytest.mark.parametrize("folder", sorted(set(FOLDERS.values())))
def test_no_result_depends_on_other_memory(folder: str, data: st.DataObject) -> None:
    """Every function: the outcome is the same whatever bytes new memory has (mallopt's M_PERTURB).

    A function that succeeds has written its outputs, whatever they held.
    """
    sample = data.draw(st.sampled_from([line for line in ALL if FOLDERS.get(line.partition(" ")[0]) == folder]))
    line = data.draw(made_up(sample))
    outcomes = [
        run_call(line, environment={"MALLOC_PERTURB_": byte, "ACLNN_TEST_PATTERN": byte}) for byte in ("85", "170")
    ]
    if outcomes[0][:2] != (SUCCESS, SUCCESS) or line.partition(" ")[0].removeprefix("aclnn") in KEEPING:
        outcomes = [outcome[:3] for outcome in outcomes]
    assert repr(outcomes[0]) == repr(outcomes[1])


def test_functions_left_out_exist() -> None:
    assert {f"aclnn{name}" for names in NOT_MADE_UP.values() for name in names} <= set(FORMULAS)
    assert {f"aclnn{name}" for name in KEEPING} <= set(row_files())


def test_no_call_is_left_out() -> None:
    """A call of a function without a formula is not made: there are such calls of in-place forms that do not exist."""
    assert ABSENT.isdisjoint(rows(LIBRARY))


def test_every_other_function_has_a_formula() -> None:
    assert {f"aclnn{name}" for names in WITHOUT_FORMULA.values() for name in names} == set(row_files()) - set(FORMULAS)


def test_tests_of_functions_without_a_formula_exist() -> None:
    for reason in WITHOUT_FORMULA:
        assert (ROOT / "tests" / reason.partition(": ")[2]).exists()


def test_each_file_of_formulas_cites_its_documents() -> None:
    folder = ROOT / "tests" / "aten_ops" / "formulas"
    assert [path for path in FILES if ".md" not in (folder / path).read_text()] == []


def test_each_formula_stands_in_the_file_of_its_row() -> None:
    files = {name: files[0].removesuffix(".cpp") for name, files in row_files().items()}
    of_modules = {name: formula.file for name, formula in FORMULAS.items()}
    assert of_modules == {name: files[name] for name in FORMULAS}
    assert {str(path.with_suffix("")) for path in FILES} == set(of_modules.values())
