"""Schedules of cores, for the formulas of functions that write them: cores take rows of blocks from one list.

The rule is that of ops-transformer's published AI CPU kernels: lightning_indexer_v2_metadata,
quant_lightning_indexer_v2_metadata, sparse_flash_mla_metadata and mixed_quant_sparse_flash_mla_metadata. Their
documents say what the numbers are for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

CORES = 24  # of the tests' product


def lengths_of(ends: Any, used: Any, layout: str, count: int, length: int) -> list[int]:
    """The lengths of the sequences; an empty tensor stands for a null one."""
    if used is not None and used.size:
        return list(used)
    if layout == "TND":
        return list(np.diff(ends))
    return [length] * count


def blocks_of(height: int, seen: int, width: int) -> list[int]:
    """The times of the blocks of a row: `height` queries of heads, and keys in blocks of `width`."""
    widths = [min(width, seen - start) for start in range(0, seen, width)]
    return [6 * -(-height // 16) + 10 * -(-keys // 64) for keys in widths]


def schedule_of(costs: list[list[list[int]]], is_empty: bool, numbers: int) -> Any:
    """The table of 1024 elements, `numbers` for each core, from the times of the blocks of each sequence's rows.

    Each core takes an equal share of the time that is left, and up to half a block more.
    """
    times = [[sum(row) for row in rows] for rows in costs]
    lasts = [([row[-1] for row in rows if row] or [0])[-1] for rows in costs]
    left, largest = sum(map(sum, times)), max((time for rows in times for time in rows), default=0)
    ends, i, row = [], 0, 0
    while left and i < len(costs) and len(ends) < CORES:
        share, taken = max(largest, left // (CORES - len(ends))), 0
        # Whole sequences, or what is left of one.
        while i < len(costs) and taken + sum(times[i][row:]) <= share + lasts[i] // 2:
            taken += sum(times[i][row:])
            i, row = i + 1, 0
        while i < len(costs) and taken + times[i][row] <= share + (costs[i][row] or [0])[-1] // 2:
            taken += times[i][row]
            row += 1
            while not times[i][row]:
                row += 1
        ends.append((i, row))
        left -= taken
    if not ends:
        ends.append((len(costs) if is_empty else 0, 0))
    result = np.zeros(1024, int)
    for core, (begin, end) in enumerate(zip([(0, 0), *ends], ends, strict=False)):
        result[core * numbers :][:6] = [1, *begin, 0, *end]
    return result
