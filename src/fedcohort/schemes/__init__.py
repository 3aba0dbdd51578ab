"""Published schemes, one family per file; discovered, never listed.

A file here that defines a `Scheme` with a ``name`` is found by the command line, the
comparison, the checks and the report. Other packages add theirs through the entry point group
``fedcohort.schemes``. What cannot be loaded is left out, with a warning.
"""

from __future__ import annotations

from typing import Any

from fedcohort.core.errors import BadInput, shown
from fedcohort.core.registry import Kind
from fedcohort.core.scheme import Scheme

SchemeClass = type[Scheme[Any]]

SCHEMES: Kind[Scheme[Any]] = Kind("scheme", (__name__,), Scheme, derive="fedcohort.Scheme")
"""Every scheme by name: ``list(SCHEMES)`` imports none of them, ``SCHEMES["md"]`` that one."""


def schemes() -> dict[str, SchemeClass]:
    """Every scheme by name, imported: those of this package and those of installed packages."""
    return SCHEMES.all()


def scheme(word: str, /, **parameters: Any) -> Scheme[Any]:
    """The scheme of that name with these parameters, given by keyword or in the word itself.

    A file of your own is named by its path, as in ``scheme("./mine.py:m=3")``. For a word that
    comes out of a file or over the network, use `installed`.

    >>> scheme("md", m=5)
    MD(m=5)
    >>> scheme("clustered-size:m=5,ties=index")
    ClusteredSize(m=5, ties='index', dedicate_large=False, version='corrected')
    """
    return SCHEMES.build(str(word), **parameters)


def installed(word: str, /, **parameters: Any) -> Scheme[Any]:
    """As `scheme`, for words that no person typed just now: the path of a file is refused.

    >>> installed("md:m=5")
    MD(m=5)
    """
    return SCHEMES.build(str(word), files=False, **parameters)


def as_scheme(which: Scheme[Any] | str) -> Scheme[Any]:
    """A scheme, given itself or by a word as `scheme` takes it."""
    if not isinstance(which, Scheme | str):
        raise BadInput(f"A scheme must be a Scheme or its name; got {shown(which)}.")
    return SCHEMES.build(which)


def find(name: str) -> SchemeClass:
    """The class of that name; an unknown name gets the nearest one offered."""
    found: SchemeClass = SCHEMES.find(name)
    return found
