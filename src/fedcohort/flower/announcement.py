"""What is said before a run: what will happen, and what to mind."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from fedcohort.flower.session import Session
from fedcohort.selection._scheme import SIZES, Disclosure
from fedcohort.server._guards import RateCap

log = logging.getLogger("flwr.fedcohort")


def announce(
    session: Session, clients: int, disclosures: Iterable[Disclosure], rounds: int
) -> None:
    """Say what will happen, and what the server will learn of its clients in so many rounds."""
    setup, scheme = session.setup, session.setup.scheme
    log.info("\t├──> %s, %d clients", scheme, clients)
    rule = setup.dropouts
    biased = " (BIASED towards clients that answer more often)" if rule.biased else ""
    log.info("\t├──> drop-outs: %s%s, quorum %g", rule, biased, setup.quorum)
    if setup.stragglers.withdraws:
        log.info("\t├──> stragglers: %s", setup.stragglers)
    hardening = setup.hardening()
    if "hardened" in hardening:
        log.info("\t├──> hardened: %s", "+".join(hardening["hardened"]))
    if _accounts_are_loose(session):
        log.warning(
            "\t├──> rate-cap keeps an account for every key, and here clients choose their keys: "
            'whoever comes again under another one has another account. Set identity="name" '
            "(names of nodes, which they cannot choose) or newcomers=False"
        )
    for claim in hardening.get("withdrawn", ()):
        log.info("\t├──> WITHDRAWN, a claim of %s: %s", scheme.name, claim)
    if _asks_what_is_hidden(session, rounds):
        log.warning(
            "\t├──> %s hides how many samples a client has, but importance='size' asks every "
            "client for exactly that: write importance='equal'",
            scheme.name,
        )
    log.info("\t└──> the server learns, of each client:")
    for disclosure in disclosures:
        log.info("\t     %s", disclosure)


def _accounts_are_loose(session: Session) -> bool:
    """Whether a client can leave what it owes behind."""
    capped = any(isinstance(guard, RateCap) for guard in session.setup.guards)
    return capped and session.newcomers and session.population.identity == "asked"


def _asks_what_is_hidden(session: Session, rounds: int) -> bool:
    """Whether clients are asked for their sizes although the scheme does without."""
    scheme = session.setup.scheme
    hides = scheme.counts_samples and SIZES not in scheme.disclosures(rounds)
    return hides and session.population.importance == "size"
