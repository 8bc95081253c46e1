"""By ops-math: aclnnWeightQuantPreprocess.md."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

FLOAT4 = "1.5,-6,1.5,4,-1,0,2,3,-6,0.5,-0.5,-3,1,-1.5,6,-4,-2,2.5,-1"
SCALES = "1,0.5,4,16,2,0.25,8"
C0, ROWS = 64, 16


def part(matrix, rows, columns):
    """The matrix with rows and columns of zeros after its own, or without its last ones."""
    wide = np.pad(matrix, [(0, max(rows - len(matrix), 0)), (0, max(columns - matrix.shape[1], 0))])
    return wide[:rows, :columns]


def read_as_nz(matrix):
    """The matrix [k, n] is stored as its transpose is in FRACTAL_NZ; this is what is read as a tensor [k, n] in it."""
    k, n = matrix.shape
    wide = part(matrix.T, -(-n // ROWS) * ROWS, -(-k // C0) * C0)
    stored = wide.reshape(len(wide) // ROWS, ROWS, -1, C0).transpose(2, 0, 1, 3)
    blocks = stored.reshape(-(-n // C0), -(-k // ROWS), ROWS, C0)
    return part(blocks.transpose(1, 2, 0, 3).reshape(-(-k // ROWS) * ROWS, -1), k, n)


@formula(
    "aclnnWeightQuantPreprocess",
    calls=[
        f"aclnnWeightQuantPreprocess weight=FLOAT4_E2M1[{shape}]:{FLOAT4} weightScale=FLOAT8_E8M0[{scale}]:{SCALES}"
        f" weightOffsetOptional=null biasOptional={bias} xDtype=36 xScaleDtype=37 kGroupSize=32"
        f" outWeight=FLOAT4_E2M1@NZ[{shape}] outWeightScale=FLOAT8_E8M0[{scale}] outWeightOffsetOptional=null"
        f" outBiasOptional={bias}"
        for shape, scale, bias in (
            ("2,32,32", "2,1,32,2", "BFLOAT16[2,32]:-1.5,2.25,0.75,4,-0.125"),
            ("64,128", "1,128,2", "FLOAT16[128]"),
            ("128,64", "2,64,2", "null"),
        )
    ],
)
def weight_quant_preprocess(weight, scale, offset, bias, dtype, scale_dtype, group_size):
    matrices = weight.reshape(-1, *weight.shape[-2:])
    result = np.stack([read_as_nz(each) for each in matrices]).reshape(weight.shape)
    return (result, scale) if bias is None else (result, scale, bias)
