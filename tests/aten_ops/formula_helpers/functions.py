"""Functions that formulas in several folders use."""

from __future__ import annotations

import math

import numpy as np

erf = np.vectorize(math.erf, [float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x, approximates):
    if approximates:
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + erf(x / np.sqrt(2)))
