from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.experts import (
    INT4_VALUES,
    PACKED_VALUES,
    SCALE_BITS,
    SCALES,
    groups_of,
    of_rows,
    unblocked,
)
from tests.aten_ops.formula_helpers.types import INT8, decoded, quantised, unpacked_to, unwritten
from tests.aten_ops.formulas import formula
from tests.aten_ops.sweep import dtype_of

LARGE_VALUES = "-75,-73,-109,2,-6,72,3,87,123,22,-39,-93,17,-57,64"
SMALL_BITS = "998244352,989855744,981467136"  # of 1/256, 1/512 and 1/1024 in FLOAT

# The arguments of the versions.
OPERANDS = ["x", "weight", "biasOptional", "scaleOptional", "offsetOptional", "antiquantScaleOptional"]
FIRST = [*OPERANDS, "antiquantOffsetOptional", "groupListOptional", "splitItem"]
ACTIVATION = ["activationInputOptional", "activationQuantScaleOptional", "activationQuantOffsetOptional"]
RESULTS = ["out", "activationFeatureOutOptional", "dynQuantScaleOutOptional"]
FOURTH = [*FIRST, "perTokenScaleOptional", *ACTIVATION, "groupType", "groupListType", "actType", *RESULTS]
ARGUMENTS = {
    "aclnnGroupedMatmul": [*FIRST, "y"],
    "aclnnGroupedMatmulV2": [*FIRST, "groupType", "y"],
    "aclnnGroupedMatmulV3": [*FIRST, "groupType", "y"],
    "aclnnGroupedMatmulV4": FOURTH,
    "aclnnGroupedMatmulV5": [*FOURTH, "tuningConfigOptional"],
    "aclnnGroupedMatmulWeightNz": [*FOURTH, "tuningConfigOptional", "quantGroupSize"],
}
DEFAULTS = {"splitItem": 3, "groupType": 0, "groupListType": 0, "actType": 0, "quantGroupSize": 0}


def call(name, x, weight, groups, out, **others):
    """A call; lists of tensors without their braces. Arguments that are not given have their default or are null."""
    lists = {key: value if isinstance(value, int) else f"{{{value}}}" for key, value in others.items()}
    given = {"x": f"{{{x}}}", "weight": f"{{{weight}}}", "groupListOptional": groups, **lists}
    given |= {"y": f"{{{out}}}", "out": f"{{{out}}}"}
    return f"{name} " + " ".join(f"{key}={given.get(key, DEFAULTS.get(key, 'null'))}" for key in ARGUMENTS[name])


def activated(values, act):
    """RELU, GELU_TANH, FAST_GELU or SILU."""
    if act == 1:
        return np.maximum(values, 0)
    if act == 2:
        return values / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)))
    return values / (1 + np.exp(-values * {4: 1.702, 5: 1}[act])) if act else values


def product(x, weight, bias, scale, offset, antiquant_scale, antiquant_offset, token_scale):
    """One product. Only INT8 by INT4 has both a scale in bits and a FLOAT bias."""
    columns = [each.shape[-1] for each in (scale, antiquant_scale) if each is not None]
    weight = unpacked_to(weight, columns[0]) if columns and weight.dtype == np.int64 else weight
    x = unpacked_to(x, len(weight)) if x.dtype == np.int64 else x
    k, added = len(weight), 0 if bias is None else bias
    if antiquant_scale is not None:
        weight = (weight + of_rows(antiquant_offset, k)) * of_rows(antiquant_scale, k)
    if scale is None:
        return x @ weight + added
    of_tokens = 1 if token_scale is None else token_scale.reshape(-1, 1)
    is_integer = bias is None or bias.dtype == np.int64
    if scale.dtype != np.int64:
        return (x @ weight + added) * scale * of_tokens if is_integer else (x @ weight) * scale * of_tokens + added
    dequantized = weight * of_rows(decoded(scale), k)
    if bias is None:  # INT4 by INT4
        return x @ dequantized * of_tokens
    if is_integer:  # INT8 by INT8
        return (x @ weight + bias) * decoded(scale)
    # INT8 by INT4; the offset is that of the weight, times the scale
    result = (x - 8) @ dequantized + bias
    return (result if offset is None else result + x.sum(1, keepdims=True) * offset) * of_tokens


