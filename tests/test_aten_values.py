"""Values of single functions on ATen where the documents and ATen differ."""

from __future__ import annotations

import json
import math
import re
import time
import unittest.mock
from typing import Any

import numpy as np
import pytest

from tests import cabi
from tests.aten_ops.files import row_files
from tests.aten_ops.formula_helpers.attention import call_of
from tests.aten_ops.limits import line_of, samples_by_function
from tests.aten_ops.sweep import ROOT, run_call, run_calls
from tests.cabi import AICORE_EXCEPTION, PARAM_INVALID, SUCCESS

# The common beginning of several calls.
BATCH_NORM = "aclnnBatchNorm weight=null bias=null momentum=0.5"
GROUP_NORM = "aclnnGroupNormSiluV2 gamma=null beta=null group=2 eps=1 activateSilu=true"
ADAM = (
    "aclnnApplyAdamWV2 varRef=FLOAT[1]:1 mRef=FLOAT[1]:0 vRef=FLOAT[1]:0 lr=0.5 beta1=0.5 beta2=0.75 weightDecay=0 "
    "eps=0 maximize=false"
)
UP = ["0", "0.25", "0.5", "1", "1.5", "2", "3", "-4"]
ANY = unittest.mock.ANY

# A call, and the expected contents of its outputs.
COMPUTED: dict[str, Any] = {
    # self - alpha * other in BOOL is whether it is not 0 (aclnnSub.md lists BOOL).
    "aclnnSub self=BOOL[4]:1,0,1,0 other=BOOL[4]:1,1,0,0 alpha=BOOL(true) out=BOOL[4]": [[0, 1, 1, 0]],
    "aclnnSub self=BOOL[2,1]:1,0 other=BOOL[2]:1,0 alpha=INT64(0) out=BOOL[2,2]": [[[1, 1], [0, 0]]],
    "aclnnInplaceSub selfRef=BOOL[4]:1,0,1,0 other=BOOL[4]:1,1,0,0 alpha=INT32(-3)": [[0, 1, 1, 0]],
    "aclnnSubs self=BOOL[2]:1,0 other=BOOL(true) alpha=INT64(2) out=BOOL[2]": [[0, 1]],
    "aclnnInplaceSubs selfRef=BOOL[2]:1,0 other=BOOL(true) alpha=BOOL(false)": [[1, 0]],
    # Slices with an index out of range are skipped.
    "aclnnScatterNdUpdate varRef=FLOAT[2,2]:1,2,3,4 indices=INT32[3,1]:2,1,-1 updates=FLOAT[3,2]:5,6,7,8,9,10": [
        [[1, 2], [7, 8]]
    ],
    "aclnnScatterNdUpdate varRef=FLOAT16[2,2]:1,2,3,4 indices=INT64[2,2]:1,2,1,0 updates=FLOAT16[2]:5,6": [
        [[1, 2], [6, 4]]
    ],
    # A negative slot means padding. In PA_NZ, a cache has its tokens in pieces of 32 bytes.
    "aclnnScatterPaCache key=FLOAT[3,1,1]:1,2,3 keyCacheRef=FLOAT[1,2,1,1]:9 slotMapping=INT32[3]:-1,1,-2 "
    'compressLensOptional=null compressSeqOffsetOptional=null seqLensOptional=null cacheMode="Norm"': [
        [[[[9]], [[2]]]]
    ],
    "aclnnScatterPaKvCache key=FLOAT[2,2,8]:1,2,3,4,5,6,7,8,9 keyCacheRef=FLOAT[1,2,2,8]:0 slotMapping=INT32[2]:1,-1 "
    "value=FLOAT[2,2,4]:1,2,3,4,5,6,7 valueCacheRef=FLOAT[1,1,2,8]:0 compressLensOptional=null "
    'compressSeqOffsetOptional=null seqLensOptional=null cacheModeOptional="PA_NZ" scatterModeOptional="None" '
    "stridesOptional=null offsetsOptional=null": [
        [[[[0] * 8, [1, 2, 3, 4, 5, 6, 7, 8]], [[0] * 8, [9, 1, 2, 3, 4, 5, 6, 7]]]],
        [[[[0] * 8, [1, 2, 3, 4, 5, 6, 7, 1]]]],
    ],
    # A row of probability 0 is skipped, whatever its contents, and its index may be invalid.
    "aclnnMoeTokenUnpermute permutedTokens=FLOAT[2,2]:1,2,nan,nan sortedIndices=INT32[2]:0,-1 "
    "probsOptional=FLOAT[1,2]:1,0 paddedMode=false restoreShapeOptional=null out=FLOAT[1,2]": [[[1, 2]]],
    "aclnnMoeTokenUnpermute permutedTokens=FLOAT[2,2]:1,2,nan,nan sortedIndices=INT32[2]:0,1 "
    "probsOptional=FLOAT[1,2]:3,0 paddedMode=false restoreShapeOptional=null out=FLOAT[1,2]": [[[3, 6]]],
    "aclnnMoeTokenUnpermute permutedTokens=FLOAT[2,1]:1,2 sortedIndices=INT32[2]:1,9 probsOptional=null "
    "paddedMode=false restoreShapeOptional=null out=FLOAT[2,1]": [[[2], [0]]],
    # With a range, every index outside it is skipped.
    "aclnnMoeTokenUnpermuteWithEp permutedTokens=FLOAT[2,1]:1,nan sortedIndices=INT32[4]:0,-1,1,9 "
    "probsOptional=FLOAT[2,2]:2,5,0,5 numTopk=2 rangeOptional=[0,2] paddedMode=false restoreShapeOptional=null "
    "out=FLOAT[2,1]": [[[2], [0]]],
    "aclnnMoeTokenUnpermuteGrad permuteTokens=FLOAT[2,1]:3,5 unpermutedTokensGrad=FLOAT[1,1]:2 "
    "sortedIndices=INT32[2]:1,-1 probsOptional=FLOAT[1,2]:4,0 paddedMode=false restoreShapeOptional=null "
    "permutedTokensGradOut=FLOAT[2,1] probsGradOut=FLOAT[1,2]": [[[0], [8]], [[10, 0]]],
    "aclnnMoeTokenUnpermuteWithEpGrad unpermutedTokensGrad=FLOAT[1,1]:2 sortedIndices=INT32[2]:1,-1 "
    "permutedTokensOptional=FLOAT[2,1]:3,5 probsOptional=FLOAT[1,2]:4,6 paddedMode=false restoreShapeOptional=null "
    "rangeOptional=[0,2] topkNum=2 permutedTokensGradOut=FLOAT[2,1] probsGradOut=FLOAT[1,2]": [[[0], [8]], [[10, 0]]],
    # With a routing map, but without padding, an index that matches no row is skipped, and so is a row of probability
    # 0. Probabilities are ordered by token, then by expert, as sortedIndices is.
    "aclnnMoeTokenUnpermuteWithRoutingMap permutedTokens=FLOAT[4,1]:1,2,3,nan sortedIndices=INT32[4]:0,-1,2,9 "
    "routingMapOptional=null probsOptional=null paddedMode=false restoreShapeOptional=[2,1] "
    "unpermutedTokens=FLOAT[2,1] outIndex=null permuteTokenId=null permuteProbs=null": [[[1], [3]]],
    "aclnnMoeTokenUnpermuteWithRoutingMap permutedTokens=FLOAT[4,1]:1,2,3,nan sortedIndices=INT32[4]:0,3,-1,2 "
    "routingMapOptional=INT8[2,3]:1,0,1,0,1,1 probsOptional=FLOAT[2,3]:2,7,0,7,inf,3 paddedMode=false "
    "restoreShapeOptional=[2,1] unpermutedTokens=FLOAT[2,1] outIndex=null permuteTokenId=null permuteProbs=FLOAT[4]": [
        [[2], [9]],
        [2, math.inf, 0, 3],
    ],
    "aclnnMoeTokenPermuteWithRoutingMapGrad permutedTokenOutputGrad=FLOAT[4,1]:1,2,3,4 "
    "permutedProbsOutputGradOptional=null sortedIndices=INT32[4]:0,-1,2,9 routingMapOptional=null numExperts=2 "
    "tokensNum=2 dropAndPad=false tokensGradOut=FLOAT[2,1] probsGradOutOptional=null": [[[1], [3]]],
    # In pages, a token with a negative index is not written. All of x is 1, rotated by the angle 0, divided by 1.
    "aclnnDequantRopeQuantKvcache x=FLOAT16[2,64]:1 cos=FLOAT16[2,16]:1 sin=FLOAT16[2,16]:0 "
    "kCacheRef=INT8[1,2,1,16]:9 vCacheRef=INT8[1,2,1,16]:8 indices=INT32[2]:-2,1 scaleK=FLOAT[16]:1 "
    "scaleV=FLOAT[16]:1 offsetKOptional=null offsetVOptional=null weightScaleOptional=null "
    "activationScaleOptional=null biasOptional=null sizeSplits=[32,16,16] "
    'quantModeOptional="static" layoutOptional="BSND" kvOutput=false cacheModeOptional="page" '
    "qOut=FLOAT16[2,2,16] kOut=null vOut=null": [
        [[[[9] * 16], [[1] * 16]]],
        [[[[8] * 16], [[1] * 16]]],
        [[[1] * 16] * 2] * 2,
    ],
    # Skipped rows do not count, even if their probability is inf or nan.
    "aclnnMoeTokenUnpermute permutedTokens=FLOAT[2,1]:1,2 sortedIndices=INT32[4]:0,9,1,8 "
    "probsOptional=FLOAT[2,2]:3,inf,4,nan paddedMode=false restoreShapeOptional=null out=FLOAT[2,1]": [[[3], [8]]],
    # A negative lambd of Hardshrink acts as 0.
    "aclnnHardshrinkBackward gradOutput=FLOAT[3]:5,6,7 self=FLOAT[3]:-1,0,1 lambd=FLOAT(-2) gradInput=FLOAT[3]": [
        [5, 0, 7]
    ],
    # Without rstdOut: normalises over the last dimension although gamma has two; xOut may be absent, too. (3 + 4, 1)
    # over sqrt((49 + 1) / 2) = 5.
    "aclnnAddRmsNorm x1=FLOAT16[2,2]:3,0,3,0 x2=FLOAT16[2,2]:4,1,4,1 gamma=FLOAT16[1,2]:5,10 epsilon=0 "
    "yOut=FLOAT16[2,2] rstdOut=null xOut=FLOAT16[2,2]": [[[7, 2], [7, 2]], [[7, 1], [7, 1]]],
    "aclnnAddRmsNorm x1=BFLOAT16[1,2]:3,0 x2=BFLOAT16[1,2]:4,1 gamma=BFLOAT16[1,2]:5,10 epsilon=0 yOut=BFLOAT16[1,2] "
    "rstdOut=null xOut=null": [[[7, 2]]],
    # (1, 0, 0) x (0, 1, 0) and (1, 0, 0) x (0, 0, 1); dim refers to self.
    "aclnnLinalgCross self=FLOAT[3]:1,0,0 other=FLOAT[2,3]:0,1,0,0,0,1 dim=0 out=FLOAT[2,3]": [[[0, 0, 1], [0, -1, 0]]],
    "aclnnLinalgCross self=FLOAT[2,3]:0,1,0,0,0,1 other=FLOAT[3]:1,0,0 dim=-1 out=FLOAT[2,3]": [
        [[0, 0, -1], [0, 1, 0]]
    ],
    # Integers are moved unchanged.
    "aclnnMaxUnpool2d self=INT8[1,1,2]:5,-7 indices=INT64[1,1,2]:3,0 outputSize=[2,2] out=INT8[1,2,2]": [
        [[[-7, 0], [0, 5]]]
    ],
    "aclnnIm2col self=INT64[1,2,2]:900,-2,3,4 kernelSize=[1,2] dilation=[1,1] padding=[0,1] stride=[1,2] "
    "out=INT64[2,4]": [[[0, -2, 0, 4], [900, 0, 3, 0]]],
    "aclnnIm2col self=UINT8[1,1,2]:200,7 kernelSize=[1,1] dilation=[1,1] padding=[0,0] stride=[1,1] out=UINT8[1,2]": [
        [[200, 7]]
    ],
    # The remainder by an integer 0 is the dividend; otherwise it has the divisor's sign.
    "aclnnRemainderTensorTensor self=INT32[4]:7,-7,7,-7 other=INT32[4]:3,3,0,0 out=INT32[4]": [[1, 2, 7, -7]],
    "aclnnRemainderTensorTensor self=INT64[2]:5,6 other=INT32[1]:0 out=INT64[2]": [[5, 6]],
    "aclnnInplaceRemainderTensorTensor selfRef=INT32[3]:5,-6,7 other=INT32[3]:0,0,-4": [[5, -6, -1]],
    "aclnnRemainderTensorScalar self=INT32[2]:5,-6 other=INT32(0) out=INT32[2]": [[5, -6]],
    "aclnnInplaceRemainderTensorScalar selfRef=INT32[2]:5,-6 other=INT32(0)": [[5, -6]],
    "aclnnRemainderScalarTensor self=INT32(7) other=INT32[3]:0,4,-4 out=INT32[3]": [[7, 3, -1]],
    # A single batch is multiplied by every matrix of the other tensor.
    "aclnnBatchMatMul self=FLOAT[2,1,2]:1,2,3,4 mat2=FLOAT[1,2,1]:1,10 out=FLOAT[2,1,1] cubeMathType=0": [
        [[[21]], [[43]]]
    ],
    "aclnnBatchMatMul self=FLOAT[1,1,2]:1,10 mat2=FLOAT[2,2,1]:1,2,3,4 out=FLOAT[2,1,1] cubeMathType=0": [
        [[[21]], [[43]]]
    ],
    "aclnnInplaceIndexCopy selfRef=FLOAT[3]:1,2,3 dim=0 index=INT32[2]:2,0 source=FLOAT[2]:8,9": [[9, 2, 8]],
    "aclnnInplacePut selfRef=INT32[2,2]:1,2,3,4 index=INT32[2]:3,0 source=INT32[2]:8,9 accumulate=false": [
        [[9, 2], [3, 8]]
    ],
    # The norm is one element in any number of dimensions.
    "aclnnForeachNorm x={FLOAT[2]:3,4} scalar=FLOAT(2) out={FLOAT[1,1]}": [[[5]]],
    "aclnnForeachNorm x={FLOAT[2]:3,4} scalar=FLOAT(1) out={FLOAT[1]}": [[7]],
    # Only the number of elements of out matters.
    "aclnnArange start=INT64(0) end=INT64(6) step=INT64(1) out=INT64[2,3]": [[[0, 1, 2], [3, 4, 5]]],
    "aclnnHistc self=INT32[5]:1,2,2,3,3 bins=3 min=INT32(1) max=INT32(3) out=INT32[3]": [[1, 2, 2]],
    "aclnnHistc self=INT64[4]:0,3,9,9 bins=2 min=INT32(0) max=INT32(0) out=FLOAT[2]": [[2, 2]],
    "aclnnIsInScalarTensor element=INT32(3) testElements=INT32[2]:3,4 assumeUnique=false invert=false out=BOOL[]": [1],
    "aclnnIsInScalarTensor element=INT32(3) testElements=INT32[2]:3,4 assumeUnique=false invert=true out=BOOL[]": [0],
    "aclnnAbs self=BOOL[2]:1,0 out=BOOL[2]": [[1, 0]],
    "aclnnFrac self=INT32[2]:5,-6 out=INT32[2]": [[0, 0]],
    "aclnnRoundDecimals self=INT32[2]:26,-4 decimals=-1 out=INT32[2]": [[30, 0]],
    "aclnnLtTensor self=UINT64[2]:1,9223372036854775808 other=UINT64[2]:2,3 out=BOOL[2]": [[1, 0]],
    "aclnnGeTensor self=UINT16[2]:65535,1 other=UINT16[2]:1,65535 out=BOOL[2]": [[1, 0]],
    "aclnnLogAddExp self=INT32[1]:0 other=INT32[1]:0 out=DOUBLE[1]": [[0.6931471824645996]],
    # Unsigned numbers keep values above the signed type's maximum, also in a wider output.
    "aclnnGather self=UINT16[1]:65535 dim=0 index=INT64[1]:0 out=INT32[1]": [[65535]],
    "aclnnTake self=UINT32[1]:4294967295 index=INT64[1]:0 out=DOUBLE[1]": [[4294967295]],
    "aclnnTriu self=UINT16[1,1]:65535 diagonal=0 out=FLOAT[1,1]": [[[65535]]],
    "aclnnReflectionPad1d self=UINT16[1,2]:65535,1 padding=[1,0] out=INT64[1,3]": [[[1, 65535, 1]]],
    "aclnnLtTensor self=INT64[2]:-1,1 other=UINT32[2]:0,4294967295 out=BOOL[2]": [[1, 1]],
    "aclnnGtScalar self=UINT16[2]:5,1 other=INT32(-1) out=BOOL[2]": [[1, 1]],
    "aclnnLtScalar self=UINT16[2]:5,1 other=FLOAT(1.5) out=BOOL[2]": [[0, 1]],
    "aclnnGeScalar self=UINT64[2]:9223372036854775808,1 other=INT64(2) out=BOOL[2]": [[1, 0]],
    # The norm is that of the sum in FLOAT: 1 / sqrt((1.005859375**2 + 0.671875**2) / 2).
    (
        "aclnnAddRmsNorm x1=BFLOAT16[1,2]:1,0.3359375 x2=BFLOAT16[1,2]:0.005859375,0.3359375 gamma=BFLOAT16[2]:1 "
        "epsilon=0 yOut=BFLOAT16[1,2] rstdOut=FLOAT[1,1] xOut=BFLOAT16[1,2]"
    ): [[[1.1796875, 0.78515625]], [[1.1691433191299438]], [[1.0078125, 0.671875]]],
    # nan passes the gradients of Hardtanh and Hardshrink, in vectors and in their remainder; the limits are FLOAT.
    "aclnnHardtanhBackward gradOutput=FLOAT[20]:1 self=FLOAT[20]:NaN min=FLOAT(-1) max=FLOAT(1) out=FLOAT[20]": [
        [1.0] * 20
    ],
    "aclnnHardshrinkBackward gradOutput=FLOAT[20]:1 self=FLOAT[20]:NaN lambd=FLOAT(0.5) gradInput=FLOAT[20]": [
        [1.0] * 20
    ],
    "aclnnHardshrink self=BFLOAT16[2]:0.6015625,0.59765625 lambd=FLOAT(0.6) out=BFLOAT16[2]": [[0.6015625, 0]],
    # The kernel selects values above the threshold: not nan.
    (
        "aclnnApplyFtrl varRef=FLOAT[1]:1 accumRef=FLOAT[1]:1 linearRef=FLOAT[1]:NaN grad=FLOAT[1]:0 lr=FLOAT[1]:1 "
        "l1=FLOAT[1]:0.5 l2=FLOAT[1]:0 lrPower=FLOAT[1]:-0.5 useLocking=false"
    ): [[0], [1], [pytest.approx(math.nan, nan_ok=True)]],
    # An absent running mean is 0, and an absent variance 1; either alone is updated by a batch (ops-nn,
    # norm/batch_norm/op_api/aclnn_batch_norm.cpp). (x - mean) / sqrt(variance + eps), and momentum 0.5 of the batch's
    # mean 2 and unbiased variance 2.
    f"{BATCH_NORM} input=FLOAT[1,2]:3,5 runningMean=null runningVar=null training=false eps=3 "
    "output=FLOAT[1,2] saveMean=null saveInvstd=null": [[[1.5, 2.5]]],
    f"{BATCH_NORM} input=FLOAT[1,2]:3,5 runningMean=FLOAT[2]:1,2 runningVar=null training=false eps=3 "
    "output=FLOAT[1,2] saveMean=null saveInvstd=null": [[1, 2], [[1, 1.5]]],
    f"{BATCH_NORM} input=FLOAT16[1,2]:3,5 runningMean=null runningVar=FLOAT[2]:0.25,4 training=false eps=0 "
    "output=FLOAT16[1,2] saveMean=null saveInvstd=null": [[0.25, 4], [[6, 2.5]]],
    f"{BATCH_NORM} input=FLOAT[2,1]:1,3 runningMean=FLOAT[1]:10 runningVar=null training=true eps=0 "
    "output=FLOAT[2,1] saveMean=FLOAT[1] saveInvstd=FLOAT[1]": [[6], [[-1], [1]], [2], [1]],
    f"{BATCH_NORM} input=FLOAT[2,1]:1,3 runningMean=null runningVar=FLOAT[1]:4 training=true eps=0 "
    "output=FLOAT[2,1] saveMean=FLOAT[1] saveInvstd=FLOAT[1]": [[3], [[-1], [1]], [2], [1]],
    # A single number has no unbiased variance.
    f"{BATCH_NORM} input=FLOAT[1,1,1,1,1]:3 runningMean=FLOAT[1]:1 runningVar=FLOAT[1]:1 training=true eps=1 "
    "output=FLOAT[1,1,1,1,1] saveMean=FLOAT[1] saveInvstd=FLOAT[1]": [
        [2],
        [pytest.approx(math.nan, nan_ok=True)],
        [[[[[0]]]]],
        [3],
        [1],
    ],
    # Reduction 3 divides by the size of the first dimension (ops-math, math/kl_div_v2). The losses are target (log
    # target - self), with target 1: 0, -1, -2, -3.
    "aclnnKlDiv self=FLOAT[2,2]:0,1,2,3 target=FLOAT[2,2]:1 reduction=3 logTarget=false out=FLOAT[]": [-3],
    "aclnnKlDiv self=FLOAT[]:2 target=FLOAT[]:1 reduction=3 logTarget=false out=FLOAT[]": [-2],
    # The gradients, -target and log target + 1 - self times that of the loss, are summed to the shapes of self and
    # target (ops-nn, loss/kl_div_loss_grad and kl_div_target_loss_grad).
    "aclnnKlDivBackward gradOutput=FLOAT[1]:4 self=FLOAT[2] target=FLOAT[2,2]:1,2,3,4 reduction=3 logTarget=false "
    "out=FLOAT[2]": [[-8, -12]],
    "aclnnKlDivBackward gradOutput=FLOAT[2,2]:1,2,3,4 self=FLOAT[1] target=FLOAT[2,2]:1,2,3,4 reduction=0 "
    "logTarget=false out=FLOAT[1]": [[-30]],
    "aclnnKlDivBackward gradOutput=FLOAT[1]:4 self=FLOAT[2,2] target=FLOAT[2]:1,2 reduction=1 logTarget=false "
    "out=FLOAT[2,2]": [[[-1, -2], [-1, -2]]],
    "aclnnKlDivTargetBackward gradOutput=FLOAT[1]:4 self=FLOAT[2,2]:1,2,3,4 target=FLOAT[2]:0 reduction=3 "
    "logTarget=true gradTarget=FLOAT[2]": [[-4, -8]],
    # The letters of an equation are renamed in order of appearance (ops-nn, aclnn_einsum.cpp).
    'aclnnEinsum tensors={FLOAT[2]:1,2 FLOAT[2]:3,4} equation="i,j->ij" output=FLOAT[2,2]': [[[3, 4], [6, 8]]],
    'aclnnEinsum tensors={FLOAT[1,1,1,2]:1,2 FLOAT[1,1,1,1,2]:3,4} equation="bhnD,bhnkD->bhnk" output=FLOAT[1,1,1,1]': [
        [[[[11]]]]
    ],
    # One step of Adam changes by lr times the gradient's sign, or by lr (m / (1 - beta1)) / sqrt(max / (1 - beta2)): m
    # is 0.25, v 0.0625, the largest v 4, in the types that ops-nn's aclnn_apply_adam_w_v2.cpp mixes.
    f"{ADAM} maxGradNormOptionalRef=null grad=FLOAT16[1]:0.5 step=FLOAT[1]:0 amsgrad=false": [[0.5], [0.25], [0.0625]],
    f"{ADAM} maxGradNormOptionalRef=FLOAT16[1]:4 grad=BFLOAT16[1]:0.5 step=INT64[1]:0 amsgrad=true": [
        [0.9375],
        [0.25],
        [0.0625],
        [4],
    ],
    # Without elements the inverse deviations are nan (ops-nn, norm/group_norm_silu).
    f"{GROUP_NORM} self=FLOAT[0,2,2] out=FLOAT[0,2,2] meanOut=FLOAT[0,2] rstdOut=FLOAT[0,2]": [[], [], []],
    f"{GROUP_NORM} self=FLOAT[1,0,2] out=FLOAT[1,0,2] meanOut=FLOAT[1,2] rstdOut=FLOAT[1,2]": [
        [[]],
        [[0, 0]],
        [pytest.approx([math.nan] * 2, nan_ok=True)],
    ],
    # silu(20) is 20. A block's largest magnitude, 80, is below 2**7, so its scale is 2**(6 - 2), and the elements are
    # rounded to FLOAT4_E2M1: 0, 0.3125, 0.625, 1.25, 1.875, 2.5, 3.75, -5 (ops-nn, activation/swiglu_group_quant).
    f"aclnnSwigluGroupQuant x=BFLOAT16[1,256]:{','.join(['20'] * 128 + UP * 16)} weightOptional=null "
    "groupIndexOptional=null scaleOptional=null dstType=40 quantMode=1 blockSize=0 roundScale=true clampLimit=-1.0 "
    "dstTypeMax=0.0 outputOrigin=false yOut=FLOAT4_E2M1[1,128] yScaleOut=FLOAT8_E8M0[1,2,2] "
    "yOriginOut=BFLOAT16[1,128]": [[[0, 0.5, 0.5, 1, 2, 2, 4, -4] * 16], [[[16, 16], [16, 16]]], ANY],
    # Long sums in 16 bits.
    "aclnnInplacePut selfRef=FLOAT16[1]:0 index=INT64[3000]:0 source=FLOAT16[3000]:1 accumulate=true": [[3000]],
    (
        "aclnnIndexPutImpl selfRef=BFLOAT16[1]:0 indices={INT64[600]:0} values=BFLOAT16[600]:1 "
        "accumulate=true unsafe=true"
    ): [[600]],
    "aclnnInplaceScatter selfRef=BFLOAT16[1]:0 dim=0 index=INT64[600]:0 src=BFLOAT16[600]:1 reduce=1": [[600]],
    # FLOAT16 cannot count beyond 2,048.
    "aclnnHistc self=FLOAT16[3000]:0.5 bins=1 min=FLOAT(0) max=FLOAT(1) out=FLOAT[1]": [[3000]],
    "aclnnProd self=FLOAT16[3]:300,300,0.001 dtype=1 out=FLOAT16[1]": [[90.0625]],
}

