from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.experts import (
    INT4_VALUES,
    INT8_VALUES,
    PACKED_VALUES,
    SCALE_BITS,
    SCALES,
    groups_of,
)
from tests.aten_ops.formula_helpers.types import decoded, unpacked_to
from tests.aten_ops.formulas import formula

# Arguments that some versions do not have.
RESERVED = "antiquantScaleOptional=null antiquantOffsetOptional=null"
HAS_NO_OFFSET, HAS_TUNING = ("", "WeightNz"), ("V3", "WeightNzV2")


def call(version, weight, scale, groups="INT64[2]:1,2", list_type=1, n=8, **others):
    """A call. The first version names x and the weight in another way; the names of WeightNz do not end in Optional."""
    x, w, y = ("x", "w", "y") if version == "" else ("x1", "x2", "out")
    ending = "" if "WeightNz" in version else "Optional"
    arguments = {
        "bias": "null",
        "offset": "null",
        "pertokenScale": "FLOAT[4]:0.125,0.0625,0.5,0.25",
        "sharedInput": f"BFLOAT16[2,{n}]:0.5,-2,0.75,-1.5,3",
        "logit": "FLOAT[4]:2,0.5,1.5,-3",
        "rowIndex": "INT64[4]:1,0,1,2",
        "tuningConfig": "null",
    } | others
    text = f"aclnnGroupedMatmulFinalizeRouting{version} {x}=INT8[4,8]:{INT8_VALUES} {w}={weight} scale{ending}={scale}"
    for name in ("bias", "sharedInput", "logit", "rowIndex"):
        text += f" {name}{ending}={arguments[name]}"
    if version not in HAS_NO_OFFSET:
        text += f" offsetOptional={arguments['offset']} {RESERVED}"
    text += f" pertokenScaleOptional={arguments['pertokenScale']} groupList{ending}={groups} dtype=0"
    text += f" sharedInputWeight=0.5 sharedInputOffset=1 transpose{x.upper()}=false transpose{w.upper()}=false"
    tuning = f" tuningConfigOptional={arguments['tuningConfig']}" if version in HAS_TUNING else ""
    return f"{text} groupListType={list_type}{tuning} {y}=FLOAT[3,{n}]"


def calls_of_int4():
    bias = {"bias": "FLOAT[2,8]:5,-96,-5.5,-5,7,2,-0.5,68"}
    offset = {"offset": "FLOAT[2,1,8]:-0.75,1.5,-0.375,0.125,0.875"}
    scale = f"INT64[2,1,8]:{SCALE_BITS}"
    for version, more in (
        ("", {}),
        ("V2", offset),
        ("V3", {}),
        ("V3", offset),
        ("V3", {"tuningConfig": "[1]"}),
    ):
        yield call(version, f"INT4[2,8,8]:{INT4_VALUES}", scale, **bias, **more)
        yield call(version, f"INT32[2,8,1]:{PACKED_VALUES}", scale, "INT64[2]:1,4", 0, **bias, **more)
    for more in ({}, offset):
        yield call("WeightNzV2", f"INT4@NZ[2,8,8]:{INT4_VALUES}", scale, "INT64[2]:1,4", 0, **bias, **more)


def calls_of_int8(version):
    weight = f"INT8@NZ[2,8,40]:{INT8_VALUES}"  # in more than one block
    scale = f"FLOAT[2,40]:{SCALES}"
    yield call(version, weight, scale, n=40)
    yield call(version, weight, f"BFLOAT16[2,1,40]:{SCALES}", "INT64[2]:1,4", 0, n=40, rowIndex="INT32[4]:1,0,1,2")
    yield call(version, weight, scale, "INT64[2]:1,3", n=40, sharedInput="null", logit="null")
    yield call(version, weight, scale, "INT64[2]:1,3", n=40, pertokenScale="null")


def finalize_routing(x, weight, scale, bias, offset, token_scale, groups, shared, logit, row_index, *attributes):
    _, shared_weight, shared_offset, _, _, list_type, rows_of_result = attributes
    experts, n = len(weight), scale.shape[-1]
    weight, scale = unpacked_to(weight, n), decoded(scale).reshape(experts, n)
    result = np.zeros((rows_of_result, n))
    if shared is not None:
        result[shared_offset : shared_offset + len(shared)] += shared * shared_weight
    for i, rows in groups_of(groups, list_type):
        if bias is None:  # INT8 by INT8
            product = x[rows] @ weight[i] * scale[i]
        else:  # INT8 by INT4: the bias has the sums of 8 times the weight; the offset is that of the weight, scaled
            product = (x[rows] - 8) @ (weight[i] * scale[i]) + bias[i]
            product += 0 if offset is None else x[rows].sum(1, keepdims=True) * offset[i]
        for of_rows in (token_scale, logit):
            product = product if of_rows is None else product * of_rows[rows, None]
        np.add.at(result, row_index[rows], product)
    return result


# ops-transformer: aclnnGroupedMatmulFinalizeRouting.md, ...V2.md, ...V3.md, ...WeightNz.md, ...WeightNzV2.md.
@formula(
    "aclnnGroupedMatmulFinalizeRouting",
    "aclnnGroupedMatmulFinalizeRoutingV2",
    "aclnnGroupedMatmulFinalizeRoutingV3",
    "aclnnGroupedMatmulFinalizeRoutingWeightNz",
    "aclnnGroupedMatmulFinalizeRoutingWeightNzV2",
    calls=[*calls_of_int4(), *calls_of_int8("WeightNz"), *calls_of_int8("WeightNzV2")],
)
def grouped_matmul_finalize_routing(x, weight, scale, bias, *others, outputs):
    [out] = outputs.values()
    offset, _, _, *others = (None, None, None, *others) if len(others) == 11 else others
    return finalize_routing(
        x, weight, scale, bias, offset, *others[:11], out.shape[0]
    )  # after which is a configuration
