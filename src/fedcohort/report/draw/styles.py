"""How schemes are told apart: colour, dash and marker together, never colour alone."""

from __future__ import annotations

from dataclasses import dataclass

LIGHT = (
    "#0072B2", "#D55E00", "#117733", "#C0609A", "#332288", "#661100", "#111111", "#5595D0",
)  # fmt: skip
"""On white. After Okabe & Ito and Tol, without the hues too pale for a thin line on paper."""
DARK = (
    "#56B4E9", "#E69F00", "#00B386", "#E58CC0", "#F0E442", "#7C7CF5", "#FFFFFF", "#D9541E",
)  # fmt: skip
"""On near-black."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MARKERS = (
    "circle", "square", "diamond", "triangle-up", "x",
    "cross", "star", "triangle-down", "pentagon", "hourglass",
)  # fmt: skip
"""Names of plotly's symbols."""


@dataclass(frozen=True)
class Style:
    """Colour number, dash and marker of one scheme."""

    colour: int
    dash: str
    marker: str


def style(index: int) -> Style:
    """The style of the scheme at this position; the first 40 are all different.

    >>> style(0), style(8).dash
    (Style(colour=0, dash='solid', marker='circle'), 'longdash')
    """
    dash = (index + index // len(LIGHT)) % len(DASHES)
    return Style(index % len(LIGHT), DASHES[dash], MARKERS[index % len(MARKERS)])


ORACLE = " (oracle)"
"""The end of the name that reports show for an oracle."""
GUIDE = "#777777"
"""The colour of reference lines."""


def is_oracle(label: str) -> bool:
    """Whether a shown name is that of an oracle, whose lines are drawn as reference lines."""
    return label.endswith(ORACLE)


_DASH_LENGTHS = {"solid": "", "dash": "6 4", "dot": "2 3", "dashdot": "7 3 2 3", "longdash": "11 4"}
_SHAPES = {
    "circle": '<circle cx="16" cy="7" r="3.6"/>',
    "square": '<rect x="12.6" y="3.6" width="6.8" height="6.8"/>',
    "diamond": '<path d="M16 2.4 20.6 7 16 11.6 11.4 7Z"/>',
    "triangle-up": '<path d="M16 2.6 20.4 10.4H11.6Z"/>',
    "triangle-down": '<path d="M16 11.4 11.6 3.6h8.8Z"/>',
    "x": '<path d="M13 3l3 2.4L19 3l1 1-2.4 3L20 10l-1 1-3-2.4L13 11l-1-1 2.4-3L12 4Z"/>',
    "cross": '<path d="M14.8 2.8h2.4v3h3v2.4h-3v3h-2.4v-3h-3V5.8h3Z"/>',
    "star": '<path d="M16 2.2 17.3 5.6l3.6.2-2.8 2.3.9 3.5-3-2-3 2 .9-3.5-2.8-2.3 3.6-.2Z"/>',
    "pentagon": '<path d="M16 2.6 20.4 5.8 18.7 10.8H13.3L11.6 5.8Z"/>',
    "hourglass": '<path d="M12 3h8l-8 8h8Z"/>',
}


def swatch(index: int, label: str) -> str:
    """A small drawing of a scheme's line for lists and tables (SVG; the page colours it)."""
    if is_oracle(label):
        return (
            '<svg class="swatch guide" viewBox="0 0 32 14" aria-hidden="true">'
            '<path class="line" d="M0 7H32" stroke-dasharray="6 4"/></svg>'
        )
    look = style(index)
    pattern = _DASH_LENGTHS[look.dash]
    dashes = f' stroke-dasharray="{pattern}"' if pattern else ""
    return (
        f'<svg class="swatch c{look.colour}" viewBox="0 0 32 14" aria-hidden="true">'
        f'<path class="line" d="M0 7H32"{dashes}/>{_SHAPES[look.marker]}</svg>'
    )
