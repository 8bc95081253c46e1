"""The memory of the operators' results on CPU.

The C library returns large blocks to the system when they are freed, and fresh ones cost more than most operators. So
blocks from 64 KiB on are kept and reused; the functions are named as in ``torch.cuda.memory``.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterator
from pathlib import Path

from . import _C
from ._warning import warn

VARIABLE = "ACLNN_TORCH_MEMORY_POOL"


def memory_stats() -> dict[str, int]:
    """Statistics of the pool, named as in ``torch.cuda.memory_stats``, without its pools.

    Returns:
        ``allocations`` counts the blocks of results and workspaces in use, ``allocated_bytes`` their bytes, and
        ``reserved_bytes`` also those of kept blocks: each as ``.current``, ``.peak``, and ``.allocated`` and
        ``.freed``, the totals added and removed. ``num_reuses`` counts allocations that reused a kept block,
        ``num_alloc_retries`` those that succeeded only after kept blocks were freed. ``limit_bytes`` is the value of
        :func:`set_memory_limit`. Results below 64 KiB are not counted: they are PyTorch's own memory.
    """
    return _C.memory_stats()


def reset_peak_memory_stats() -> None:
    """Resets the peaks of :func:`memory_stats` to the current values."""
    _C.reset_peak_memory_stats()


def empty_cache() -> None:
    """Returns all memory that no result uses to the system."""
    _C.empty_cache()


def set_memory_limit(bytes: int | str | None) -> None:
    """Sets the reserved memory above which blocks that no result uses are returned to the system.

    Results themselves are not limited. The system may reclaim kept blocks of 16 MiB and more when memory is short,
    whatever the limit.

    Args:
        bytes: the limit, as a number or a text such as ``"512M"`` or ``"2G"`` (K, M, G, T are powers of 1024); 0
            disables the pool: results come from PyTorch's own allocator. None: the default, i.e. such a text in the
            environment variable ``ACLNN_TORCH_MEMORY_POOL``, otherwise a quarter of the memory that the process may
            use.

    Raises:
        TypeError: the limit has another type.
        ValueError: the limit is negative, or an invalid text.
    """
    _C.set_memory_limit(min(_default_limit() if bytes is None else _limit(bytes), 2**63 - 1))


def _limit(bytes: int | str) -> int:
    expected = 'expected a number >= 0, a text such as "512M" or "2G", or None for the default'
    if isinstance(bytes, str):
        limit = _amount(bytes)
    else:
        try:
            limit = operator.index(bytes)
        except TypeError:
            raise TypeError(f"set_memory_limit: bytes is {bytes!r}, {expected}") from None
    if limit is None or limit < 0:
        raise ValueError(f"set_memory_limit: bytes is {bytes!r}, {expected}")
    return limit


def _amount(text: str) -> int | None:
    """The number of bytes that a text denotes; None if it is invalid."""
    size = re.fullmatch(r"([0-9]+)([KMGT]?)", text)
    return int(size[1]) << 10 * " KMGT".index(size[2] or " ") if size else None


def _default_limit() -> int:
    text = os.environ.get(VARIABLE, "")
    limit = _amount(text)
    if limit is not None:
        return limit
    if text:
        warn(f"{VARIABLE}={text} is not a number of bytes, with or without K, M, G or T; ignored")
    return _usable_memory() // 4


def _usable_memory() -> int:
    """The machine's memory, or the limit of the process's control groups if that is less."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in _limit_files():
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # missing, or without a limit
            continue
    return min(limits)


def _limit_files(processes_groups: Path = Path("/proc/self/cgroup")) -> Iterator[Path]:
    """Files that may contain the limits of the process's control groups and their parents, in versions 2 and 1.

    In a container the names may be the machine's; the files of the container's own group are then at the root.
    """
    try:
        lines = processes_groups.read_text().splitlines()
    except OSError:  # no control groups
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            root, file = Path("/sys/fs/cgroup"), "memory.max"
        elif "memory" in controllers.split(","):
            root, file = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
        else:
            continue
        group = root / name.lstrip("/")
        yield from (folder / file for folder in (group, *group.parents) if folder.is_relative_to(root))


set_memory_limit(None)
