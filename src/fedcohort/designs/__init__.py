"""How a cohort is drawn, with its exact moments; one design per file."""

from fedcohort.core.design import Design, Distinct
from fedcohort.designs.bernoulli import Bernoulli
from fedcohort.designs.conditional_poisson import ConditionalPoisson
from fedcohort.designs.cube import Cube
from fedcohort.designs.everyone import Everyone
from fedcohort.designs.fixed_size import FixedSize
from fedcohort.designs.pivotal import LocalPivotal, Pivotal
from fedcohort.designs.rows import Rows
from fedcohort.designs.sampford import Sampford
from fedcohort.designs.simple import Simple
from fedcohort.designs.stratified import Stratified
from fedcohort.designs.systematic import Systematic

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