# A call, and a part of stage 1's refusal.
REFUSED = {
    "aclnnScatterPaKvCache key=FLOAT16[1,1,8] keyCacheRef=FLOAT16[1,1,1,8] slotMapping=INT32[1] value=FLOAT16[1,1,8] "
    "valueCacheRef=FLOAT16[1,1,1,8] compressLensOptional=null compressSeqOffsetOptional=null seqLensOptional=null "
    'cacheModeOptional="PA_NZ" scatterModeOptional="None" stridesOptional=null '
    "offsetsOptional=null": "a token of keyCacheRef has 8 elements, expected a multiple of 16, 32 bytes, as cacheMode "
    "is PA_NZ",
    # An image must have as many positions as its source, in self's dtype.
    "aclnnMaxUnpool2d self=FLOAT[1,2,2] indices=INT64[1,2,2]:0,1,2,0 outputSize=[1,3] out=FLOAT[1,1,3]": "outputSize "
    "is [1, 3], expected as many elements as self has, [2, 2]",
    "aclnnMaxUnpool2d self=FLOAT[1,1,2] indices=INT64[1,1,2]:0,1 outputSize=[2,2] out=DOUBLE[1,2,2]": "out has dtype "
    "DOUBLE, expected FLOAT",
    "aclnnMaxUnpool2d self=FLOAT[1,0,2] indices=INT64[1,0,2] outputSize=[2,2] out=FLOAT[1,2,2]": "the sizes of self is "
    "[0, 2], expected numbers from 1",
    "aclnnAdaptiveMaxPool2d self=FLOAT[1,2,2] outputSize=[0,1] outputOut=FLOAT[1,0,1] indicesOut=INT64[1,0,1]": (
        "outputSize is [0, 1], expected numbers from 1"
    ),
    "aclnnIm2col self=FLOAT[2,2] kernelSize=[1,1] dilation=[1,1] padding=[0,0] stride=[1,1] out=FLOAT[2,2]": "self has "
    "2 dimensions, expected 3 to 4",
    "aclnnIm2col self=FLOAT[1,2,2] kernelSize=[3,1] dilation=[1,1] padding=[0,0] stride=[1,1] out=FLOAT[3,2]": (
        "kernelSize is [3, 1], expected windows that fit into self, [1, 2, 2], with padding [0, 0] and dilation [1, 1]"
    ),
    "aclnnAddRmsNorm x1=FLOAT[1,2] x2=FLOAT[1,2] gamma=FLOAT[1,2] epsilon=0 yOut=FLOAT[1,2] rstdOut=null xOut=null": (
        "x1 has dtype FLOAT, expected FLOAT16 or BFLOAT16 as rstdOut is null"
    ),
    "aclnnAddRmsNorm x1=FLOAT16[3,2] x2=FLOAT16[3,2] gamma=FLOAT16[2] epsilon=0 yOut=FLOAT16[3,2] rstdOut=null "
    "xOut=null": ("gamma has shape [2], expected [1, 2] as rstdOut is null"),
    "aclnnAddRmsNorm x1=FLOAT[2,2] x2=FLOAT[2,2] gamma=FLOAT[1,2] epsilon=0 yOut=FLOAT[2,2] rstdOut=FLOAT[1,1] "
    "xOut=FLOAT[2,2]": "gamma has shape [1, 2], expected the last dimensions of x1, [2, 2]",
    "aclnnAddRmsNorm x1=FLOAT[2,2] x2=FLOAT[1,2] gamma=FLOAT[2] epsilon=0 yOut=FLOAT[2,2] rstdOut=FLOAT[2,1] "
    "xOut=FLOAT[2,2]": "x2 has shape [1, 2], expected [2, 2]",
    "aclnnHardtanhBackward gradOutput=FLOAT[1] self=FLOAT[2] min=FLOAT(0) max=FLOAT(1) out=FLOAT[2]": "gradOutput has "
    "shape [1], expected [2]",
    "aclnnHardtanhBackward gradOutput=FLOAT16[2] self=FLOAT[2] min=FLOAT(0) max=FLOAT(1) out=FLOAT[2]": "gradOutput "
    "has dtype FLOAT16, expected FLOAT",
    "aclnnSoftshrink self=FLOAT[1] lambd=FLOAT(-1) out=FLOAT[1]": "aclnnSoftshrink: lambd is -1, expected 0 or more",
    "aclnnSoftshrinkBackward gradOutput=FLOAT[1] self=FLOAT[1] lambd=FLOAT(-1) gradInput=FLOAT[1]": "lambd is -1, "
    "expected 0 or more",
    "aclnnGroupNormSilu self=FLOAT[1,2] gamma=FLOAT[1,2] beta=null group=1 eps=1 out=FLOAT[1,2] meanOut=FLOAT[1,1] "
    "rstdOut=FLOAT[1,1]": "gamma has 2 dimensions, expected 1",
    "aclnnGroupNormSilu self=FLOAT16[1,2] gamma=FLOAT16[2] beta=FLOAT[2] group=1 eps=1 out=FLOAT16[1,2] "
    "meanOut=FLOAT16[1,1] rstdOut=FLOAT16[1,1]": "beta has dtype FLOAT, expected FLOAT16",
    # Arguments that must match another.
    "aclnnInterleaveRope x=FLOAT[2,3,2,64] cos=FLOAT[2,1,2,64] sin=FLOAT16[2,1,2,64] out=FLOAT[2,3,2,64]": "sin has "
    "dtype FLOAT16, expected FLOAT as cos has; cast one of them",
    "aclnnApplyTopKTopP logits=FLOAT[3,4] p=FLOAT[3] k=INT32[3] out=FLOAT[4,3]": "out has shape [4, 3], expected "
    "[3, 4] as logits has",
    "aclnnMoeFinalizeRouting expandedX=FLOAT[1,2] x1=FLOAT[1,2] x2Optional=FLOAT16[1,2] bias=FLOAT[1,2] "
    "scales=FLOAT[1,1] expandedRowIdx=INT32[1] expandedExpertIdx=INT32[1,1] out=FLOAT[1,2]": "x2Optional has dtype "
    "FLOAT16, expected FLOAT as expandedX has",
    "aclnnAxpyV2 self=FLOAT[2,3] other=FLOAT[3] alpha=FLOAT[1] out=FLOAT[2,3]": "other has shape [3], expected [2, 3] "
    "as self has; shapes are not broadcast",
    "aclnnMaxN tensors={FLOAT[2] FLOAT16[2]} out=FLOAT[2]": "tensors has dtype FLOAT16, expected FLOAT as out has",
    # Checks of unsupported calls.
    "aclnnKlDiv self=FLOAT[2] target=FLOAT[2] reduction=4 logTarget=false out=FLOAT[]": "0 to 3 (none, mean, sum",
    "aclnnKlDivBackward gradOutput=FLOAT[2,2] self=FLOAT[1] target=FLOAT[2,2] reduction=0 logTarget=false "
    "out=FLOAT[2,2]": "out has shape [2, 2], expected [1]",
    "aclnnKlDivBackward gradOutput=FLOAT[3,2,2] self=FLOAT[2,2] target=FLOAT[2,2] reduction=0 logTarget=false "
    "out=FLOAT[3,2,2]": "gradOutput has shape [3, 2, 2], expected one that broadcasts to [2, 2]",
    "aclnnKlDivTargetBackward gradOutput=FLOAT[2,2] self=FLOAT[2,2] target=FLOAT[2] reduction=0 logTarget=false "
    "gradTarget=FLOAT[2,2]": "gradTarget has shape [2, 2], expected [2]",
    'aclnnEinsum tensors={FLOAT[2] FLOAT[2]} equation="i,j->ji" output=FLOAT[2,2]': 'equation is "i,j->ji", expected',
    f"{ADAM} maxGradNormOptionalRef=null grad=DOUBLE[1] step=FLOAT[1] amsgrad=false": "grad has dtype DOUBLE beside "
    "varRef, which has FLOAT, expected",
    f"{ADAM} maxGradNormOptionalRef=null grad=INT32[1] step=FLOAT[1] amsgrad=false": "grad has dtype INT32, expected",
    f"{ADAM} maxGradNormOptionalRef=null grad=FLOAT[1] step=FLOAT[2] amsgrad=false": "step has shape [2], expected one",
    # ATen's text follows a sentence of the host's.
    "aclnnMm self=FLOAT[2,3] mat2=FLOAT[2,3] out=FLOAT[2,3] cubeMathType=0": "aclnnMm: the arguments do not fit "
    "together: self FLOAT [2, 3], mat2 FLOAT [2, 3], out FLOAT [2, 3]; ATen, which computes it, says: mat1 and mat2",
    "aclnnOneHot self=INT64[2] numClasses=-1 onValue=FLOAT[1] offValue=FLOAT[1] axis=-1 out=FLOAT[2,1]": (
        "numClasses is -1, expected 0 or more"
    ),
    "aclnnArange start=INT64(0) end=INT64(6) step=INT64(1) out=INT64[5]": "out has 5 elements, expected 6",
    "aclnnRange start=INT64(0) end=INT64(4) step=DOUBLE(0.5) out=INT64[9]": "expected a floating-point dtype; cast out",
    "aclnnGather self=FLOAT[3] dim=0 index=FLOAT[2] out=FLOAT[2]": "index has dtype FLOAT, expected INT32 or INT64",
    "aclnnTrace self=COMPLEX32[2,2] out=COMPLEX32[]": "the host CANN has no kernel for self COMPLEX32, out COMPLEX32",
    "aclnnTrace self=COMPLEX32[3000,3000] out=COMPLEX32[]": "the host CANN has no kernel for self COMPLEX32",
    "aclnnLtTensor self=INT64[2] other=UINT64[2] out=BOOL[2]": "expected UINT64 for both",
    "aclnnGtScalar self=UINT64[2] other=INT32(-1) out=BOOL[2]": "other is -1, expected an integer of 0 or more",
    "aclnnIndexCopy selfRef=UINT16[2] dim=0 index=INT64[1] source=INT16[1] outRef=UINT16[2]": "source has dtype",
    "aclnnFmodScalar self=INT32[2] other=INT32(0) out=INT32[2]": "an integer is divided by 0",
    # Without Python in the process, ATen determines these shapes only on tensors with memory.
    "aclnnMedian self=FLOAT[4] valuesOut=FLOAT[3]": "valuesOut has shape [3], expected []",
    "aclnnFlip self=FLOAT[4] dims=[0] out=FLOAT[3]": "out has shape [3], expected [4]",
    "aclnnSmoothL1LossBackward gradOut=INT32[2] self=INT32[2] target=INT32[2] reduction=1 beta=1 gradInput=INT32[2]": (
        "gradOut has dtype INT32, expected FLOAT"
    ),
    # Calls that CANN refuses or does not support, although the argument has no effect.
    "aclnnAvgPool2d self=FLOAT[2,3,1,8] kernelSize=[1,2] strides=[1,2] paddings=[0,0] ceilMode=false "
    "countIncludePad=true divisorOverride=0 cubeMathType=4 out=FLOAT[2,3,1,4]": "cubeMathType is 4, expected 0 to 3",
    "aclnnAvgPool2dBackward gradOutput=FLOAT[2,3,1,4] self=FLOAT[2,3,1,8] kernelSize=[1,2] stride=[1,2] "
    "padding=[0,0] ceilMode=false countIncludePad=true divisorOverride=0 cubeMathType=4 "
    "gradInput=FLOAT[2,3,1,8]": "cubeMathType is 4, expected 0 to 3",
    "aclnnDropoutV3 input=FLOAT[77,3] optionalNoiseShape=INT64[2]:77,3 p=0.25 seed=7 offset=0 "
    "out=FLOAT[77,3] maskOut=UINT8[32]": "optionalNoiseShape "
    "is given, expected null: CANN has no masks of another shape",
    "aclnnDropoutV3Tensor input=FLOAT[77,3] optionalNoiseShape=INT64[2]:77,3 p=0.25 "
    "seedTensor=INT64[1]:7 offsetTensor=INT64[1]:0 offset=0 out=FLOAT[77,3] maskOut=UINT8[32]": "optionalNoiseShape "
    "is given, expected null: CANN has no masks of another shape",
    "aclnnDropoutGenMaskV2 shape=[150] prob=0.5 seed=3 offset=0 probDataType=3 out=UINT8[32]": "probDataType "
    "is INT32, expected FLOAT, FLOAT16 or BFLOAT16",
    "aclnnFusedCausalConv1d x=FLOAT16[5,64] weight=FLOAT16[3,64] convStates=FLOAT16[6,3,64] "
    "queryStartLoc=INT32[3]:0,3,5 cacheIndices=INT32[2,3]:0,1,2,3,4,5 initialStateMode=null bias=null "
    "numAcceptedTokens=INT32[2]:2,1 numComputedTokens=INT32[2]:3,1 "
    "blockIdxFirstScheduledToken=INT32[2]:0,0 blockIdxLastScheduledToken=INT32[2]:1,0 "
    "initialStateIdx=INT32[2]:0,0 activationMode=3 padSlotId=-1 runMode=0 maxQueryLen=3 "
    "residualConnection=1 blockSize=2 convMode=1 y=FLOAT16[5,64]": "activationMode is 3, expected 0 to 2",
    "aclnnFusedCausalConv1d x=FLOAT16[5,64] weight=FLOAT16[3,64] convStates=FLOAT16[6,3,64] "
    "queryStartLoc=INT32[3]:0,3,5 cacheIndices=INT32[2]:0,1 initialStateMode=null bias=null numAcceptedTokens=null "
    "numComputedTokens=null blockIdxFirstScheduledToken=null blockIdxLastScheduledToken=null initialStateIdx=null "
    "activationMode=0 padSlotId=-1 runMode=0 maxQueryLen=-1 residualConnection=0 blockSize=128 convMode=0 "
    "y=FLOAT16[5,64]": "maxQueryLen is -1, expected 1 or more, or -1 with x of three dimensions",
    "aclnnInplaceFusedCausalConv1d x=FLOAT16[2,2,64] weight=FLOAT16[3,64] convStates=FLOAT16[3,3,64] "
    "queryStartLoc=null cacheIndices=INT32[2]:2,0 initialStateMode=null bias=null numAcceptedTokens=null "
    "numComputedTokens=null blockIdxFirstScheduledToken=null blockIdxLastScheduledToken=null "
    "initialStateIdx=null activationMode=0 padSlotId=-1 runMode=1 maxQueryLen=0 residualConnection=0 "
    "blockSize=128 convMode=0": "maxQueryLen is 0, expected 1 or more, or -1 with x of three dimensions",
    "aclnnInplaceFusedCausalConv1d x=FLOAT16[2,2,64] weight=FLOAT16[3,64] convStates=FLOAT16[3,3,64] "
    "queryStartLoc=null cacheIndices=INT32[2]:2,0 initialStateMode=null bias=null numAcceptedTokens=null "
    "numComputedTokens=null blockIdxFirstScheduledToken=null blockIdxLastScheduledToken=null "
    "initialStateIdx=null activationMode=0 padSlotId=-1 runMode=2 maxQueryLen=-1 residualConnection=0 "
    "blockSize=128 convMode=0": "runMode is 2, expected 0 or 1",
}

