"""Layers and directions of recurrent networks, for the formulas in formulas/recurrent."""

from __future__ import annotations

import numpy as np

from tests.aten_ops.formula_helpers.numbers import signed


def parameters(layers, directions, gates, inputs, hidden, has_bias):
    """The list of the weights and biases of each cell, in the syntax of samples.txt."""
    tensors = []
    for cell in range(layers * directions):
        columns = inputs if cell < directions else directions * hidden
        rows = gates * hidden
        shapes = [f"{rows},{columns}", f"{rows},{hidden}", *([f"{rows}"] * 2 if has_bias else [])]
        tensors += [signed(shape, 20 + 4 * cell + i) for i, shape in enumerate(shapes)]
    return f"{{{' '.join(tensors)}}}"


def lists(names, count, shape, values=None):
    """Lists of as many tensors of a shape, or null for no tensors; `values` makes a tensor of a shape and a start."""
    parts = []
    for place, name in enumerate(names.split(), 6):
        tensors = [f"FLOAT[{shape}]" if values is None else values(shape, 10 * place + i) for i in range(count)]
        parts.append(f"{name}={{{' '.join(tensors)}}}" if count else f"{name}=null")
    return " ".join(parts)


def cells_of(params, has_bias):
    """The parameters of each cell."""
    each = 4 if has_bias else 2
    return [params[i : i + each] for i in range(0, len(params), each)]


def stacked(x, cells, directions, run):
    """Layers, whose directions stand side by side: run(x, cell) gives the values, "y" among them, and the states."""
    results = []
    for first in range(0, cells, directions):
        results += [run(x, first + i) for i in range(directions)]
        x = np.concatenate([each[0]["y"] for each in results[first:]], -1)
    return x, *map(list, zip(*results, strict=True))
