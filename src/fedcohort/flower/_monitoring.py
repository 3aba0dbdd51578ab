"""Logs and metrics of a run, and its privacy account."""

from __future__ import annotations

import itertools
import logging
import traceback
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    RdpAccountant,
    SamplingMethod,
)
from flwr.serverapp.strategy import Result

from fedcohort._internal.errors import BadInput, TooFewClients, brief
from fedcohort.flower._session import Session
from fedcohort.privacy._price import law
from fedcohort.schemes import as_scheme
from fedcohort.selection._client_rows import LARGEST
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import Federation
from fedcohort.selection._scheme import SIZES, Disclosure, Scheme
from fedcohort.server._guards import RateCap
from fedcohort.server._records import Record
from fedcohort.server._reply_validation import SHOWN_NAMES, Gate

# What the log of a run says, in the words of Flower's own strategies.

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


# Whether rounds, and the whole run, went well.


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
            rejected(gate)
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


# What is said before a run: what will happen, and what to mind.


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


# What becomes of the metrics that clients report: filtered, then averaged; all of it for show.

MOST, LONGEST = 100, 100
"""How many metrics of a report are looked at, and the letters of a name."""
SAMPLES = "num-examples"
"""What stock apps weigh by. Flower's strategies leave it out of the means, and so do we."""

Aggregate = Callable[[list[RecordDict], str], MetricRecord]


class Told(NamedTuple):
    """What one client reports, and how much that counts unless its own numbers decide."""

    weight: float
    message: Message


