"""The facts that a server will learn about its clients, listed before a run starts."""

from __future__ import annotations

from typing import NamedTuple


class Disclosure(NamedTuple):
    """One thing that the server learns of a client."""

    what: str  # "size", "participation", "update", or the name of a signal
    when: str  # "beforehand", "when asked", "every round", ...
    discloses: str
    epsilon: float | None = None
    """What it spends of a client's privacy budget over the whole run; None: no promise."""

    def __str__(self) -> str:
        """One line.

        >>> print(Disclosure("size", "beforehand", "the number of samples"))
        size (beforehand): the number of samples
        """
        line = f"{self.what} ({self.when}): {self.discloses}"
        if self.epsilon is None:
            return line
        return f"{line}; epsilon = {self.epsilon:g} over the run, by basic composition"


SIZES = Disclosure("size", "beforehand", "the share of all data that each client holds")
CHOICE = Disclosure("participation", "every round", "who takes part: the server chooses")
EVERYONE = Disclosure("participation", "every round", "nothing: whoever is available answers")
SHARES = Disclosure(
    "size",
    "over the rounds",
    "the number of samples, from which updates are zero and how long the others are, whatever "
    "epsilon, unless securely aggregated",
)
TRAINING = Disclosure("update", "every round", "the model update, unless securely aggregated")
EVALUATED = Disclosure(
    "metrics", "every round", "what its evaluate function reports, if it has one"
)
"""Of clients that evaluate the model; stock apps of Flower report their number of samples."""
