"""Advice as one self-contained page, for people who decide and do not compute."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template

import numpy as np

from fedcohort._internal.files import FOR_ALL_TO_READ, replacing
from fedcohort._internal.html import NOTHING
from fedcohort._internal.parameters import split
from fedcohort._internal.registry import summary
from fedcohort.advice._assessment import SchemeFacts
from fedcohort.advice._ranking import Advice
from fedcohort.advice._recommendation import PLAIN, WhichM, about_m, does, eligible, learnt
from fedcohort.report._format import byte_count, counted
from fedcohort.report._html import Card, card
from fedcohort.report._page import css, policy, template
from fedcohort.schemes import find
from fedcohort.selection._federation import Federation

USUAL = tuple(PLAIN.values())
"""What nearly every scheme tells."""
MOST = 12
"""Schemes that the table shows; the rest is for `fedcohort advise --json`."""


def write(advice: Advice, federation: Federation, path: str | os.PathLike[str]) -> Path:
    """Write the page of an advice to ``path``; the old file stays until the new is whole."""
    place = Path(path)
    text = page(advice, federation)
    place.parent.mkdir(parents=True, exist_ok=True)
    with replacing(place, FOR_ALL_TO_READ) as file:
        file.write(text.encode())
    return place


def page(advice: Advice, federation: Federation) -> str:
    """The page of an advice."""
    from fedcohort import __version__

    use = f"Use {advice.recommended}" if advice.recommended else "No scheme can be recommended"
    sections = [
        _section("", f"<h1>{escape(use)}</h1>{_plain(advice)}{_cards(advice)}"),
        _which_m(advice),
        _section("The schemes side by side", _schemes(advice)),
        _section("Your clients", _clients(federation)),
        _section("What this cannot know", _listed(advice.cannot_know)),
        _section("", _folded("Why, in detail", _listed(advice.reasons))),
    ]
    return Template(template("advice.html")).substitute(
        policy=policy(),
        version=escape(__version__),
        title=escape(f"{use}: which clients train in a round"),
        css=css(),
        what=escape(
            f"Which clients should train in each round: {counted(advice.n, 'client')}, "
            f"{min(advice.m, advice.n):,} a round, {counted(advice.rounds, 'round')}."
        ),
        sections="\n".join(sections),
    )


def _section(title: str, body: str) -> str:
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    return f"<section>{heading}{body}</section>" if body else ""


def _listed(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="lead">{items}</ul>' if items else ""


def _folded(title: str, body: str) -> str:
    """What is for those who compute, behind its title."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>" if body else ""


def _plain(advice: Advice) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in advice.plain)
    if not items:
        return f'<p class="lead">{escape(" ".join(advice.reasons))}</p>'
    return f'<ul class="plain">{items}</ul>'


def _cards(advice: Advice) -> str:
    if advice.recommended is None:
        return ""
    row, found = advice.row(advice.recommended), advice.which_m
    cards = []
    if found is not None and found.recommended is not None:
        cards.append(Card("Clients a round", f"{found.recommended:,}", _beside(advice, found)))
    trainings = (row.expected_distinct or 0.0) * advice.rounds
    told = f"in {counted(advice.rounds, 'round')} of {min(advice.m, advice.n):,}"
    cards.append(Card("Trainings by clients", f"{trainings:,.0f}", told))
    if row.bytes_total is not None:
        detail = f"{byte_count(row.bytes_per_round or 0.0)} a round, both ways"
        cards.append(Card("Sent in all", byte_count(row.bytes_total), detail))
    never, hidden = row.never_worst or 0.0, row.secure_aggregation.split(":")[0].split(";")[0]
    cards.append(Card("Never takes part", f"{never:.1%}", "chance of the least likely client"))
    cards.append(Card("Secure aggregation", hidden, "hides single updates in a sum"))
    cards += _privacy(advice, row)
    return f'<dl class="cards">{"".join(map(card, cards))}</dl>'


def _beside(advice: Advice, found: WhichM) -> str:
    """The recommended number of clients beside the one that was asked about."""
    best = found.recommended or 0
    if best == advice.m:
        return "as you asked"
    if best == advice.n < advice.m:
        return "everybody there is"
    if best > advice.m:
        return f"would help; asked: {advice.m:,}"
    return f"{'is' if best == 1 else 'are'} enough; you asked about {min(advice.m, advice.n):,}"


def _privacy(advice: Advice, row: SchemeFacts) -> list[Card]:
    """The price in privacy of the recommended scheme, where one was asked for."""
    if advice.noise is None and advice.epsilon is None:
        return []
    if row.epsilon is None:
        return [Card("Price in privacy", NOTHING, "its choice looks at data: no noise covers that")]
    if advice.epsilon is None:
        detail = f"epsilon of the worst-off client, with noise {advice.noise:g}; less is better"
        return [Card("Price in privacy", f"{row.epsilon:.3g}", detail)]
    detail = f"clipping norms on the sum, for epsilon {advice.epsilon:g}; less is better"
    return [Card("Noise for privacy", f"{row.deviation or 0.0:.3g}", detail)]


def _which_m(advice: Advice) -> str:
    found = advice.which_m
    if found is None or not about_m(advice):
        return ""
    words = "".join(f'<p class="lead">{escape(line)}</p>' for line in about_m(advice))
    return _section("How many clients a round (m)", f"{words}{_table_of_m(found)}")


