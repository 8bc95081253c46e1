from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.losses import gradient, reduced, reductions
from tests.aten_ops.formulas import formula

X = "FLOAT[2,4]:-2.5,0.75,-0.5,1.5,0.5,-4,3,0.125"
TARGET = "FLOAT[2,4]:-1.25,1,0.75,-0.25,0.375,-3.75,-2,0.5"
GRAD = "FLOAT[2,4]:0.5,-1.25,2,0.75,-1.5,3,1.75,-0.25"
# Each reduction with the shapes of the result and of the incoming gradient.
REDUCTIONS = reductions(GRAD)


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


# The mean and the sum are those over the first dimension (ops-nn: aclnnMseLossOut.md).
@formula(
    "aclnnMseLossOut",
    calls=[
        *(f"aclnnMseLossOut self={X} target=FLOAT[4]:1,0.5,-2,0.25 reduction={r} out=FLOAT[4]" for r in (1, 2)),
        f"aclnnMseLossOut self={X} target=FLOAT[4]:1,0.5,-2,0.25 reduction=0 out=FLOAT[2,4]",
        "aclnnMseLossOut self=FLOAT[2]:1,3 target=FLOAT[2]:0,0.5 reduction=1 out=FLOAT[]",
    ],
)
def mse_loss_out(self, target, reduction):
    losses = (self - target) ** 2
    return [lambda: losses, lambda: losses.mean(0), lambda: losses.sum(0)][reduction]()


NAMES = ("none", "mean", "sum")


# ops-nn: aclnnMseLossGrad.md.
@formula(
    "aclnnMseLossGrad",
    calls=[
        *(
            f'aclnnMseLossGrad predict={X} label={TARGET} dout={GRAD} reductionOptional="{name}" yOut=FLOAT[2,4]'
            for name in NAMES
        ),
        f"aclnnMseLossGrad predict={X} label=FLOAT[4]:1,2,-0.5,3 dout=FLOAT[]:2 reductionOptional=null yOut=FLOAT[2,4]",
    ],
)
def mse_loss_grad(predict, label, dout, reduction):
    return gradient(2 * (predict - label), dout, NAMES.index(reduction or "mean"))


# ops-nn: aclnnLpLoss.md, for p = 1.
@formula(
    "aclnnLpLoss",
    calls=[f'aclnnLpLoss predict={X} label={TARGET} p=1 reduction="{NAMES[r]}" out={out}' for r, out, _ in REDUCTIONS],
)
def lp_loss(predict, label, _p, reduction):
    return l1_loss(predict, label, NAMES.index(reduction))


@formula("aclnnHuberLoss", calls=[f"aclnnHuberLoss predictions={X} targets={TARGET} delta=1.25 loss=FLOAT[2,4]"])
def huber_loss(predictions, targets, delta):
    """ops-nn: aclnnHuberLoss.md."""
    error = np.abs(predictions - targets)
    return np.where(error <= delta, error**2 / 2, delta * (error - delta / 2))


def of_elements(variance, x):
    """The variance, broadcastable to the elements: it may lack the last dimension, or be one number."""
    return variance[..., None] if variance.size != 1 and variance.ndim < x.ndim else variance


# ops-nn: aclnnGaussianNllLoss.md.
@formula(
    "aclnnGaussianNllLoss",
    calls=[
        f'aclnnGaussianNllLoss input={X} target={target} var={var} full={full} eps={eps} reductionOptional="{name}" '
        f"out={out}"
        for target, var, full, eps, name, out in (
            (TARGET, "FLOAT[2,1]:0.5,2", "false", 1.0, "none", "FLOAT[2,4]"),
            ("FLOAT[2,1]:0.25,-0.5", "FLOAT[2]:0.5,2", "true", 1e-6, "mean", "FLOAT[1]"),
            ("FLOAT[1,4]:0.25,-0.5,1,2", "FLOAT[1]:0.75", "true", 1e-6, "sum", "FLOAT[1]"),
            (TARGET, "FLOAT[2,4]:0.5,2,1.5,0.25,3", "false", 1e-6, "sum", "FLOAT[1]"),
        )
    ]
    + [
        "aclnnGaussianNllLoss input=FLOAT[0,3] target=FLOAT[0,3] var=FLOAT[0] full=true eps=1e-06 "
        'reductionOptional="none" out=FLOAT[0,3]',
        "aclnnGaussianNllLoss input=FLOAT[]:2 target=FLOAT[]:1 var=FLOAT[]:0.5 full=false eps=1e-06 "
        'reductionOptional="none" out=FLOAT[]',
    ],
)
def gaussian_nll_loss(x, target, variance, full, eps, reduction):
    v = np.maximum(of_elements(variance, x), eps)
    losses = (np.log(v) + (x - target) ** 2 / v) / 2 + (np.log(2 * np.pi) / 2 if full else 0)
    result = reduced(losses, NAMES.index(reduction))
    return result if reduction == "none" else np.reshape(result, 1)


# ops-nn: aclnnGaussianNllLossGrad.md. A variance less than eps has the gradient at eps.
@formula(
    "aclnnGaussianNllLossGrad",
    calls=[
        f"aclnnGaussianNllLossGrad gradOutput={grad} input={X} target={target} var={var} full=false eps={eps} "
        f'reduction="{name}" gradInput=FLOAT[2,4] gradVar={var.partition(":")[0]}'
        for grad, target, var, eps, name in (
            ("FLOAT[1]:3", "FLOAT[2,1]:0.25,-0.5", "FLOAT[1]:0.25", 0.5, "sum"),
            ("FLOAT[1]:3", TARGET, "FLOAT[2]:0.5,2", 1e-6, "mean"),
            (GRAD, "FLOAT[2,1]:0.25,-0.5", "FLOAT[2,1]:0.5,2", 1e-6, "none"),
            (GRAD, TARGET, "FLOAT[2,4]:0.5,2,1.5,0.25,3", 1e-6, "none"),
        )
    ],
)
def gaussian_nll_loss_grad(grad, x, target, variance, _full, eps, reduction):
    d, v = x - target, np.maximum(of_elements(variance, x), eps)
    of_x, of_v = (gradient(each, grad, NAMES.index(reduction)) for each in (d / v, (1 / v - d**2 / v**2) / 2))
    dims = [i for i in range(x.ndim) if v.ndim < x.ndim or v.shape[i] < x.shape[i]]
    return of_x, of_v.sum(tuple(dims)).reshape(variance.shape)