# A call whose values the kernel refuses, as ATen does, and the stream's error.
FAILED = {
    "aclnnScatterPaCache key=FLOAT[1,1,1] keyCacheRef=FLOAT[1,2,1,1] slotMapping=INT32[1]:2 "
    "compressLensOptional=null compressSeqOffsetOptional=null seqLensOptional=null "
    'cacheMode="Norm"': "slotMapping has 2, expected less than 2, or a negative number for a token that is not written",
    # The device would read, or write, a row before the first.
    "aclnnMoeTokenUnpermute permutedTokens=FLOAT[2,1]:1,2 sortedIndices=INT32[2]:0,-1 probsOptional=FLOAT[1,2]:1,0.5 "
    "paddedMode=false restoreShapeOptional=null out=FLOAT[1,1]": "sortedIndices has -1 for a probability other than 0, "
    "expected 0 or more",
    "aclnnMoeTokenUnpermuteGrad permuteTokens=FLOAT[2,1] unpermutedTokensGrad=FLOAT[2,1] sortedIndices=INT32[2]:0,-1 "
    "probsOptional=null paddedMode=false restoreShapeOptional=null permutedTokensGradOut=FLOAT[2,1] "
    "probsGradOut=null": "sortedIndices has -1, expected 0 or more",
    "aclnnMoeTokenUnpermuteWithRoutingMap permutedTokens=FLOAT[2,1] sortedIndices=INT32[2]:0,-1 "
    "routingMapOptional=null probsOptional=null paddedMode=true restoreShapeOptional=[2,1] "
    "unpermutedTokens=FLOAT[2,1] outIndex=INT32[2] permuteTokenId=INT32[2] "
    "permuteProbs=null": "sortedIndices has values from -1 to 0, expected 0 to 1",
    "aclnnFloorDivide self=INT32[2]:1,2 other=INT32[2]:1,0 out=INT32[2]": "an integer is divided by 0; expected",
    "aclnnGather self=FLOAT[3] dim=0 index=INT64[1]:3 out=FLOAT[1]": "index 3 is out of bounds",
}


