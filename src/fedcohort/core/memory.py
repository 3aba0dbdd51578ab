"""How much memory there is, to refuse what would not fit before it is begun."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path


def free_bytes() -> float:
    """What this process may still take: the machine's, the container's and its own limit.

    Infinite where the system does not tell.
    """
    return min(_of_machine(), _of_container(), _of_process())


def _of_machine() -> float:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return 1024.0 * int(line.split()[1])
    return math.inf


def _of_container() -> float:
    most, now = (_read(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    return float(most) - float(now) if most.isdigit() and now.isdigit() else math.inf


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
