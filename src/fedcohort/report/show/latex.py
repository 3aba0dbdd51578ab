"""The summary as a table for LaTeX: what a narrow terminal shows, with the best in bold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fedcohort.report.draw.styles import ORACLE
from fedcohort.report.facts.combine import marked, parts
from fedcohort.report.facts.ranking import summary
from fedcohort.report.show.terminal import summary_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fedcohort.simulation import Comparison

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--",
    "−": "$-$", "±": r"$\pm$", "<": r"$<$", ">": r"$>$", "|": r"\textbar{}",
}  # fmt: skip
NOT_PRINTED = ("Best", "Computed in")
"""What a terminal of 80 columns loses first: a page is narrow, too."""


def escaped(text: str) -> str:
    r"""A text in which nothing is a command.

    >>> print(escaped("a_b 5 %"))
    a\_b 5 \%
    """
    return "".join(_SPECIAL.get(letter, letter) for letter in " ".join(text.split()))


def table(comparison: Comparison, target: float | None = None) -> str:
    """A ``tabular`` for every problem, to be put into a ``table``; needs booktabs."""
    out = ["% needs \\usepackage{booktabs}"]
    for name, part in parts(marked(comparison, ORACLE)):
        rows = summary(part, target)
        columns = summary_columns(part, rows, target)
        columns = {head: cells for head, cells in columns.items() if head not in NOT_PRINTED}
        if name:
            out.append(f"% {' '.join(name.split())}")
        out += _tabular(columns)
    return "\n".join([*out, ""])


def _tabular(columns: Mapping[str, Sequence[str]]) -> list[str]:
    heads = [_broken(heading) for heading in columns]
    out = [rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\toprule"]
    out += [f"{' & '.join(heads)} \\\\", r"\midrule"]
    for number, row in enumerate(zip(*columns.values(), strict=True)):
        cells = [re.sub(r"(?<!\w)-(?=\d)", "$-$", escaped(cell)) for cell in row]
        if number == 0:  # the best comes first
            cells[:2] = [rf"\textbf{{{cell}}}" for cell in cells[:2]]
        out.append(f"{' & '.join(cells)} \\\\")
    return [*out, r"\bottomrule", r"\end{tabular}"]


def _broken(heading: str) -> str:
    """Over two lines, where it has as many words."""
    if " " not in heading or heading.startswith("±"):
        return escaped(heading)
    first, _, last = heading.partition(" to ")
    first, last = (first, f"to {last}") if last else heading.rsplit(" ", 1)
    return rf"\shortstack[r]{{{escaped(first)}\\{escaped(last)}}}"
