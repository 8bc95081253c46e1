from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


@formula(
    "aclnnEmbedding", calls=["aclnnEmbedding weight=INT32[3,2]:5,-4,3,-2,1,9 indices=INT64[4]:2,0,1,2 out=INT32[4,2]"]
)
def embedding(weight, indices):
    return weight[indices]


@formula(
    "aclnnEmbeddingDenseBackward",
    calls=[
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
    ],
)
def one_hot(self, num_classes, on_value, off_value, axis):
    result = np.where(self[..., None] == np.arange(num_classes), on_value, off_value)
    return np.moveaxis(result, -1, axis)
