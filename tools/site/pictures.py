"""One picture of a scheme: how likely each client is, and who came in the first rounds."""

from __future__ import annotations

from html import escape

import numpy as np

from measured import M, Measured, classes, task

SHOWN = 16
"""Rounds."""
STEP, LEFT, TOP, HIGH, ROW = 22, 70, 14, 84, 15
COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccaa22", "#55aacc",
    "#aa3377", "#888888", "#ee8866", "#44aa99", "#8877cc",
)  # fmt: skip


def picture(found: Measured, name: str) -> str:
    """SVG in the colours of the page; nothing where the scheme could not be run."""
    if found.chances is None:
        return ""
    p = task().importance
    order = np.argsort(-p, kind="stable")
    place = {int(client): LEFT + STEP * i for i, client in enumerate(order)}
    width, height = LEFT + STEP * len(p) + 8, TOP + HIGH + 34 + ROW * SHOWN
    top = max(float(found.chances.max()), float(M * p.max()))
    parts = [_axis(top)]
    for client, x in place.items():
        parts.append(_bar(x, M * p[client] / top, COLOURS[classes()[client]]))
        parts.append(_mark(x, found.chances[client] / top))
    trace = found.traces[0]
    for t in range(min(SHOWN, trace.rounds)):
        y = TOP + HIGH + 30 + ROW * t
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{width - 8}" y1="{y}" y2="{y}"/>')
        if t % 5 == 0:
            parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">round {t + 1}</text>')
        cohort = trace.cohort(t)
        for client, weight in zip(cohort.clients.tolist(), cohort.weights.tolist(), strict=True):
            colour = COLOURS[classes()[client]]
            radius = min(7.5, 1.6 + 11 * abs(weight) ** 0.5 / 1.2)
            parts.append(
                f'<circle cx="{place[client] + 8}" cy="{y}" r="{radius:.1f}" fill="{colour}"/>'
            )
    says = f"{name}: chance of each of {len(p)} clients, and the cohorts of {SHOWN} rounds"
    return (
        f'<svg class="scheme" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(says)}"><title>{escape(says)}</title>{"".join(parts)}</svg>'
    )


def _axis(top: float) -> str:
    ticks = "".join(
        f'<text x="{LEFT - 8}" y="{TOP + HIGH * (1 - share) + 4:.0f}" text-anchor="end">'
        f"{top * share:.0%}</text>"
        for share in (0, 0.5, 1)
    )
    base = TOP + HIGH
    return f'{ticks}<line class="rule" x1="{LEFT}" x2="100%" y1="{base}" y2="{base}"/>'


def _bar(x: int, share: float, colour: str) -> str:
    return (
        f'<rect x="{x + 2}" y="{TOP + HIGH * (1 - share):.1f}" width="13" '
        f'height="{HIGH * share:.1f}" fill="{colour}" fill-opacity="0.45"/>'
    )


def _mark(x: int, share: float) -> str:
    y = TOP + HIGH * (1 - min(1.0, share))
    return f'<path class="chance" d="M{x} {y:.1f}h17"/>'
