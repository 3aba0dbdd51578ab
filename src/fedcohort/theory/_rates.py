"""Convergence rates and estimators with memory, and how far rates are off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter, TooLarge
from fedcohort._internal.parameters import Maybe, Real, Whole, within_ranges
from fedcohort._internal.types import Floats, as_floats
from fedcohort.designs import Rows
from fedcohort.selection._design import Design
from fedcohort.theory._convergence import ConvergenceBound, Training, convergence_bound
from fedcohort.theory._ranges import COUNT, POSITIVE, SMALLEST, rows_of

# The rates of clustered sampling (Theorems 1 and 2), with every constant written out.
#
# The paper states them as O(1/sqrt(m N T)) + O(m N / T) for N local steps of size
# sqrt(m / (N T)) in T rounds, the same for MD (Theorem 1) and for every clustered sampling
# (Theorem 2). Its proof replaces the sampling in the proof of Wang et al. (2020) by Lemma 5. Here
# the constants are those of `convergence_bound`, which is that proof with the sampling kept apart.


class Orders(NamedTuple):
    """The bound, sorted by how fast its parts vanish.

    start_and_noise
        1/sqrt(m N T): what there was to gain, and gradient noise.
    sampling
        sqrt(N / (m T)), times kappa^2: what sampling adds where clients differ. The printed
        theorems count it to the first part, which is N times smaller.
    drift
        m N / T: what local steps add.
    """

    start_and_noise: float
    sampling: float
    drift: float


@dataclass(frozen=True)
class Rate:
    """The bound of Theorem 1 or 2 for one training; its parts are those of ``bound``."""

    eta_l: float  # sqrt(m / (N T))
    m: int
    orders: Orders
    bound: ConvergenceBound

    @property
    def total(self) -> float:
        """The bound on (1/T) sum_t E||grad L||^2; infinite where T is too small for it."""
        return self.bound.total


def clustered_rate(design: Design, training: Training) -> Rate:
    """Theorem 1 (MD) and Theorem 2 (any clustered sampling) with their constants.

    With eta_l = sqrt(m / (N T)), c = `Training.factor` and
    Omega = (3/2) c L beta^2 sqrt(N / (m T)), 4 Omega < 1::

        (1 - 4 Omega) (1/T) sum_t E||grad L||^2 <=
            [4 gap + 2 c L sigma^2 m sum E omega_i^2 + 3 c L sigma^2 (N - 1)/N] / sqrt(m N T)
          + 6 c L kappa^2 sqrt(N / (m T))
          + 3 c L^2 (sigma^2 / N + 2 kappa^2) m (N - 1) / T

    Where we differ: (5) and (11) have no term of order sqrt(N / (m T)). It does not vanish:
    for two quadratic clients, N = T^(1/5) and m = 1, the measured left-hand side is about N/2
    times the printed rate, which no constant repairs. And m sum E omega_i^2 is at most
    1 + m sum p_i^2, a constant only where no client is much larger than 1/m.

    Parameters
    ----------
    design
        MD sampling or a clustered sampling that satisfies Proposition 1.
    training
        ``steps`` (N), ``rounds`` (T), ``smoothness``, ``gap``, ``noise``, ``dissimilarity`` and
        ``beta`` are used; ``eta_l`` is that of the theorem, whatever it was, and ``eta_g`` must
        be 1. `fedcohort.theory.simulated` finds all of them for quadratic clients and for
        softmax regression.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=5).law(Federation.from_sizes([1] * 50))
    >>> rate = clustered_rate(md, Training(eta_l=1, steps=4, rounds=10**6, dissimilarity=1.0))
    >>> [round(value, 5) for value in rate.orders]
    [0.0009, 0.0054, 9e-05]

    Reference: Fraboni, Vidal, Kameni, Lorenzi (ICML 2021), Theorems 1 and 2, Lemma 5; Wang, Liu,
    Liang, Joshi, Poor (NeurIPS 2020).
    """
    if not isinstance(design, Rows) or design.target is not None:
        raise BadInput(
            "Theorems 1 and 2 are about m draws of weight 1/m, from one distribution or from m; "
            f"{type(design).__name__} is none. Use convergence_bound."
        )
    if training.eta_g != 1:
        raise BadParameter("eta_g", "clustered_rate", "1, as in the theorem", training.eta_g)
    m = design.draws
    eta_l = sqrt(m / (training.steps * training.rounds))
    bound = convergence_bound(design, replace(training, eta_l=eta_l))
    terms = bound.terms
    orders = Orders(
        terms.start + terms.aggregate_noise + terms.sampling_noise,
        terms.sampling_dissimilarity,
        terms.local_noise + terms.local_dissimilarity,
    )
    return Rate(eta_l, m, orders if bound.valid else Orders(inf, inf, inf), bound)


@within_ranges
def printed_rate(
    m: Annotated[int, COUNT], steps: Annotated[int, COUNT], rounds: Annotated[int, COUNT]
) -> float:
    """1/sqrt(m N T) + m N / T: (5) and (11) with 1 for both constants.

    >>> printed_rate(1, 4, 10_000)
    0.0054
    """
    return 1.0 / sqrt(m * steps * rounds) + m * steps / rounds


# How much the server's step varies: the plain sum beside the memory of last updates.


class StepVariance(NamedTuple):
    """E ||step - E step||^2 of the two estimators, for the same updates and design."""

    plain: float
    memory: float

    @property
    def ratio(self) -> float:
        """Below 1 where memory pays."""
        if self.plain == 0:
            return 1.0 if self.memory == 0 else float("inf")
        return self.memory / self.plain


def step_variance(design: Design, updates: ArrayLike, last: ArrayLike) -> StepVariance:
    """The exact variance of sum_i omega_i delta_i, and of the step with memory y.

    With memory the step is sum_i p_i y_i + sum_i omega_i (delta_i - y_i). The first sum is not
    random, so the variance is tr((delta - y)' Cov(omega) (delta - y)): that of the changes. The
    mean is sum_i E(omega_i) delta_i + sum_i (p_i - E omega_i) y_i, for an unbiased design the
    same as without memory. Updates that repeat have no variance at all; updates that have
    nothing to do with the last ones (of the same size) have twice as much.

    >>> from fedcohort import Federation, scheme
    >>> design = scheme("md", m=1).law(Federation.from_sizes([1, 1]))
    >>> step_variance(design, [[3.0], [-1.0]], [[2.0], [-1.0]])
    StepVariance(plain=4.0, memory=0.25)
    """
    return StepVariance(
        design.aggregate_variance(rows_of(design, updates, "updates")),
        memory_variance(design, updates, last),
    )


def memory_variance(design: Design, updates: ArrayLike, last: ArrayLike) -> float:
    """The variance of the memory estimator: that of the changes since the last update.

    >>> from fedcohort import Federation, scheme
    >>> design = scheme("md", m=1).law(Federation.from_sizes([1, 1]))
    >>> memory_variance(design, [3.0, -1.0], [3.0, -1.0])
    0.0
    """
    now, then = rows_of(design, updates, "updates"), rows_of(design, last, "last")
    if now.shape != then.shape:
        raise BadInput(
            f"'updates' and 'last' must have one shape; got {now.shape} and {then.shape}."
        )
    return design.aggregate_variance(now - then)


# How wrong the rate K/N~ of FedSampling is: Lemma 3.1 and Corollary 3.1, exact and asymptotic.
#
# |C| clients answer their size n_c with chance alpha and a uniform number of {1, ..., M - 1} else;
# N~ = (R - (1 - alpha) M |C| / 2) / alpha from the sum R of the answers. Every sample then takes
# part with chance K/N~ where K/N was wanted.

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
