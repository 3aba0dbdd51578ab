"""The sizes of Python's lists, as CPython grows them."""

from __future__ import annotations

import sys

import pytest

from fedcohort_papers.recipes.thesis.table_4_2 import list_bytes


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="lists of CPython")
def test_a_list_has_the_size_that_appending_gives_it() -> None:
    grown: list[int] = []
    for length in range(1, 400):
        grown.append(length)
        assert list_bytes(length) == sys.getsizeof(grown)
