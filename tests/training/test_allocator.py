"""What a step of training frees is there for the next, unless the environment says otherwise."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

if platform.libc_ver()[0] != "glibc":
    pytest.skip("other allocators are left alone", allow_module_level=True)

WATCHED = """
import resource
from fedcohort.training._torch_model import keep_freed_memory

def step():
    pieces = [b"x" * (10 << 20) for _ in range(4)]

print(int(keep_freed_memory()))
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PAGES = 5 * (40 << 20) // 4096  # of the memory that five steps write to


def told(settings: dict[str, str]) -> tuple[bool, int]:
    """Whether the allocator was told, and the pages that five steps got from the system."""
    ran = subprocess.run(
        [sys.executable, "-c", WATCHED],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=True,
    )
    did, pages = ran.stdout.split()
    return did == "1", int(pages)


def test_freed_memory_is_kept_for_the_next_step() -> None:
    did, pages = told({})
    assert did
    assert pages < PAGES / 20


def test_settings_of_the_environment_are_left_alone() -> None:
    did, pages = told({"MALLOC_TRIM_THRESHOLD_": "131072"})
    assert not did
    assert pages > PAGES / 2
