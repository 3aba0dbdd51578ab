"""Rank schemes for a federation before training."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal import html
from fedcohort._internal.errors import BadParameter, FedcohortError, FedcohortWarning
from fedcohort._internal.parameters import is_real, is_whole, split
from fedcohort._internal.types import Floats, for_json
from fedcohort.advice._assessment import KNOWN, Judge, SchemeFacts, by_pilot
from fedcohort.advice._recommendation import (
    Sweep,
    WhichM,
    cannot_know,
    chosen,
    in_three_sentences,
    reasons,
    swept,
    which_m,
)
from fedcohort.schemes import SCHEMES, find
from fedcohort.selection._federation import Federation
from fedcohort.theory._moments import Constants, constants
from fedcohort.theory._pilot import Known, NotKnownError

# Which scheme to use, from what is known before training.


@dataclass(frozen=True)
class Advice:
    """The table, the recommendation and what it rests on.

    ``n`` clients have samples, ``left_out`` have none. ``rows`` are sorted: by score where it
    is known, then those whose law is not known, then those that do not apply.
    """

    n: int
    m: int
    rounds: int
    sum_squares: float
    criterion: str
    rows: tuple[SchemeFacts, ...]
    recommended: str | None
    reasons: tuple[str, ...]
    sweep: Sweep
    cannot_know: tuple[str, ...]
    left_out: int = 0
    which_m: WhichM | None = None
    secure_aggregation: bool = False
    """Whether only what works with it may be recommended."""
    noise: float | None = None
    epsilon: float | None = None
    delta: float = 1e-5
    """What was asked of privacy: the price of that noise, or the noise for that epsilon."""

    @property
    def compared(self) -> tuple[SchemeFacts, ...]:
        """The rows of those schemes whose law is known."""
        return tuple(row for row in self.rows if row.status in KNOWN)

    @property
    def plain(self) -> tuple[str, ...]:
        """Three sentences for people who own data: what it does, what it costs, what it tells."""
        return in_three_sentences(self)

    def row(self, name: str) -> SchemeFacts:
        """The facts of one scheme."""
        return next(row for row in self.rows if row.name == name)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**for_json(asdict(self)), "plain": self.plain}

    def __repr__(self) -> str:
        use = f"use {self.recommended}" if self.recommended else "no scheme can be recommended"
        clients = f"{self.n} {html.plural(self.n, 'client')}"
        rounds = f"{self.rounds} {html.plural(self.rounds, 'round')}"
        schemes = f"{len(self.rows)} {html.plural(len(self.rows), 'scheme')}"
        return (
            f"<Advice for {clients}, m={self.m}, {rounds}: {use}; "
            f"{len(self.compared)} of {schemes} compared>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the words, then the schemes whose law is known."""
        columns = {
            "Scheme": [row.name + " (oracle)" * row.oracle for row in self.compared],
            "Score": [_or_nan(row.score) for row in self.compared],
            "Bias": [0.0 if row.unbiased else _or_nan(row.bias) for row in self.compared],
            "Clients a round": [_or_nan(row.expected_distinct) for row in self.compared],
            **self._private_column,
            "Never seen (worst)": [_percent(row.never_worst) for row in self.compared],
            "Secure aggregation": [row.secure_aggregation for row in self.compared],
        }
        head, *_ = str(self).splitlines()
        others = len(self.rows) - len(self.compared)
        more = f" {others} more {html.plural(others, 'scheme')}: .row(name) says why."
        legend = f"Score: {self.criterion}; the smaller the better.{more if others else ''}"
        rows = zip(*columns.values(), strict=True)
        note = " ".join([*self.reasons, legend])
        return html.table(head, list(columns), rows, note, self.plain)

    @property
    def _private_column(self) -> dict[str, list[float]]:
        """What was asked of privacy, of every scheme whose law is known."""
        if self.epsilon is not None:
            return {"Noise": [_or_nan(row.deviation) for row in self.compared]}
        if self.noise is not None:
            return {"Epsilon": [_or_nan(row.epsilon) for row in self.compared]}
        return {}

    def __str__(self) -> str:
        head = f"Use {self.recommended}." if self.recommended else "No scheme can be recommended."
        return "\n".join([head, *self.plain, *self.reasons])


