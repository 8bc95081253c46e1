from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

CONSTANT_CALLS = (
    "aclnnConstantPadNd self=FLOAT[2,3,4] pad=[1,2,-1,1] value=DOUBLE(-2.5) out=FLOAT[2,3,7]",
    "aclnnConstantPadNd self=INT32[2,3]:5,-4,3,-2,1,9 pad=[0,1,2,0] value=INT64(-7) out=INT32[4,4]",
)


@formula("aclnnConstantPadNd", calls=CONSTANT_CALLS)
def constant_pad(self, pad, value):
    result = self
    for i in range(len(pad) // 2):
        moved = np.moveaxis(result, -1 - i, 0)
        before, after = pad[2 * i], pad[2 * i + 1]
        kept = moved[max(-before, 0) : len(moved) - max(-after, 0)]
        rest = moved.shape[1:]
        parts = [np.full((max(before, 0), *rest), value), kept, np.full((max(after, 0), *rest), value)]
        result = np.moveaxis(np.concatenate(parts), 0, -1 - i)
    return result


def reflected(position, size):
    position = abs(position)
    return position if position < size else 2 * (size - 1) - position


def replicated(position, size):
    return min(max(position, 0), size - 1)


def sources(shape, padding, source):
    """The flat position in the input of each element of the padded tensor."""
    positions = np.arange(np.prod(shape)).reshape(shape)
    for i in range(len(padding) // 2):
        size = shape[-1 - i]
        places = range(-padding[2 * i], size + padding[2 * i + 1])
        positions = np.take(positions, [source(place, size) for place in places], -1 - i)
    return positions


def padded(self, padding, source):
    return self.reshape(-1)[sources(self.shape, padding, source)]


def summed(grad, self, padding, source):
    result = np.zeros(self.size)
    np.add.at(result, sources(self.shape, padding, source), grad)
    return result.reshape(self.shape)


@formula(
    *(f"aclnnReflectionPad{dims}d" for dims in (1, 2, 3)),
    calls=["aclnnReflectionPad1d self=INT32[2,4]:5,-4,3,-2,1,9,8,-7 padding=[3,2] out=INT32[2,9]"],
)
def reflection_pad(self, padding):
    return padded(self, padding, reflected)


@formula(*(f"aclnnReflectionPad{dims}dBackward" for dims in (1, 2, 3)))
def reflection_pad_backward(grad, self, padding):
    return summed(grad, self, padding, reflected)


@formula(*(f"aclnnReplicationPad{dims}d" for dims in (1, 2, 3)))
def replication_pad(self, padding):
    return padded(self, padding, replicated)


@formula(*(f"aclnnReplicationPad{dims}dBackward" for dims in (1, 2, 3)))
def replication_pad_backward(grad, self, padding):
    return summed(grad, self, padding, replicated)


def wrapped(position, size):
    return position % size


# ops-math: aclnnCircularPad2d.md, aclnnCircularPad2dBackward.md, aclnnCircularPad3dBackward.md
@formula(
    "aclnnCircularPad2d",
    "aclnnCircularPad3d",
    calls=[
        "aclnnCircularPad2d self=FLOAT[1,1,3,3]:0,1,2,3,4,5,6,7,8 padding=[2,2,1,2] out=FLOAT[1,1,6,7]",
        "aclnnCircularPad2d self=INT32[2,2,3]:5,-4,3,-2,1,9,8,-7,6,10,-11,12 padding=[1,0,0,1] out=INT32[2,3,4]",
    ]
    + [
        f"aclnnCircularPad3d self={dtype}[1,2,2,3]:5,-4,3,-2,1,9,8,-7,6,10,-11,12 padding=[2,1,1,0,0,1] "
        f"out={dtype}[1,3,3,6]"
        for dtype in ("FLOAT", "INT32")
    ]
    + [
        "aclnnCircularPad3d self=INT32[1,2,1,2]:1,2,3,4 padding=[1,0,0,0,0,1] out=INT32[1,3,1,3]",
    ],
)
def circular_pad(self, padding):
    return padded(self, padding, wrapped)


@formula(
    "aclnnCircularPad2dBackward",
    "aclnnCircularPad3dBackward",
    calls=[
        "aclnnCircularPad2dBackward gradOutput=FLOAT[2,4,7] self=FLOAT[2,3,5] padding=[1,1,0,1] gradInput=FLOAT[2,3,5]",
        "aclnnCircularPad3dBackward gradOutput=FLOAT[1,3,3,3] self=FLOAT[1,2,2,2] padding=[1,0,0,1,0,1] "
        "gradInput=FLOAT[1,2,2,2]",
    ],
)
def circular_pad_backward(grad, self, padding):
    return summed(grad, self, padding, wrapped)
