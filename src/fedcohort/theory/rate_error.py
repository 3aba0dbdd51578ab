"""How wrong the rate K/N~ of FedSampling is: Lemma 3.1 and Corollary 3.1, exact and asymptotic.

|C| clients answer their size n_c with chance alpha and a uniform number of {1, ..., M - 1} else;
N~ = (R - (1 - alpha) M |C| / 2) / alpha from the sum R of the answers. Every sample then takes
part with chance K/N~ where K/N was wanted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, TooLarge
from fedcohort._internal.parameters import Maybe, Real, Whole, within_ranges
from fedcohort._internal.types import Floats, as_floats
from fedcohort.theory.ranges import COUNT, POSITIVE, SMALLEST

SUPPORT_LIMIT = 4_000_000
"""So many different sums of answers are looked at; about a second."""
LARGEST_SIZE = 1e15
"""Of a client: sums of these are exact in floats, or nearly."""


@dataclass(frozen=True)
class RateError:
    """The error of p^ = min(1, K / max(N~, floor)) as an estimate of K/N.

    mean, variance
        Of N~, exact. The mean is the sum of the *clipped* sizes.
    leading
        K^2 Var(N~) / N^4, the first term of Lemma 3.1.
    squared
        E(p^ - K/N)^2, exact: that of the lemma, for the floored rate.
    samples
        E(N p^), how many samples take part on average; K was wanted.
    samples_squared
        E(N p^ - K)^2, exact: that of Corollary 3.1.
    floored, impossible
        Chance that N~ is below the floor, and that it is 0 or less.
    """

    total: int  # N, of the true sizes
    mean: float
    variance: float
    leading: float
    squared: float
    samples: float
    floored: float
    impossible: float

    @property
    def samples_squared(self) -> float:
        """N^2 times the squared error of the rate."""
        return self.total**2 * self.squared

    @property
    def ratio(self) -> float:
        """Exact over leading: tends to 1 with many clients, if no size is clipped."""
        return self.squared / self.leading


@within_ranges
def rate_error(
    sizes: ArrayLike,
    samples: Annotated[float, POSITIVE],
    alpha: Annotated[float, Real(SMALLEST, 1)],
    threshold: Annotated[int, Whole(3, COUNT.high)],
    floor: Annotated[float | None, Maybe(POSITIVE)] = None,
) -> RateError:
    """The exact error of FedSampling's rate, by the law of the sum of all answers.

    With n_c = clip(size, 1, M - 1) and mean answer a_c = alpha n_c + (1 - alpha) M / 2::

        E N~ = sum n_c
        Var N~ = (1/alpha^2) sum_c [alpha n_c^2 + (1 - alpha) M (2M - 1)/6 - a_c^2]
        E(K/N~ - K/N)^2 ~ K^2 Var(N~) / N^4                     Lemma 3.1
        E(N K/N~ - K)^2 ~ K^2 Var(N~) / N^2                     Corollary 3.1

    Where we differ. The lemma is proved by a Taylor series that converges for |N~ - N| < N only,
    and without a floor the expectation need not exist: N~ = 0 has a positive chance, for instance
    with alpha = 1/5, M = 3 and five clients. Inequality (12) is von Bahr and Esseen's, which is
    for moments of order 1 to 2; for order 4 it fails with two clients. So both claims are made of
    the floored rate. As stated, (3) says little, for K/N itself tends to 0; (15) is the claim that
    matters, and it fails where sizes are clipped: the limit is K^2 (N / E N~ - 1)^2.

    Parameters
    ----------
    sizes
        Of the clients, true ones.
    samples
        K.
    alpha
        Chance of a true answer.
    threshold
        M.
    floor
        What N~ is at least; by default a sample per client.

    >>> found = rate_error([2, 3, 1, 2] * 250, samples=100, alpha=0.5, threshold=6)
    >>> found.mean, round(found.samples, 2), round(found.ratio, 3)
    (2000.0, 100.14, 1.01)

    Reference: Qi, Wu, Lyu, Huang, Xie (IJCAI 2023), Lemma 3.1 and Corollary 3.1.
    """
    true = as_floats(sizes, "'sizes' must be numbers")
    fine = (true >= 0) & (true <= LARGEST_SIZE) & (true == np.rint(true))
    if true.ndim != 1 or not len(true) or not np.all(fine):
        raise BadInput(
            f"'sizes' must be whole numbers from 0 to {LARGEST_SIZE:g}, one for each client."
        )
    least = float(len(true)) if floor is None else float(floor)
    total, told = int(true.sum()), np.clip(true, 1, threshold - 1)
    if total == 0:
        raise BadInput("'sizes' are all 0: there is no sample to draw.")
    chances = _law_of_the_sum(told, float(alpha), threshold)
    sums = len(true) + np.arange(len(chances))
    estimate = (sums - (1 - alpha) * threshold * len(true) / 2) / alpha
    rate = np.minimum(1.0, samples / np.maximum(estimate, least))
    answer = alpha * told + (1 - alpha) * threshold / 2
    square = alpha * told**2 + (1 - alpha) * threshold * (2 * threshold - 1) / 6
    variance = float((square - answer**2).sum()) / alpha**2
    return RateError(
        total,
        float(told.sum()),
        variance,
        samples**2 * variance / total**4,
        float(chances @ (rate - samples / total) ** 2),
        float(chances @ rate) * total,
        float(chances[estimate < least].sum()),
        float(chances[estimate <= 1e-9 * total].sum()),
    )


def _law_of_the_sum(sizes: Floats, alpha: float, threshold: int) -> Floats:
    """Chances of R = |C|, |C| + 1, ...: the product of the answers' Fourier transforms."""
    length = len(sizes) * (threshold - 2) + 1
    if length > SUPPORT_LIMIT:
        raise TooLarge(
            f"The answers of {len(sizes)} clients have {length} sums; at most {SUPPORT_LIMIT} are "
            "looked at. 'leading' is K^2 Var(N~) / N^4: fedcohort.privacy.variance_of_total."
        )
    fake = np.full(threshold - 1, (1 - alpha) / (threshold - 1))
    out = np.ones(length // 2 + 1, dtype=np.complex128)
    for size, number in zip(*np.unique(sizes.astype(np.int64), return_counts=True), strict=True):
        answer = fake.copy()
        answer[size - 1] += alpha
        out *= np.fft.rfft(answer, length) ** int(number)
    chances = np.maximum(np.fft.irfft(out, length), 0.0)
    return np.asarray(chances / chances.sum())