# Further calls, one per line: the values of the outputs, or the status of the refusal and a part of its text, which
# names the reason. Arguments that a line leaves out are those of the function's first sample. There is one file for
# each folder of csrc/cann/rows.
FILES = sorted((ROOT / "tests" / "aten_ops" / "values").glob("*.txt"))
LINES = [line.split("\t") for file in FILES for line in file.read_text().splitlines()]
LINES = [[line_of(call), *expected] for call, *expected in LINES]
VALUES = {call: json.loads(expected) for call, expected, *_ in LINES}
WORDS = {call: words for call, _, words in (line for line in LINES if len(line) == 3)}


def test_the_files_of_values_are_those_of_the_rows() -> None:
    folders = {name: files[0].partition("/")[0] for name, files in row_files().items()}
    lines = [(file.stem, line.split()[0]) for file in FILES for line in file.read_text().splitlines()]
    assert [(stem, name) for stem, name in lines if folders[name] != stem] == []
    assert len(VALUES) == len(LINES)
    assert {call for call, expected in VALUES.items() if isinstance(expected, int)} == WORDS.keys()
    assert [call for call, words in WORDS.items() if len(words) < 10] == []


@pytest.mark.parametrize("line", VALUES, ids=[f"{line.partition(' ')[0]}-{i}" for i, line in enumerate(VALUES)])
def test_further(line: str) -> None:
    stage1, stage2, text, outputs = run_call(line)
    expected = VALUES[line]
    if isinstance(expected, int):
        assert expected == (stage1 or stage2), text
        assert WORDS[line] in text
        return
    assert (stage1, stage2, text) == (SUCCESS, SUCCESS, "")
    for output, values in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(output, values, rtol=1e-6, atol=1e-7)


