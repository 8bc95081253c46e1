"""Losses: how their elements are reduced, and the calls with each reduction."""

from __future__ import annotations


def reductions(grad):
    """The number of each reduction (none, mean, sum), the result, and its gradient, of [2,4] elements."""
    return [(0, "FLOAT[2,4]", grad), (1, "FLOAT[]", "FLOAT[]:-3.5"), (2, "FLOAT[]", "FLOAT[]:-3.5")]


def reduced(losses, reduction):
    """As they are, their mean, their sum, or, for KlDiv, their sum divided by the first dimension."""
    batch = losses.shape[0] if losses.ndim else 1
    return [lambda: losses, losses.mean, losses.sum, lambda: losses.sum() / batch][reduction]()


def gradient(derivative, grad, reduction):
    """The gradient of the elements, of which `derivative` has the derivatives."""
    batch = derivative.shape[0] if derivative.ndim else 1
    return derivative * grad / [1, derivative.size, 1, batch][reduction]
