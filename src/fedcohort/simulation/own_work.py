"""Local work of an arm's own: some settings of `LocalWork`, the others as in the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort._internal.parameters import spec, split, value
from fedcohort.training._local import LocalWork

SETTINGS = tuple(field.name for field in fields(LocalWork))


@dataclass(frozen=True)
class OwnWork:
    """Settings of `LocalWork` by name, in its order.

    >>> OwnWork.of("work:lr=0.5").over(LocalWork(epochs=2)).lr
    0.5
    """

    settings: tuple[tuple[str, Any], ...]

    name: ClassVar[str] = "work"

    @classmethod
    def of(cls, given: OwnWork | Mapping[str, Any] | str) -> OwnWork:
        """From settings by name, or from a word: ``work:lr=0.1,batch=20``."""
        if isinstance(given, OwnWork):
            return given
        if isinstance(given, str):
            given = {key: value(text) for key, text in split(given)[1].items()}
        for key in given:
            if key not in SETTINGS:
                raise UnknownName("setting of 'work'", key, SETTINGS)
        if not given:
            raise BadInput("'work' needs a setting, as in work:lr=0.1.")
        LocalWork(**given)  # what is out of range shows now
        return cls(tuple((key, given[key]) for key in SETTINGS if key in given))

    def over(self, work: LocalWork) -> LocalWork:
        """The work of the others with these settings; ``steps`` and ``epochs`` replace another."""
        own = dict(self.settings)
        for one, other in (("steps", "epochs"), ("epochs", "steps")):
            if own.get(one) is not None:
                own.setdefault(other, None)
        return replace(work, **own)

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings by name."""
        return dict(self.settings)

    @property
    def spec(self) -> str:
        """The word that reads back to it."""
        return spec(self.name, self.parameters)
