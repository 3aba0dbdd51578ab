"""The papers' figures and tables as data: settings, expected values, verdicts.

A file here that defines a `Recipe` at module level is found by ``fedcohort reproduce``; there
is no list to edit.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from fedcohort.core.errors import FedcohortError, UnknownName
from fedcohort.recipes.base import Outcome, Recipe, Verdict

__all__ = ["Outcome", "Recipe", "Verdict", "recipe", "recipes"]


@cache
def recipes() -> dict[str, Recipe]:
    """Every recipe by name."""
    found: dict[str, Recipe] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, Recipe) and found.setdefault(value.name, value) is not value:
                raise FedcohortError(f"Two recipes are named '{value.name}'.")
    return dict(sorted(found.items()))


def recipe(name: str) -> Recipe:
    """The recipe of that name.

    >>> recipe("impact-fig4").title
    'Uniform sampling can diverge where MD sampling converges'
    """
    if name not in recipes():
        raise UnknownName("recipe", name, recipes())
    return recipes()[name]
