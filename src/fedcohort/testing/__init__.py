"""Checks for every scheme, ours or yours.

>>> from fedcohort.testing import check_scheme
>>> results = check_scheme("md")
>>> all(result.passed for result in results)
True

In a test of your own package::

    @pytest.mark.parametrize("name", fedcohort.testing.CHECKS)
    def test_my_scheme(name):
        result = fedcohort.testing.run_check(name, MyScheme)
        assert result.passed, result.detail

What is checked stands in `fedcohort.testing._claims` (what a scheme claims), `_conduct` (what all
schemes must do, in a round and in a run) and `_signals` (queries and replies). Each check runs over
small federations (equal sizes, skewed ones, one big client, a client without data, one client
alone, and a larger one) and over the variants of a scheme:
each value of a parameter that is a choice.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial
from typing import Any

from fedcohort._internal.errors import (
    BadParameter,
    CheckFailed,
    FedcohortError,
    FedcohortWarning,
    TooImprecise,
    own_line,
)
from fedcohort._internal.parameters import (
    Constraint,
    Flag,
    Labels,
    Maybe,
    OneOf,
    Real,
    Whole,
    constraints,
)
from fedcohort._internal.registry import not_a_dataclass
from fedcohort.schemes import find
from fedcohort.schemes import scheme as scheme_by_word
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Answer
from fedcohort.selection._scheme import Claim, Scheme
from fedcohort.testing import _claims, _conduct, _signals
from fedcohort.testing._claims import NotApplicable

Subject = Scheme[Any] | type[Scheme[Any]] | str

FEDERATIONS: Mapping[str, list[int]] = {
    "equal": [10, 10, 10, 10, 10],
    "skewed": [5, 4, 3, 2, 1],
    "one big": [10, 3, 2, 1],  # m p_i > 1
    "one empty": [3, 0, 2, 4, 1],
    "alone": [7],
    "larger": [1 + (37 * i * i) % 101 for i in range(60)],
}
VARIED = frozenset({"skewed", "one big"})
"""Where all variants of a scheme are checked; elsewhere the scheme as it stands will do."""
SMALL_M = 2


@dataclass(frozen=True)
class Result:
    """The outcome of one check."""

    name: str
    passed: bool
    detail: str
    seconds: float
    applies: bool = True

    @property
    def outcome(self) -> str:
        """``"ok"``, ``"FAILED"``, or ``"–"`` where the check has nothing to say."""
        return "FAILED" if not self.passed else "ok" if self.applies else "–"

    def __str__(self) -> str:
        return f"{self.outcome:<6}  {self.name:<17}  {self.detail}"


def claim_name(claim: Claim) -> str:
    """The name of the check of a claim."""
    return claim.name.lower().replace("_", "-")


def _claimed(claim: Claim, scheme: Scheme[Any], federation: Federation, answer: Any) -> None:
    if claim not in scheme.claims:
        raise NotApplicable(f"not claimed: {claim.value}")
    _claims.CLAIM_CHECKS[claim](scheme, federation, answer)


CHECKS: Mapping[str, _claims.Check] = {
    "declaration": _conduct.check_declaration,
    "parameters": _conduct.check_parameters,
    **{claim_name(claim): partial(_claimed, claim) for claim in Claim},
    "moments": _claims.check_moments,
    "cohorts": _conduct.check_cohorts,
    "signals": _signals.check_signals,
    "answers": _signals.check_answers,
    "pure": _conduct.check_pure,
    "arrival": _conduct.check_arrival,
    "equivariant": _conduct.check_equivariant,
    "state": _conduct.check_state,
    "resume": _conduct.check_resume,
    "newcomers": _conduct.check_newcomers,
    "deterministic": _conduct.check_deterministic,
}
"""Every check by name."""
ONCE = frozenset({"declaration", "parameters", "deterministic"})
"""What need not be repeated for every federation and variant."""


def check_scheme(
    scheme: Subject,
    *,
    answer: Answer | None = None,
    federations: Mapping[str, Federation] | None = None,
    stop: bool = False,
) -> tuple[Result, ...]:
    """Run every check and tell the results.

    Parameters
    ----------
    scheme
        A name, a class, or a scheme with its parameters (``"md:m=2"`` is one, too). Numbers
        are made small enough for small federations; a class or a name alone stands for all of
        its variants.
    answer
        How clients answer questions, where a signal cannot be measured on a client made of
        random numbers: a function ``Ask -> array``.
    federations
        Where to check, instead of `FEDERATIONS`.
    stop
        Raise `CheckFailed` at the first failure instead of telling it.
    """
    run = partial(run_check, scheme=scheme, answer=answer, federations=federations, stop=stop)
    usable = is_dataclass(_subject(scheme))  # else nothing more can be said of it
    return tuple(run(name) for name in (CHECKS if usable else ["declaration"]))


def run_check(
    name: str,
    scheme: Subject,
    *,
    answer: Answer | None = None,
    federations: Mapping[str, Federation] | None = None,
    stop: bool = False,
) -> Result:
    """Run one check over the federations and the variants of a scheme."""
    begun = time.perf_counter()
    ran, silent = 0, ""
    where = federations or {k: Federation.from_sizes(sizes) for k, sizes in FEDERATIONS.items()}
    varied = frozenset(federations or VARIED)
    subject = _subject(scheme)
    if not is_dataclass(subject):
        detail = not_a_dataclass(subject if isinstance(subject, type) else type(subject))
        return _failed(name, detail, begun, stop)
    for case, federation, variant in _cases(name, subject, where, varied):
        try:
            with warnings.catch_warnings():  # what a scheme defines, it may warn of
                warnings.simplefilter("ignore", FedcohortWarning)
                CHECKS[name](variant(), federation, answer)
            ran += 1
        except NotApplicable as reason:
            silent = silent or str(reason)
        except (BadParameter, TooImprecise) as refusal:  # of some federations, but not of all
            silent = silent or f"refused '{case}': {refusal}"
        except Exception as error:  # a crash is a failure like any other
            return _failed(name, f"On '{case}': {_told(error)}", begun, stop, error)
    detail = f"{ran} case{'s' if ran > 1 else ''}" if ran else silent
    return Result(name, True, detail, time.perf_counter() - begun, applies=ran > 0)


def _told(error: Exception) -> str:
    """What went wrong and, of a crash, where in the user's file."""
    if isinstance(error, FedcohortError):
        return str(error)
    where = own_line(error)
    return f"{type(error).__name__}: {error}" + (f" ({where})" if where else "")


