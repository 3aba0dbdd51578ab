"""Pieces of HTML, and data for the page."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedcohort._internal.types import Array, Floats
from fedcohort.report._figure import Drawing, Switch, style

if TYPE_CHECKING:
    pass

# Pieces of HTML. Every text passes through ``escape``; nothing else builds markup.

FEW = 4
"""Up to so many options stand side by side; more go into a list."""


def unbroken(text: str) -> str:
    """A text in which a number and its percent sign stay together."""
    return escape(text).replace(" %", "&nbsp;%")


def card(item: Card) -> str:
    """A box with one answer."""
    return (
        f'<div class="card"><dt>{escape(item.question)}</dt>'
        f"<dd><strong>{unbroken(item.answer)}</strong><span>{escape(item.detail)}</span></dd></div>"
    )


def figure(drawing: Drawing) -> str:
    """A figure: title, switches, the place of the plot, caption, and the numbers as a table."""
    key = escape(drawing.key)
    switches = "".join(switch(item, drawing.key) for item in drawing.switches)
    numbers = "" if drawing.table is None else details(drawing.table)
    height = int(drawing.layout.get("height", 400))
    return (
        f'<figure id="figure-{key}" aria-labelledby="title-{key}">'
        f'<h3 id="title-{key}">{escape(drawing.title)}</h3>'
        f'<div class="switches">{switches}</div>'
        f'<div class="plot" id="plot-{key}" data-key="{key}" role="img" '
        f'aria-label="{escape(drawing.title)}. {escape(drawing.caption)}" '
        f'style="min-height:{height}px"></div>'
        f"<figcaption>{escape(drawing.caption)}</figcaption>{numbers}</figure>"
    )


def switch(item: Switch, owner: str) -> str:
    """A choice: radio buttons if there are few options, a list if many, words if only one."""
    words, name = escape(item.words), escape(f"{owner}-{item.key}")
    if len(item.options) == 1:
        return f'<p class="choice">{words} <strong>{escape(item.options[0][1])}</strong></p>'
    data = f'data-figure="{escape(owner)}" data-switch="{escape(item.key)}"'
    if len(item.options) > FEW:
        options = "".join(
            f'<option value="{escape(value)}">{escape(text)}</option>'
            for value, text in item.options
        )
        return f'<label class="choice">{words} <select {data}>{options}</select></label>'
    buttons = "".join(
        f'<label><input type="radio" name="{name}" value="{escape(value)}" {data}'
        f"{' checked' if i == 0 else ''}><span>{escape(text)}</span></label>"
        for i, (value, text) in enumerate(item.options)
    )
    return f'<fieldset class="choice"><legend>{words}</legend>{buttons}</fieldset>'


def details(table: pd.DataFrame, title: str = "The numbers behind this picture") -> str:
    """A table that opens on demand."""
    return (
        f"<details><summary>{escape(title)}</summary>"
        f'<div class="scroll" role="region" aria-label="{escape(title)}" tabindex="0">'
        f"{plain_table(table)}</div></details>"
    )


def plain_table(table: pd.DataFrame) -> str:
    """A data frame as it is."""
    numbers = {name for name in table.columns if pd.api.types.is_numeric_dtype(table[name])}
    head = "".join(
        f'<th scope="col"{" class=number" * (name in numbers)}>{escape(_heading(name))}</th>'
        for name in table.columns
    )
    body = "".join(
        "<tr>" + "".join(_cell(value) for value in row) + "</tr>"
        for row in table.itertuples(index=False, name=None)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _heading(name: object) -> str:
    return str(name).replace("_", " ")


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f'<td class="number">{escape(f"{value:.4g}" if np.isfinite(value) else "–")}</td>'
    if isinstance(value, int | np.integer):
        return f'<td class="number">{value}</td>'
    return f"<td>{escape(str(value))}</td>"


Column = tuple[str, str, Callable[[Any], tuple[str, Any]]]
"""Heading, explanation, and what a row shows: HTML, and the value it is sorted by."""


def sortable_table(rows: pd.DataFrame, columns: Sequence[Column], caption: str) -> str:
    """A table whose headings are buttons that sort; the first column heads its row."""
    head = "".join(
        f'<th scope="col" aria-sort="none"><button type="button" title="{escape(why)}">'
        f"{escape(text)}</button></th>"
        for text, why, _ in columns
    )
    body = ""
    for row in rows.itertuples():
        cells = [show(row) for _, _, show in columns]
        body += f'<tr data-scheme="{escape(str(row.scheme))}">'
        for number, (html, value) in enumerate(cells):
            tag, scope = ("th", ' scope="row"') if number == 0 else ("td", ' class="number"')
            body += f'<{tag}{scope} data-value="{escape(_sortable(value))}">{html}</{tag}>'
        body += "</tr>"
    return (
        f'<table class="sortable"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _sortable(value: Any) -> str:
    if isinstance(value, float) and not np.isfinite(value):
        return ""
    return str(value)


def strip(values: Floats, low: float, high: float, index: int) -> str:
    """One tick per seed on a common scale, and the mean as a dot."""
    span = (high - low) or 1.0
    places = 4 + 92 * (values - low) / span
    ticks = "".join(f'<path d="M{x:.1f} 3V13"/>' for x in places if np.isfinite(x))
    mean = float(places.mean())
    dot = f'<circle cx="{mean:.1f}" cy="8" r="3.2"/>' if np.isfinite(mean) else ""
    return (
        f'<svg class="strip c{style(index).colour}" viewBox="0 0 100 16" aria-hidden="true">'
        f'<path class="axis" d="M2 8H98"/>{ticks}{dot}</svg>'
    )


@dataclass(frozen=True)
class Card:
    """One number worth a box: a question, its answer, and a line of detail."""

    question: str
    answer: str
    detail: str


# Values as JSON that may stand inside an HTML page, arrays as compact typed bytes.

_SMALLER = ("u1", "i1", "u2", "i2", "u4", "i4")


def to_json(value: Any) -> str:
    r"""JSON without ``<``, ``>`` and ``&``, so that nothing in it can end a script element.

    >>> print(to_json({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(value, default=_encoded, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _encoded(value: object) -> Any:
    if isinstance(value, np.ndarray):
        return typed(value) if value.dtype.kind in "iufb" else value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} does not go into a page")


def typed(array: Array) -> dict[str, str]:
    """An array as plotly reads it from bytes: 32-bit floats, or the smallest integers.

    >>> typed(np.array([1, 2, 300]))["dtype"], typed(np.array([0.5]))["dtype"]
    ('u2', 'f4')
    """
    kind = "f4"
    if array.dtype.kind in "iub":
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        kind = next(
            (k for k in _SMALLER if np.iinfo(k).min <= low and high <= np.iinfo(k).max), "f8"
        )
    data = np.ascontiguousarray(array.astype(np.dtype(kind).newbyteorder("<")))
    out = {"dtype": kind, "bdata": base64.b64encode(data.tobytes()).decode("ascii")}
    if array.ndim > 1:
        out["shape"] = ", ".join(str(length) for length in array.shape)
    return out