def grouped_matmul(x, weight, lists, group_list, split_item, group_type, out, token_scale=None, list_type=0, act=0):
    """`lists` has the operands of matrices: the bias, the scale, the offset, and the two of an antiquantisation."""
    has_many_outputs = split_item < 2
    weight = [unblocked(each) for each in weight]
    if group_type == 2:  # groups of columns of x and of rows of the weight or the weights
        ends = np.cumsum([len(each) for each in weight])
        groups = groups_of(ends, 0) if has_many_outputs else groups_of(group_list, list_type)
        joined = np.concatenate(weight)
        results = [x[0][:, columns] @ joined[columns] for _, columns in groups]
        return results if has_many_outputs else np.stack(results)
    is_one = weight[0].ndim == 3

    def of_matrix(i, rows, x):
        operands = [(each[0][i] if is_one else each[i]) if each else None for each in lists]
        scale = None if token_scale is None else token_scale[0][rows]
        return activated(product(x, weight[0][i] if is_one else weight[i], *operands, scale), act)

    if group_type == -1:
        return [of_matrix(i, None, each) for i, each in enumerate(x)]
    bias, scale = lists[:2]
    if bias and scale and bias[0].dtype != np.int64 and scale[0].dtype == np.int64:  # INT8 by INT4
        list_type = 1  # "the operator does not check the value of groupListType, and takes it as 1"
    rows_of_x = np.concatenate(x)
    groups = groups_of(np.cumsum([len(each) for each in x]), 0) if len(x) > 1 else groups_of(group_list, list_type)
    results = [(rows, of_matrix(i, rows, rows_of_x[rows])) for i, rows in groups]
    if has_many_outputs:
        return [result for _, result in results]
    written, is_int8 = unwritten(out[0]), dtype_of(out[0]) == INT8
    for rows, result in results:  # rows after the groups are not written
        written[rows] = quantised(result, INT8) if is_int8 else result
    return written


OF_TWO = "FLOAT16[2,3] FLOAT16[2,4]", "FLOAT16[3,2] FLOAT16[4,3]"
OF_TWO_BF16 = "BFLOAT16[1,2,3] BFLOAT16[1,2,4]", "BFLOAT16[3,2] BFLOAT16[4,3]"
OF_THREE = "FLOAT[3,2]:-2,-0.375,1.75,1 FLOAT[3,2]:1.125,1.25,-1.5 FLOAT[3,2]:0.375,0.625,-2,1.25"


OF_ROWS = "FLOAT[5,3]:-1.375,0.5,-0.25,2,0.25,-1.875,1.125", "FLOAT[2,3,4]:-1,-0.125,-1.25,-2,1.625,1.875,0.75"
ANY_INT8 = f"INT8[5,4]:{LARGE_VALUES}", f"INT8[2,4,3]:{LARGE_VALUES},-9,82"
INT32_BIAS = "INT32[2,3]:112,151,-424,-7,-432,248"


def calls_of_v1():
    name = "aclnnGroupedMatmul"
    bias = "FLOAT16[2]:-2,-1.375 FLOAT16[3]:1.625,0.125,1.25"
    yield call(name, *OF_TWO, "null", "FLOAT16[2,2] FLOAT16[2,3]", splitItem=0, biasOptional=bias)
    yield call(name, "FLOAT[5,3]", OF_THREE, "[2,2,5]", "FLOAT[5,2]", splitItem=2)


# Without a groupType, lists that are not split meet one weight each (ops-transformer: aclnnGroupedMatmul.md).
@formula("aclnnGroupedMatmul", calls=[*calls_of_v1()])
def grouped_matmul_v1(
    x, weight, bias, scale, offset, antiquant_scale, antiquant_offset, group_list, split_item, *, outputs
):
    lists = bias, scale, offset, antiquant_scale, antiquant_offset
    return grouped_matmul(x, weight, lists, group_list, split_item, -1 if group_list is None else 0, outputs["y"])


def calls_of_v2_and_v3():
    name = "aclnnGroupedMatmulV2"
    bias = "FLOAT[2]:-2,-1.375 FLOAT[3]:1.625,0.125,1.25"
    out = "BFLOAT16[1,2,2] BFLOAT16[1,2,3]"
    yield call(name, *OF_TWO_BF16, "null", out, splitItem=1, groupType=-1, biasOptional=bias)
    yield call(name, "FLOAT[5,3]", OF_THREE, "[2,2,5]", "FLOAT[2,2] FLOAT[0,2] FLOAT[3,2]", splitItem=0)
    name = "aclnnGroupedMatmulV3"
    x = "FLOAT[1,3] FLOAT[2,3]:2,0.25,-1.5 FLOAT[1,3]:0.5"
    yield call(name, x, OF_THREE, "null", "FLOAT[4,2]", splitItem=2)
    yield call(name, x, OF_THREE, "INT64[3]:1,3,4", "FLOAT[4,2]", splitItem=2)
    yield call(name, "FLOAT[2,6]", "FLOAT[6,3]", "INT64[3]:2,2,5", "FLOAT[3,2,3]", groupType=2)
    yield call(name, *OF_ROWS, "INT64[2]:1,4", "FLOAT[5,4]", biasOptional="FLOAT[2,4]:-0.625,1.125,3")
    scale = f"UINT64[2,3]:{SMALL_BITS}"
    yield call(name, *ANY_INT8, "INT64[2]:2,5", "INT8[5,3]", biasOptional=INT32_BIAS, scaleOptional=scale)


