"""Advice before training: which scheme and which cohort size fit a federation."""

from fedcohort.theory.advice import Advice, advise
from fedcohort.theory.catalogue import ConstantsRow, catalogue_constants
from fedcohort.theory.judge import SchemeFacts

__all__ = ["Advice", "ConstantsRow", "SchemeFacts", "advise", "catalogue_constants"]