def advise(
    federation: Federation | ArrayLike,
    m: int,
    rounds: int = 100,
    *,
    label_histograms: ArrayLike | None = None,
    updates: ArrayLike | None = None,
    heterogeneity: float = 1.0,
    model_bytes: int | None = None,
    secure_aggregation: bool = False,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    sweep: Iterable[int] | None = None,
    noise: float | None = None,
    epsilon: float | None = None,
    delta: float = 1e-5,
    only: Iterable[str] | None = None,
) -> Advice:
    """Compare every scheme on a federation before any training, and recommend one.

    Schemes are ranked by the variance of the aggregate, tr(X' Cov X): of the pilot round's
    updates where given, else of label shares where given; exact, or estimated from drawn cohorts
    where no formula gives it (``status``). With neither, updates are modelled as a common part of
    squared length 1 plus independent deviations of squared length ``heterogeneity``; the variance
    is then exactly heterogeneity * Sigma + Var(sum omega). With a wanted ``epsilon`` the variance
    of the noise is added, summed over the parameters of the model, for updates that are clipped
    at their root mean square length. Only unbiased schemes whose law is
    known, with at most m clients per round that train or answer with the model at hand, are
    recommended.

    Parameters
    ----------
    federation
        A federation, or the sizes of its clients.
    m
        Clients per round.
    rounds
        T, for the chance that a client is never seen.
    label_histograms
        (n, classes), by position in the federation.
    updates
        (n, d) of one round in which everybody trained from the same model.
    heterogeneity
        How much single updates differ, in units of what they have in common (squared lengths).
    model_bytes
        Size of the model, for bytes per round, and for noise: 4 bytes are one parameter. Without
        it noise is on as many parameters as the pilot updates have, else on 1,000.
    secure_aggregation
        Recommend only what works with it.
    settings
        Settings of schemes by name, such as ``{"poisson": {"cap": True}}``; ``m`` is that of
        the advice, for schemes are compared at the same m. A file of your own joins the table
        by its path, ``{"./mine.py": {}}``.
    sweep
        Other values of m to look at; by default halves and doubles of m.
    noise, epsilon, delta
        With a noise multiplier, what each scheme costs in privacy: `fedcohort.privacy.price`.
        With a wanted epsilon instead, how much noise it takes (`fedcohort.privacy.noise_for`); the
        ranking counts that noise. Schemes that look at data are then not recommended.
    only
        Names of the schemes to compare, also with settings, as ``"balanced:by=updates"``; all by
        default, with a pilot round also those that balance or line up its updates.

    >>> advice = advise([50] * 100, m=10)
    >>> advice.recommended
    'uniform'
    >>> advice.row("uniform").sigma < advice.row("md").sigma
    True
    """
    fed = federation if isinstance(federation, Federation) else Federation.from_sizes(federation)
    _check(m, rounds, heterogeneity, model_bytes)
    if noise is not None and epsilon is not None:
        remedy = "An epsilon finds the noise that it takes: give one of the two."
        raise BadParameter("epsilon", "advise", "left out where a noise is given", epsilon, remedy)
    known = Known(fed, label_histograms, updates)  # type: ignore[arg-type]
    own = checked_settings(settings or {}, m)
    spread = float(heterogeneity)
    judge = Judge(
        known, rounds, spread, model_bytes, own, secure_aggregation, noise, epsilon, delta
    )
    wanted = [*SCHEMES, *own, *by_pilot(known)] if only is None else list(only)
    for word in wanted:
        find(split(word)[0])  # an unknown name is told with what it may have meant
    rows = [judge.facts(name, m) for name in dict.fromkeys(wanted)]
    rows.sort(key=_order)
    best = chosen(rows, m, secure_aggregation)
    sum_squares = float(fed.importance @ fed.importance)
    others = swept(judge, rows, m, sweep, sum_squares)
    return Advice(
        len(fed.present),
        m,
        rounds,
        sum_squares,
        judge.criterion,
        tuple(rows),
        best.name if best else None,
        reasons(rows, best, judge, m, sum_squares, others),
        others,
        cannot_know(rows, judge),
        len(fed) - len(fed.present),
        which_m(judge, best.name, m) if best and epsilon is None else None,  # it counts no noise
        secure_aggregation,
        noise,
        epsilon,
        delta,
    )


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value  # which a notebook shows as a dash


def _percent(chance: float | None) -> str:
    return "–" if chance is None else f"{chance:.1%}"


def _order(row: SchemeFacts) -> tuple[int, bool, float, str]:
    """Unbiased by score, then biased, unknown and not applicable ones."""
    kinds = ["exact", "biased", "unknown", "not applicable"]
    known = row.status in KNOWN  # estimates are ranked among the others
    kind = "biased" if known and not row.unbiased else "exact" if known else row.status
    return kinds.index(kind), kind == "exact" and row.score is None, row.score or 0.0, row.name