def _failed(
    name: str, detail: str, begun: float, stop: bool, cause: Exception | None = None
) -> Result:
    if stop:
        raise CheckFailed(detail) from cause
    return Result(name, False, detail, time.perf_counter() - begun)


def _subject(scheme: Subject) -> Scheme[Any] | type[Scheme[Any]]:
    """A name alone stands for the class, hence for all of its variants."""
    if not isinstance(scheme, str):
        return scheme
    return scheme_by_word(scheme) if ":" in scheme else find(scheme)


def _cases(
    check: str, subject: Subject, federations: Mapping[str, Federation], varied: frozenset[str]
) -> Iterator[tuple[str, Federation, Callable[[], Scheme[Any]]]]:
    """(name of the federation, federation, how to make the scheme) of every case to run."""
    for case, federation in federations.items():
        made = list(variants(subject, federation.eligible, len(federation)))
        if check in ONCE:
            if len(federation) > 1 or len(federations) == 1:
                yield case, federation, made[0]
                return
            continue
        for variant in made if case in varied else made[:1]:
            yield case, federation, variant


def variants(subject: Subject, eligible: int, n: int) -> Iterator[Callable[[], Scheme[Any]]]:
    """How to make a scheme for n clients: as it stands, and with each choice in turn.

    A scheme that was given with its parameters stands for itself alone.
    """
    cls: type[Scheme[Any]]
    known = _subject(subject)
    if isinstance(known, Scheme):
        cls, given = type(known), dict(known.parameters)
    else:
        cls, given = known, {}
    base = _arguments(cls, given, eligible, n)
    yield partial(cls.build, **base)
    if given:
        return
    for name, constraint in constraints(cls).items():
        for choice in _choices(constraint, n):
            if choice != base[name]:
                yield partial(cls.build, **{**base, name: choice})


def _choices(constraint: Constraint, n: int) -> tuple[Any, ...]:
    if isinstance(constraint, Flag):
        return (False, True)
    if isinstance(constraint, OneOf):
        return constraint.words
    if isinstance(constraint, Maybe):
        return _choices(constraint.inner, n)
    return (_labels(n),) if isinstance(constraint, Labels) else ()


def _arguments(
    cls: type[Scheme[Any]], given: Mapping[str, Any], eligible: int, n: int
) -> dict[str, Any]:
    """Parameters for n clients: what is given or the default, with numbers made small."""
    out: dict[str, Any] = {}
    declared = constraints(cls)
    for field in fields(cls):  # type: ignore[arg-type]
        constraint = declared.get(field.name)
        value = given.get(field.name, field.default)
        if value is MISSING:
            value = _sensible(constraint, n)
        if field.name == "m" and not isinstance(value, str):
            value = min(value, SMALL_M, eligible)
        elif isinstance(constraint, Whole) and not isinstance(value, str):
            value = max(constraint.low, min(value, eligible))
        elif isinstance(value, tuple) and len(value) != n and constraint is not None:
            value = _sensible(constraint, n)
        out[field.name] = value
    return out


def _sensible(constraint: Constraint | None, n: int) -> Any:
    """Some value that a constraint accepts."""
    if isinstance(constraint, Maybe):
        return None
    if isinstance(constraint, Labels):
        return _labels(n)
    if isinstance(constraint, OneOf):
        return constraint.words[0]
    if isinstance(constraint, Whole):
        return constraint.low
    if isinstance(constraint, Real):
        return next(x for x in (0.5, 1.0, constraint.high, constraint.low) if constraint.accepts(x))
    return False


def _labels(n: int) -> tuple[int, ...]:
    return tuple(i % 2 for i in range(n))