# ops-transformer: aclnnGroupedMatmulV2.md, aclnnGroupedMatmulV3.md.
@formula("aclnnGroupedMatmulV2", "aclnnGroupedMatmulV3", calls=[*calls_of_v2_and_v3()])
def grouped_matmul_v2(x, weight, bias, scale, offset, antiquant_scale, antiquant_offset, *others, outputs):
    lists = bias, scale, offset, antiquant_scale, antiquant_offset
    return grouped_matmul(x, weight, lists, *others, outputs["y"])


def calls_of_v4():
    name = "aclnnGroupedMatmulV4"
    yield call(name, *OF_ROWS, "INT64[2]:1,4", "FLOAT[5,4]", groupListType=1, splitItem=2, biasOptional="FLOAT[2,4]")
    yield call(name, *OF_ROWS, "INT64[2]:1,4", "FLOAT[5,4]", biasOptional="FLOAT[2,4]")
    yield call(name, "FLOAT16[2,6]", "FLOAT16[6,3]", "INT64[2]:2,4", "FLOAT16[2,2,3]", groupType=2, groupListType=1)
    scale = f"UINT64[2,8]:{SCALE_BITS}"
    operands = f"INT4[3,8]:{INT4_VALUES}", f"INT4[2,8,8]:{INT4_VALUES}"
    yield call(name, *operands, "INT64[2]:1,3", "FLOAT16[3,8]", scaleOptional=scale)
    # Of the rows of INT8, the last one is not written.
    yield call(name, *ANY_INT8, "INT64[2,2]:1,2,0,2", "INT32[5,3]", groupListType=2, biasOptional=INT32_BIAS)
    scale = f"INT64[2,3]:{SMALL_BITS}"
    yield call(name, *ANY_INT8, "INT64[2]:2,5", "INT8[5,3]", scaleOptional=scale, biasOptional=INT32_BIAS)
    scale = "FLOAT[2,3]:0.00390625,0.001953125,0.0009765625"
    yield call(name, *ANY_INT8, "INT64[2]:2,5", "FLOAT16[5,3]", scaleOptional=scale, biasOptional=INT32_BIAS)
    lists = {
        f"antiquant{kind}Optional": f"FLOAT16[8]:{values} FLOAT16[8]:0.75,{values}"
        for kind, values in (("Scale", SCALES), ("Offset", "2,4,6,5,-2,-3,9"))
    }
    operands = "FLOAT16[3,8] FLOAT16[2,8]", f"INT8[8,8]:{LARGE_VALUES} INT8[8,8]:9,{LARGE_VALUES}"
    yield call(name, *operands, "null", "FLOAT16[3,8] FLOAT16[2,8]", splitItem=0, groupType=-1, **lists)


def calls_of_int8(name):
    """The INT8 operands of version 5 and its WeightNz."""
    weight = f"INT8@NZ[2,20,40]:{LARGE_VALUES},-9,82"  # in more than one block each way
    yield call(name, f"INT8[3,20]:{LARGE_VALUES}", weight, "INT64[2]:1,3", "INT32[3,40]")
    weight = f"INT8@NZ[2,4,3]:{LARGE_VALUES},-9,82" if "Nz" in name else ANY_INT8[1]
    for dtype, out, bias, acts in (
        ("BFLOAT16", "BFLOAT16", INT32_BIAS, (0, 5)),
        ("FLOAT", "BFLOAT16", "BFLOAT16[2,3]:0.75,-1.375,1.75,-1.5", (0,)),
        ("FLOAT", "FLOAT16", INT32_BIAS, (0, 1, 2, 4, 5)),
    ):
        scale = f"{dtype}[2,3]:0.00390625,0.00048828125,0.0009765625"
        others = {"scaleOptional": scale, "biasOptional": bias, "perTokenScaleOptional": "FLOAT[5]:1,0.25,0.0625,0.125"}
        for act in acts:
            yield call(name, ANY_INT8[0], weight, "INT64[2]:2,5", f"{out}[5,3]", actType=act, **others)


