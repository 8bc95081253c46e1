from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# A cell reaches from the pixel before its start to that after its end; an empty one has 0 and -1 (ops-cv:
# aclnnRoiPoolingWithArgMax.md).
@formula(
    "aclnnRoiPoolingWithArgMax",
    calls=[
        "aclnnRoiPoolingWithArgMax x=FLOAT[2,2,4,5]:-1.5,-2,-3,4.5,-6,7,-9,-8,-7.5,-4,-5,-2.5,-1 "
        "rois=FLOAT[3,5]:0,1,0,7,5,1,2,3,9,6,1,8,1,5,3 pooled_h=2 pooled_w=2 spatial_scale_h=0.5 spatial_scale_w=0.5 "
        "y=FLOAT[3,2,2,2] argmax=INT32[3,2,2,2]",
        "aclnnRoiPoolingWithArgMax x=FLOAT[2,3,5,6] rois=FLOAT[4,5]:0,0,0,4,5,1,1.5,1,3.25,2,1,20,20,22,22,0,3,3,1,1 "
        "pooled_h=2 pooled_w=3 spatial_scale_h=0.5 spatial_scale_w=1.0 y=FLOAT[4,3,2,3] argmax=INT32[4,3,2,3]",
    ],
)
def roi_pooling(x, rois, height, width, scale_h, scale_w):
    shape = len(rois), x.shape[1], height, width
    values, indices = np.zeros(shape), np.full(shape, -1)

    def span(low, high, cell, cells, size):
        step = (high - low) / cells
        ends = np.floor(cell * step + low), np.ceil((cell + 1) * step + low)
        return range(*(int(np.clip(end, 0, size)) for end in ends))

    for n, (image, x1, y1, x2, y2) in enumerate(rois):
        x1, y1, x2, y2 = x1 * scale_w, y1 * scale_h, (x2 + 1) * scale_w, (y2 + 1) * scale_h
        for c, i, j in np.ndindex(shape[1:]) if x2 > x1 and y2 > y1 else ():
            rows, columns = span(y1, y2, i, height, x.shape[2]), span(x1, x2, j, width, x.shape[3])
            pixels = [(row, column) for row in rows for column in columns]
            if pixels:
                best = max(pixels, key=lambda pixel, plane=x[int(image), c]: plane[pixel])
                values[n, c, i, j], indices[n, c, i, j] = x[int(image), c][best], best[0] * x.shape[3] + best[1]
    return values, indices


# Every pixel gets the gradients of all cells whose maximum it is (ops-cv: aclnnRoiPoolingGradWithArgMax.md); -1 is the
# index of no pixel.
@formula(
    "aclnnRoiPoolingGradWithArgMax",
    calls=[
        "aclnnRoiPoolingGradWithArgMax gradOutput=FLOAT[3,2,2,2]:1,-2,4,8,-0.5,0.25,16,32,3,-5,7,9,11,13,-17,19,0.125 "
        "gradInputRef=FLOAT[2,2,2,2]:1 rois=FLOAT[3,5]:1,0,1,0,1,0,0,1,0,1,1,1,2,1,2 "
        "argmax=INT32[3,2,2,2]:2,0,3,1,1,3,0,2,3,2,1,0,0,1,2,3,0,0,-1,3,1,2,3,3 pooledH=2 pooledW=2 spatialScale=1.0"
    ],
)
def roi_pooling_gradient(gradient, old, rois, argmax, *_others):
    result = np.zeros((*old.shape[:2], old.shape[2] * old.shape[3]))
    for n, c, i, j in np.ndindex(gradient.shape):
        if argmax[n, c, i, j] >= 0:
            result[int(rois[n, 0]), c, argmax[n, c, i, j]] += gradient[n, c, i, j]
    return result.reshape(old.shape)


# eps is added to the width and the height of every area, also of that of the intersection (ops-cv: aclnnIou.md).
@formula(
    "aclnnIou",
    calls=[
        f"aclnnIou bBoxes=FLOAT[3,4]:0,0,4,3,1,1,5,4,2,0.5,6,4 gtBoxes=FLOAT[3,4]:1,1,3,4.5,0,2,6,6,9,9,10,10 {modes}"
        for modes in (
            'mode="iou" eps=0.0 aligned=false overlap=FLOAT[3,3]',
            'mode="iof" eps=0.0 aligned=false overlap=FLOAT[3,3]',
            'mode="iou" eps=1.0 aligned=true overlap=FLOAT[3,1]',
        )
    ]
    + [
        "aclnnIou bBoxes=FLOAT[2,4]:0,0,2,2,1,0,3,2 gtBoxes=FLOAT[2,4]:1,1,3,4,0,0,2.5,3 "
        f'mode="{mode}" eps=0.25 aligned=true overlap=FLOAT[2,1]'
        for mode in ("iou", "iof")
    ],
)
def iou(boxes, truths, mode, eps, aligned):
    b, t = boxes[:, None], truths[:, None] if aligned else truths[None]

    def area(low, high):
        return (high - low + eps).prod(-1)

    low, high = np.maximum(b[..., :2], t[..., :2]), np.minimum(b[..., 2:], t[..., 2:])
    common = np.maximum(high - low + eps, 0).prod(-1)
    truth = area(t[..., :2], t[..., 2:])
    return common / (truth if mode == "iof" else area(b[..., :2], b[..., 2:]) + truth - common)


