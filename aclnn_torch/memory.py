"""The memory of the operators' results on CPU.

The C library gives large blocks back to the system when they are freed, and to get fresh ones costs more than most
operators do. So blocks from 64 KiB on are kept here and used again; the functions are those of ``torch.cuda.memory``.
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
    """What the pool has and had, named after ``torch.cuda.memory_stats``, without its pools.

    Returns:
        ``allocations`` counts the blocks of results and workspaces that are in use, ``allocated_bytes`` their bytes,
        and ``reserved_bytes`` those of the kept ones too: each as ``.current``, ``.peak``, and ``.allocated`` and
        ``.freed``, the sums of what was added and of what was taken away. ``num_reuses`` are allocations that got a
        block that was kept, ``num_alloc_retries`` those for which the kept ones had to go. ``limit_bytes`` is what
        :func:`set_memory_limit` has set. Results below 64 KiB are not counted: they are PyTorch's own memory.
    """
    return _C.memory_stats()


def reset_peak_memory_stats() -> None:
    """Lets the peaks of :func:`memory_stats` begin anew at what is current."""
    _C.reset_peak_memory_stats()


def empty_cache() -> None:
    """Gives all memory that no result uses back to the system."""
    _C.empty_cache()


def set_memory_limit(bytes: int | str | None) -> None:
    """Sets how much memory may be reserved before blocks that no result uses go back to the system.

    Results themselves are not limited. Of what is kept, blocks of 16 MiB and more are the system's to take when memory
    is short, whatever the limit.

    Args:
        bytes: the limit, as a number or a text such as ``"512M"`` or ``"2G"`` (K, M, G, T are powers of 1024); 0
            switches the pool off: results come from PyTorch's own allocator. None: the default, which is what the
            environment variable ``ACLNN_TORCH_MEMORY_POOL`` says, such a text, or else a quarter of the memory that the
            process may use.

    Raises:
        TypeError: the limit is neither of these.
        ValueError: the limit is negative, or a text that is no amount.
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
    """The number of bytes that a text stands for, None if for none."""
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
    """The machine's memory, or what the process's control groups leave of it if that is less."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in _limit_files():
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # not there, or without a limit
            continue
    return min(limits)


def _limit_files(processes_groups: Path = Path("/proc/self/cgroup")) -> Iterator[Path]:
    """Where the limits of the process's groups would stand, in version 2 and 1, with those of the groups around them.

    In a container the names may be those of the machine; the files of the container's own group are then at the root.
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
