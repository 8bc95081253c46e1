from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnEmbedding", calls=["aclnnEmbedding weight=INT32[3,2]:5,-4,3,-2,1,9 indices=INT64[4]:2,0,1,2 out=INT32[4,2]"]
)
def embedding(weight, indices):
    return weight[indices]


WEIGHT = "FLOAT[5,2]:0.5,-1,2,-3.5,4,-5,6,-7,8.25,-9"


# ops-nn: aclnnEmbeddingBag.md, the shapes of Atlas A2. The number paddingIdx is left out of a bag. Modes other than 0
# and 1 are the maximum.
@formula(
    "aclnnEmbeddingBag",
    calls=[
        f"aclnnEmbeddingBag weight={WEIGHT} indices=INT64[6]:0,4,2,1,2,3 offsets=INT32[{len(offsets)}]:"
        f"{','.join(map(str, offsets))} scaleGradByFreq=false mode={mode} sparse=false perSampleWeights={weights} "
        f"includeLastOffset={last} paddingIdx={padding} output=FLOAT[3,2] offset2bag=INT64[6] bagSize=INT64[3] "
        f"maxIndices=INT64[3{',2' if mode == 2 else ''}]"
        for mode, offsets, weights, last, padding in (
            *((mode, (0, 2, 2), "null", "false", -1) for mode in (0, 1, 2)),
            *((mode, (0, 2, 5, 6), "null", "true", 2) for mode in (0, 1, 2)),
            (0, (0, 2, 5), "FLOAT[6]:1,2,3,-4,0.5,7", "false", -1),
        )
    ]
    + [
        f"aclnnEmbeddingBag weight={WEIGHT} indices=INT64[0] offsets=INT64[2]:0,0 scaleGradByFreq=false mode=0 "
        "sparse=false perSampleWeights=null includeLastOffset=false paddingIdx=-1 output=FLOAT[2,2] "
        "offset2bag=INT64[0] bagSize=INT64[2] maxIndices=INT64[2]"
    ]
    + [
        "aclnnEmbeddingBag weight=FLOAT[3,2]:1,2,3,4,5,6 indices=INT64[3]:2,0,1 offsets=INT64[2]:0,2 "
        "scaleGradByFreq=false mode=0 sparse=false perSampleWeights=null includeLastOffset=false paddingIdx=-1 "
        "output=FLOAT[2,2] offset2bag=INT64[0] bagSize=INT64[2] maxIndices=INT64[2]",
        "aclnnEmbeddingBag weight=FLOAT[5,2]:0,-1,2,-3,4,-5,6,-7,8,-9 indices=INT32[5]:0,4,2,1,2 "
        "offsets=INT32[3]:0,2,5 scaleGradByFreq=false mode=1 sparse=false perSampleWeights=null "
        "includeLastOffset=true paddingIdx=2 output=FLOAT[2,2] offset2bag=INT32[5] bagSize=INT32[3] "
        "maxIndices=INT32[0]",
        "aclnnEmbeddingBag weight=FLOAT[5,2]:0,-1,2,-3,4,-5,6,-7,8,-9 indices=INT32[5]:0,4,2,1,2 "
        "offsets=INT32[3]:0,2,5 scaleGradByFreq=false mode=2 sparse=false perSampleWeights=null "
        "includeLastOffset=true paddingIdx=2 output=FLOAT[2,2] offset2bag=INT32[5] bagSize=INT32[3] "
        "maxIndices=INT32[2,2]",
    ],
)
def embedding_bag(weight, indices, offsets, _scale, mode, _sparse, weights, has_last, padding, outputs):
    mode = mode if mode in (0, 1) else 2
    starts = offsets[:-1] if has_last else offsets
    ends = offsets[1:] if has_last else [*offsets[1:], len(indices)][: len(starts)]
    output = np.zeros((len(starts), weight.shape[1]))
    largest = np.zeros(output.shape, np.int64)
    bags, sizes = np.zeros(len(indices), np.int64), np.zeros(len(starts), np.int64)
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        bags[start:end] = i
        places = [place for place in range(start, end) if indices[place] != padding]
        sizes[i] = len(places)
        if places:
            rows = weight[indices[places]] * (1 if weights is None else weights[places, None])
            output[i] = (rows.sum(0), rows.mean(0), rows.max(0))[mode]
            if mode == 2:
                largest[i] = indices[places][rows.argmax(0)]
    shapes = [outputs[name].shape for name in ("offset2bag", "bagSize", "maxIndices")]
    largest = largest if mode == 2 else np.zeros(shapes[2], np.int64)
    return output, bags[: shapes[0][0]], np.append(sizes, 0)[: shapes[1][0]], largest


