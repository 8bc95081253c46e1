"""All forms of an operator that ATen computes stand in one file of csrc/cann/rows, in a folder of its family."""

from __future__ import annotations

import re

import pytest

from aclnn_torch.host import PREFIX
from tests.aten_ops.files import ROWS, row_files
from tests.published import rows

# What a name has beside the operator's: a version, a form in place, a gradient, a weight in FRACTAL_NZ.
FORMS = re.compile(r"V\d+(?![a-z])|Inplace|Grad(?!ient)|Backward|WeightN[zZ]|Nz$")
# How CANN calls gradients of aclnnFlashAttentionVarLenScore.
OTHER_NAMES = {"Unpadding": "VarLen"}
# What follows says which operands are numbers, lists or tensors; "Scatter List" is another operator than "Scatter".
OPERANDS = re.compile(r"(?<=.)(Tensor|Scalar|Value|(?<!^Scatter)List|Dim|Out|Forward|s)$")


def operator_of(function: str) -> str:
    """The operator whose form a function is, in small letters, as CANN writes a name in several ways."""
    name = re.sub("^acl(nn)?", "", function)
    for other, usual in OTHER_NAMES.items():
        name = name.replace(other, usual)
    while (shorter := OPERANDS.sub("", FORMS.sub("", name))) != name:
        name = shorter
    return name.lower()


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        ("aclnnAddV3", "add"),
        ("aclnnInplaceAdds", "add"),
        ("aclnnRoiAlignV2Backward", "roialign"),
        ("aclnnRoiPoolingGradWithArgMax", "roipoolingwithargmax"),
        ("aclnnGroupedMatmulFinalizeRoutingWeightNzV2", "groupedmatmulfinalizerouting"),
        ("aclnnForeachPowScalarList", "foreachpow"),
        ("aclnnHardShrink", operator_of("aclnnHardshrinkBackward")),
        ("aclnnFlashAttentionUnpaddingScoreGradV5", operator_of("aclnnFlashAttentionVarLenScore")),
        ("aclnnApplyGradientDescent", "applygradientdescent"),
    ],
)
def test_forms_of_an_operator(function: str, operator: str) -> None:
    assert operator_of(function) == operator


def test_every_row_stands_in_one_file() -> None:
    assert {name for name, files in row_files().items() if len(files) > 1} == set()
    assert row_files().keys() == rows(PREFIX / "lib64" / "libopapi.so").keys()


def test_all_forms_of_an_operator_stand_in_one_file() -> None:
    operators: dict[str, dict[str, list[str]]] = {}
    for name, (file, *_) in row_files().items():
        operators.setdefault(operator_of(name), {}).setdefault(file, []).append(name)
    assert {operator: files for operator, files in operators.items() if len(files) > 1} == {}


def test_every_file_of_rows_has_a_folder_and_a_namespace_of_its_own() -> None:
    """Several files are compiled as one, where names in unnamed namespaces would meet."""
    files = {file for found in row_files().values() for file in found}
    assert {file for file in files if file.count("/") != 1} == set()
    for file in files:
        namespace = file.removesuffix(".cpp").replace("/", "_")
        assert f"\nnamespace aclnn_host::{namespace}_rows {{\n" in (ROWS / file).read_text(), file
