"""Local algorithms, one per file: what a chosen client does with the model."""

from fedcohort.algorithms.base import Algorithm, LocalRule, Payload
from fedcohort.algorithms.fedprox import FedProx
from fedcohort.algorithms.sgd import LocalSgd

__all__ = ["Algorithm", "FedProx", "LocalRule", "LocalSgd", "Payload"]
