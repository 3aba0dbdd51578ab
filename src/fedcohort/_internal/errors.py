"""The errors and warnings of the package, and how their sentences are written."""

from __future__ import annotations

import difflib
import linecache
import re
import reprlib
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from traceback import extract_tb
from typing import NamedTuple

# Every exception of fedcohort.
#
# ::
#
#     FedcohortError
#     ├── BadParameter (ValueError)      a setting is outside its range
#     ├── BadInput (ValueError)          an array, file or answer is malformed
#     │   ├── NotOffered (AttributeError)  a client does not have what a signal needs
#     │   └── Diverged                   training left the finite numbers
#     ├── UnknownName (LookupError)      no scheme, signal, data set ... of that name
#     ├── UndeclaredSignal               a scheme asks for what it did not declare
#     ├── CannotAsk                      a scheme must ask, and nobody can answer
#     ├── DataNotFound (OSError)         a data set is nowhere to be found
#     ├── BadCheckpoint                  a saved file is damaged, foreign or too new
#     ├── CannotSave (OSError)           a file cannot be written; the old one is intact
#     ├── TooLarge                       the exact answer would not fit in memory or time
#     ├── InUse (OSError)                another process holds the lock of these files
#     ├── BudgetExceeded                 one more private answer would pass the client's ceiling
#     ├── BudgetSpent                    a run has released as many noisy sums as its privacy allows
#     ├── PolicyRefused                  a client's own policy forbids what the server asks
#     ├── NoEntropy (OSError)            the operating system gives no randomness
#     ├── TooFewClients (TimeoutError)   not enough clients came, or answered, in time
#     ├── ClusterLost (ConnectionError)  the machines that compute are gone
#     ├── TooImprecise                   an estimate exists, but is too noisy to be used
#     ├── CheckFailed (AssertionError)   a scheme does not do what it says
#     └── MissingExtra (ImportError)     an optional dependency is not installed
#
#     FedcohortWarning (UserWarning)     defined behaviour, but look at it
#
# The message of each is one sentence: which parameter, of what, must be what, what was
# got, and what to do.

LINE = 80
"""The most characters of an input that an error repeats."""
LONGEST_PATH = 200
"""The same of a path, which is of use only whole."""


