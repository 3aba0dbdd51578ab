"""Whether rounds, and the whole run, went well."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from fedcohort._internal.errors import TooFewClients
from fedcohort.flower import logbook
from fedcohort.flower.session import Session
from fedcohort.server._records import Record

log = logging.getLogger("flwr.fedcohort")


class Verdict:
    """Counts rounds that fail; says so, and ends a run that gets nowhere.

    Parameters
    ----------
    session
        The run.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.void = 0
        self.failed = 0  # rounds that left the model as it was
        self._in_a_row = 0

    def round(self, record: Record, stepped: bool, most: int) -> None:
        """Warn of a void round and of rejected reports; ``most`` void rounds are the end."""
        gate, quorum = self.session.gate, self.session.setup.quorum
        quote = gate.quote() if record.faults else ""
        if record.void:
            log.warning(
                "\t├──> round %d is void, the model stays: %.0f %% of the draws were answered, "
                "quorum %g, rejected: %s.%s",
                record.round + 1,
                100 * record.filled,
                quorum,
                gate.news() or "nothing",
                quote,
            )
        else:
            logbook.rejected(gate)
        self.failed += not stepped
        self.void += record.void
        self._in_a_row = self._in_a_row + 1 if record.void else 0
        if self._in_a_row >= most:
            remedy = "Look at the clients' logs, raise the limit 'train', or lower 'quorum'."
            if not self.session.population.nodes:
                remedy = "Nobody is there any more: start the clients again, then the server."
            raise TooFewClients(
                f"Too few clients answered in {most} rounds in a row (quorum {quorum:g}; rejected "
                f"so far: {self._rejected}).{quote} {remedy}"
            )

    def run(self, played: int) -> None:
        """A run of which no round has changed the model did not go well."""
        if not played:
            return
        state = self.session.state
        good_before = state.round > played and bool((state.counted >= 0).any())
        if self.failed == played and not good_before:
            raise TooFewClients(
                f"All {state.round} rounds failed, and the model is what it was: too few clients "
                f"answered in {self.void} of {played} (rejected: {self._rejected})."
                f"{self.session.gate.quote()} Look at the clients' logs."
            )

    @property
    def _rejected(self) -> Mapping[str, int]:
        return self.session.gate.summary()
