"""What can be computed about a scheme without training."""

from fedcohort.theory.comparison import (
    Comparison,
    closed_forms,
    compare_designs,
    crossing_share,
    uniform_or_md,
)
from fedcohort.theory.constants import Constants, constants
from fedcohort.theory.convergence import (
    ConvergenceBound,
    Training,
    convergence_bound,
    largest_local_step,
    proximal_weights,
)
from fedcohort.theory.decomposition import Decomposition, decomposition, quadratic, second_moment
from fedcohort.theory.estimators import StepVariance, memory_variance, step_variance
from fedcohort.theory.expected_run import expected_gradients
from fedcohort.theory.moments import ExactMoments, Moments, enumerated_moments, moments
from fedcohort.theory.montecarlo import drawn_weights
from fedcohort.theory.rate_error import RateError, rate_error
from fedcohort.theory.rates import Rate, clustered_rate, printed_rate
from fedcohort.theory.skew import (
    Skew,
    SkewBound,
    Smoothness,
    objective_gap,
    selection_skew,
    skew_bound,
)
from fedcohort.theory.strata import Theorem1, theorem_1
from fedcohort.theory.strongly_convex import (
    StronglyConvexBound,
    lemma_4,
    lemma_5,
    strongly_convex_bound,
)

__all__ = [
    "Comparison",
    "Constants",
    "ConvergenceBound",
    "Decomposition",
    "ExactMoments",
    "Moments",
    "Rate",
    "RateError",
    "Skew",
    "SkewBound",
    "Smoothness",
    "StepVariance",
    "StronglyConvexBound",
    "Theorem1",
    "Training",
    "closed_forms",
    "clustered_rate",
    "compare_designs",
    "constants",
    "convergence_bound",
    "crossing_share",
    "decomposition",
    "drawn_weights",
    "enumerated_moments",
    "expected_gradients",
    "largest_local_step",
    "lemma_4",
    "lemma_5",
    "memory_variance",
    "moments",
    "objective_gap",
    "printed_rate",
    "proximal_weights",
    "quadratic",
    "rate_error",
    "second_moment",
    "selection_skew",
    "skew_bound",
    "step_variance",
    "strongly_convex_bound",
    "theorem_1",
    "uniform_or_md",
]
