"""Memory that torch frees in one step of training is kept for the next."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

KEPT = 256 << 20  # bytes at the end of the heap that are not given back; the peak is as before
_LARGE = 32 << 20  # larger pieces come from the system one by one; glibc takes no more than this
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # what malloc.h calls them


@cache
def keep_freed_memory() -> bool:
    """Tell the allocator of this process, once, not to give back what a step frees; whether it did.

    A step of a recurrent network takes some 40 MB and frees them all. glibc then returns the end
    of the heap to the system, and the next step gets it again page by page, each zeroed by the
    kernel: a third of the time of an LSTM. Other allocators are left alone, and so is one that
    the environment has settings for.
    """
    settings = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"
    if sys.platform != "linux" or any(name in os.environ for name in settings):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    return bool(set_option(_MMAP_THRESHOLD, _LARGE) and set_option(_TRIM_THRESHOLD, KEPT))