def brief(text: object, most: int = LINE) -> str:
    r"""A text as part of a line: without line breaks, and cut where it is too long.

    >>> brief("two\nlines"), brief("x" * 100)[-6:]
    ('two lines', 'xxx...')
    """
    line = " ".join(str(text)[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def quoted(path: object) -> str:
    """A path as an error names it: in quotes, and whole unless it is too long for any line.

    >>> quoted("runs/md.npz"), len(quoted("x" * 5000))
    ("'runs/md.npz'", 202)
    """
    return f"'{brief(path, LONGEST_PATH)}'"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = LINE


def shown(value: object) -> str:
    """A value as an error repeats it: its repr, or as much of it as fits into a line.

    >>> shown("md"), shown(list(range(10_000)))
    ("'md'", '[0, 1, 2, 3, 4, 5, ...]')
    """
    try:
        return brief(_SHORT.repr(value))
    except Exception:  # a number of more digits than Python prints, or a class of anybody's
        return f"a value of the type {type(value).__name__}"


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
        sentence += f" Got {shown(self.got)} instead."
        return f"{sentence} {self.remedy}" if self.remedy else sentence


class BadInput(FedcohortError, ValueError):
    """An array, a file or an answer is malformed."""


class NotOffered(BadInput, AttributeError):
    """A client lacks the quantity that a signal reads."""

    def __init__(self, who: str, name: str, remedy: str, signal: str = "") -> None:
        super().__init__(who, name, remedy, signal)

    def needed_by(self, signal: str) -> NotOffered:
        """The same, with the name of the signal."""
        who, name, remedy, _ = self.args
        return NotOffered(who, name, remedy, signal)

    def __str__(self) -> str:
        who, name, remedy, signal = self.args
        reason = f", which the signal '{signal}' needs" if signal else ""
        return f"{who} has no '{name}'{reason}: {remedy}."

    def __repr__(self) -> str:  # as a server quotes it
        return f'NotOffered("{self}")'


class Diverged(BadInput):
    """Training left the finite numbers: its step size is too large."""


class UnknownName(FedcohortError, LookupError):
    """Nothing of that name exists; the message offers the nearest one."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        super().__init__(kind, name, tuple(sorted(set(known))))

    def __str__(self) -> str:
        kind, name, known = self.args
        small = {each.lower(): each for each in known}
        near = difflib.get_close_matches(shown(name).strip("'").lower(), small, n=1)
        hint = f" Did you mean '{small[near[0]]}'?" if near else ""
        offer = f"Known: {', '.join(known)}." if known else "It has none."
        return f"There is no {kind} named {shown(name)}.{hint} {offer}"


class UndeclaredSignal(FedcohortError):
    """A scheme asks for, or listens to, a signal that it did not declare."""


class CannotAsk(FedcohortError):
    """A scheme must ask clients a question, and no transport was given."""


class DataNotFound(FedcohortError, OSError):
    """A data set is in none of the places looked at."""


class BadCheckpoint(FedcohortError):
    """A saved file is damaged, foreign, or written by a newer version."""


class CannotSave(FedcohortError, OSError):
    """A file cannot be written; the file that was there before is intact."""


class TooLarge(FedcohortError):
    """The exact answer would not fit in memory or time."""


class InUse(FedcohortError, OSError):
    """Another process holds the lock of these files."""


class BudgetSpent(FedcohortError):
    """A run has released as many noisy sums as its privacy allows."""


class BudgetExceeded(FedcohortError):
    """One more private answer would pass the ceiling that the client set for itself."""

    def __init__(self, spent: object, asked: object, allowed: object) -> None:
        super().__init__(spent, asked, allowed)
        self.spent, self.asked, self.allowed = spent, asked, allowed

    def __str__(self) -> str:
        return (
            f"The privacy budget is exhausted: epsilon {self.spent} is spent, this answer asks for "
            f"{self.asked} more, and {self.allowed} is allowed in all. Questions answered before "
            "are still answered (with the same answer); raise the ceiling of the client's policy "
            "only if its owner agrees."
        )


class PolicyRefused(FedcohortError):
    """The policy of a client forbids a query of the server."""

    def __init__(self, what: str, asked: object, allowed: str) -> None:
        super().__init__(what, asked, allowed)
        self.what, self.asked, self.allowed = what, asked, allowed

    def __str__(self) -> str:
        return (
            f"This client's policy allows {self.what} {self.allowed}. The server asked for "
            f"{shown(self.asked)}; nothing was answered and nothing was spent."
        )


class NoEntropy(FedcohortError, OSError):
    """The operating system gives no randomness; a private answer has no other source."""


class TooFewClients(FedcohortError, TimeoutError):
    """Not enough clients came, or answered, within the time limit."""


class ClusterLost(FedcohortError, ConnectionError):
    """The machines that compute are gone, again and again."""


class TooImprecise(FedcohortError):
    """An estimate exists, but it is too noisy to be used."""


class CheckFailed(FedcohortError, AssertionError):
    """A scheme does not do what it says; see `fedcohort.testing`."""


class MissingExtra(FedcohortError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(what, extra)

    def __str__(self) -> str:
        what, extra = self.args
        return f"{what} needs an optional dependency: run `pip install 'fedcohort[{extra}]'`."


class FedcohortWarning(UserWarning):
    """The behaviour is defined, but probably not what was meant."""


class UnequalWork(FedcohortWarning):
    """Clients make unequal numbers of local steps, which changes the minimized objective."""


# Where an error arose in the user's own file: the line to look at, before any traceback.

HERE = str(Path(__file__).parents[1])
_PATHS = sysconfig.get_paths()
FOREIGN = {HERE, *(_PATHS[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))}
"""Where code that is not the user's lies: this package, Python's, and what is installed.

A package that may be installed from its source, as the papers are, adds its own folder."""
_FRAME = re.compile(r'^  File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<name>.+)$', re.M)


class OwnLine(NamedTuple):
    """A line of the user's, and the function it stands in."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        path, here = Path(self.file), Path.cwd()
        short = path.relative_to(here) if path.is_relative_to(here) else path
        return f"{short}, line {self.line}, in {self.function}"

    @property
    def text(self) -> str:
        """What stands there."""
        return linecache.getline(self.file, self.line).strip()


def own_line(error: BaseException) -> OwnLine | None:
    """The innermost line of a file of the user's on the way to an error; None: it has none.

    Of an error that came out of another process only the text of its traceback came with it.

    >>> own_line(ValueError("never raised")) is None
    True
    """
    found = [each for each in _lines(error) if _own(each.file)]
    return found[-1] if found else None


def _lines(error: BaseException) -> Iterator[OwnLine]:
    for frame in extract_tb(error.__traceback__):
        yield OwnLine(frame.filename, frame.lineno or 0, frame.name)
    if error.__cause__ is not None:
        yield from _lines(error.__cause__)
        for found in _FRAME.finditer(str(error.__cause__)):
            yield OwnLine(found["file"], int(found["line"]), found["name"])


def _own(file: str) -> bool:
    return file.endswith(".py") and not file.startswith("<") and not _within(file)


def _within(file: str) -> bool:
    return any(file.startswith(f"{place}/") or file.startswith(f"{place}\\") for place in FOREIGN)
