"""The journals of a client's private answers: what was answered and spent must be known."""

from __future__ import annotations

from fedcohort.core import journal


class Journal(journal.Journal):
    """A journal without which nothing may be answered."""

    damaged = (
        "The private file {path} is damaged at line {line}: what was answered and spent is not "
        "known for sure, so nothing is answered. Restore the file from a backup that is not "
        "older than the last answer."
    )
