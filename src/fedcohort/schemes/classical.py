"""Classical schemes: MD, binomial, Poisson and uniform sampling, all clients, and FedAvg."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.parameters import depending
from fedcohort.designs import Bernoulli, Everyone, Rows, Simple
from fedcohort.maths._draws import distinct
from fedcohort.selection import (
    Citation,
    Claim,
    Cohort,
    Design,
    Federation,
    Flag,
    NoState,
    OneOf,
    RoundContext,
    Scheme,
    Whole,
    cohort_size,
)
from fedcohort.selection._federation import capped, exact_multiple

FRABONI = Citation(
    "Yann Fraboni, Richard Vidal, Laetitia Kameni, Marco Lorenzi",
    "A General Theory for Client Sampling in Federated Learning",
    "FL-IJCAI workshop",
    2022,
)
MCMAHAN = Citation(
    "H. Brendan McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Agüera~y~Arcas",
    "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    "AISTATS",
    2017,
)


@dataclass(frozen=True)
class MD(Scheme[NoState]):
    """m independent draws with probability p_i, with replacement, each of weight 1/m.

    Var(omega_i) = p_i (1 - p_i) / m, alpha = 1/m, weights always sum to 1. A client drawn c
    times trains once and weighs c/m (the authors' first code base trains it c times).

    Parameters
    ----------
    m
        Number of draws; a cohort may have fewer distinct clients.

    >>> from fedcohort import Federation, Selector, scheme
    >>> cohort = Selector(scheme("md", m=4), Federation.from_sizes([6, 3, 1]), seed=0).select()
    >>> float(cohort.weights.sum()), int(cohort.draws.sum())
    (1.0, 4)
    """

    m: Annotated[int, Whole(1)] = 10

    name: ClassVar[str] = "md"
    paper: ClassVar[Citation] = Citation(
        "Tian Li, Anit Kumar Sahu, Manzil Zaheer, Maziar Sanjabi, Ameet Talwalkar, Virginia Smith",
        "Federated Optimization in Heterogeneous Networks",
        "MLSys",
        2020,
        "named MD sampling in Fraboni et al. (ICML 2021), Section 3",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}
    )

    def law(self, federation: Federation) -> Rows:
        return Rows.alike(federation.shares, self.m)


# Binomial sampling.


@dataclass(frozen=True)
class Binomial(Scheme[NoState]):
    """Every client takes part with probability m/n, independently; weight (n/m) p_i.

    The number of clients is binomial with mean m; nobody at all is possible, and the round is
    then void. alpha = 0, Var(omega_i) = (n/m - 1) p_i^2.

    Parameters
    ----------
    m
        Expected number of clients; ``"all"`` for every one.

    >>> from fedcohort import Federation, scheme
    >>> design = scheme("binomial", m=2).law(Federation.from_sizes([5, 4, 3, 2, 1]))
    >>> design.distinct().mean
    2.0
    """

    m: Annotated[int | str, Whole(1, words=("all",))] = 10

    name: ClassVar[str] = "binomial"
    paper: ClassVar[Citation] = replace(FRABONI, where="Section 3.2, Table 1")
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED})

    def law(self, federation: Federation) -> Bernoulli:
        m = cohort_size(self.m, federation, self.name)
        shares = federation.shares
        return Bernoulli(shares, np.where(shares.parts > 0, m, 0), len(shares.support))


# Poisson-binomial sampling.


@dataclass(frozen=True)
class Poisson(Scheme[NoState]):
    """Client i takes part with probability m p_i, independently, with weight 1/m.

    Var(omega_i) = p_i (1 - m p_i) / m, alpha = 0: less variance than MD for every client, but
    the weights sum to 1 only on average and a cohort may be empty. Needs m p_i <= 1.

    Parameters
    ----------
    m
        Expected number of clients.
    cap
        Where m p_i > 1, take that client always, with weight p_i, and share the rest of the
        budget among the others (again until all are at most 1): still unbiased, still m
        clients on average. Without it such a federation is an error.

    >>> from fedcohort import Federation, scheme
    >>> design = scheme("poisson", m=2, cap=True).law(Federation.from_sizes([8, 1, 1]))
    >>> design.inclusion(), design.mean()
    (array([1. , 0.5, 0.5]), array([0.8, 0.1, 0.1]))
    """

    m: Annotated[int, Whole(1)] = 10
    cap: Annotated[bool, Flag()] = False

    name: ClassVar[str] = "poisson"
    paper: ClassVar[Citation] = replace(
        FRABONI, where="Section 3.2, equation (47) with m <= 1/p_max"
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED})

    def law(self, federation: Federation) -> Bernoulli:
        shares = federation.shares
        largest = int(shares.parts.max())
        if self.m * largest <= shares.whole:
            parts = exact_multiple(shares.parts, self.m, self.m * largest)
            return Bernoulli(shares, parts, shares.whole)
        if not self.cap:
            raise BadParameter(
                "m",
                self.name,
                f"at most {shares.whole // largest} here, as the largest client has a share of "
                f"{largest / shares.whole:.3g} and m * p_i is a probability",
                self.m,
                "Lower m, or say cap=True to take large clients always.",
            )
        parts, whole = capped(shares, self.m)
        if shares.rounded:  # what is left of the mass may be a power of two
            return Bernoulli.of_floats(shares, np.asarray(parts / whole, dtype=np.float64))
        return Bernoulli(shares, parts, whole)


# Uniform sampling without replacement, unbiased.


@dataclass(frozen=True)
class Uniform(Scheme[NoState]):
    """m of n clients, all equally likely, with weight (n/m) p_i.

    Var(omega_i) = (n/m - 1) p_i^2, alpha = (n - m) / (m (n - 1)), and the weights sum to 1
    only on average. Better than `md` exactly when sum p^2 <= 1 / (n - m + 1): nearly equal
    sizes.

    Clients without data are not counted in n.

    Parameters
    ----------
    m
        How many clients; ``"all"`` for every one.

    >>> from fedcohort import Federation, Selector, scheme
    >>> len(Selector(scheme("uniform", m=3), Federation.from_sizes([5] * 9), seed=0).select())
    3
    """

    m: Annotated[int | str, Whole(1, words=("all",))] = 10

    name: ClassVar[str] = "uniform"
    paper: ClassVar[Citation] = replace(FRABONI, where="Section 3.2, Table 1")
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED, Claim.EXACTLY_M})

    def law(self, federation: Federation) -> Simple:
        return Simple(federation.shares, cohort_size(self.m, federation, self.name))


# Full participation.


@dataclass(frozen=True)
class Full(Scheme[NoState]):
    """Every client, every round, with weight p_i: the average that all others estimate.

    >>> from fedcohort import Federation, Selector, scheme
    >>> Selector(scheme("full"), Federation.from_sizes([3, 1]), seed=0).select().weights
    array([0.75, 0.25])
    """

    name: ClassVar[str] = "full"
    paper: ClassVar[Citation] = replace(MCMAHAN, where="Algorithm 1 with C = 1")
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}
    )

    def law(self, federation: Federation) -> Everyone:
        return Everyone(federation.shares)


# FedAvg: as published, and as it is commonly run.


@dataclass(frozen=True)
class FedAvg(Scheme[NoState]):
    """m clients uniformly without replacement, weighed in one of three ways.

    ``"plain"``, as published: averaging the models of *all* clients, of which only m moved, is
    the step ``theta += sum_{i in S} p_i delta_i``: weights p_i that sum to less than 1. The
    expected weight is (m/n) p_i, so the step is biased towards staying where one is.

    ``"normalised"``, as most programs run it (Flower's FedAvg among them): the average over the
    chosen, ``n_i / sum_{j in S} n_j``. The weights sum to 1, but what a client counts for depends
    on who else was chosen, and a large one makes its own cohort heavy: large clients count for
    less than their share, small ones for more. Sizes 3, 2, 1 and m = 2 give the expected weights
    9/20, 16/45, 7/36 instead of 1/2, 1/3, 1/6. With equal sizes there is no bias.

    ``"equal"``, the average of the chosen, each counting 1/m whatever its size: FedAvg as Qi et
    al. run it beside FedSampling (IJCAI 2023). A client's expected weight is 1/n: what is learnt
    is the mean over clients, not over samples.

    `uniform` is the same choice with weights that are unbiased, `md` another choice with weights
    that are unbiased and sum to 1.

    Parameters
    ----------
    m
        How many clients; ``"all"`` for every one.
    weights
        ``"plain"``, ``"normalised"`` or ``"equal"``.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([6, 2, 2])
    >>> for weights in ("plain", "normalised", "equal"):
    ...     chooser = scheme("fedavg", m=2, weights=weights)
    ...     print(Selector(chooser, federation, seed=1).select().weights)
    [0.6 0.2]
    [0.75 0.25]
    [0.5 0.5]
    """

    m: Annotated[int | str, Whole(1, words=("all",))] = 10
    weights: Annotated[str, OneOf(("plain", "normalised", "equal"))] = "plain"

    name: ClassVar[str] = "fedavg"
    paper: ClassVar[Citation] = replace(MCMAHAN, where="Algorithm 1")
    claims: ClassVar[frozenset[Claim]] = depending(
        frozenset({Claim.EXACTLY_M}),
        lambda scheme: (
            frozenset({Claim.EXACTLY_M})
            if scheme.weights == "plain"
            else frozenset({Claim.EXACTLY_M, Claim.SUMS_TO_ONE})
        ),
    )

    def law(self, federation: Federation) -> Simple | None:
        if self.weights != "plain":
            return None  # what a client weighs depends on the others, or not on its importance
        m = cohort_size(self.m, federation, self.name)
        return Simple(federation.shares, m, compensated=False)

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort | Design:
        law = self.design(state, federation, context)
        if law is not None:
            return law
        there = federation.present
        chosen = there[distinct(rng, len(there), cohort_size(self.m, federation, self.name))]
        if self.weights == "equal":
            return Cohort.equal(chosen)
        shares = federation.importance[chosen]
        return Cohort.of(chosen, shares / shares.sum())
