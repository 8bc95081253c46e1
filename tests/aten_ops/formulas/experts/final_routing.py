"""aclnnMoeFinalizeRouting.md, its V2, V3, V4 and V2Grad (ops-transformer). A dropped row adds nothing to a sum."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.experts import rows_at, rows_to
from tests.aten_ops.formulas import formula


class Results:
    """The results of the experts of each token, (tokens, experts of a token, size), and which of them count."""

    def __init__(self, expanded, positions, mode, tokens):
        # In modes 0 and 1 the positions have the first experts of all tokens, then the second ones.
        count = len(positions) // max(tokens, 1)
        positions = positions.reshape(count, tokens).T if mode < 2 else positions.reshape(tokens, count)
        rows = expanded.reshape(np.prod(expanded.shape[:-1]), expanded.shape[-1])
        self.values = rows_at(rows, positions.reshape(-1)).reshape(tokens, count, rows.shape[1])
        self.counts = positions >= 0

    def replace(self, chosen, values):
        self.values = np.where(chosen[..., None], values, self.values)
        self.counts |= chosen

    def total(self, bias, experts, scales, addends):
        values = self.values if bias is None else self.values + bias[experts]
        values = values if scales is None else values * scales[..., None]
        return np.where(self.counts[..., None], values, 0).sum(1) + sum(each for each in addends if each is not None)


@formula(
    "aclnnMoeFinalizeRouting",
    calls=[
        f"aclnnMoeFinalizeRouting expandedX={dtype}[6,4] x1={dtype}[3,4] x2Optional=null bias={dtype}[2,4] "
        f"scales={dtype}[3,2]:0,1.875,1.125,1.125,0.75,-0.375 expandedRowIdx=INT32[6]:2,1,4,3,0,5 "
        f"expandedExpertIdx=INT32[3,2]:0,1,0,1,1,0 out={dtype}[3,4]"
        for dtype in ("FLOAT", "BFLOAT16")
    ],
)
def moe_finalize_routing(expanded, x1, x2, bias, scales, positions, experts):
    return Results(expanded, positions, 0, len(scales)).total(bias, experts, scales, [x1, x2])


INDICES = {
    0: "4,2,1,7,0,5,6,3",
    1: "6,3,1,-1,0,7,8,4",
    2: "4,0,2,5,1,6,7,3",
    3: "6,0,3,7,1,8,-1,4",
}
EXPERTS = "INT32[4,2]:2,0,1,2,0,2,2,1"
SCALES = "[4,2]:2,1.25,1.5,0.25,2,2,-1.5,-1.25"


# Without scales, a token has one expert.
@formula(
    "aclnnMoeFinalizeRoutingV2",
    calls=[
        *(
            f"aclnnMoeFinalizeRoutingV2 expandedX=FLOAT[{'4,3' if mode % 2 else '8'},3] "
            f"expandedRowIdx=INT32[8]:{indices} x1Optional=FLOAT[4,3] x2Optional={x2} biasOptional=FLOAT[5,3] "
            f"scalesOptional=FLOAT{SCALES} expertIdxOptional={EXPERTS} dropPadMode={mode} out=FLOAT[4,3]"
            for (mode, indices), x2 in zip(INDICES.items(), ("FLOAT[4,3]", "null") * 2, strict=True)
        ),
        "aclnnMoeFinalizeRoutingV2 expandedX=FLOAT16[4,2] expandedRowIdx=INT32[4]:3,1,2,0 x1Optional=null "
        "x2Optional=null biasOptional=null scalesOptional=null expertIdxOptional=null dropPadMode=0 out=FLOAT16[4,2]",
        "aclnnMoeFinalizeRoutingV2 expandedX=FLOAT[4,1]:1,2,3,4 expandedRowIdx=INT32[4]:3,2,1,0 x1Optional=null "
        "x2Optional=null biasOptional=null scalesOptional=null expertIdxOptional=null dropPadMode=0 out=FLOAT[2,1]",
    ],
)
def moe_finalize_routing_v2(expanded, positions, x1, x2, bias, scales, experts, mode, outputs):
    tokens = outputs["out"].shape[0]
    return Results(expanded, positions, mode, tokens).total(bias, experts, scales, [x1, x2])


@formula(
    "aclnnMoeFinalizeRoutingV4",
    calls=[
        "aclnnMoeFinalizeRoutingV4 expandedX=FLOAT[4,3,5] expandedRowIdx=INT32[6]:3,-1,1,0,11,-1 x1Optional=null "
        "x2Optional=null biasOptional=null scalesOptional=null expertIdxOptional=null xOptional=null "
        "alpha1Optional=null alpha2Optional=null vOptional=null dropPadMode=1 zeroExpertRange=null "
        "copyExpertRange=null constantExpertRange=null k=2 out=FLOAT[3,5]",
        # The token itself counts although it has no row, and a row of the range of zeros does not.
        "aclnnMoeFinalizeRoutingV4 expandedX=FLOAT16[2,2,3] expandedRowIdx=INT32[6]:0,-1,1,-1,2,3 "
        "x1Optional=FLOAT16[2,3] x2Optional=null biasOptional=FLOAT16[7,3] scalesOptional=FLOAT16[2,3] "
        "expertIdxOptional=INT32[2,3]:0,4,3,2,6,1 xOptional=FLOAT16[2,3] alpha1Optional=FLOAT16[2,3] "
        "alpha2Optional=FLOAT16[2,3] vOptional=FLOAT16[2,3] dropPadMode=3 zeroExpertRange=[3,4] "
        "copyExpertRange=[4,5] constantExpertRange=[5,7] k=1 out=FLOAT16[2,3]",
    ],
)
def moe_finalize_routing_v4(
    expanded, positions, x1, x2, bias, scales, experts, x, alpha1, alpha2, v, mode, *attributes
):
    zero, copy, constant, k = attributes
    tokens = len(positions) // k if scales is None else len(scales)
    results = Results(expanded, positions, mode, tokens)
    if copy:
        results.replace((copy[0] <= experts) & (experts < copy[1]), x[:, None])
    if constant:
        kinds = np.clip(experts - constant[0], 0, constant[1] - constant[0] - 1)
        values = alpha1[kinds] * x[:, None] + alpha2[kinds] * v[kinds]
        results.replace((constant[0] <= experts) & (experts < constant[1]), values)
    if zero:
        results.counts &= (experts < zero[0]) | (experts >= zero[1])
    return results.total(bias, experts, scales, [x1, x2])


# Without scales, a token has one expert.
@formula(
    "aclnnMoeFinalizeRoutingV3",
    calls=[
        "aclnnMoeFinalizeRoutingV3 expandedX=FLOAT[4,2,3] expandedRowIdx=INT32[5]:7,-1,1,0,4 x1Optional=FLOAT[5,3] "
        "x2Optional=null biasOptional=FLOAT[4,3] scalesOptional=null expertIdxOptional=INT32[5,1]:3,1,0,1,2 "
        "xOptional=null alpha1Optional=null alpha2Optional=null vOptional=null dropPadMode=3 zeroExpertRange=null "
        "copyExpertRange=null constantExpertRange=null out=FLOAT[5,3]",
        # Rows in the order of experts; one range is null, and one is empty.
        "aclnnMoeFinalizeRoutingV3 expandedX=BFLOAT16[8,3] expandedRowIdx=INT32[8]:6,3,1,2,0,7,5,4 "
        "x1Optional=BFLOAT16[4,3] x2Optional=BFLOAT16[4,3] biasOptional=null scalesOptional=FLOAT[4,2] "
        "expertIdxOptional=INT32[4,2]:0,5,3,2,4,1,6,5 xOptional=BFLOAT16[4,3] alpha1Optional=BFLOAT16[2,3] "
        "alpha2Optional=BFLOAT16[2,3] vOptional=BFLOAT16[2,3] dropPadMode=0 zeroExpertRange=null copyExpertRange=[] "
        "constantExpertRange=[4,6] out=BFLOAT16[4,3]",
    ],
)
def moe_finalize_routing_v3(*arguments):
    return moe_finalize_routing_v4(*arguments, 1)


# In the gradient of its scale, a row that was dropped is zeros plus the bias, as in the kernels.
@formula(
    "aclnnMoeFinalizeRoutingV2Grad",
    calls=[
        "aclnnMoeFinalizeRoutingV2Grad gradY=FLOAT[4,3] expandedRowIdx=INT32[4]:3,2,1,0 expandedXOptional=null "
        "scalesOptional=null expertIdxOptional=null biasOptional=null dropPadMode=0 activeNum=3 expertNum=0 "
        "expertCapacity=0 gradExpandedXOut=FLOAT[3,3] gradScalesOut=null",
        *(
            f"aclnnMoeFinalizeRoutingV2Grad gradY={dtype}[4,3] expandedRowIdx=INT32[8]:{INDICES[2 + mode]} "
            f"expandedXOptional={dtype}{rows} scalesOptional={dtype}{SCALES} expertIdxOptional={EXPERTS} "
            f"biasOptional={bias} dropPadMode={mode} activeNum={active} expertNum=4 expertCapacity=3 "
            f"gradExpandedXOut={dtype}{rows} gradScalesOut={dtype}[4,2]"
            for dtype, mode, active, rows, bias in (
                ("FLOAT", 0, 5, "[5,3]", "FLOAT[4,3]"),
                ("FLOAT", 1, 0, "[4,3,3]", "FLOAT[4,3]"),
                ("BFLOAT16", 1, 0, "[4,3,3]", "null"),
            )
        ),
    ],
)
def moe_finalize_routing_v2_grad(gradient, positions, expanded, scales, experts, bias, mode, active, number, capacity):
    pairs, width = len(positions), gradient.shape[1]
    shape = (number, capacity) if mode == 1 else (min(active or pairs, pairs),)
    of_pairs = gradient.repeat(pairs // max(len(gradient), 1), 0)
    weighted = of_pairs if scales is None else of_pairs * scales.reshape(-1, 1)
    of_rows = rows_to(weighted, positions, np.prod(shape)).reshape(*shape, width)
    if scales is None:
        return of_rows
    rows = rows_at(expanded.reshape(np.prod(shape), width), positions)
    rows = rows if bias is None else rows + bias[experts.reshape(-1)]
    return of_rows, (rows * of_pairs).sum(1).reshape(scales.shape)
