"""What can be computed about a scheme without training."""

from fedcohort.theory.moments import ExactMoments, Moments, enumerated_moments, moments
from fedcohort.theory.paths import every_path

__all__ = ["ExactMoments", "Moments", "enumerated_moments", "every_path", "moments"]
