"""Independent designs on disjoint groups of clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.designs._pools import StratumPools
from fedcohort.designs._rows import Rows
from fedcohort.maths._draws import Rng
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._design import (
    OUTCOME_LIMIT,
    CovarianceBound,
    Design,
    Distinct,
    Participation,
    too_many_outcomes,
)


@dataclass(frozen=True, eq=False, repr=False)
class Stratified(Design):
    """One design per stratum, drawn independently.

    ``strata[h]`` holds the positions of stratum h and ``parts[h]`` the design over them, whose
    own positions 0, 1, ... are positions in ``strata[h]``. What a part calls its target is
    taken as it is: for an unbiased whole the target of a part is the importance of the whole
    federation, times ``scale[h]`` = the stratum's share where the part's shares sum to 1.
    """

    size: int
    strata: tuple[Ints, ...]
    parts: tuple[Design, ...]
    scale: tuple[Fraction, ...]

    @property
    def n(self) -> int:
        return self.size

    def _gather(self, column: Callable[[Design], Floats], scaled: bool = False) -> Floats:
        out = np.zeros(self.n)
        for positions, part, scale in zip(self.strata, self.parts, self.scale, strict=True):
            out[positions] = column(part) * (float(scale) if scaled else 1.0)
        return out

    @cached_property
    def value(self) -> Floats:
        return self._gather(lambda part: part.value, scaled=True)

    def draw(self, rng: Rng) -> Cohort:
        drawn = [part.draw(rng) for part in self.parts]
        clients = [s[c.clients] for s, c in zip(self.strata, drawn, strict=True)]
        weights = [c.weights * float(x) for x, c in zip(self.scale, drawn, strict=True)]
        return Cohort.of(
            np.concatenate(clients),
            np.concatenate(weights),
            np.concatenate([c.draws for c in drawn]),
        )

    def expected_counts(self) -> Floats:
        return self._gather(lambda part: part.expected_counts())

    def count_variance(self) -> Floats:
        return self._gather(lambda part: part.count_variance())

    def inclusion(self) -> Floats:
        return self._gather(lambda part: part.inclusion())

    def count_covariance_times(self, x: Floats) -> Floats:
        out = np.zeros_like(x, dtype=np.float64)
        for positions, part in zip(self.strata, self.parts, strict=True):
            out[positions] = part.count_covariance_times(x[positions])
        return out

    def pools(self) -> StratumPools | None:
        if len(self.strata) < 2:
            return None
        again = tuple(isinstance(part, Rows) for part in self.parts)
        return StratumPools(self.strata, self.expected_counts(), again)

    def covariance_bound(self) -> CovarianceBound | None:
        if any(part.alpha is None for part in self.parts):
            return None
        # Dropping -alpha_h ||sum over stratum h||^2 leaves an upper bound.
        gamma, mean = self.variance(), self.mean()
        for positions, part in zip(self.strata, self.parts, strict=True):
            gamma[positions] += max(0.0, part.alpha or 0.0) * mean[positions] ** 2
        return CovarianceBound(0.0, gamma, "strata are independent: alpha 0, gamma within each")

    def picture(self) -> dict[str, Array]:
        """The strata, to be drawn in a report; the keys are those of `Scheme.picture`.

        ``allocation`` is the expected number of draws, which for most parts is the number.

        >>> from fedcohort.selection import Shares
        >>> from fedcohort.designs import Simple
        >>> pair = Simple(Shares.of(np.array([1, 1])), 1)
        >>> Stratified(3, (np.array([0, 2]),), (pair,), (Fraction(1),)).picture()
        {'labels': array([ 0, -1,  0]), 'strata_sizes': array([2]), 'allocation': array([1.])}
        """
        labels = np.full(self.n, -1, dtype=np.int64)
        for h, positions in enumerate(self.strata):
            labels[positions] = h
        draws = [float(part.expected_counts().sum()) for part in self.parts]
        return {
            "labels": labels,
            "strata_sizes": np.array([len(positions) for positions in self.strata]),
            "allocation": np.round(draws, 6),
        }

    def participation(self) -> Participation | None:
        """That of its stratum: what others draw is independent of it."""
        each = [part.participation() for part in self.parts]
        known = [one for one in each if one is not None]
        if len(known) < len(each):
            return None
        at_least = np.zeros((self.n, max(one.at_least.shape[1] for one in known)))
        displaced = np.zeros(self.n)
        for members, scale, one in zip(self.strata, self.scale, known, strict=True):
            at_least[members, : one.at_least.shape[1]] = one.at_least
            displaced[members] = one.displaced * float(scale)
        how = " or ".join(sorted({one.how for one in known}))
        return Participation(at_least, self.value, displaced, f"independent strata: {how}")

    def distinct(self) -> Distinct:
        each = [part.distinct() for part in self.parts]
        return Distinct(sum(d.mean for d in each), sum(d.variance for d in each))

    def enumerate(self) -> Iterator[tuple[Fraction, Cohort]]:
        parts = [tuple(part.enumerate()) for part in self.parts]
        if prod(len(outcomes) for outcomes in parts) > OUTCOME_LIMIT:
            raise too_many_outcomes()
        for outcome in product(*parts):
            weights: list[Array] = [
                np.asarray(c.weights, dtype=object) * scale
                for scale, (_, c) in zip(self.scale, outcome, strict=True)
            ]
            yield (
                prod((chance for chance, _ in outcome), start=Fraction(1)),
                Cohort.of(
                    np.concatenate(
                        [s[c.clients] for s, (_, c) in zip(self.strata, outcome, strict=True)]
                    ),
                    np.concatenate(weights),
                    np.concatenate([c.draws for _, c in outcome]),
                ),
            )
