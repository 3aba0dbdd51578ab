"""One table that orders the catalogue: the constants (A, B, w) of every scheme with a law."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import FedcohortError, FedcohortWarning
from fedcohort._internal.types import Floats
from fedcohort.schemes import SCHEMES
from fedcohort.selection._federation import Federation
from fedcohort.theory.advice import checked_settings
from fedcohort.theory.constants import Constants, constants
from fedcohort.theory.judge import Judge, by_pilot
from fedcohort.theory.pilot import Known, NotKnownError


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