def test_sleep_takes_its_time() -> None:
    """1.65e9 cycles are a second, as on Ascend950; a call takes two seconds at most."""
    assert run_call("aclnnSleep cycles=[1]") == (SUCCESS, SUCCESS, "", [])  # the process has started
    for cycles, seconds in ((330_000_000, 0.2), (10**12, 2)):
        begin = time.monotonic()
        assert run_call(f"aclnnSleep cycles=[{cycles}]") == (SUCCESS, SUCCESS, "", [])
        assert seconds <= time.monotonic() - begin < seconds + 60


# The products on which a call is computed; on other products it is refused with this text.
ON_PRODUCTS = {
    "aclnnIndex self=COMPLEX64[2]:1,2 indices={INT64[1]:1} out=COMPLEX64[1]": (
        {"Ascend950", "host"},
        "self has dtype COMPLEX64, which this product does not index",
    ),
    "aclnnIndex self=COMPLEX128[2]:1,2 indices={INT64[1]:1} out=COMPLEX128[1]": (
        {"host"},
        "self has dtype COMPLEX128, which this product does not index",
    ),
    # Products before Ascend950 limit the sizes of quantised matrices, and the oldest multiply no FLOAT matrices.
    "aclnnWeightQuantBatchMatmulV2 x=FLOAT16[1,1] weight=INT8[1,65536] antiquantScale=FLOAT16[1] "
    "antiquantOffsetOptional=null quantScaleOptional=null quantOffsetOptional=null biasOptional=null "
    "antiquantGroupSize=0 y=FLOAT16[1,65536]": (
        {"Ascend950", "host"},
        "x has 1 columns and weight has 65536, expected at most 65535",
    ),
    "aclnnQuantMatmulV3 x1=INT8[1,65536] x2=INT8[65536,2] scale=UINT64[2] offset=null bias=null transposeX1=false "
    "transposeX2=false out=FLOAT16[1,2]": (
        {"Ascend950", "host"},
        "x1 has shape [1, 65536], expected a last size of at most 65535",
    ),
    "aclnnMm self=FLOAT[3,4] mat2=FLOAT[4,5] out=FLOAT[3,5] cubeMathType=0": (
        {"Ascend910B", "Ascend910_93", "Ascend950", "host"},
        "cubeMathType is 0 with FLOAT matrices, which this product has no matrix units for",
    ),
}