def _table_of_m(found: WhichM) -> str:
    most = max(row.rounds for row in found.rows)
    priced = any(row.bytes_total is not None for row in found.rows)
    head = ["clients a round", "rounds for the same progress", "", "trainings by clients"]
    head += ["sent in all"] if priced else []
    rows = [
        (
            row.m == found.recommended,
            [
                f"{row.m:,}",
                f"{row.rounds:,.0f}",
                _bar(row.rounds / most),
                NOTHING if row.trainings is None else f"{row.trainings:,.0f}",
                *([NOTHING if row.bytes_total is None else byte_count(row.bytes_total)] * priced),
            ],
        )
        for row in found.rows
    ]
    return _table(head, rows, "The marked line is the recommended one.")


def _schemes(advice: Advice) -> str:
    """Those of the recommended kind, the least luck first."""
    able = [row for row in advice.rows if eligible(row, advice.m)]
    chosen = [row for row in advice.rows if row.name == advice.recommended]
    rows = [*chosen, *(row for row in able if row.name != advice.recommended)][:MOST]
    if not rows:
        return ""
    most = max(row.score or 0.0 for row in rows) or 1.0
    priced = any(row.bytes_total is not None for row in rows)
    private = ["noise"] if advice.epsilon is not None else ["epsilon"] * (advice.noise is not None)
    head = ["scheme", "left to chance", "", *(["sent in all"] * priced), *private]
    head += ["tells also", "secure"]
    lines = [(row.name == advice.recommended, _line(row, most, priced, private)) for row in rows]
    others = len(advice.compared) - len(rows)
    unknown = len(advice.rows) - len(advice.compared)
    legend = {
        "left to chance": "how much luck moves the result of a round; less is better, 0 would be "
        "everyone in every round",
        "sent in all": f"both ways together, in {counted(advice.rounds, 'round')}",
        "epsilon": "what the run costs the worst-off client in privacy, with the noise that was "
        "asked about; less is better",
        "noise": "how much noise the sum of a round needs for the epsilon that was asked about, in "
        "units of what one update may be long; less is better",
        "tells also": f"what the server learns of single clients beside {', '.join(USUAL)}",
        "secure": "whether secure aggregation, which hides single updates in a sum, can be used; "
        "partly: what is told also stays visible",
    }
    more = _and_others(max(0, others), unknown)
    terms = "".join(
        f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in legend.items() if k in head
    )
    table = _table(head, lines, "Schemes in which each client counts for exactly its share.")
    return f'{table}<dl class="legend">{terms}</dl><p class="lead">{escape(more)}</p>'


def _and_others(compared: int, unknown: int) -> str:
    out = []
    if compared:
        needs = "needs more clients a round or favours" if compared == 1 else (
            "need more clients a round or favour"
        )  # fmt: skip
        out.append(f"{counted(compared, 'more scheme')} {needs} some of them.")
    if unknown:
        out.append(f"Of {unknown} more nothing can be said before they have run.")
    return " ".join(out)


def _line(row: SchemeFacts, most: float, priced: bool, private: Sequence[str]) -> list[str]:
    what = does(row.name, summary(inspect.getdoc(find(split(row.name)[0])) or ""))
    name = f"<strong>{escape(row.name)}</strong><br><small>{escape(what)}</small>"
    told = "; ".join(each for each in learnt(row) if each not in USUAL) or NOTHING
    secure = row.secure_aggregation.split(":")[0].split(";")[0]
    cost = [NOTHING if row.bytes_total is None else byte_count(row.bytes_total)] * priced
    score = row.score or 0.0
    chance = [f"{score:.3g}", _bar(score / most)]
    costs = {"epsilon": row.epsilon, "noise": row.deviation}
    cost += [NOTHING if costs[k] is None else f"{costs[k]:.3g}" for k in private]
    return [name, *chance, *cost, f"<small>{escape(told)}</small>", escape(secure)]


def _bar(share: float) -> str:
    return f'<span class="bar" style="width:{100 * share:.1f}%"></span>'


def _table(head: Sequence[str], rows: Iterable[tuple[bool, Sequence[str]]], caption: str) -> str:
    """Cells are markup already."""
    top = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    body = ""
    for first, cells in rows:
        kinds = [_kind(cell) for cell in cells]
        shown = "".join(f"<td{k}>{cell}</td>" for k, cell in zip(kinds, cells, strict=True))
        body += f"<tr{' class=first' * first}>{shown}</tr>"
    return (
        f'<div class="panel wide" role="region" aria-label="{escape(caption)}" tabindex="0">'
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _kind(cell: str) -> str:
    return ' class="bars"' if "bar" in cell[:20] else "" if "<" in cell else ' class="whole"'


def _clients(federation: Federation) -> str:
    """How unequal they are: the shares of tenths of the clients, from the largest."""
    p = np.sort(federation.importance[federation.present])[::-1]
    if len(p) < 2:
        return ""
    parts = np.array_split(p, min(10, len(p)))
    shares = [float(part.sum()) for part in parts]
    most, done, rows = max(shares), 0, []
    for part, share in zip(parts, shares, strict=True):
        which = f"{done + 1}" if len(part) == 1 else f"{done + 1:,} to {done + len(part):,}"
        rows.append((False, [which, f"{share:.1%}", _bar(share / most)]))
        done += len(part)
    head = ["clients, largest first", "share of what counts", ""]
    return _table(head, rows, f"{counted(len(p), 'client')}; the largest counts {p[0]:.1%}.")
