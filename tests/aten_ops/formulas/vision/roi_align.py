from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

BOXES = "0.75,0.5,1,9.25,8.5,1,3,2,3.5,2.25,1.25,0,0,11,9"


# ops-cv: aclnnRoiAlignV2.md, which refers to torchvision. The weights of the elements along one dimension in each cell:
# the means of bilinear samples, where those more than 1 outside are 0 and others are clamped to the image.
def _weights(low, high, cells, size, ratio, aligned):
    extent = high - low if aligned else max(high - low, 1)
    cell = extent / cells
    count = ratio or max(int(np.ceil(cell)), 1)
    weights = np.zeros((cells, size))
    for i, sample in np.ndindex(cells, count):
        position = low - (0.5 if aligned else 0) + cell * (i + (sample + 0.5) / count)
        if -1 <= position <= size:
            position = min(max(position, 0), size - 1)
            element = int(position)
            weights[i, element] += (element + 1 - position) / count
            if position > element:
                weights[i, element + 1] += (position - element) / count
    return weights


def _both_weights(box, sizes, height, width, scale, ratio, aligned):
    x1, y1, x2, y2 = box * scale
    return _weights(y1, y2, height, sizes[0], ratio, aligned), _weights(x1, x2, width, sizes[1], ratio, aligned)


# The first number of a box, rounded down, is its image.
@formula(
    "aclnnRoiAlignV2",
    calls=[
        "aclnnRoiAlignV2 "
        "self=FLOAT[1,1,6,6]:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,"
        "32,33,34,35,36 "
        "boxes=FLOAT[1,5]:0,-2,-2,22,22 pooledHeight=3 pooledWidth=3 spatialScale=0.25 samplingRatio=2 "
        "aligned=false out=FLOAT[1,1,3,3]",
        *(
            f"aclnnRoiAlignV2 self=FLOAT[2,2,5,6] boxes=FLOAT[3,5]:{BOXES} pooledHeight=2 pooledWidth=3 "
            "spatialScale=0.5 "
            f"samplingRatio={ratio} aligned={aligned} out=FLOAT[3,2,2,3]"
            for ratio in (0, 3)
            for aligned in ("true", "false")
        ),
    ],
)
def roi_align(images, boxes, height, width, scale, ratio, aligned):
    result = np.zeros((len(boxes), images.shape[1], height, width))
    for n, box in enumerate(boxes):
        rows, columns = _both_weights(box[1:], images.shape[2:], height, width, scale, ratio, aligned)
        result[n] = rows @ images[int(np.floor(box[0]))] @ columns.T
    return result


@formula(
    "aclnnRoiAlignV2Backward",
    calls=[
        f"aclnnRoiAlignV2Backward gradOutput=FLOAT[3,2,2,3] boxes=FLOAT[3,5]:{BOXES} "
        f"inputShape=[2,2,5,6] pooledHeight=2 pooledWidth=3 spatialScale=0.5 samplingRatio={ratio} aligned={aligned} "
        "gradInput=FLOAT[2,2,5,6]"
        for ratio in (0, 3)
        for aligned in ("true", "false")
    ],
)
def roi_align_gradient(gradient, boxes, shape, height, width, scale, ratio, aligned):
    result = np.zeros(shape)
    for n, box in enumerate(boxes):
        rows, columns = _both_weights(box[1:], shape[2:], height, width, scale, ratio, aligned)
        result[int(np.floor(box[0]))] += rows.T @ gradient[n] @ columns
    return result


# As V2 without aligned, as the document of V2 says; the mode is "avg".
@formula(
    "aclnnRoiAlign",
    calls=[
        "aclnnRoiAlign self=FLOAT[2,2,5,6] rois=FLOAT[4,4]:0.5,0.25,4,3,1,1,3,5,-1,-2,2.5,2,3,1,3.25,9 "
        f'batchIndices=INT32[4]:1,0,1,0 mode="avg" outputHeight=2 outputWidth=3 samplingRatio={ratio} '
        f"spatialScale={scale} out=FLOAT[4,2,2,3]"
        for ratio, scale in ((0, 1.0), (2, 0.5))
    ]
    + [
        'aclnnRoiAlign self=FLOAT[1,2,3,3] rois=FLOAT[0,4] batchIndices=INT32[0] mode="avg" outputHeight=1 '
        "outputWidth=1 samplingRatio=0 spatialScale=1.0 out=FLOAT[0,2,1,1]"
    ],
)
def roi_align_of_indices(images, boxes, indices, _mode, height, width, ratio, scale):
    if images.size == 0:
        return np.zeros((len(boxes), images.shape[1], height, width))
    numbered = np.concatenate([indices[:, None], boxes], -1)
    return roi_align(images, numbered, height, width, scale, ratio, aligned=False)
