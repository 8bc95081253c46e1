"""All forms of an operator that ATen computes are in one file of csrc/cann/rows, in a folder of its family."""

from __future__ import annotations

import re

import pytest

from aclnn_torch.host import PREFIX
from tests.aten_ops.files import ROWS, row_files
from tests.published import rows

# Parts of a name that denote a form: a version, in-place, a gradient, a weight in FRACTAL_NZ.
FORMS = re.compile(r"V\d+(?![a-z])|Inplace|Grad(?!ient)|Backward|WeightN[zZ]|Nz$")
# A row: struct or not, its name, arguments and body. An argument: its kind, its name, and what follows.
ROW = re.compile(
    r'^(?:ACLNN(_STRUCT)?|ACL_FUNCTION)\(\s*(\w+),((?:[^{}"]|"[^"]*")*?)\) \{\n(.*?)^\}', re.DOTALL | re.MULTILINE
)
ARGUMENT = re.compile(r'\(([^()",]+), (\w+)(?:,\s+"([^"]*)")?')
# CANN's names for gradients of aclnnFlashAttentionVarLenScore.
OTHER_NAMES = {"Unpadding": "VarLen"}
# Suffixes for operands that are numbers, lists or tensors; "Scatter List" is another operator than "Scatter".
OPERANDS = re.compile(r"(?<=.)(Tensor|Scalar|Value|(?<!^Scatter)List|Dim|Out|Forward|s)$")


def operator_of(function: str) -> str:
    """The operator whose form a function is, in lower case, since CANN varies the spelling of a name."""
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
    """Several files are compiled as one, which merges their unnamed namespaces."""
    files = {file for found in row_files().values() for file in found}
    assert {file for file in files if file.count("/") != 1} == set()
    for file in files:
        namespace = file.removesuffix(".cpp").replace("/", "_")
        assert f"\nnamespace aclnn_host::{namespace}_rows {{\n" in (ROWS / file).read_text(), file


def with_headers(file: str) -> str:
    """The text of a file of rows, with the headers of its folder that it includes."""
    files = [file]
    for name in files:
        found = re.findall(rf'#include "cann/rows/({file.split("/")[0]}/\w+\.h)"', (ROWS / name).read_text())
        files += [header for header in found if header not in files]
    return "".join((ROWS / name).read_text() for name in files)


def sources_of_rows() -> list[str]:
    return [with_headers(file) for file in {file for found in row_files().values() for file in found}]


def test_every_row_is_read() -> None:
    """By the regular expression with which the next two tests find arguments."""
    for file in ROWS.rglob("*.cpp"):
        text = file.read_text()
        declared = re.findall(r"^(?:ACLNN(?:_STRUCT)?|ACL_FUNCTION)\(\s*(\w+),", text, re.MULTILINE)
        assert declared == [name for _, name, _, _ in ROW.findall(text)], file


def test_every_argument_is_read_or_called_unused() -> None:
    """Compilers detect neither an unread field of a struct nor an argument that duplicates another."""
    unread = []
    for source in sources_of_rows():
        for is_struct, name, arguments, body in ROW.findall(source):
            for kind, argument, _ in ARGUMENT.findall(arguments):
                is_read = re.search(rf"\b{argument}\b", body)
                is_read = is_read or (is_struct and re.search(rf"\brow\.{argument}\b", source))
                if not is_read and not kind.startswith(("Unused<", "Refused<")):
                    unread.append(f"{name}: {argument}")
    assert unread == []


def test_arguments_are_like_others_of_their_row() -> None:
    missing, count = [], 0
    for source in sources_of_rows():
        for _, name, arguments, _ in ROW.findall(source):
            pairs = ARGUMENT.findall(arguments)
            for kind, argument, other in pairs:
                if kind.startswith(("SameDtype<", "SameShape<", "Like<")):
                    count += 1
                    if other == argument or all(other != candidate for _, candidate, _ in pairs):
                        missing.append(f"{name}: {argument} is like {other}")
    assert missing == []
    assert count > 50