@pytest.mark.parametrize("product", cabi.PRODUCTS)
def test_on_products(product: str) -> None:
    lines = list(ON_PRODUCTS)
    for line, (stage1, stage2, text, _) in zip(lines, run_calls(lines, product), strict=True):
        products, refusal = ON_PRODUCTS[line]
        expected = (SUCCESS, SUCCESS) if product in products else (PARAM_INVALID, SUCCESS)
        assert (stage1, stage2) == expected, text
        assert product in products or refusal in text


# Rows of one query and 128 keys take equal times, so the first two shares have a row each. Where there are 128 heads,
# two of the 32 cores have one share, and the last number of each core is the most blocks of a share.
OF_ONE_SEQUENCE = {"batch_size": 1, "max_seqlen_q": 2, "max_seqlen_ori_kv": 128, "head_dim": 512, "num_heads_kv": 1}
OF_ONE_SEQUENCE |= {"cmp_ratio": 1, "has_ori_kv": "true", "layout_q": '"BSND"', "layout_kv": '"BSND"'}
SPARSE, MIXED = "aclnnSparseFlashMlaMetadata", "aclnnMixedQuantSparseFlashMlaMetadata"
OF_SPARSE = OF_ONE_SEQUENCE | {"meta_data": "INT32[1024]"}
OF_MIXED = OF_ONE_SEQUENCE | {"metadata": "INT32[1024]", "quant_mode": 2, "rope_head_dim": 64}
FIRST, SECOND = [1, 0, 0, 0, 0, 1, 0, 0], [1, 0, 1, 0, 1, 0, 0, 0]
SHARED = np.array([[*FIRST, 1], [*FIRST, 1], [*SECOND, 1], [*SECOND, 1], *[[0] * 8 + [1]] * 28])
ALONE = np.array([[*FIRST, 0], [*SECOND, 0]])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (call_of(SPARSE, **OF_SPARSE, num_heads_q=128), SHARED),
        (call_of(SPARSE, **OF_SPARSE, num_heads_q=64), ALONE),
        (call_of(MIXED, **OF_MIXED, num_heads_q=128), SHARED),
        (call_of(MIXED, **OF_MIXED, num_heads_q=64), ALONE),
        # 50 queries and 32 cores: 18 cores have 2 queries, and 14 have 1.
        (
            "aclnnSparseLightningIndexerKLLossGradMetadata cuSeqLensQOptional=null cuSeqLensKOptional=null "
            "seqUsedQOptional=INT32[3]:9,0,41 seqUsedKOptional=INT32[3]:7,8,9 cmpResidualKOptional=null batchSize=0 "
            "maxSeqLenQ=0 maxSeqLenK=0 numHeadsQ=1 numHeadsK=1 headDim=128 topk=1 "
            'layoutQOptional="BSND" layoutKOptional="BSND" maskMode=0 cmpRatio=1 metadata=INT32[64]:7',
            np.array([50, 2, 1, 14, 32, *[7] * 59]),
        ),
    ],
)
def test_schedules_of_ascend950(call: str, expected: Any) -> None:
    stage1, stage2, text, (numbers,) = run_call(call, "Ascend950")
    assert (stage1, stage2) == (SUCCESS, SUCCESS), text
    assert numbers == [*expected.flat, *[0] * (len(numbers) - expected.size)]


