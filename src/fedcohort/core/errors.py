"""Every exception of fedcohort.

::

    FedcohortError
    ├── BadParameter (ValueError)      a setting is outside its range
    ├── BadInput (ValueError)          an array, file or answer is malformed
    ├── UnknownName (LookupError)      no scheme, signal, data set ... of that name
    ├── UndeclaredSignal               a scheme asks for what it did not declare
    ├── CannotAsk                      a scheme must ask, and nobody can answer
    ├── DataNotFound (OSError)         a data set is nowhere to be found
    ├── BadCheckpoint                  a saved file is damaged, foreign or too new
    ├── TooLarge                       the exact answer would not fit in memory or time
    └── MissingExtra (ImportError)     an optional dependency is not installed

    FedcohortWarning (UserWarning)     defined behaviour, but look at it

The message of each is one sentence: which parameter, of what, must be what, what was
got, and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FedcohortError(Exception):
    """The root: catch this to catch everything the library raises on purpose."""


class BadParameter(FedcohortError, ValueError):
    """A setting is outside its declared range."""

    def __init__(self, name: str, owner: str, must: str, got: object, remedy: str = "") -> None:
        # All five are passed on, so that the exception survives a trip between processes.
        super().__init__(name, owner, must, got, remedy)
        self.name, self.owner, self.must, self.got, self.remedy = name, owner, must, got, remedy

    def __str__(self) -> str:
        sentence = f"The '{self.name}' parameter of {self.owner} must be {self.must}."
        sentence += f" Got {self.got!r} instead."
        return f"{sentence} {self.remedy}" if self.remedy else sentence


class BadInput(FedcohortError, ValueError):
    """An array, a file or an answer is malformed."""


class UnknownName(FedcohortError, LookupError):
    """Nothing of that name exists; the message offers the nearest one."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        super().__init__(kind, name, tuple(sorted(known)))

    def __str__(self) -> str:
        kind, name, known = self.args
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        return f"There is no {kind} named {name!r}.{hint} Known: {', '.join(known)}."


class UndeclaredSignal(FedcohortError):
    """A scheme asks for, or listens to, a signal that it did not declare."""


class CannotAsk(FedcohortError):
    """A scheme must ask clients a question, and no transport was given."""


class DataNotFound(FedcohortError, OSError):
    """A data set is in none of the places looked at."""


class BadCheckpoint(FedcohortError):
    """A saved file is damaged, foreign, or written by a newer version."""


class TooLarge(FedcohortError):
    """The exact answer would not fit in memory or time."""


class MissingExtra(FedcohortError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(what, extra)

    def __str__(self) -> str:
        what, extra = self.args
        return f"{what} needs an optional dependency: run `pip install 'fedcohort[{extra}]'`."


class FedcohortWarning(UserWarning):
    """The behaviour is defined, but probably not what was meant."""
