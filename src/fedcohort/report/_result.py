"""The result of a comparison in words, and its panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from fedcohort._internal.html import NOTHING, duration
from fedcohort.report import _ranking
from fedcohort.report._clients import heterogeneity
from fedcohort.report._curves import answers
from fedcohort.report._format import (
    amount,
    byte_count,
    corrected_p,
    corrected_p_these,
    counted,
    p_is,
    p_value,
)
from fedcohort.report._html import Card, card
from fedcohort.report._measures import Measure, measured
from fedcohort.report._panel import Content, Panel, Shown
from fedcohort.report._ranking import attainable_level, summary, target_of
from fedcohort.report._runs import ALL_PAIRS, COPIES, DIFFER, across, is_carried, listed, parts
from fedcohort.report._scoreboard import scoreboard
from fedcohort.report._spent import clocked
from fedcohort.simulation._comparison import LEVEL, SHORTER, STATE, seeds_needed
from fedcohort.simulation._storage import VALIDATION

if TYPE_CHECKING:
    from fedcohort.server._trace import Trace
    from fedcohort.simulation import Comparison

# The result in words: who won, by how much, is it chance, what did it cost, who was left out.


def headline(comparison: Comparison, table: pd.DataFrame) -> str:
    """One sentence: who won, and by how much."""
    measure = measured(comparison)[0]
    table = table[table["ranked"]]
    first = table.iloc[0]
    seeds = counted(first.seeds, "seed")
    if first.partitions > 1:
        each = first.runs == first.seeds * first.partitions
        seeds = f"{seeds} on each of" if each else f"{counted(first.runs, 'run')} on"
        seeds += f" {first.partitions} divisions"
    spread = "" if np.isnan(first.final_sd) else f" ± {measure.gap(first.final_sd).lstrip('+')}"
    after = f"after {_rounds(comparison.of(first.scheme))}, over {seeds}"
    level = f"{measure.text(first.final)}{spread}"
    if np.isnan(first.final):
        done = f"{first.scheme}: {_rounds(comparison.of(first.scheme))}, over {seeds}"
        return f"{done}; no metric tells how good the model is."
    if len(table) == 1:
        return f"{first.scheme} reaches a {measure.words} of {level} {after}."
    sentence = f"{first.scheme} reaches the best {measure.words}: {level} {after}"
    lead = _lead(comparison, table)
    if np.isnan(lead.difference):
        return sentence + "."
    side = "above" if lead.difference > 0 else "below"
    gap = measure.gap(abs(lead.difference)).lstrip("+")
    unit = " points" if measure.percent else ""
    return f"{sentence}, {gap}{unit} {side} {lead.behind}."


@dataclass(frozen=True)
class Lead:
    """The gap of the best scheme to the reference, or to the second if it is the reference."""

    behind: str
    """The scheme that it is compared with."""
    row: Any
    """The row of the table with the test of the two."""
    difference: float
    low: float
    high: float


def unranked(comparison: Comparison, table: pd.DataFrame) -> str:
    """The levels of oracles beside the schemes that are ranked; nothing where there is none."""
    measure, rows = measured(comparison)[0], table[table["oracle"] & ~table["ranked"]]
    levels = [f"{row.scheme}, {measure.text(row.final)}" for row in rows.itertuples()]
    return f"Not ranked: {listed(levels)}." if levels else ""


def _lead(comparison: Comparison, table: pd.DataFrame) -> Lead:
    """The lead of the first row of a table of several schemes."""
    first, second = table.iloc[0], table.iloc[1]
    if first.scheme != comparison.reference:
        return Lead(comparison.reference, first, first.difference, first.low, first.high)
    return Lead(second.scheme, second, -second.difference, -second.high, -second.low)


def _rounds(traces: Sequence[Trace]) -> str:
    """How many rounds a scheme has had, and how many it shall have if that is more."""
    done = min(trace.rounds for trace in traces)
    planned = max(int(trace.settings.get("rounds", 0)) for trace in traces)
    return f"{done:,} of {counted(planned, 'round')}" if planned > done else counted(done, "round")


def how_far(comparison: Comparison) -> str:
    """That runs are not at their end, and whether they go on; nothing where all are."""
    left = [t for t in comparison.traces if t.rounds < int(t.settings.get("rounds", 0))]
    if not left:
        return ""
    running = sum(trace.settings.get(STATE) == "running" for trace in left)
    if len(comparison.traces) == 1:
        goes_on = "the server is running" if running else "the server has stopped"
        return f"{_rounds(left)} so far: {goes_on}"
    over = len(comparison.traces) - len(left)
    return f"{over} of {len(comparison.traces)} runs finished so far: {running} still running"


def beside(comparison: Comparison) -> str:
    """What to keep in mind where runs on Flower stand beside simulated ones; else nothing."""
    if len({"carrier" in trace.settings for trace in comparison.traces}) == 1:
        return ""
    return (
        "Runs on Flower stand beside simulated ones, for clients, model size, rounds and server "
        "agree; whether the clients held the same data and trained alike the server cannot know."
    )


def validated(comparison: Comparison) -> str:
    """That accuracies are not those of the test set, where settings were being chosen."""
    share = comparison.settings.get(VALIDATION)
    if share is None:
        return ""
    return (
        f"Measured on validation data ({100 * share:g} % of every client's training samples) in "
        "place of the test set, which was not looked at."
    )


def hardened(comparison: Comparison) -> str:
    """What was done about clients that lie, and what schemes no longer claim for it."""
    told = {trace.label: trace.settings for trace in comparison.traces}
    behind = {", ".join(each["hardened"]) for each in told.values() if each.get("hardened")}
    out = [f"Hardened by {guards}." for guards in sorted(behind)]
    given_up: dict[str, list[str]] = {}
    for label, each in told.items():
        for claim in each.get("withdrawn", ()):
            given_up.setdefault(str(claim), []).append(label)
    for claim, labels in given_up.items():
        out.append(f"Withdrawn for {', '.join(labels)}: that {claim}.")
    return " ".join(out)


def apart(comparison: Comparison) -> str:
    """Why the runs are not ranked together; nothing where they are."""
    differ = comparison.settings.get(DIFFER)
    if not differ:
        return ""
    rest = ", and nothing is tested across" if across(comparison) is None else ""
    return f"These runs differ in {listed(differ)}: they are ranked apart{rest}."


def tested_across(comparison: Comparison) -> str:
    """What schemes that all folders have came to on all divisions, where not all have all."""
    both = across(comparison)
    if both is None:
        return ""
    table = summary(both)
    had = f"Of {listed(both.labels)}, which all have, on all {len(both.partitions)} divisions"
    return f"{had}: {headline(both, table)} {chance(both, table)}"


def once(comparison: Comparison) -> str:
    """That runs were in several folders; nothing where none was."""
    copies = comparison.settings.get(COPIES, 0)
    if not copies:
        return ""
    are, count = ("is", "counts") if copies == 1 else ("are", "count")
    where = "in more than one of the folders, with the same numbers"
    return f"{counted(copies, 'run')} {are} {where}, and {count} once."


def chance(comparison: Comparison, table: pd.DataFrame) -> str:
    """Whether the gap of the best is more than chance, said plainly, and where that holds."""
    table = table[table["ranked"]]
    if len(table) == 1:
        return "There is one scheme, so there is nothing to compare it with."
    lead = _lead(comparison, table)
    row, reference = lead.row, comparison.reference
    shared = int(np.nan_to_num(row.pairs))
    if shared < 2:
        return (
            f"{counted(shared, 'shared seed')} cannot tell whether the gap is chance: run more "
            "seeds."
        )
    family = f"{counted(row.tests, 'test')} against {reference}"
    if comparison.settings.get(ALL_PAIRS):
        family = f"all {counted(row.tests, 'pair')} of schemes"
    unit = "division" if row.partitions > 1 else "seed"
    interval = _interval(measured(comparison)[0], lead)
    beside = f" {_on_these(row)}" if row.partitions > 1 else ""
    if np.isnan(row.p_holm):
        return (
            f"Is that more than chance {_where(comparison, row)}? {row.over} are too few for the "
            f"exact test (after Holm's correction for {family} it cannot go below "
            f"{p_is(row.p_holm_smallest)}; {seeds_needed(row.tests)} {unit}s could). If the gaps "
            f"of {unit}s are normal, that to {lead.behind} is {interval} with 95 % confidence "
            f"(paired t, {p_is(row.p_t)} uncorrected).{beside}"
        )
    attained = row.tests * attainable_level(int(row.units), LEVEL / row.tests)
    return (
        f"The gap to {lead.behind} {_verdict(row.p_holm)} {_where(comparison, row)} "
        f"(exact test over {row.over}, {p_is(row.p_holm)} after Holm's correction for {family}, "
        f"which cannot go below {p_value(row.p_holm_smallest)}: at 5 % its attainable level is "
        f"{100 * attained:.1f} %; 95 % interval {interval}).{_decided(comparison, table)}{beside}"
    )


def _decided(comparison: Comparison, table: pd.DataFrame) -> str:
    """How many schemes differ from the reference by more than chance, where there are several."""
    others = table[table["scheme"] != comparison.reference]
    if len(others) < 2:
        return ""
    gaps = others["difference"][others["p_holm"] <= LEVEL]
    above, below = int((gaps > 0).sum()), int((gaps < 0).sum())
    better, worse = (above, below) if measured(comparison)[0].higher else (below, above)
    return (
        f" Of the {len(others)} others, {better} {'is' if better == 1 else 'are'} better than "
        f"{comparison.reference} and {worse} worse by more than chance."
    )


def _verdict(p: float) -> str:
    return "is more than chance" if p <= LEVEL else "may be chance"


def _where(comparison: Comparison, row: Any) -> str:
    """What the p value is about."""
    if row.partitions > 1:
        return f"on divisions like these {row.partitions}"
    if all("carrier" in trace.settings for trace in comparison.traces):
        return "in this one federation"
    return "on this one division of the data"


def _on_these(row: Any) -> str:
    these = f"On these {row.partitions} divisions alone"
    if np.isnan(row.p_these_holm):
        return f"{these}, {counted(row.pairs, 'run')} are too few, too."
    return f"{these} it {_verdict(row.p_these_holm)} (run by run, {p_is(row.p_these_holm)})."


def lacking(comparison: Comparison) -> str:
    """Which runs are not there, and what is done about it; nothing where all are."""
    missing, shorter = comparison.missing, comparison.settings.get(SHORTER, 0)
    if shorter:
        rounds = max(trace.rounds for trace in comparison.traces)
        return (
            f"{counted(shorter, 'run')} of fewer than {rounds} rounds left out: the same command "
            "extends them."
        )
    if not missing:
        return ""
    several = len(comparison.partitions) > 1
    named = [
        f"{label} with seed {seed}" + (f" on division {partition}" if several else "")
        for partition, seed, label in missing[:3]
    ]
    more = ", ..." if len(missing) > 3 else ""
    verb = "is" if len(missing) == 1 else "are"
    said = f"{counted(len(missing), 'run')} {verb} missing ({', '.join(named)}{more})"
    common = comparison.balanced()
    if common.missing:
        unit = "seed on a division" if several else "seed"
        return f"{said}: no {unit} is common to all schemes, so that their order may be luck."
    runs = counted(len(common.of(common.labels[0])), "run")
    return f"{said}: the table and the tests take the {runs} of each scheme that all have."


def _interval(measure: Measure, lead: Lead) -> str:
    """By how much the best scheme is ahead, from and to; behind has a minus."""
    ahead = 1 if measure.higher else -1
    low, high = sorted([ahead * lead.low, ahead * lead.high])
    shown = [measure.gap(end).lstrip("+" if low > 0 else "") for end in (low, high)]
    return f"{shown[0]} to {shown[1]}{' points' if measure.percent else ''}"


def cards(comparison: Comparison, table: pd.DataFrame, target: float | None) -> list[Card]:
    """The answers at a glance."""
    measure, goal = measured(comparison)[0], target_of(comparison, target)
    oracles, table = table[table["oracle"] & ~table["ranked"]], table[table["ranked"]]
    first = table.iloc[0]
    level = f"{measure.words} {measure.text(first.final)}"
    out = [] if np.isnan(first.final) else [Card("Which scheme won?", str(first.scheme), level)]
    if how_far(comparison):
        so_far, _, state = how_far(comparison).partition(" so far: ")
        out.append(Card("How far is it?", so_far, state))
    there = table.dropna(subset=["rounds_to_target"])
    if goal is not None and len(there):
        fast = there.loc[there["rounds_to_target"].idxmin()]
        cheap = there.loc[there["bytes_to_target"].idxmin()]
        rounds = counted(fast.rounds_to_target, "round")
        if is_carried(comparison):
            rounds += f", {duration(fast.seconds_to_target)}"
        out.append(Card(f"First to {goal:.0%}?", str(fast.scheme), rounds))
        if clocked(comparison):
            soon = there.loc[there["time_to_target"].idxmin()]
            took = f"{duration(soon.time_to_target)} on these devices"
            out.append(Card(f"Soonest at {goal:.0%}?", str(soon.scheme), took))
        bytes_ = f"{byte_count(cheap.bytes_to_target)}, both directions"
        out.append(Card(f"Cheapest to {goal:.0%}?", str(cheap.scheme), bytes_))
    elif goal is not None:
        out.append(Card(f"First to {goal:.0%}?", "none", "no scheme got there in half of its runs"))
    if table["gini"].notna().any():
        even = table.loc[table["gini"].idxmin()]
        fair = f"Gini {even.gini:.2f}, Jain {even.jain:.2f}"
        out.append(Card("Chose most evenly?", str(even.scheme), fair))
        out.append(_left_out(comparison, table))
    if table["worst_loss"].notna().any():
        kind = table.loc[table["worst_loss"].idxmin()]
        loss = f"loss {kind.worst_loss:.3g}"
        out.append(Card("Kindest to its worst client?", str(kind.scheme), loss))
    out = [_alone(card) if len(table) == 1 else card for card in out]
    return [*out, *_oracle(measure, oracles), *_answered(comparison)]


def _oracle(measure: Measure, table: pd.DataFrame) -> list[Card]:
    """The level of the best oracle, as a yardstick."""
    if not len(table) or np.isnan(table["final"].iloc[0]):
        return []
    first = table.iloc[0]
    level = f"{measure.words} {measure.text(first.final)}, not ranked"
    return [Card("What does an oracle reach?", str(first.scheme), level)]


_OF_ONE_SCHEME = (
    ("Which scheme won", "How good is it?"), ("First to", "How soon at the target?"),
    ("Soonest", "How soon on these devices?"),
    ("Cheapest", "At what cost?"), ("Chose most", "How evenly did it choose?"),
    ("Kindest", "How is its worst client?"),
)  # fmt: skip


def _alone(card: Card) -> Card:
    """A card about the best scheme where there is one only: what it did, not that it won."""
    for beginning, question in _OF_ONE_SCHEME:
        if card.question.startswith(beginning):
            answer, _, rest = card.detail.partition(", ")
            return Card(question, answer, rest)
    return card


def _answered(comparison: Comparison) -> list[Card]:
    """Whether the chosen answered; nothing where all did."""
    table = answers(comparison)
    if table.empty:
        return []
    share, rejected = table["answered"].mean(), table["rejected"].sum()
    void = f"{amount(table['void'].sum())} void, {counted(rejected, 'report')} missing or rejected"
    return [Card("Did those chosen answer?", f"{100 * share:.0f} % of the draws", void)]


def _left_out(comparison: Comparison, table: pd.DataFrame) -> Card:
    most = table.loc[table["never"].idxmax()]
    clients = len(comparison.traces[0].importance)
    if most.never == 0:
        return Card("Whom was left out?", "nobody", f"all {clients} clients took part everywhere")
    text = f"never chose {most.never:.1f} of {clients} clients".replace(".0 ", " ")
    return Card("Who left clients out?", str(most.scheme), text)


def unlike(comparison: Comparison) -> str:
    """How much clients differ, in a sentence: in labels, where they are known, and in size."""
    told = heterogeneity(comparison)
    labels = "" if told.labels is None else f"in labels by {told.labels:.2f} (RMS Hellinger) and "
    several = ", on the first division" if len(comparison.partitions) > 1 else ""
    return f"Clients differ {labels}in size by {told.sizes:.2f} (Gini){several}."


# What came out.


@dataclass(frozen=True)
class Result(Panel):
    """The headline, the answers and the table; for every problem its own."""

    name: ClassVar[str] = "result"
    title: ClassVar[str] = "Result"
    place: ClassVar[float] = 0

    def content(self, shown: Shown) -> Content:
        comparison = shown.comparison
        why = apart(comparison)
        out = f"<h1>{escape(why)}</h1>" if why else ""
        for (name, part), table in zip(parts(comparison), shown.tables, strict=True):
            title, by_chance = escape(headline(part, table)), escape(chance(part, table))
            boxes = "".join(card(item) for item in cards(part, table, shown.target))
            out += f"<h2>{escape(name)}: {title}</h2>" if why else f"<h1>{title}</h1>"
            besides = (unranked(part, table), beside(part), validated(part), hardened(part))
            told = (escape(text) for text in besides)
            runs = (escape(lacking(part)), escape(once(part)), _not_over(part))
            notes = filter(None, (by_chance, *runs, *told))
            out += f'<p class="lead">{" ".join(notes)}</p>'
            out += f'<dl class="cards">{boxes}</dl>'
            out += scoreboard(part, table, shown.target, shown.tested, comparison.labels)
        both = tested_across(comparison)
        out += f'<p class="lead">{escape(both)}</p>' if both else ""
        return (out,)

    def further(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        return {
            "summary": _in_words(_ranking.summary(shown.comparison, shown.target)),
            "pairwise": _in_words(_ranking.pairwise(shown.comparison)),
        }


def _in_words(table: pd.DataFrame) -> pd.DataFrame:
    """The table with words in place of corrected p values that cannot reach 5 %."""

    def filled(name: str, words: Callable[[Any], str]) -> list[Any]:
        cells = zip(table[name], map(words, table.itertuples()), strict=True)
        return [p if np.isfinite(p) or text == NOTHING else text for p, text in cells]

    return table.assign(
        p_holm=filled("p_holm", corrected_p), p_these_holm=filled("p_these_holm", corrected_p_these)
    )


def _not_over(comparison: Comparison) -> str:
    if len(comparison.traces) == 1 or not how_far(comparison):
        return ""
    return f"{how_far(comparison)}; of those that are not at their end, this is the state."
