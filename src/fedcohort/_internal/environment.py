"""Versions of the software that runs, and the free memory."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import sys
from pathlib import Path

import numpy as np

from fedcohort._internal.errors import TooLarge

# What ran: the versions that a record of a run keeps.


def versions() -> dict[str, str]:
    """Our version, Python's, numpy's, and torch's where it was used."""
    from fedcohort import __version__

    torch = sys.modules.get("torch")
    return {
        "fedcohort": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        **({} if torch is None else {"torch": str(torch.__version__)}),
    }


# How much memory there is, to refuse what would not fit before it is begun.


def free_bytes() -> float:
    """What this process may still take: the machine's, the container's and its own limit.

    Infinite where the system does not tell.
    """
    return min(_of_machine(), _of_container(), _of_process())


def check_fits(needed: float, what: str) -> None:
    """Refuse what needs more memory than is free."""
    free = free_bytes()
    if needed > free:
        raise TooLarge(
            f"{what} takes {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free: use "
            "a smaller one, or more memory."
        )


def _of_machine() -> float:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return 1024.0 * int(line.split()[1])
    return math.inf


def _of_container() -> float:
    most, now = (_read(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if not (most.isdigit() and now.isdigit()):
        return math.inf
    told = dict(line.split()[:2] for line in _read("/sys/fs/cgroup/memory.stat").splitlines())
    cached = float(told.get("inactive_file", 0))  # copies of files, which make room for others
    return float(most) - float(now) + cached


def _of_process() -> float:
    with contextlib.suppress(ImportError, OSError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        taken = _read("/proc/self/statm").split()
        if limit != resource.RLIM_INFINITY and taken:
            return limit - int(taken[0]) * float(os.sysconf("SC_PAGE_SIZE"))
    return math.inf


def _read(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="ascii")
    return ""