# ops-nn: aclnnEmbeddingDenseGrad.md
@formula(
    "aclnnEmbeddingDenseBackward",
    "aclnnEmbeddingDenseGrad",
    calls=[
        "aclnnEmbeddingDenseGrad grad=FLOAT[0,2] indices=INT32[0] numWeights=1 paddingIdx=-1 scaleGradByFreq=true "
        "y=FLOAT[1,2]",
        "aclnnEmbeddingDenseGrad grad=FLOAT[5,2] indices=INT32[5]:1,0,1,2,1 numWeights=3 paddingIdx=-1 "
        "scaleGradByFreq=true y=FLOAT[3,2]",
        "aclnnEmbeddingDenseGrad grad=FLOAT[4,2] indices=INT64[4]:2,0,2,1 numWeights=3 paddingIdx=1 "
        "scaleGradByFreq=false y=FLOAT[3,2]",
        "aclnnEmbeddingDenseBackward grad=FLOAT[5,3] indices=INT64[5]:2,0,2,1,2 numWeights=4 paddingIdx=1"
        " scaleGradByFreq=true out=FLOAT[4,3]",
        "aclnnEmbeddingDenseBackward grad=FLOAT[3,2]:1,-2,3.5,4,-5,6 indices=INT64[3]:2,0,2 numWeights=3 paddingIdx=-1"
        " scaleGradByFreq=false out=FLOAT[3,2]",
    ],
)
def embedding_dense_backward(grad, indices, num_weights, padding_index, scale_grad_by_freq):
    result = np.zeros((num_weights, grad.shape[-1]))
    places = indices.reshape(-1)
    for index, row in zip(places, grad.reshape(len(places), grad.shape[-1]), strict=True):
        if index != padding_index:
            result[index] += row / (np.sum(places == index) if scale_grad_by_freq else 1)
    return result


@formula(
    "aclnnEmbeddingRenorm",
    calls=[
        "aclnnEmbeddingRenorm selfRef=FLOAT[3,2]:3,-4,0.25,-0.5,-5,12 indices=INT64[3]:1,2,1 maxNorm=2 normType=2",
        "aclnnEmbeddingRenorm selfRef=FLOAT[3,2]:3,-4,0.25,-0.5,-5,12 indices=INT64[2]:0,1 maxNorm=2.5 normType=1",
        # Few of many rows: the row looks at these only.
        "aclnnEmbeddingRenorm selfRef=BFLOAT16[40,30]:3,-4,0.25 indices=INT64[4]:1,39,2,39 maxNorm=2 normType=2",
    ],
)
def embedding_renorm(self, indices, max_norm, norm_type):
    result = self.copy()
    for row in np.unique(indices):
        norm = np.sum(np.abs(self[row]) ** norm_type) ** (1 / norm_type)
        if norm > max_norm:
            result[row] *= max_norm / (norm + 1e-7)
    return result


@formula(
    "aclnnOneHot",
    calls=[
        "aclnnOneHot self=INT64[4]:0,2,3,1 numClasses=3 onValue=INT64[1]:7 offValue=INT64[1]:-2 axis=-1 out=INT64[4,3]",
        "aclnnOneHot self=INT64[4]:2,0,2,1 numClasses=3 onValue=INT64[1]:7 offValue=INT64[1]:-2 axis=0 out=INT64[3,4]",
        # Only the first elements of the values count.
        "aclnnOneHot self=INT64[2]:1,0 numClasses=2 onValue=INT64[3]:7,8,9 offValue=INT64[2,1]:-2,5 axis=0 "
        "out=INT64[2,2]",
    ],
)
def one_hot(self, num_classes, on_value, off_value, axis):
    result = np.where(self[..., None] == np.arange(num_classes), on_value.flat[0], off_value.flat[0])
    return np.moveaxis(result, -1, axis)
