"""How a cohort is drawn, with its exact moments; one design per file."""

from fedcohort.core.design import Design, Distinct
from fedcohort.designs.bernoulli import Bernoulli
from fedcohort.designs.everyone import Everyone
from fedcohort.designs.rows import Rows
from fedcohort.designs.simple import Simple
from fedcohort.designs.stratified import Stratified

__all__ = ["Bernoulli", "Design", "Distinct", "Everyone", "Rows", "Simple", "Stratified"]