def checked_settings(
    settings: Mapping[str, Mapping[str, Any]], m: int
) -> dict[str, dict[str, Any]]:
    """Every scheme must exist and take its settings; m is not one of them, as it varies."""
    out = {}
    for name, own in settings.items():
        cls = find(name)
        if own.get("m", m) != m:
            remedy = "Schemes are compared at the same m: give it once, for all."
            raise BadParameter("m", name, f"{m}, as in the advice", own["m"], remedy)
        has_m = any(field.name == "m" for field in fields(cls))  # type: ignore[arg-type]
        cls.build(**{**({"m": m} if has_m else {}), **own})
        out[name] = {key: value for key, value in own.items() if key != "m"}
    return out


def _check(m: int, rounds: int, heterogeneity: float, model_bytes: int | None) -> None:
    for name, value in (("m", m), ("rounds", rounds)):
        if not is_whole(value) or value < 1:
            raise BadParameter(name, "advise", "an int of at least 1", value)
    if not is_real(heterogeneity) or heterogeneity < 0:
        raise BadParameter("heterogeneity", "advise", "a number of at least 0", heterogeneity)
    if model_bytes is not None and (not is_whole(model_bytes) or model_bytes < 1):
        raise BadParameter("model_bytes", "advise", "an int of at least 1", model_bytes)


# One table that orders the catalogue: the constants (A, B, w) of every scheme with a law.


@dataclass(frozen=True)
class ConstantsRow:
    """A scheme's constants, or why it has none.

    ``w`` says in words what the weights are in proportion to; ``unlike`` and ``alike`` bound the
    variance of the aggregate for updates of length 1, see `Constants`.
    """

    name: str
    a: float | None = None
    b: float | None = None
    w: str = ""
    unlike: float | None = None
    alike: float | None = None
    how: str = ""
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def catalogue_constants(
    federation: Federation | ArrayLike,
    m: int,
    *,
    label_histograms: ArrayLike | None = None,
    updates: ArrayLike | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[ConstantsRow, ...]:
    """(A, B, w) of every scheme on one federation, the smallest ``unlike`` first.

    The order is that of ``unlike``, A sum p_i^2 / w_i: A alone orders nothing, because w differs
    from scheme to scheme. Schemes that have no fixed law, or are biased, come last and say so.
    Parameters are those of `advise`.

    >>> rows = catalogue_constants([50] * 100, m=10)
    >>> [(row.name, round(row.unlike, 4)) for row in rows[:4]]
    [('full', 0.0), ('binomial', 0.09), ('poisson', 0.09), ('uniform', 0.0909)]
    """
    fed = federation if isinstance(federation, Federation) else Federation.from_sizes(federation)
    own = checked_settings(settings or {}, m)
    known = Known(fed, label_histograms, updates)  # type: ignore[arg-type]
    judge = Judge(known, 1, 1.0, None, own)
    names = dict.fromkeys([*SCHEMES, *own, *by_pilot(known)])
    rows = [_row(judge, name, m) for name in names]
    return tuple(sorted(rows, key=_constants_order))


def _row(judge: Judge, name: str, m: int) -> ConstantsRow:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FedcohortWarning)  # `advise` says it
            scheme = judge.build(name, m)
            design = judge.law(scheme)
        if design is None:
            return ConstantsRow(name, note=judge.why_unknown(scheme))
        found = constants(design, importance=judge.federation.importance)
    except NotKnownError as missing:
        return ConstantsRow(name, note=f"Its law depends on {missing}.")
    except FedcohortError as error:
        return ConstantsRow(name, note=str(error))
    return ConstantsRow(
        name, found.a, found.b, proportions(found), found.unlike, found.alike, found.how
    )


def proportions(found: Constants) -> str:
    """What w is in proportion to, in words.

    >>> from fedcohort import Federation, scheme
    >>> law = scheme("md", m=2).law(Federation.from_sizes([3, 2, 1]))
    >>> proportions(constants(law))
    'p'
    """
    here = found.p > 0
    w, p = found.w[here], found.p[here]
    some = w > 0
    without = "" if np.all(some) else f", without {int((~some).sum())} sure"
    if _constant(w[some]):
        return ("1/n" if not without else "equal") + without
    if _constant(w[some] / p[some]):
        return "p" + without
    spread = w[some] * len(w)
    return f"{spread.min():.2g} to {spread.max():.2g} times 1/n{without}"


def _constant(values: Floats) -> bool:
    return bool(np.ptp(values) <= 1e-9 * np.max(values))


def _constants_order(row: ConstantsRow) -> tuple[bool, float, str]:
    # rounded, so that schemes that are the same stand side by side by name
    return row.unlike is None, round(row.unlike or 0.0, 12), row.name
