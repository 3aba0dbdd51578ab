"""Statements of the five papers that no recipe runs, and criteria of claims that were changed.

One module per paper with ``STATEMENTS`` and ``CHANGED``; docs/make_reproduction.py puts them into
the pages. A statement of theory names its test. A statement that is not run says why and what a
run would cost.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """One statement of a paper that is not a claim of a recipe.

    Parameters
    ----------
    place
        The equation, theorem, figure or section.
    statement
        What the paper says, in one sentence.
    test
        The test that checks it, ``path::function``; empty if nothing does.
    holds
        Whether the test confirms the statement as printed. False for a refuted statement: the
        test then shows the counterexample.
    minutes
        Estimated minutes on two cores to decide a statement without a test; None if it needs data
        or hardware that is not there, or code that is not written.
    why
        For a statement without a test: why it is not run.
    """

    place: str
    statement: str
    test: str = ""
    holds: bool = True
    minutes: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Changed:
    """A claim whose text or criterion was changed.

    Parameters
    ----------
    recipe
        The name of the recipe.
    before, verdict
        Text and criterion before the change, and the verdict that they gave.
    now
        Text and criterion after the change.
    reason
        Why it was changed.
    by_results
        Whether results of the old criterion were a reason, or led to the new one.
    """

    recipe: str
    before: str
    verdict: str
    now: str
    reason: str
    by_results: bool = False
