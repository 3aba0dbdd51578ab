"""Tables of text that fit the window of a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

BETWEEN = 2
"""Spaces between two columns."""


PIPED = 1_000
"""Columns where nobody looks."""


def wide(console: Console | None = None) -> Console:
    """Where a table is printed: a pipe has no width, nothing is left out there."""
    out = console or Console()
    return out if out.is_terminal else Console(width=PIPED, file=out.file)


def say(console: Console, words: str, style: str = "", indent: int = 0) -> None:
    """Print text that is folded within its margin; empty lines around it stay empty."""
    inside = words.strip("\n")
    before, _, after = words.partition(inside)
    console.print(before, end="")
    console.print(Padding(Text(inside, style), (0, 0, 0, indent), expand=False))
    console.print(after, end="")


def fit_table(
    columns: Mapping[str, Sequence[str]],
    console: Console,
    first_to_go: Iterable[str],
    left: Sequence[str] = (),
) -> tuple[Table, list[str]]:
    """A table no cell of which is folded, and the headings of the columns it had to lose.

    ``first_to_go`` are beginnings of headings. The first column is never lost; it and those
    named in ``left`` are aligned to the left. Headings may be folded, between words.
    """
    shown = dict(columns)
    for beginning in first_to_go:
        if _total(_narrow(shown)) <= console.width:
            break
        shown = {k: cells for k, cells in shown.items() if not k.startswith(beginning)}
    widths = _narrow(shown)
    for heading, width in widths.items():
        wish = max(width, cell_len(heading))
        if _total(widths) + wish - width <= console.width:
            widths[heading] = wish
    # No box when piped: nothing but the numbers.
    lines = box.SIMPLE_HEAD if console.is_terminal else None
    table = Table(box=lines, show_edge=False, pad_edge=False, padding=(0, BETWEEN - 1, 0, 0))
    if lines is None:
        table.padding = (0, BETWEEN, 0, 0)
    for number, (heading, width) in enumerate(widths.items()):
        side: JustifyMethod = "left" if number == 0 or heading in left else "right"
        table.add_column(Text(heading, "bold"), justify=side, width=width, no_wrap=False)
    for row in zip(*shown.values(), strict=True):
        table.add_row(*(Text(cell) for cell in row))  # never read as markup
    return table, [heading for heading in columns if heading not in shown]


def _narrow(columns: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The least width of every column: its widest cell, or the longest word above it."""
    return {
        heading: max(cell_len(text) for text in (*cells, *heading.split()))
        for heading, cells in columns.items()
    }


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + BETWEEN * (len(widths) - 1)