@dataclass(frozen=True)
class Averaging:
    """How the metrics of several clients become one record.

    Parameters
    ----------
    name
        What the function is called where the user gives it.
    function
        A function of the user's, as Flower's strategies take it.
    weighted_by
        The metric to weigh the others by; None for weights that the server knows.
    """

    name: str
    function: Aggregate | None = None
    weighted_by: str | None = None
    _warned: set[str] = field(default_factory=set, repr=False, compare=False)  # of which keys

    def __call__(self, told: Sequence[Told]) -> dict[str, Any]:
        """One value of every metric.

        The user's function gets copies of what clients sent, as far as that is usable. If it
        fails, that ends no round: the mean takes its place, and a warning says where it failed.
        """
        contents = [] if self.function is None else self._usable(told)
        if self.function is not None and contents:
            try:
                return dict(
                    MetricRecord(dict(self.function(contents, self.weighted_by or SAMPLES)))
                )
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                what = f"{type(error).__name__}: {error}"
                place = f"{where.filename}, line {where.lineno}"
                log.warning(
                    "\t├──> %s failed (%s; %s): the mean is taken", self.name, brief(what), place
                )
        return self.mean((each.weight, metrics_of(each.message)[0]) for each in told)

    def _usable(self, told: Sequence[Told]) -> list[RecordDict]:
        """The reports that a function can rely on: finite numbers, of the names that most have.

        Flower itself ends a run where names differ; here no client can keep the others out.
        """
        good = [content for each in told if (content := readable(each.message)) is not None]
        names = Counter(map(_names, good))
        most = max(names, key=lambda some: (names[some], len(some), sorted(some)), default=None)
        usable = [content for content in good if _names(content) == most]
        if len(usable) < len(told):
            log.warning(
                "\t├──> %d of %d reports are kept from %s: their metrics are no finite numbers, or "
                "have other names than those of most",
                len(told) - len(usable),
                len(told),
                self.name,
            )
        return usable

    def mean(self, told: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
        """The weighted mean of every metric over those who report it, without what they weigh."""
        usual, key = list(told), self.weighted_by
        means = mean_metrics(usual if key is None else self._weighed(usual, key))
        means.pop(key or SAMPLES, None)
        return means

    def _weighed(
        self, told: list[tuple[float, Mapping[str, float]]], key: str
    ) -> list[tuple[float, Mapping[str, float]]]:
        """The metrics by a weight among them; by the usual weights where nobody reports it."""
        weighed = [(max(0.0, good.get(key, 0.0)), good) for _, good in told]
        if any(weight > 0 for weight, _ in weighed):
            return weighed
        if key not in self._warned and any(good for _, good in told):
            self._warned.add(key)
            log.warning(
                "\t├──> no client reports %r, by which weighted_by_key= weighs metrics: they count "
                "by the weights of the server. Report it, or leave weighted_by_key out",
                key,
            )
        return told


def numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Those metrics that can be kept: single numbers to reckon with."""
    single = {k: v for k, v in metrics.items() if isinstance(v, int | float)}
    return {k: v for k, v in single.items() if abs(v) <= LARGEST}


def metrics_of(reply: Message) -> tuple[dict[str, float], list[str]]:
    """The metrics of a reply that are numbers to reckon with, and some names of the others.

    Lists are left out, as they have no mean.
    """
    good: dict[str, float] = {}
    bad: list[str] = []
    named = (pair for record in reply.content.metric_records.values() for pair in record.items())
    for name, value in itertools.islice(named, MOST):
        if isinstance(value, list) or not _is_name(name):
            continue
        if abs(value) <= LARGEST:  # NaN is not
            good[name] = value
        elif len(bad) < SHOWN_NAMES:
            bad.append(name)
    return good, bad


def readable(reply: Message) -> RecordDict | None:
    """A copy of what came, without metrics whose names are none.

    None where a metric, be it one of a list, is no number to reckon with.
    """
    content = RecordDict(dict(reply.content))
    for record_name, record in reply.content.metric_records.items():
        kept = {name: value for name, value in record.items() if _is_name(name)}
        values = (
            v for value in kept.values() for v in (value if isinstance(value, list) else [value])
        )
        if not all(abs(value) <= LARGEST for value in values):
            return None
        content[record_name] = MetricRecord(kept)
    return content


def _names(content: RecordDict) -> frozenset[tuple[str, str]]:
    """The names of all metrics, with those of their records."""
    records = content.metric_records.items()
    return frozenset((name, metric) for name, record in records for metric in record)


def _is_name(name: str) -> bool:
    return name.isprintable() and len(name) <= LONGEST


def mean_metrics(told: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """The weighted mean of every metric, over those who report it."""
    sums: dict[str, tuple[float, float]] = {}
    for weight, metrics in told:
        for name, value in metrics.items():
            total, mass = sums.get(name, (0.0, 0.0))
            sums[name] = (total + weight * value, mass + weight)
    return {name: total / mass for name, (total, mass) in sums.items() if mass > 0}


# Flower's own accountant, with the sampling that a scheme really has.


def accountant(
    scheme: Scheme[Any] | str, federation: Federation | Any, delta: float = 1e-5
) -> tuple[RdpAccountant, GaussianPrivacyEvent]:
    """Flower's accountant for a scheme, and the event to compose once per round at noise 1.

    It knows two laws, for clients that are alike: independent ones (add or remove one) and cohorts
    of fixed size (replace one). A scheme with one of them gets it; every other is given to it
    without amplification, because that is all it can be told. `fedcohort.privacy._price` knows more
    laws, unequal chances and a tighter composition. ``dataclasses.replace(event,
    noise_multiplier=...)`` sets the noise; under replace-one Flower's is that of half the distance.

    >>> told, event = accountant("binomial:m=10", [1] * 1000)
    >>> told.compose(event, 500)
    >>> round(told.get_epsilon(1e-5), 2)
    1.65
    """
    chosen, given = as_scheme(scheme), federation
    clients = given if isinstance(given, Federation) else Federation.from_sizes(given)
    known, n = law(chosen, clients, 1), len(clients.present)
    if not known.covered:
        raise BadInput(
            f"No accountant covers {chosen.name}: {known.why}. Noise on the sum does not hide it."
        )
    method, relation, size = SamplingMethod.NO_AMPLIFICATION, _ADD, n
    if known.rounds:
        part = known.rounds[0][0]
        chances = part.at_least[clients.present]
        alike = chances.shape[1] == 1 and float(chances.max() - chances.min()) < 1e-12
        expected = float(chances[:, 0].sum())
        whole = abs(expected - round(expected)) < 1e-9
        if alike and whole and not (part.displaced > 0).any() and expected < n:
            method, size = SamplingMethod.POISSON, round(expected)
        elif alike and whole and (part.displaced < float("inf")).all() and expected < n:
            method, relation = SamplingMethod.WITHOUT_REPLACEMENT, NeighboringRelation.REPLACE_ONE
            size = round(expected)
    config = PrivacyConfig(delta, n, relation, method)
    return RdpAccountant(config), GaussianPrivacyEvent(1.0, size, n)


_ADD = NeighboringRelation.ADD_OR_REMOVE_ONE
