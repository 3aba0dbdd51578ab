"""Advice before training: which scheme and which cohort size fit a federation."""

from fedcohort.advice._assessment import SchemeFacts
from fedcohort.advice._ranking import Advice, ConstantsRow, advise, catalogue_constants

__all__ = ["Advice", "ConstantsRow", "SchemeFacts", "advise", "catalogue_constants"]
