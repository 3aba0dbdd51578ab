"""Probability laws of cohorts, with exact moments."""

from fedcohort.designs._balanced import Cube, LocalPivotal, Pivotal
from fedcohort.designs._fixed_size import FixedSize
from fedcohort.designs._independent import Bernoulli, Everyone, Simple
from fedcohort.designs._rows import Rows
from fedcohort.designs._sequential import ConditionalPoisson, Sampford, Systematic
from fedcohort.designs._stratified import Stratified
from fedcohort.selection._design import Design, Distinct

__all__ = [
    "Bernoulli",
    "ConditionalPoisson",
    "Cube",
    "Design",
    "Distinct",
    "Everyone",
    "FixedSize",
    "LocalPivotal",
    "Pivotal",
    "Rows",
    "Sampford",
    "Simple",
    "Stratified",
    "Systematic",
]
