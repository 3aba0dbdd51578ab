"""What the log of a run says, in the words of Flower's own strategies."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from flwr.app import ArrayRecord
from flwr.serverapp.strategy import Result

from fedcohort._internal.errors import brief
from fedcohort.selection._cohort import Cohort
from fedcohort.server._reply_validation import Gate

log = logging.getLogger("flwr.fedcohort")
SHOWN = 8
"""Clients of a cohort that a line names."""


def megabytes(arrays: ArrayRecord) -> float:
    """The size of a model, as Flower counts it."""
    return sum(len(array.data) for array in arrays.values()) / 1024**2


def begins(
    name: str,
    rounds: int,
    arrays: ArrayRecord,
    train: Mapping[str, Any] | None,
    evaluate: Mapping[str, Any] | None,
) -> None:
    """The head: what every run of Flower's says first."""
    log.info("Starting %s strategy:", name)
    log.info("\t├── Number of rounds: %d", rounds)
    log.info("\t├── ArrayRecord (%.2f MB)", megabytes(arrays))
    log.info("\t├── ConfigRecord (train): %s", _config(train))
    log.info("\t├── ConfigRecord (evaluate): %s", _config(evaluate))


def found(done: int, rounds: int) -> None:
    """Warn where there is nothing left to do: a second start() goes on with the first."""
    if done >= rounds > 0:
        log.warning(
            "\t└──> nothing to do: %d of %d rounds are done. For more give a larger num_rounds, "
            "for another run a new CohortStrategy (and folder).", done, rounds,
        )  # fmt: skip


def _config(config: Mapping[str, Any] | None) -> str:
    if not config:
        return "(empty!)"
    shown = {key: "<bytes>" if isinstance(v, bytes) else v for key, v in config.items()}
    return "{" + ", ".join(f"'{key}': {value}" for key, value in shown.items()) + "}"


def cohort(chosen: Cohort, ids: Sequence[Hashable], there: int) -> None:
    """Who trains, and how much their answers count."""
    log.info("configure_train: Sampled %d nodes (out of %d)", len(chosen), there)
    if not len(chosen):
        return
    some = zip(chosen.clients[:SHOWN].tolist(), chosen.weights[:SHOWN].tolist(), strict=True)
    named = ", ".join(f"{brief(repr(ids[client]))} ({weight:.4g})" for client, weight in some)
    more = f" and {len(chosen) - SHOWN} more" if len(chosen) > SHOWN else ""
    total = chosen.weights.sum()
    log.info("\t├──> Cohort, with weights: %s%s; they sum to %.4g", named, more, total)


def received(what: str, results: int, failures: int) -> None:
    """How many answered, and how many reports were rejected or never came."""
    log.info("aggregate_%s: Received %d results and %d failures", what, results, failures)


def rejected(gate: Gate) -> None:
    """Warn of reports that were rejected since this was last said, and quote the last of them."""
    faults = gate.news()
    if faults:
        log.warning("\t├──> rejected: %s.%s", faults, gate.quote())


def ends(result: Result, seconds: float) -> None:
    """The end, with all metrics of all rounds."""
    lines = ["", f"Strategy execution finished in {seconds:.2f}s", "", "Final results:", ""]
    for line in [*lines, *(f"\t{line}" for line in str(result).splitlines()), ""]:
        log.info("%s", line)
