"""By ops-nn: aclnnDynamicBlockQuantV2.md and aclnnGroupedDynamicBlockQuantV2.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.mx import numbers
from tests.aten_ops.formula_helpers.types import TYPES, away_from_zero, cast, single
from tests.aten_ops.formulas import formula

INT8 = 2


def quantized(x, min_scale, mode, dtype, block_rows, block_columns):
    """Quantised in blocks of the last two dimensions. A block of nothing but 0 has the scale 0."""
    *outer, rows, columns = x.shape
    down, across = -(-rows // block_rows), -(-columns // block_columns)
    padding = [(0, 0)] * len(outer) + [(0, down * block_rows - rows), (0, across * block_columns - columns)]
    blocks = np.abs(np.pad(x, padding)).reshape(*outer, down, block_rows, across, block_columns)
    scale = single(blocks.max((-3, -1)) / (127 if dtype == INT8 else TYPES[dtype][-1]))
    if min_scale > 0:
        scale = np.minimum(scale, single(1 / min_scale))
    of_elements = scale.repeat(block_rows, -2)[..., :rows, :].repeat(block_columns, -1)[..., :columns]
    # The quotient is rounded to FLOAT before it is rounded to the type: it may be halfway between two numbers.
    steps = np.where(of_elements == 0, 0, single(x / of_elements))
    if dtype != INT8:
        return cast(steps, dtype), scale
    rounded = away_from_zero(steps) if mode == "round" else np.rint(steps)
    return np.clip(rounded, -128, 127), scale


def calls_of(name, more=""):
    return [
        f'{name} x={x} minScale={least} roundModeOptional="{mode}" dstType={dtype} rowBlockSize={rows}'
        f" colBlockSize={columns}{more} yOut={out} scaleOut=FLOAT[{scale}]"
        for x, least, mode, dtype, rows, columns, out, scale in (
            (f"BFLOAT16[3,130]:{numbers(211)}", 2.0, "rint", 2, 1, 64, "INT8[3,130]", "3,3"),
            (f"BFLOAT16[3,130]:{numbers(211)}", 20.0, "rint", 36, 1, 64, "FLOAT8_E4M3FN[3,130]", "3,3"),
            (f"FLOAT16[2,130,3]:{numbers(211)}", 0.0, "round", 2, 128, 192, "INT8[2,130,3]", "2,2,1"),
            (f"FLOAT[2,3,70]:{numbers(211)}", 0.0, "", 35, 1, 64, "FLOAT8_E5M2[2,3,70]", "2,3,2"),
            ("FLOAT16[2,3]:0", 0.0, "rint", 36, 1, 64, "FLOAT8_E4M3FN[2,3]", "2,1"),
        )
    ]


@formula(
    "aclnnDynamicBlockQuant",
    "aclnnDynamicBlockQuantV2",
    calls=[*calls_of("aclnnDynamicBlockQuant"), *calls_of("aclnnDynamicBlockQuantV2", " dstTypeMax=0.0")],
)
def dynamic_block_quant(x, min_scale, mode, dtype, block_rows, block_columns, largest=0):
    return quantized(x, min_scale, mode, dtype, block_rows, block_columns)


def grouped_calls(name, more=""):
    return [
        f'{name} x={x} groupList=INT32[2]:{ends} minScale={least} roundModeOptional="rint" dstType={dtype}'
        f" rowBlockSize={rows} colBlockSize={columns} groupListType=0{more} yOut={out} scaleOut=FLOAT[{scale}]"
        for x, ends, least, dtype, rows, columns, out, scale in (
            (f"BFLOAT16[130,3]:{numbers()}", "129,130", 0.0, 35, 128, 64, "FLOAT8_E5M2[130,3]", "3,1"),
            (f"FLOAT16[3,130]:{numbers()}", "1,3", 3.0, 36, 1, 128, "FLOAT8_E4M3FN[3,130]", "5,2"),
            (f"FLOAT16[2,3,5]:{numbers()}", "2,3", 0.0, 36, 1, 64, "FLOAT8_E4M3FN[2,3,5]", "2,5,1"),
        )
    ]


# The scales of a group begin in the row whose number is that of whole blocks and of groups before it; the document has
# their number only. Rows after the last group are 0.
@formula(
    "aclnnGroupedDynamicBlockQuant",
    "aclnnGroupedDynamicBlockQuantV2",
    calls=[
        *grouped_calls("aclnnGroupedDynamicBlockQuant"),
        *grouped_calls("aclnnGroupedDynamicBlockQuantV2", " dstTypeMax=0.0"),
    ],
)
def grouped_dynamic_block_quant(x, ends, min_scale, mode, dtype, block_rows, block_columns, list_type, largest=0):
    rows, columns = x.shape[-2:]
    y = np.zeros(x.shape)
    scale = np.zeros((*x.shape[:-2], rows // block_rows + len(ends), -(-columns // block_columns)))
    for group, (begin, end) in enumerate(zip((0, *ends), ends, strict=False)):
        part = x[..., begin:end, :]
        y[..., begin:end, :], scales = quantized(part, min_scale, mode, dtype, block_rows, block_columns)
        first = begin // block_rows + group
        scale[..., first : first + scales.shape[-2], :] = scales
    return y, scale
