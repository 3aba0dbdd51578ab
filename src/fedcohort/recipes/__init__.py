"""The papers' figures and tables as data: settings, expected values, verdicts.

A file here that defines a `Recipe` at module level is found by ``fedcohort reproduce``; there
is no list to edit. Other packages add theirs through the entry point group ``fedcohort.recipes``.
"""

from __future__ import annotations

from fedcohort.core.registry import Kind
from fedcohort.recipes.base import Outcome, Recipe, Verdict

__all__ = ["RECIPES", "Outcome", "Recipe", "Verdict", "recipe", "recipes"]

RECIPES: Kind[Recipe] = Kind("recipe", __name__, Recipe)


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
