"""Compiles a network of aclnn operators ahead of time into a package that run_package.cpp runs without Python.

    python examples/aot_inductor/make_package.py network.pt2

prints the network's results for its input, one number per line, like the program.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import aclnn_torch


def build_network() -> torch.nn.Module:
    """Signals of one channel and 16 numbers, in 3 classes."""
    torch.manual_seed(0)
    nn = aclnn_torch.nn
    return torch.nn.Sequential(
        nn.Conv1d(1, 8, 5), nn.ELU(), nn.RMSNorm([8, 12]), nn.SELU(), torch.nn.Flatten(), torch.nn.Linear(96, 3)
    ).eval()


def build_input(rows: int) -> torch.Tensor:
    """The same numbers as in run_package.cpp."""
    return torch.linspace(-1, 1, 16 * rows).reshape(rows, 1, 16)


def main(path: Path) -> None:
    """Writes the package, and prints the network's results."""
    network = build_network()
    with torch.no_grad():
        # Two rows are an example; the package accepts any number of rows.
        program = torch.export.export(network, (build_input(2),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
        torch._inductor.aoti_compile_and_package(program, package_path=str(path))
        for number in network(build_input(4)).flatten():
            print(f"{number:.5f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
