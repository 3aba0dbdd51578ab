"""Models by name, one file each; other packages add theirs as ``fedcohort.models``.

A file defines a `fedcohort.learning.Model` with a ``name``; its keyword-only fields are settings.
"""

from typing import Any

from fedcohort._internal.registry import Kind
from fedcohort.learning.model import Model

_GIVEN = ("importance", "test_clients", "unit")
_REMEDY = (
    "a torch module is returned by the method module() of a class that derives from "
    "fedcohort.learning.Network, see docs/models.md"
)
MODELS: Kind[Any] = Kind(
    "model", (__name__,), Model, given=_GIVEN, make="from_partition", remedy=_REMEDY
)
