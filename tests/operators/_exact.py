"""Formulas of elementwise operators in extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

# 64 bits of mantissa on x86-64, 113 on aarch64.
Exact = np.longdouble
Array = np.ndarray[Any, np.dtype[np.longdouble]]


def coefficients(dtype: torch.dtype, alpha: float, scale: float, input_scale: float) -> tuple[Exact, Exact, Exact]:
    """The coefficients of ELU's formulas: scale, alpha * scale and the input's scale, each rounded once."""
    real = np.float64 if dtype == torch.float64 else np.float32
    return Exact(real(scale)), Exact(real(Exact(real(alpha)) * Exact(real(scale)))), Exact(real(input_scale))


def elu(dtype: torch.dtype, x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """The exact result of ELU."""
    upper, lower, inner = coefficients(dtype, alpha, scale, input_scale)
    return np.where(x > 0, upper * x, lower * np.expm1(inner * x))


def elu_backward(
    dtype: torch.dtype, g: Array, alpha: float, scale: float, input_scale: float, is_result: bool, v: Array
) -> Array:
    """The exact gradient of ELU."""
    upper, lower, inner = coefficients(dtype, alpha, scale, input_scale)
    slope = inner * (v + lower) if is_result else inner * lower * np.exp(inner * v)
    return g * np.where(v <= 0, slope, upper)  # for nan, too


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), accurate for small results."""
    return np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x)))
