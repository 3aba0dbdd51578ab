"""Recommend a scheme and a cohort size, in plain words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.parameters import is_whole
from fedcohort.theory._moments import closed_forms, uniform_or_md

if TYPE_CHECKING:
    from fedcohort.advice._assessment import Judge, SchemeFacts
    from fedcohort.advice._ranking import Advice

# From facts to one recommendation, in words that say why.

TIE = 1e-9
"""Scores closer than this, relatively, are equal."""
PLAINEST = ("full", "uniform", "md")
"""What to use, in this order, where nothing else decides."""
PRIVATE_SWEEP = 3
"""With a wanted epsilon so many schemes are swept."""
SWEEP_LIMIT = 1_000_000
"""With more clients the sweep uses closed forms, and only schemes that have one."""


@dataclass(frozen=True)
class Sweep:
    """Scores at other values of m: ``scores[name][k]`` belongs to ``m[k]``; None: no such law.

    ``best[k]`` is the scheme of least score.
    """

    m: tuple[int, ...]
    scores: dict[str, tuple[float | None, ...]]
    best: tuple[str | None, ...]
    note: str = ""


def eligible(row: SchemeFacts, m: int, secure_aggregation: bool = False) -> bool:
    """Unbiased, its law known, within the budget of m clients that work in a round."""
    if row.score is None or not row.unbiased or row.computing is None:
        return False
    return admitted(row, secure_aggregation) and row.computing <= m * (1 + TIE)


def _usable(rows: Sequence[SchemeFacts], m: int, secure: bool = False) -> list[SchemeFacts]:
    """The eligible ones; oracles only where there is no other."""
    able = [row for row in rows if eligible(row, m, secure)]
    return [row for row in able if not row.oracle] or able


def admitted(row: SchemeFacts, secure_aggregation: bool) -> bool:
    """Whether it works with secure aggregation, where that is wanted."""
    return not (secure_aggregation and row.secure_aggregation.startswith("no"))


def chosen(
    rows: Sequence[SchemeFacts], m: int, secure_aggregation: bool = False
) -> SchemeFacts | None:
    """The least score; among equals the one that asks nothing and treats all pairs alike.

    Of those that are equal only because updates are said not to differ, the one whose weights vary
    least. If that leaves several, the plainest.
    """
    able = _usable(rows, m, secure_aggregation)
    if not able:
        return None
    least = min(row.score or 0.0 for row in able)
    equal = [row for row in able if (row.score or 0.0) <= least * (1 + TIE) + 1e-300]
    return min(equal, key=_preference)


def _preference(row: SchemeFacts) -> tuple[bool, float, bool, float, int, str]:
    return (
        row.needs != "nothing",
        float(f"{row.sigma or 0.0:.9g}"),  # to rounding
        row.gamma is None,
        -round(row.expected_distinct or 0, 6),
        PLAINEST.index(row.name) if row.name in PLAINEST else len(PLAINEST),
        row.name,
    )


def swept(
    judge: Judge,
    rows: Sequence[SchemeFacts],
    m: int,
    wanted: Iterable[int] | None,
    sum_squares: float,
) -> Sweep:
    """The scores of the eligible schemes at other values of m."""
    rows = sorted(rows, key=_preference)
    n = len(judge.federation.present)
    values = sorted({m, *(_halves_and_doubles(m, n) if wanted is None else wanted)})
    for value in values:
        if not is_whole(value) or value < 1:
            raise BadParameter("sweep", "advise", "ints of at least 1", value)
    names = [row.name for row in _usable(rows, m, judge.secure_aggregation)]
    note = ""
    if n > SWEEP_LIMIT:
        names = [
            name for name in names if name in closed_forms(max(2, n), 1, max(sum_squares, 1 / n))
        ]
        note = "With so many clients only schemes with a closed form are swept."
    now = {row.name: row.score for row in rows}
    if judge.epsilon is not None:  # for each a noise must be found, which takes a while
        foremost = sorted(names, key=lambda name: now[name] or 0.0)[:PRIVATE_SWEEP]
        names = [name for name in names if name in foremost]
        note = f"With an epsilon the {PRIVATE_SWEEP} best schemes are swept."

    def score(name: str, value: int) -> float | None:
        return now[name] if value == m else closed_score(judge, name, value)

    table = {name: tuple(score(name, value) for value in values) for name in names}
    best = tuple(_least(names, [table[name][k] for name in names]) for k in range(len(values)))
    return Sweep(tuple(values), table, best, note)


def _least(names: Sequence[str], scores: Sequence[float | None]) -> str | None:
    """The least; of equal ones the first, so names come in order of preference."""
    known = [(score, name) for name, score in zip(names, scores, strict=True) if score is not None]
    if not known:
        return None
    least = min(score for score, _ in known)
    return next(name for score, name in known if score <= least * (1 + TIE) + 1e-300)


def _halves_and_doubles(m: int, n: int) -> list[int]:
    around = [m // 4, m // 2, 2 * m, 4 * m]
    return [value for value in around if 1 <= value <= n]


def closed_score(judge: Judge, name: str, m: int) -> float | None:
    """The score of a scheme at some m: of its law or, of very many clients, by a formula."""
    n, p = len(judge.federation.present), judge.federation.importance
    return _closed(judge, name, n, m, float(p @ p)) if n > SWEEP_LIMIT else judge.score_at(name, m)


def _closed(judge: Judge, name: str, n: int, m: int, sum_squares: float) -> float | None:
    largest = float(judge.federation.importance.max())
    known = judge.known.updates is not None or judge.known.label_histograms is not None
    if m > n or known or judge.epsilon is not None:
        return None
    form = closed_forms(n, m, sum_squares).get(name)
    if form is None or (name == "poisson" and m * largest > 1):
        return None
    return judge.heterogeneity * form.sigma + form.weight_sum_variance


def reasons(
    rows: Sequence[SchemeFacts],
    best: SchemeFacts | None,
    judge: Judge,
    m: int,
    sum_squares: float,
    sweep: Sweep,
) -> tuple[str, ...]:
    """Why this one, in a few sentences."""
    n = len(judge.federation.present)
    out = [] if m <= n else [_more_than_there_are(m, n)]
    if best is None:
        return (*out, "No unbiased scheme with a known law stays within m clients a round.")
    rows = [row for row in rows if admitted(row, judge.secure_aggregation)]
    out += [_against(best, rows, judge), *_if_all_could_compute(best, rows, m)]
    if judge.secure_aggregation:
        out += _if_nothing_may_be_shown(best, rows, m)
    if judge.epsilon is None:
        out += _uniform_against_md(rows, m, n, sum_squares)
    if judge.known.updates is None and judge.known.label_histograms is None:
        out += _if_more_or_less_alike(rows, best, m, judge.heterogeneity)
    out += _with_another_m(best, sweep)
    out += _who_is_never_seen(best, judge.rounds)
    return tuple(out)


def _more_than_there_are(m: int, n: int) -> str:
    there = "is one client" if n == 1 else f"are {n} clients"
    return (
        f"m = {m}, but there {there}: nobody need be left out of any round, and schemes that "
        "draw m different clients do not apply. A smaller m would compare more of them."
    )


def _against(best: SchemeFacts, rows: Sequence[SchemeFacts], judge: Judge) -> str:
    score = best.score or 0.0
    text = (
        f"Of the unbiased schemes within the budget, {best.name} has the least "
        f"{judge.criterion}: {'about ' * (best.status == 'approximate')}{score:.4g}"
    )
    others = [row for row in rows if row.name == "md" and row is not best and row.score]
    if others and others[0].score:
        saved = 1.0 - score / others[0].score
        by = f"{abs(saved):.0%} {'less' if saved >= 0 else 'more'} than"
        text += f", {by if abs(saved) >= 0.005 else 'practically the same as'} MD sampling"
    return text + "."


def _if_all_could_compute(best: SchemeFacts, rows: Sequence[SchemeFacts], m: int) -> list[str]:
    """The best of those that send as little, but let more than m clients work."""
    able = [
        row
        for row in rows
        if row.score is not None
        and row.unbiased
        and (row.expected_distinct or 0.0) <= m * (1 + TIE)
        and (row.computing or 0.0) > m * (1 + TIE)
    ]
    if not able or not best.score:
        return []
    other = min(able, key=lambda row: row.score or 0.0)
    saved = 1.0 - (other.score or 0.0) / best.score
    if saved < 0.005:
        return []
    return [
        f"Where {other.computing:.0f} clients can compute in every round, {other.name} has "
        f"{saved:.0%} less."
    ]


def _if_nothing_may_be_shown(best: SchemeFacts, rows: Sequence[SchemeFacts], m: int) -> list[str]:
    """The best of those that leave no answer visible, where the recommended one does."""
    if not best.secure_aggregation.startswith("partly") or best.score is None:
        return []
    other = asks_nothing(rows, m)
    if other is None:
        return ["Every scheme here that works with secure aggregation shows answers of clients."]
    return [
        f"What {best.name} asks is not hidden by secure aggregation; of the schemes that ask "
        f"nothing {other.name} has the least, {times_as_much(other, best)}."
    ]


def asks_nothing(rows: Sequence[SchemeFacts], m: int) -> SchemeFacts | None:
    """The best of those of which secure aggregation hides everything."""
    hidden = [row for row in _usable(rows, m) if row.secure_aggregation.startswith("yes")]
    return min(hidden, key=lambda row: row.score or 0.0, default=None)


def times_as_much(other: SchemeFacts, best: SchemeFacts) -> str:
    """One score in units of a lesser one, in words."""
    return f"{(other.score or 0.0) / best.score:.3g} times as much" if best.score else "more"


def _uniform_against_md(
    rows: Sequence[SchemeFacts], m: int, n: int, sum_squares: float
) -> list[str]:
    if (
        n < 2
        or m > n
        or not {"uniform", "md"} <= {row.name for row in rows if row.score is not None}
    ):
        return []
    limit = uniform_or_md(n, m).sigma
    below = sum_squares <= limit * (1 + TIE)
    return [
        f"Uniform {'beats' if below else 'does not beat'} MD sampling: sum p^2 = "
        f"{sum_squares:.4g} is {'at most' if below else 'above'} 1/(n - m + 1) = {limit:.4g}, "
        f"sizes are {'nearly equal' if below else 'too unequal'} (Corollary 1)."
    ]


def _if_more_or_less_alike(
    rows: Sequence[SchemeFacts], best: SchemeFacts, m: int, heterogeneity: float
) -> list[str]:
    """Say at which heterogeneity h another scheme has the smaller score.

    Without noise the score is h * Sigma + Var(sum omega). The variance of noise goes with 1 + h.
    """

    def noise(row: SchemeFacts) -> float:
        return (row.noise_variance or 0.0) / (1 + heterogeneity)

    def parts(row: SchemeFacts) -> tuple[float, float]:
        return (row.sigma or 0.0) + noise(row), (row.weight_sum_variance or 0.0) + noise(row)

    able = [row for row in _usable(rows, m) if row is not best]
    up: tuple[float, str] | None = None
    down: tuple[float, str] | None = None
    for row in able:
        (mine, still), (other, there) = parts(best), parts(row)
        slope, gap = mine - other, there - still
        if abs(slope) <= TIE * max(mine, other):
            continue
        at = gap / slope
        if slope > 0 and at > heterogeneity and (up is None or at < up[0]):
            up = (at, row.name)
        if slope < 0 and 1e-6 < at < heterogeneity and (down is None or at > down[0]):
            down = (at, row.name)
    out = []
    if up:
        out.append(f"If clients differ more (heterogeneity above {up[0]:.3g}), use {up[1]}.")
    if down:
        out.append(f"If they are more alike (heterogeneity below {down[0]:.3g}), use {down[1]}.")
    if not out:
        out.append("The choice does not depend on how much the clients' updates differ.")
    return out


def _with_another_m(best: SchemeFacts, sweep: Sweep) -> list[str]:
    name = best.name if best.name in sweep.scores else "md"
    scores = sweep.scores.get(name)
    if scores is None or len(sweep.m) < 2:
        return []
    parts = []
    for value, score, winner in zip(sweep.m, scores, sweep.best, strict=True):
        other = "" if winner in (name, None) else f" ({winner} is best there)"
        says = f"{name} does not apply" if score is None else f"{score:.3g}"
        parts.append(f"{says} at m = {value}{other}")
    return [f"With another m this would be (for {name}): {', '.join(parts)}."]


def _who_is_never_seen(best: SchemeFacts, rounds: int) -> list[str]:
    if best.never_worst is None or best.never_worst < 0.01:
        return []
    time = "1 round" if rounds == 1 else f"{rounds} rounds"
    return [
        f"A caution: its least likely client has a chance of {best.never_worst:.1%} never to be "
        f"seen in {time} (on average over clients {best.never_mean:.1%})."
    ]


def cannot_know(rows: Sequence[SchemeFacts], judge: Judge) -> tuple[str, ...]:
    """What no table can tell before training."""
    out = []
    if judge.known.updates is None:
        out.append(
            "How much the clients' updates differ, and which clients are alike: a pilot round of "
            "updates would tell" + ("." if judge.known.label_histograms is not None else ", label "
            "histograms would tell in part.")
        )  # fmt: skip
    else:
        out.append(
            "Whether the pilot round is typical: updates change as the model does, and a scheme "
            "that goes by updates knows those of earlier rounds."
        )
    unknown = [row for row in rows if row.status == "unknown"]
    waiting = ", ".join(row.name for row in unknown if row.needs != "nothing")
    if waiting:
        out.append(f"The law of {waiting}: it depends on answers that do not exist yet.")
    others = ", ".join(row.name for row in unknown if row.needs == "nothing")
    if others:
        out.append(f"The law of {others}: it has no closed form here.")
    out.append("Who will be available, drop out or be slow; and whether reported sizes are true.")
    out.append(
        "How many rounds or points of accuracy it is worth to leave less to chance: a simulation "
        "tells (fedcohort compare) or, roughly, a bound (theory.convergence_bound)."
    )
    return tuple(out)


# How many clients a round: what a larger m buys, and where it stops to be worth it.
#
# The cohort's answer is the true mean plus an error whose variance V(m) is known exactly. Beside
# the squared length of the mean itself it is the *noise* of a round, r(m) = V(m) / |mean|^2.
# Gradient steps whose noise is r must be 1 + r times shorter to be safe, and so need 1 + r times as
# many rounds (Bottou, Curtis and Nocedal 2018, Theorem 4.6, with M_G = 1 + r). Hence the rule:
#
#     m is large enough as soon as twice as many clients would save less than a tenth of the rounds,
#     (r(m) - r(2m)) / (1 + r(m)) < 0.1.
#
# V(m) is exact; that rounds go with 1 + r is a rule of thumb, since clients take many steps.

SAVES = 0.1
"""Twice as many clients are worth it as long as they save this share of the rounds."""
RULE = f"twice as many clients would save less than {SAVES:.0%} of the rounds"
STEPS = (1, 1.5, 2, 3, 5, 7)
"""Values of m that are tried: these, and ten, a hundred, ... times as many."""


@dataclass(frozen=True)
class AtM:
    """What one value of m comes to, for the same progress.

    ``noise`` is r(m); ``rounds`` are those that bring as far as the rounds of the advice at its m;
    ``trainings`` counts a client for each round in which it trains; ``saved`` is the share of the
    rounds that 2m would save.
    """

    m: int
    noise: float
    rounds: float
    trainings: float | None
    bytes_total: float | None
    saved: float


@dataclass(frozen=True)
class WhichM:
    """The recommended m of one scheme, and its neighbours; None where no value was tried."""

    scheme: str
    recommended: int | None
    rows: tuple[AtM, ...]
    rule: str = RULE
    if_unlike: int | None = None
    """The same if clients differ ten times as much; None where updates or labels are known."""

    def row(self, m: int) -> AtM:
        """What one of the values comes to."""
        return next(row for row in self.rows if row.m == m)


def which_m(judge: Judge, name: str, m: int) -> WhichM | None:
    """How many clients a round a scheme should have; None where its noise is not known."""
    judge = replace(judge, noise=None)  # privacy has its own question
    n = len(judge.federation.present)
    noise = _noise(judge, name)
    if noise(m) is None:
        return None
    best = _least_m(noise, n)
    unlike = None
    if judge.known.updates is None and judge.known.label_histograms is None:
        more = replace(judge, heterogeneity=10 * judge.heterogeneity)
        unlike = _least_m(_noise(more, name), n)
    near = {m, 1, n} if best is None else {m, max(1, best // 2), best, min(n, 2 * best), n}
    rows = [_at(judge, name, value, noise, m) for value in sorted(near) if value <= max(m, n)]
    known = tuple(row for row in rows if row is not None)
    return WhichM(name, best, known, if_unlike=unlike)


Noise = Callable[[int], float | None]


def _noise(judge: Judge, name: str) -> Noise:
    strength = judge.strength

    @cache
    def noise(m: int) -> float | None:
        score = closed_score(judge, name, m)
        return None if score is None or strength <= 0 else score / strength

    return noise


def _saved(noise: Noise, m: int, n: int) -> float | None:
    """The share of the rounds that twice as many clients would save."""
    here = noise(m)
    if here is None:
        return None
    there = noise(min(n, 2 * m)) if m < n else here
    there = here / 2 if there is None else there  # where a scheme has no such m: as draws do
    return (here - there) / (1 + here)


def _least_m(noise: Noise, n: int) -> int | None:
    """The least of the tried values that is large enough."""
    values = sorted({*(int(s * 10**e) for e in range(9) for s in STEPS if s * 10**e <= n), n})

    def enough(m: int) -> bool:
        saved = _saved(noise, m, n)
        return saved is not None and saved < SAVES

    found = bisect_left(values, True, key=enough)  # noise falls with m
    return values[found] if found < len(values) else None


def _at(judge: Judge, name: str, m: int, noise: Noise, asked: int) -> AtM | None:
    here, now, n = noise(m), noise(asked), len(judge.federation.present)
    saved = _saved(noise, m, n)
    if here is None or now is None or saved is None:
        return None
    rounds = judge.rounds * (1 + here) / (1 + now)
    facts = replace(judge, rounds=max(1, int(np.ceil(rounds - 1e-9)))).facts(name, m)
    trainings = None if facts.expected_distinct is None else facts.expected_distinct * rounds
    return AtM(m, here, rounds, trainings, facts.bytes_total, saved)


# Advice for people who own data: three sentences without a formula.

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
