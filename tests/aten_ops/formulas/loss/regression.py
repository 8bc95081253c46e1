from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

X = "FLOAT[2,4]:-2.5,0.75,-0.5,1.5,0.5,-4,3,0.125"
TARGET = "FLOAT[2,4]:-1.25,1,0.75,-0.25,0.375,-3.75,-2,0.5"
GRAD = "FLOAT[2,4]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25"
# Each reduction with the shapes of the result and of the incoming gradient.
REDUCTIONS = [(0, "FLOAT[2,4]", GRAD), (1, "FLOAT[]", "FLOAT[]:-3.5"), (2, "FLOAT[]", "FLOAT[]:-3.5")]


def reduced(losses, reduction):
    return [lambda: losses, losses.mean, losses.sum][reduction]()


def gradient(derivative, grad, reduction):
    return derivative * grad / (derivative.size if reduction == 1 else 1)


def forward(name, output, more=""):
    return [f"{name} self={X} target={TARGET} reduction={r}{more} {output}={out}" for r, out, _ in REDUCTIONS]


def backward(name, grad, more=""):
    return [
        f"{name} {grad}={values} self={X} target={TARGET} reduction={r}{more} gradInput=FLOAT[2,4]"
        for r, _, values in REDUCTIONS
    ]


@formula("aclnnL1Loss", calls=forward("aclnnL1Loss", "out"))
def l1_loss(self, target, reduction):
    return reduced(np.abs(self - target), reduction)


@formula("aclnnL1LossBackward", calls=backward("aclnnL1LossBackward", "gradOutput"))
def l1_loss_backward(grad, self, target, reduction):
    return gradient(np.sign(self - target), grad, reduction)


@formula("aclnnMseLoss", calls=forward("aclnnMseLoss", "out"))
def mse_loss(self, target, reduction):
    return reduced((self - target) ** 2, reduction)


@formula("aclnnMseLossBackward", calls=backward("aclnnMseLossBackward", "gradOutput"))
def mse_loss_backward(grad, self, target, reduction):
    return gradient(2 * (self - target), grad, reduction)


@formula("aclnnSmoothL1Loss", calls=forward("aclnnSmoothL1Loss", "result", " beta=0.75"))
def smooth_l1_loss(self, target, reduction, beta):
    distance = np.abs(self - target)
    return reduced(np.where(distance < beta, distance**2 / (2 * beta), distance - beta / 2), reduction)


@formula("aclnnSmoothL1LossBackward", calls=backward("aclnnSmoothL1LossBackward", "gradOut", " beta=0.75"))
def smooth_l1_loss_backward(grad, self, target, reduction, beta):
    difference = self - target
    derivative = np.where(np.abs(difference) < beta, difference / beta, np.sign(difference))
    return gradient(derivative, grad, reduction)
