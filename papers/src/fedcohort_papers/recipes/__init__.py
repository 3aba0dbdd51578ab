"""The papers' figures and tables as data: a folder per paper, a file per figure or table.

A file here that defines a `Recipe` at module level is found by ``fedcohort reproduce``; there
is no list to edit. Other packages add theirs through the entry point group ``fedcohort.recipes``,
and a file of one's own is named by its path: ``fedcohort reproduce ./mine.py``. What a recipe is
made of comes from here, too: ``from fedcohort_papers.recipes import Recipe, Cell, Scale, ...``.
"""

from __future__ import annotations

from fedcohort._internal.registry import Kind
from fedcohort_papers import reproduction
from fedcohort_papers.reproduction import *  # noqa: F403
from fedcohort_papers.reproduction import Recipe

__all__ = ["RECIPES", "recipe", "recipes", *reproduction.__all__]

RECIPES: Kind[Recipe] = Kind("recipe", (__name__,), Recipe)


def recipes() -> dict[str, Recipe]:
    """Every recipe by name."""
    return RECIPES.all()


def recipe(name: str) -> Recipe:
    """The recipe of that name.

    >>> recipe("impact-fig4").title
    'Uniform sampling can diverge where MD sampling converges'
    """
    found: Recipe = RECIPES.find(name)
    return found
