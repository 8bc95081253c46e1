from __future__ import annotations

from tests.aten_ops.formula_helpers.numbers import signed
from tests.aten_ops.formulas import formula


# ops-math: aclnnAddLora.md. The weights are (pairs, layers, size of the product, size of what is multiplied). A row
# whose index is that of no pair keeps its values.
@formula(
    "aclnnAddLora",
    calls=[
        f"aclnnAddLora y={signed('3,5', 1, 'FLOAT16')} x={signed('3,2', 2, 'FLOAT16')} "
        f"weightB={signed('2,2,3,4', 3, 'FLOAT16')} indices=INT32[3]:1,2,0 "
        f"weightAOptional={signed('2,2,4,2', 4, 'FLOAT16')} layerIdx=1 scale=0.5 yOffset={offset} ySliceSize={size} "
        "out=FLOAT16[3,5]"
        for offset, size in ((1, 3), (2, 2), (0, -1))
    ]
    + [
        f"aclnnAddLora y={signed('2,3', 1, 'FLOAT16')} x={signed('2,2', 2, 'FLOAT16')} "
        f"weightB={signed('2,1,3,2', 3, 'FLOAT16')} indices=INT32[2]:1,0 weightAOptional=null layerIdx=0 scale=-2 "
        "yOffset=0 ySliceSize=3 out=FLOAT16[2,3]"
    ],
)
def add_lora(y, x, weight_b, indices, weight_a, layer, scale, offset, size):
    result = y.copy()
    columns = slice(offset, offset + (weight_b.shape[2] if size == -1 else size))
    for row, (pair, values) in enumerate(zip(indices, x, strict=True)):
        if 0 <= pair < len(weight_b):
            first = values if weight_a is None else weight_a[pair, layer] @ values
            product = weight_b[pair, layer] @ first * scale
            result[row, columns] += product[: columns.stop - columns.start]
    return result
