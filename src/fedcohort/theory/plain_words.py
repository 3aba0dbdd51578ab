"""Advice for people who own data: three sentences without a formula."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from fedcohort.theory.recommendation import asks_nothing, eligible, times_as_much
from fedcohort.theory.which_m import SAVES

if TYPE_CHECKING:
    from fedcohort.theory.advice import Advice
    from fedcohort.theory.judge import SchemeFacts

RARELY = 0.01
"""Who is never seen with a higher chance than this is worth a word."""


def in_three_sentences(advice: Advice) -> tuple[str, ...]:
    """What the recommended scheme does, what it costs, what the server learns."""
    if advice.recommended is None:
        return ()
    row = advice.row(advice.recommended)
    told = f"{learns(row)}; {_hidden(advice, row)}{_private(advice, row)}."
    return _does(advice, row), _costs(advice, row), told


def _does(advice: Advice, row: SchemeFacts) -> str:
    clients = row.expected_distinct or 0.0
    who = f"about {clients:.0f} of the {advice.n:,} clients"
    if advice.n == 1 or clients >= advice.n * (1 - 1e-9):
        few = {1: "the only client", 2: "both clients"}
        who = few.get(advice.n, f"all {advice.n:,} clients")
    judged = advice.m, advice.secure_aggregation
    others = [x for x in advice.rows if eligible(x, *judged) and not (x is row or x.oracle)]
    best = f"; none of {len(others)} other schemes that do so leaves less to chance"
    if len(others) == 1:
        best = "; the one other scheme that does so leaves no less to chance"
    return (
        f"Every round it takes {who}, and over the rounds each counts for exactly its share"
        f"{best if others else ''}."
    )


def _costs(advice: Advice, row: SchemeFacts) -> str:
    clients = row.expected_distinct or 0.0
    rounds = "One round means" if advice.rounds == 1 else f"{advice.rounds:,} rounds mean"
    text = f"{rounds} about {_counted(clients * advice.rounds, 'training')} by clients"
    if row.bytes_total is not None:
        text += f" and {in_bytes(row.bytes_total)} sent in all, both ways together"
    worst = row.never_worst or 0.0
    if worst < RARELY:
        return f"{text}; every client is all but certain to take part at least once."
    return f"{text}; the least likely client has a chance of {worst:.0%} never to take part."


def _counted(number: float, thing: str) -> str:
    """A rounded number of things."""
    return f"{number:,.0f} {thing}{'' if f'{number:.0f}' == '1' else 's'}"


def _private(advice: Advice, row: SchemeFacts) -> str:
    """What was asked of privacy, and who would do it for less."""
    if advice.noise is None and advice.epsilon is None:
        return ""
    if row.epsilon is None:
        return "; no noise on the sum covers its choice, which looks at data"
    judged = advice.m, advice.secure_aggregation
    able = [each for each in advice.rows if each.epsilon is not None and eligible(each, *judged)]
    wanted = advice.epsilon

    def cost(each: SchemeFacts) -> float:
        return (each.epsilon if wanted is None else each.deviation) or 0.0

    text = f"; with this noise the run costs its worst-off client epsilon {_short(cost(row))}"
    if wanted is not None:
        text = f"; epsilon {wanted:g} takes noise of {_short(cost(row))} clipping norms on the sum"
    other = min(able, key=cost)
    much = cost(other) < CHEAPER * cost(row)
    return f"{text} ({other.name}: {_short(cost(other))})" if much else text


def _short(cost: float) -> str:
    return f"{cost:.3g}" if isfinite(cost) else "without bound"


CHEAPER = 0.95
"""Another scheme is named where it costs less than this share."""
DOES = {
    "binomial": "Every client takes part by the throw of a coin of its own.",
    "clustered-size": "One draw from each of m lots of equal size, larger clients more often.",
    "full": "Every client, every round: the average that all others estimate.",
    "md": "Draws as from an urn, larger clients more often; the same one may come twice.",
    "poisson": "Every client takes part by a throw of its own, larger clients more often.",
    "uniform": "Different clients, all equally likely; larger ones count for more.",
}
"""What schemes do whose own first sentence has a formula."""


def does(name: str, otherwise: str) -> str:
    """What a scheme does, in words."""
    return DOES.get(name, otherwise)


PLAIN = {
    "size (beforehand)": "its share of all data",
    "participation (every round)": "when it takes part",
    "update (every round)": "its model update",
}
"""What nearly every scheme tells, in fewer words."""


def learnt(row: SchemeFacts) -> list[str]:
    """Each thing that the server learns of a client."""
    told = [line.partition(": ") for line in row.discloses]
    said = [PLAIN.get(what, text) for what, _, text in told if not text.startswith("nothing")]
    return list(dict.fromkeys(said))


def learns(row: SchemeFacts) -> str:
    """What the server learns of a client, in words."""
    told = learnt(row)
    if not told:
        return "The server learns nothing of single clients"
    *first, last = told
    return f"Of each client the server learns {', '.join(first)}{' and ' if first else ''}{last}"


def secure(row: SchemeFacts) -> str:
    """Whether updates can be hidden in a sum, in words."""
    answer, _, why = row.secure_aggregation.partition(": ")
    if answer.startswith("yes"):
        more = row.secure_aggregation.partition("; ")[2]
        return f"with secure aggregation it sees sums of updates only{f' ({more})' * bool(more)}"
    if answer == "partly":
        shown = why.removeprefix("updates are hidden, but ").removesuffix(" stays visible")
        return f"secure aggregation can hide the updates, but not {shown}"
    return f"secure aggregation cannot be used with it: {why}"


def _hidden(advice: Advice, row: SchemeFacts) -> str:
    """The same; to who wants it, also what it costs to show nothing."""
    partly = row.secure_aggregation.startswith("partly")
    other = asks_nothing(advice.rows, advice.m) if partly and advice.secure_aggregation else None
    if other is None:
        return secure(row)
    much = times_as_much(other, row)
    return f"{secure(row)} ({other.name}, which asks nothing, leaves {much} to chance)"


def about_m(advice: Advice) -> tuple[str, ...]:
    """How many clients a round, in words."""
    found = advice.which_m
    if found is None or found.recommended is None or not any(r.m == advice.m for r in found.rows):
        return ()
    best, asked = found.recommended, found.row(advice.m)
    if best == advice.m:
        text = f"m = {advice.m} is about right"
    elif best < advice.m:
        text = f"Fewer would do: m = {best}"
    else:
        text = f"More would help: m = {best}"
    rows = [asked] if best == advice.m else [found.row(best), asked]
    said = [f"m = {r.m} needs {_counted(r.rounds, 'round')}{_sent(r.bytes_total)}" for r in rows]
    out = [
        f"{text}. For the same progress {', '.join(said)}.",
        f"From m = {best} on returns diminish: twice as many clients would save "
        f"{found.row(best).saved:.0%} of the rounds (the rule: less than {SAVES:.0%}).",
    ]
    if found.if_unlike is not None and found.if_unlike != best:
        out.append(f"If clients differ ten times as much as assumed, it is m = {found.if_unlike}.")
    if "label" in advice.criterion:
        out.append("This looks at labels alone: updates may differ more, and ask for a larger m.")
    return tuple(out)


def _sent(total: float | None) -> str:
    return "" if total is None else f" and {in_bytes(total)}"


def in_bytes(value: float) -> str:
    """Bytes in decimal units, three digits.

    >>> in_bytes(12), in_bytes(1_500_000), in_bytes(999_700_000)
    ('12 B', '1.5 MB', '1 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:  # what is more would be rounded to a thousand
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"
