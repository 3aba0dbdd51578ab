"""HTML for notebooks, and durations in words."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from fedcohort._internal.types import Array

# What objects show in a notebook: small tables, bars and curves.
#
# Every text is escaped here, so that a client's name or a label is never read as markup; what is
# markup already is a `Picture`, and only this file makes one.

ROWS = 12
"""A table shows at most so many rows; a last one says how many more there are."""
BARS = 120
"""A picture has at most so many bars; more clients are shown by so many of them."""
LARGE, HUGE = 1e4, 1e12
"""Between these a number has no fraction that matters, and no power of ten."""
_LINE = "stroke:#4a7fb5;stroke-width:1.5;fill:none"
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" role="img" style="vertical-align:middle"'


class Picture(str):
    """Markup that stands in a table as it is."""

    __slots__ = ()


def plural(count: float, thing: str) -> str:
    """The word for so many things.

    >>> plural(1, "round"), plural(0, "round")
    ('round', 'rounds')
    """
    return thing if count == 1 else f"{thing}s"


def number(value: Any) -> str:
    """A number for a table: whole and large ones with thousands apart, others with four digits.

    >>> number(1234567), number(0.123456), number(75000.4), number(float("nan"))
    ('1,234,567', '0.1235', '75,000', '–')
    """
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if not np.isfinite(value):
        return "–"
    return f"{float(value):,.0f}" if LARGE <= abs(value) < HUGE else f"{float(value):.4g}"


def table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    note: str = "",
    lead: Iterable[str] = (),
    limit: int = ROWS,
) -> str:
    """A table of at most ``limit`` rows, a title and paragraphs above it, and a note below.

    >>> table("Who", ["Client"], [["<b>"]]).count("&lt;b&gt;")
    1
    """
    listed = list(rows)
    shown = listed if len(listed) <= limit + 1 else listed[:limit]
    head = "".join(f'<th style="text-align:left">{escape(text)}</th>' for text in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown)
    if len(shown) < len(listed):
        body += f'<tr><td colspan="{len(heads)}">… and {len(listed) - len(shown):,} more</td></tr>'
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    above = "".join(map(_paragraph, lead))
    return f"<div><strong>{escape(title)}</strong>{above}{table}{_paragraph(note)}</div>"


def facts(title: str, known: Iterable[tuple[str, Any]], note: str = "") -> str:
    """A table of names and values; what is None is left out."""
    rows = [map(_left, (name, value)) for name, value in known if value is not None]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    table = f"<table><tbody>{body}</tbody></table>"
    return f"<div><strong>{escape(title)}</strong>{table}{_paragraph(note)}</div>"


def image(title: str, png: bytes, note: str = "") -> str:
    """A picture with a title above it and a note below."""
    data = base64.b64encode(png).decode("ascii")
    shown = f'<img alt="{escape(title)}" style="max-width:100%" src="data:image/png;base64,{data}">'
    return f"<div><strong>{escape(title)}</strong><div>{shown}</div>{_paragraph(note)}</div>"


def _paragraph(text: str) -> str:
    return f'<div style="max-width:60em">{escape(text)}</div>' if text else ""


def _left(value: Any) -> str:
    """A cell beside its name: numbers, too, begin where the others do."""
    return _cell(number(value) if isinstance(value, int | float | np.number) else value)


def _cell(value: Any) -> str:
    if isinstance(value, Picture):
        return f'<td style="text-align:left">{value}</td>'
    if isinstance(value, int | float | np.number):
        return f'<td style="text-align:right">{number(value)}</td>'
    return f'<td style="text-align:left">{escape(str(value))}</td>'


def bars(values: Array, says: str, height: int = 44) -> Picture:
    """A bar for every value from 0 up to the largest; ``says`` is read out instead of it."""
    shown = _fewer(np.nan_to_num(np.asarray(values, dtype=np.float64)))
    top = float(shown.max(initial=0.0)) or 1.0
    step = min(12.0, 360 / max(1, len(shown)))
    drawn = "".join(
        f'<rect x="{i * step:.1f}" y="{height * (1 - v / top):.1f}" '
        f'width="{0.8 * step:.1f}" height="{max(0.0, height * v / top):.1f}"/>'
        for i, v in enumerate(shown.tolist())
    )
    return Picture(
        f'{_svg(round(step * len(shown)), height, says)} fill="#4a7fb5">'
        f"<title>{escape(says)}</title>{drawn}</svg>"
    )


def curve(values: Array, says: str) -> Picture:
    """A small curve between the least and the largest of its finite values."""
    y = np.asarray(values, dtype=np.float64)
    there = np.flatnonzero(np.isfinite(y))
    if len(there) < 2:
        return Picture("")
    there = there[_fewer(np.arange(len(there), dtype=np.float64)).astype(np.int64)]
    low, span = float(y[there].min()), float(np.ptp(y[there])) or 1.0
    points = " ".join(
        f"{140 * i / max(1, there[-1]):.1f},{22 - 20 * (y[i] - low) / span:.1f}" for i in there
    )
    return Picture(
        f"{_svg(140, 24, says)}><title>{escape(says)}</title>"
        f'<polyline points="{points}" style="{_LINE}"/></svg>'
    )


def progress(share: float, says: str) -> Picture:
    """A bar that is filled to a share of its length."""
    done = 200 * min(1.0, max(0.0, share))
    return Picture(
        f"{_svg(200, 10, says)}><title>{escape(says)}</title>"
        '<rect width="200" height="10" rx="4" fill="#8884"/>'
        f'<rect width="{done:.1f}" height="10" rx="4" fill="#4a7fb5"/></svg>'
    )


def _svg(width: int, height: int, says: str) -> str:
    """The open tag of a picture, which a narrow screen may shrink but not cut."""
    box = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'{_SVG} {box} aria-label="{escape(says)}"'


def _fewer(values: Array) -> Array:
    """At most `BARS` of the values, evenly among them, the first and the last with them."""
    if len(values) <= BARS:
        return values
    return values[np.linspace(0, len(values) - 1, BARS).round().astype(np.int64)]


# Time spans as people read them.

NOTHING = "–"


def duration(seconds: float) -> str:
    """A time span.

    >>> duration(0.012), duration(3.25), duration(75), duration(7260)
    ('12 ms', '3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if not math.isfinite(seconds):
        return NOTHING
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"