def _corners(seed: int) -> str:
    """1024 boxes (x0, y0, x1, y1), one in each column."""
    draw = np.random.default_rng(seed).integers
    return ",".join(map(str, [*draw(0, 4, 2048), *draw(4, 10, 2048)]))


# Boxes (x, y, width, height), one in each column, whatever element is the first of a row.
_BOXES = "0.5,3,1.25,2,0.75,4,1.5,2.5,0.25,3.5,1,2.25,5"
_TRUTHS = "1,2.75,0.5,4.5,1.75,0.625,3.25,2,1.125,0.375,2.125,5,1.375,3.75,0.875,2.625,1.625"


# ops-cv: aclnnCIoU.md. It prints one arctan of the difference, without the square; atanSub is documented as the
# difference of two, and the square is that of the paper (Zheng et al., Distance-IoU Loss).
@formula(
    "aclnnCIoU",
    calls=[
        f"aclnnCIoU bBoxes=FLOAT[4,1024]:{boxes} gtBoxes=FLOAT[4,1024]:{truths} "
        f'trans={trans} isCross=false mode="{mode}" overlap=FLOAT[1,1024] atanSub=FLOAT[1,1024]'
        for boxes, truths, trans, mode in (
            (_corners(1), _corners(2), "false", "iou"),
            (_BOXES, _TRUTHS, "true", "iou"),
            (_BOXES, _TRUTHS, "true", "iof"),
            (_BOXES, _BOXES, "true", "iou"),
        )
    ],
)
def complete_iou(boxes, truths, trans, _cross, mode):
    def corners(x):
        return (x[:2] - x[2:] / 2, x[:2] + x[2:] / 2) if trans else (x[:2], x[2:])

    (low, high), (truth_low, truth_high) = corners(boxes), corners(truths)
    (w, h), (truth_w, truth_h) = high - low, truth_high - truth_low
    common = np.maximum(np.minimum(high, truth_high) - np.maximum(low, truth_low), 0).prod(0)
    overlap = common / (truth_w * truth_h if mode == "iof" else w * h + truth_w * truth_h - common)
    distance = (((low + high - truth_low - truth_high) / 2) ** 2).sum(0)
    diagonal = ((np.maximum(high, truth_high) - np.minimum(low, truth_low)) ** 2).sum(0)
    angle = np.arctan(truth_w / truth_h) - np.arctan(w / h)
    v = 4 / np.pi**2 * angle**2
    weighed = np.where(v == 0, 0, v * v / (1 - overlap + v))
    return (overlap - distance / diagonal - weighed)[None], angle[None]


# ops-cv: aclnnNonMaxSuppression.md. Every class has as many lines, and those not used are -1, as the row says.
@formula(
    "aclnnNonMaxSuppression",
    calls=[
        "aclnnNonMaxSuppression "
        "boxes=FLOAT[2,4,4]:1,1,4,4,1.25,1,4.25,4,6,6,9,8,6,6.25,9,8.5,2,2,4,4,5,5,8,9,2,2.25,4,4.5 "
        "scores=FLOAT[2,2,4]:0.5,0.75,0.25,0.625,0.875,0.125,0.5,0.5625,0.25,0.75,0.625,0.125,0.75,0.875,0.9375,0.25 "
        f"maxOutputBoxesPerClass=[3] iouThreshold=[{iou}] scoreThreshold=[{score}] centerPointBox={center} "
        "selectedIndices=INT32[12,3]"
        for iou, score, center in ((0.55, 0.2, 0), (0.55, 0.6, 1), (0.95, 0.0, 0))
    ],
)
def non_max_suppression(boxes, scores, most, limits, least, has_centers):
    limit, least = (values[0] if values else 0 for values in (limits, least))
    most = most[0] if most else 0
    low, high = boxes[..., :2], boxes[..., 2:]
    if has_centers:
        low, high = low - high / 2, low + high / 2
    areas = (high - low).prod(-1)

    def overlaps(n, i, j):  # the intersection over the union is more than the limit
        common = np.maximum(np.minimum(high[n, i], high[n, j]) - np.maximum(low[n, i], low[n, j]), 0).prod()
        return common > limit * (areas[n, i] + areas[n, j] - common)

    lines = []
    for n, c in np.ndindex(scores.shape[:2]):
        kept: list[int] = []
        for i in sorted(range(scores.shape[2]), key=lambda i, of=scores[n, c]: -of[i]):
            if scores[n, c, i] >= least and len(kept) < most and not any(overlaps(n, i, k) for k in kept):
                kept.append(i)
        lines += [[n, c, i] for i in kept] + [[-1] * 3] * (most - len(kept))
    return np.reshape(lines, (-1, 3))
