"""Numbers, intervals and p values in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fedcohort._internal.html import NOTHING, plural

if TYPE_CHECKING:
    from fedcohort.report._measures import Measure


def amount(value: float) -> str:
    """A count, or a dash.

    >>> amount(1234.0), amount(float("nan"))
    ('1,234', '–')
    """
    return f"{value:,.0f}" if math.isfinite(value) else NOTHING


def counted(value: float, thing: str) -> str:
    """A count of things.

    >>> counted(1, "round"), counted(1200, "round")
    ('1 round', '1,200 rounds')
    """
    return f"{amount(value)} {plural(value, thing)}"


def ratio(value: float) -> str:
    """A number in [0, 1], or a dash.

    >>> ratio(0.123), ratio(float("nan"))
    ('0.12', '–')
    """
    return f"{value:.2f}" if math.isfinite(value) else NOTHING


def short(value: float) -> str:
    """Three digits, or a dash.

    >>> short(1.2345), short(float("nan"))
    ('1.23', '–')
    """
    return f"{value:.3g}" if math.isfinite(value) else NOTHING


def byte_count(value: float) -> str:
    """Bytes in decimal units.

    >>> byte_count(1_500_000), byte_count(12), byte_count(999_999)
    ('1.5 MB', '12 B', '1.0 MB')
    """
    if not math.isfinite(value):
        return NOTHING
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.95 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"


def interval(measure: Measure, low: float, high: float) -> str:
    """The ends of an interval of gaps, or a dash.

    >>> from fedcohort.report._measures import ACCURACY
    >>> interval(ACCURACY, -0.0123, 0.2)
    '-1.2 to +20.0'
    """
    both = f"{measure.gap(low)} to {measure.gap(high)}"
    return both if math.isfinite(low) else NOTHING


def p_value(p: float) -> str:
    """A p value, not more exact than it is worth.

    >>> p_value(0.0626), p_value(0.0002), p_value(float("nan"))
    ('0.063', '< 0.001', '–')
    """
    if not math.isfinite(p):
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def corrected_p(row: Any) -> str:
    """The corrected p value of a row of `facts.summary` or `facts.pairwise`, or why it has none.

    >>> from types import SimpleNamespace as Row
    >>> corrected_p(Row(pairs=5, over="5 seeds", p_holm=float("nan")))
    'n/a (5 seeds)'
    >>> corrected_p(Row(pairs=8, over="8 seeds", p_holm=0.0391))
    '0.039'
    """
    if not math.isfinite(row.pairs):  # the reference itself
        return NOTHING
    return p_value(row.p_holm) if math.isfinite(row.p_holm) else f"n/a ({row.over})"


def corrected_p_these(row: Any) -> str:
    """The same of the test that flips single runs of several divisions."""
    if not math.isfinite(row.p_these):
        return NOTHING
    enough, runs = math.isfinite(row.p_these_holm), counted(row.pairs, "run")
    return p_value(row.p_these_holm) if enough else f"n/a ({runs})"


def p_is(p: float) -> str:
    """A p value in a sentence.

    >>> p_is(0.0002), p_is(0.25)
    ('p < 0.001', 'p = 0.25')
    """
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