def calls_of_v5():
    name = "aclnnGroupedMatmulV5"
    bias = {"biasOptional": "FLOAT[2]:-2,-1.375 FLOAT[3]:1.625,0.125,1.25"}
    yield call(name, *OF_TWO_BF16, "null", "BFLOAT16[1,2,2] BFLOAT16[1,2,3]", splitItem=1, groupType=-1, **bias)
    yield call(name, *OF_ROWS, "INT64[2]:1,4", "FLOAT[5,4]", groupListType=1, splitItem=2, biasOptional="FLOAT[2,4]")
    weights = "FLOAT[2,3]:2,-0.375,0.5 FLOAT[3,3]"
    yield call(name, "FLOAT[2,6]", weights, "null", "FLOAT[2,3] FLOAT[2,3]", splitItem=0, groupType=2)
    # A weight of INT8 or INT4 whose antiquantisation has numbers for its columns or for groups of its rows too.
    for dtype, weight, shape in (
        ("BFLOAT16", f"INT4[2,8,8]:{INT4_VALUES}", "2,2,8"),
        ("FLOAT16", f"INT32[2,8,1]:{PACKED_VALUES}", "2,4,8"),
        ("FLOAT16", f"INT8[2,8,8]:{LARGE_VALUES}", "2,8"),
    ):
        of_weight = {
            "biasOptional": f"{'FLOAT' if dtype == 'BFLOAT16' else dtype}[2,8]:-0.75,1.5,-2,1,0.875",
            "antiquantScaleOptional": f"{dtype}[{shape}]:{SCALES}",
            "antiquantOffsetOptional": f"{dtype}[{shape}]:2,4,6,5,-2,0,-3,9,7",
        }
        yield call(name, f"{dtype}[3,8]:-0.375,2,0.75,1.5,-1.625", weight, "INT64[2]:1,3", f"{dtype}[3,8]", **of_weight)
    others = {"scaleOptional": f"UINT64[2,2,8]:{SCALE_BITS}", "perTokenScaleOptional": "FLOAT[3]:0.5,0.25,0.125"}
    for operands in (
        (f"INT4[3,8]:{INT4_VALUES}", f"INT4[2,8,8]:{INT4_VALUES}"),
        (f"INT32[3,1]:{PACKED_VALUES}", f"INT32[2,8,1]:{PACKED_VALUES}"),
    ):
        yield call(name, *operands, "INT64[2]:1,3", "BFLOAT16[3,8]", **others)
    operands = f"INT8[3,8]:{LARGE_VALUES}", f"INT4[2,8,8]:{INT4_VALUES}"
    others["biasOptional"] = "FLOAT[2,8]:95,-12,-5.5,-0.5,14,11,-6"
    yield call(name, *operands, "INT64[2]:1,2", "BFLOAT16[3,8]", **others)
    others |= {
        "scaleOptional": f"UINT64[2,1,8]:{SCALE_BITS}",
        "offsetOptional": "FLOAT[2,1,8]:-0.75,1.5,-0.375,0.125,0.25",
    }
    yield call(name, *operands, "INT64[2]:1,2", "FLOAT16[3,8]", **others)


def calls_of_weight_nz():
    x = "BFLOAT16[5,32]:-2.5,0.75,-0.5,1.5,3,-4,0.25"
    weight = "BFLOAT16@NZ[2,32,48]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25,-3.5,2.5,-0.375"
    yield call("aclnnGroupedMatmulWeightNz", x, weight, "INT64[2]:2,3", "BFLOAT16[5,48]", groupListType=1)


# ops-transformer: aclnnGroupedMatmulV4.md, aclnnGroupedMatmulV5.md, aclnnGroupedMatmulWeightNz.md.
@formula(
    "aclnnGroupedMatmulV4",
    "aclnnGroupedMatmulV5",
    "aclnnGroupedMatmulWeightNz",
    calls=[
        *calls_of_v4(),
        *calls_of_v5(),
        *calls_of_int8("aclnnGroupedMatmulV5"),
        *calls_of_int8("aclnnGroupedMatmulWeightNz"),
        *calls_of_weight_nz(),
    ],
)
def grouped_matmul_v4(x, weight, *others, outputs):
    *lists, token_scale, group_list, _, _, _, split_item, group_type, list_type, act = others[:14]
    results = outputs["out"], token_scale, list_type, act
    return grouped_matmul(x, weight, lists, group_list, split_item, group_type, *results)