TBC = "self=FLOAT[1,1,1]:3 weight=FLOAT[1,1,1]:5 bias=FLOAT[1]:2 pad=0 output=FLOAT[1,1,1]"
TBC_BACKWARD = "self=FLOAT[1,1,1]:3 input=FLOAT[1,1,1]:5 weight=FLOAT[1,1,1]:7 bias=FLOAT[1]:1 pad=0"
TBC_GRADIENTS = "gradInput=FLOAT[1,1,1] gradWeight=FLOAT[1,1,1] gradBias=FLOAT[1]"
DEPTHWISE = (
    "aclnnConvDepthwise2d self=FLOAT[1,1,1,1]:3 weight=FLOAT[1,1,1,1]:5 kernelSize=[1,1] bias=FLOAT[1]:2 stride=[1,1] "
    "padding=[0,0] dilation=[1,1] out=FLOAT[1,1,1,1]"
)
UP_TO_4 = "expected 0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16), 3 (USE_HF32) or 4 (USE_FP32_ADD)"
# A call, the products and the releases of CANN that compute it, the outputs, and elsewhere the text of the refusal.
BY_RELEASE: list[tuple[str, set[str], set[str], list[Any], str]] = [
    *(
        (f"{call} cubeMathType=4", {"Ascend910B", "Ascend950"}, set(cabi.CANN_RELEASES), [outputs], refusal)
        for call, outputs, refusal in (
            (f"aclnnConvTbc {TBC}", [[[17]]], "cubeMathType is 4 with FLOAT matrices"),
            (DEPTHWISE, [[[[17]]]], "cubeMathType is 4 with FLOAT matrices"),
        )
    ),
    *(
        (f"{call} cubeMathType=5", set(cabi.PRODUCTS), {"8.5", "9.0"}, [outputs], f"cubeMathType is 5, {UP_TO_4}")
        for call, outputs in ((f"aclnnConvTbc {TBC}", [[[17]]]), (DEPTHWISE, [[[[17]]]]))
    ),
    (
        f"aclnnConvTbcBackward {TBC_BACKWARD} cubeMathType=4 {TBC_GRADIENTS}",
        {"Ascend910B", "Ascend950"},
        {"8.5", "9.0", "9.1"},
        [[[[21]]], [[[15]]], [3]],
        "cubeMathType is 4",
    ),
    (
        f"aclnnConvTbcBackward {TBC_BACKWARD} cubeMathType=5 {TBC_GRADIENTS}",
        set(cabi.PRODUCTS),
        {"8.5", "9.0"},
        [[[[21]]], [[[15]]], [3]],
        "cubeMathType is 5, expected 0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16)",
    ),
    (
        "aclnnConvDepthwise2d self=FLOAT16[2,4,5,5] weight=FLOAT16[0,1,3,3] kernelSize=[3,3] bias=null stride=[1,1] "
        "padding=[0,0] dilation=[1,1] out=FLOAT16[2,0,3,3] cubeMathType=0",
        set(cabi.PRODUCTS),
        {"9.1", "later"},
        [[[], []]],
        "weight has shape [0, 1, 3, 3], expected filters; or select CANN 9.1 or later",
    ),
]


@pytest.mark.parametrize("release", cabi.CANN_RELEASES)
@pytest.mark.parametrize("product", ["Ascend910", "Ascend910B", "Ascend950"])
def test_convolutions_by_release_of_cann(product: str, release: str) -> None:
    """Statuses, texts and values where the releases of CANN differ; sums of products are exact."""
    for line, products, releases, expected, refusal in BY_RELEASE:
        stage1, stage2, text, outputs = run_call(line, product, environment={"ACLNN_TORCH_CANN": release})
        if product in products and release in releases:
            assert (stage1, stage2, outputs) == (SUCCESS, SUCCESS, expected), (line, text)
        else:
            assert (stage1, refusal in text) == (PARAM_INVALID, True), (line, stage1, text)


@pytest.mark.parametrize("name", ["gradInput", "gradWeight", "gradBias"])
def test_dtypes_of_gradients_by_release_of_cann(name: str) -> None:
    """Ascend950 requires the dtypes of the tensors from CANN 9.1 on."""
    gradients = TBC_GRADIENTS.replace(f"{name}=FLOAT", f"{name}=FLOAT16")
    line = f"aclnnConvTbcBackward {TBC_BACKWARD} cubeMathType=0 {gradients}"
    for product, release, refused in (
        ("Ascend950", "9.0", False),
        ("Ascend950", "9.1", True),
        ("Ascend950", "later", True),
        ("Ascend910B", "later", False),
    ):
        stage1, stage2, text, outputs = run_call(line, product, environment={"ACLNN_TORCH_CANN": release})
        if refused:
            assert stage1 == PARAM_INVALID
            assert f"{name} has dtype FLOAT16, expected FLOAT" in text
        else:
            assert (stage1, stage2, outputs) == (SUCCESS, SUCCESS, [[[[21]]], [[[15]]], [3]]), text


# Distributions of real numbers, by the checks of CANN's functions.
DISTRIBUTIONS = [name for name in samples_by_function() if re.match("aclnn(Inplace)?(Normal|Uniform|Bernoulli)", name)]


def test_complex_numbers_are_not_drawn() -> None:
    lines = []
    for name in DISTRIBUTIONS:
        arguments = dict(samples_by_function()[name])
        for argument in arguments.keys() & {"self", "selfRef", "out"}:
            arguments[argument] = re.sub("^[A-Z0-9]+", "COMPLEX64", arguments[argument])
        lines.append(" ".join([name, *(f"{key}={value}" for key, value in arguments.items())]))
    assert len(lines) == 12
    for name, (stage1, _, text, _) in zip(DISTRIBUTIONS, run_calls(lines), strict=True):
        says = re.search("(self|selfRef|out) has dtype COMPLEX64, expected a real type", text)
        assert (stage1, says is not None) == (PARAM_INVALID, True), (name, text)


