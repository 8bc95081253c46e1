from __future__ import annotations

from tests.aten_ops.formula_helpers.numbers import signed, whole
from tests.aten_ops.formulas import formula


# ops-math: aclnnNpuFormatCast.md. Only the places in memory change, from which the tests read the elements.
@formula(
    "aclnnNpuFormatCast",
    calls=[
        f"aclnnNpuFormatCast srcTensor={signed('17,3', 1, 'FLOAT16')} dstTensor=FLOAT16@NZ[17,3]",
        f"aclnnNpuFormatCast srcTensor={whole('3,33', 1, 100, 'INT8@NZ')} dstTensor=INT8[3,33]",
    ],
)
def format_cast(source):
    return source
