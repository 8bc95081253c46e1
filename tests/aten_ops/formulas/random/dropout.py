from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[3,5]:-2.5,0.75,-3,1.5,-0.5,1.25,-4,3,2,-1.75,5,-6,7,8,-9"
MASK = "UINT8[16]:182,89"


def kept(mask, like):
    """A bit of each element, the lowest bit of a byte first: 1 if the element is kept."""
    bits = np.unpackbits(mask.astype(np.uint8), bitorder="little")
    return bits[: like.size].reshape(like.shape)


# ops-math: aclnnDropoutBackward.md. The gradient is unchanged where the scale is 1, and 0 where it is 0.
@formula(
    "aclnnDropoutBackward",
    calls=[f"aclnnDropoutBackward gradOutput={X} mask={MASK} scale={scale} out=FLOAT[3,5]" for scale in (0, 1, 1.25)],
)
def dropout_backward(grad, mask, scale):
    return grad if scale == 1 else dropout_grad(grad, mask, scale)


@formula("aclnnDropoutV3Grad", calls=[f"aclnnDropoutV3Grad gradOutput={X} mask={MASK} scale=1.25 gradInput=FLOAT[3,5]"])
def dropout_grad(grad, mask, scale):
    return grad * kept(mask, grad) * scale


@formula("aclnnDropoutDoMask", calls=[f"aclnnDropoutDoMask self={X} mask={MASK} prob=0.25 out=FLOAT[3,5]"])
def dropout_do_mask(self, mask, prob):
    return self * kept(mask, self) / (1 - prob)
