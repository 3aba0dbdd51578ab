"""Names of columns that say by themselves what they hold; the explorer has the same lists."""

from __future__ import annotations

import re
from collections.abc import Sequence

SIZE_NAMES = (
    "size", "sizes", "samples", "num-samples", "n-samples", "examples", "num-examples",
    "n-examples", "count", "n",
)  # fmt: skip
"""Headings of sizes; ``num_examples`` and ``Num examples`` are the same name."""
ID_NAMES = ("id", "client", "name", "site", "hospital", "node", "key")
"""Headings of ids; so are those whose last word is one of `ID_WORDS`, as ``client_id``."""
ID_WORDS = ("id", "name", "key")
NO_ANSWERS = ("na", "n/a", "nan", "inf", "infinity", "none", "null", "unknown", "missing")
"""What stands in place of a number that nobody knows: no heading."""


def _words(name: str) -> list[str]:
    return re.split(r"[\s_-]+", name.strip().lower())


def is_size_name(name: str) -> bool:
    """Whether a heading says that its column has the sizes.

    >>> is_size_name("num_examples"), is_size_name("Size"), is_size_name("patients")
    (True, True, False)
    """
    return "-".join(_words(name)) in SIZE_NAMES


def is_id_name(name: str) -> bool:
    """Whether a heading says that its column names the clients.

    >>> is_id_name("Hospital"), is_id_name("client_id"), is_id_name("patients")
    (True, True, False)
    """
    words = _words(name)
    return "-".join(words) in ID_NAMES or words[-1] in ID_WORDS


def is_heading(cell: str) -> bool:
    """Whether a cell where a size is expected is a name instead, and no mistyped size.

    >>> [is_heading(cell) for cell in ("num-examples", "# patients", "12O", "n/a", "")]
    [True, True, False, False, False]
    """
    return bool(re.match(r"#?\s*[^\W\d_]", cell)) and cell.lower() not in NO_ANSWERS


def unmistakable(cells: Sequence[str]) -> bool:
    """Whether a line must be one of names although a number stands in it, as ``id,2024``."""
    return any(cell.lower() == "id" for cell in cells)