# Arguments that may be null, but not in these calls: 161001. By the documents or the public checks.
MISSING = {
    "aclnnAddRmsNormDynamicMxQuant rstdOut=null": "rstdOut is null, expected a tensor as outputRstd is true",
    "aclnnAddRmsNorm xOut=null": "xOut is null, expected a tensor as rstdOut is one",
    "aclnnApplyAdamW maxGradNormOptional=null": "amsgrad is true and maxGradNormOptional is null",
    "aclnnApplyAdamWV2 maxGradNormOptionalRef=null": "amsgrad is true and maxGradNormOptionalRef is null",
    "aclnnBatchNorm saveMean=null": "saveMean is null, expected a tensor as training is true",
    "aclnnBatchNorm saveInvstd=null": "saveInvstd is null, expected a tensor as training is true",
    "aclnnBatchNormBackward gradInput=null": "gradInput is null, expected a tensor as outputMask[0] is true",
    "aclnnBatchNormBackward gradBias=null": "gradBias is null, expected a tensor as outputMask[2] is true",
    "aclnnBatchNormReduceBackward sumDyXmu=null": "sumDyXmu is null, expected a tensor as inputG is true",
    "aclnnBatchNormReduceBackward gradBias=null": "gradBias is null, expected a tensor as biasG is true",
    "aclnnClamp clipValueMax=null": "clipValueMin and clipValueMax are null, expected a number for one of them",
    "aclnnClampTensor clipValueMin=null clipValueMax=null": "expected a tensor for one of them",
    "aclnnDequantSwigluQuantV2 weightScaleOptional=null": "weightScaleOptional is null, expected a tensor",
    'aclnnDequantSwigluQuantV2 quantModeOptional="static" quantScaleOptional=null': (
        'quantScaleOptional is null, expected a tensor as quantModeOptional is "static"'
    ),
    "aclnnFastBatchNormBackward gradWeight=null": "gradWeight is null, expected a tensor as outputMask[1] is true",
    "aclnnFusedMatmul x3=null": 'x3 is null, expected a tensor for the fusedOpType "add"',
    "aclnnGeluQuant inputScaleOptional=null": "inputScaleOptional is null, expected a tensor in static quantisation",
    'aclnnGeluQuant quantMode="dynamic"': 'outScaleOptional is null, expected a tensor as quantMode is "dynamic"',
    "aclnnGroupNormBackward gradGammaOut=null": "gradGammaOut is null, expected a tensor as outputMask[1] is true",
    "aclnnRmsNormDynamicMxQuant rstdOut=null": "rstdOut is null, expected a tensor as outputRstd is true",
    "aclnnRmsNormQuantV3 rstd=null": "rstd is null, expected a tensor as outputRstd is true",
    "aclnnWeightQuantBatchMatmul x1=FLOAT16[64,4] out=FLOAT16[64,4] deqScale=null": "deqOffset or deqScale is null",
}


def test_arguments_that_others_make_necessary() -> None:
    outcomes = run_calls([line_of(call) for call in MISSING])
    found = {call: (stage1, text) for call, (stage1, _, text, _) in zip(MISSING, outcomes, strict=True)}
    wrong = {call: found[call] for call in MISSING if found[call][0] != 161001 or MISSING[call] not in found[call][1]}
    assert wrong == {}


# Without elements, the saved mean is 0 and the other saved statistic nan, in inference too; nothing is updated. By
# aclnnBatchNorm's public implementation.
@pytest.mark.parametrize("training", ["true", "false"])
@pytest.mark.parametrize("saved", [2, 0])
def test_a_batch_norm_without_elements(training: str, saved: int) -> None:
    stage1, stage2, text, outputs = run_call(
        f"{BATCH_NORM} input=FLOAT[0,2,3] runningMean=FLOAT[2]:5 runningVar=FLOAT[2]:6 training={training} eps=1 "
        f"output=FLOAT[0,2,3] saveMean=FLOAT[{saved}] saveInvstd=FLOAT[{saved}]"
    )
    assert (stage1, stage2, text) == (SUCCESS, SUCCESS, "")
    mean, variance, output, saved_mean, saved_invstd = outputs
    assert (mean, variance, output, saved_mean) == ([5, 5], [6, 6], [], [0] * saved)
    assert np.isnan(saved_invstd).all()


# By aclnnBatchNorm.md, a variance, but 1 / sqrt(variance + eps) on Ascend950. Its gradient reads the same.
def test_what_a_batch_norm_saves() -> None:
    x = "FLOAT[3,2]:1.5,-2,0.5,3,-1,0.75"
    forward = f"{BATCH_NORM} input={x} runningMean=null runningVar=null training=true eps=0.5 output=FLOAT[3,2] "
    backward = (
        f"aclnnBatchNormBackward gradOut=FLOAT[3,2]:0.5,-1,2,1.5,-0.25,3 input={x} weight=null runningMean=null "
        "runningVar=null training=true eps=0.5 outputMask=[true,true,true] gradInput=FLOAT[3,2] gradWeight=FLOAT[2] "
        "gradBias=FLOAT[2]"
    )
    columns = np.array([[1.5, -2], [0.5, 3], [-1, 0.75]])
    variance = columns.var(0)
    gradients = []
    for product, expected in (
        ("Ascend910B", variance),
        ("Ascend910_93", variance),
        ("Ascend310P", variance),
        ("Ascend950", 1 / np.sqrt(variance + 0.5)),
        ("host", 1 / np.sqrt(variance + 0.5)),
    ):
        stage1, stage2, text, outputs = run_call(f"{forward} saveMean=FLOAT[2] saveInvstd=FLOAT[2]", product)
        assert (stage1, stage2, text) == (SUCCESS, SUCCESS, "")
        _, mean, saved = outputs
        assert saved == pytest.approx(expected, rel=1e-6), product
        statistics = f"saveMean=FLOAT[2]:{mean[0]},{mean[1]} saveInvstd=FLOAT[2]:{saved[0]},{saved[1]}"
        for function in ("aclnnBatchNormBackward", "aclnnFastBatchNormBackward version=0"):
            line = backward.replace("aclnnBatchNormBackward", function)
            stage1, stage2, text, results = run_call(f"{line} {statistics}", product)
            assert (stage1, stage2, text) == (SUCCESS, SUCCESS, "")
            gradients.append(np.concatenate([np.ravel(each) for each in results]))
    for gradient in gradients[1:]:
        assert gradient == pytest.approx(gradients[0], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("line", COMPUTED)
def test_computed(line: str) -> None:
    assert run_call(line) == (SUCCESS, SUCCESS, "", COMPUTED[line])


# On Ascend950 N and C may be 0, too, and the means are nan, too.
def test_a_group_norm_without_elements() -> None:
    no_samples, no_channels = (
        f"{GROUP_NORM} self=FLOAT[{n},{c},2] out=FLOAT[{n},{c},2] meanOut=FLOAT[{n},2] rstdOut=FLOAT[{n},2]"
        for n, c in ((0, 2), (1, 0))
    )
    assert run_call(no_samples, "Ascend950") == (SUCCESS, SUCCESS, "", [[], [], []])
    stage1, stage2, _, outputs = run_call(no_channels, "Ascend950")
    assert (stage1, stage2) == (SUCCESS, SUCCESS)
    assert np.isnan(outputs[1:]).all()
    for line in (no_samples, no_channels):
        stage1, _, text, _ = run_call(line, "Ascend910B")
        assert (stage1, "expected two dimensions or more, of which the first two are not 0" in text) == (161002, True)


@pytest.mark.parametrize("line", REFUSED)
def test_refused(line: str) -> None:
    stage1, _, text, _ = run_call(line)
    assert (stage1, REFUSED[line] in text) == (PARAM_INVALID, True), text


@pytest.mark.parametrize("line", FAILED)
def test_values_fail_on_the_stream(line: str) -> None:
    stage1, stage2, text, _ = run_call(line)
    assert (stage1, stage2, FAILED[line] in text) == (SUCCESS, AICORE_EXCEPTION, True), text
