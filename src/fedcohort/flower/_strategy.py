"""Any scheme as a Flower strategy."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fedcohort._internal.errors import BadInput, BadParameter, BudgetSpent, TooFewClients
from fedcohort._internal.random import checked_seed
from fedcohort._internal.types import Array, Ints
from fedcohort.flower import _fedavg_arguments, _monitoring
from fedcohort.flower._evaluation import Evaluation, Evaluators
from fedcohort.flower._exchange import Arrivals, Limits, exchanged
from fedcohort.flower._fedavg_arguments import Familiar, understood
from fedcohort.flower._monitoring import Verdict, announce, numbers
from fedcohort.flower._population import Importance, Population
from fedcohort.flower._session import Folder, Session
from fedcohort.flower._transport import FlowerCarrier, word_of
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._scheme import EVALUATED, SIZES, Disclosure, Scheme
from fedcohort.server import Aggregator, DropOutRule, Optimiser, _history, dropout_rule
from fedcohort.server import aggregator as aggregator_by_name
from fedcohort.server import optimiser as optimiser_by_name
from fedcohort.server._compatibility import check_compatible
from fedcohort.server._guards import LARGEST_SIZE, Hardened, SizeCap, guards
from fedcohort.server._ledger import Ledger
from fedcohort.server._membership import round_context
from fedcohort.server._records import Record
from fedcohort.server._reply_validation import Fault, Gate
from fedcohort.server._round import select_cohort, train_and_aggregate
from fedcohort.server._state import Selection, Setup
from fedcohort.server._stragglers import StragglerRule, prepared, straggler_rule
from fedcohort.server._transport import Request, TrainRequest, drive
from fedcohort.training._algorithms import Algorithm
from fedcohort.training._algorithms import algorithm as algorithm_by_name

log = logging.getLogger("flwr.fedcohort")
Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]
ShouldStop = Callable[[int, Result], bool]
OnRound = Callable[[Record], object]


class CohortStrategy(Strategy):
    """Chooses clients by a scheme and steps by its weights, exactly as the simulator does.

    A round: who is there; the scheme's questions, put to exactly the clients it names; the
    cohort, written down before anybody is invited; training; the gate; drop-outs; the step
    ``theta + eta_g * sum_i omega_i delta_i`` with the weights as they are. The same seed gives the
    same cohorts as `fedcohort.simulate`, and weights up to rounding, whatever the node ids.

    Parameters
    ----------
    scheme
        How to choose: a scheme, or its name as in ``"pow-d:m=3,d=6"``.
    clients
        How many clients to wait for before the first round.
    seed
        Given, the cohorts can be repeated, and so can the run if its clients are simulated
        (``client_app(simulated=True)``): they get generators for their mini-batches; others toss
        their own coins. None draws one and keeps it in the checkpoint; for a deployment, where a
        client that guesses the seed could foresee the cohorts.
    importance
        The average that the server wants: ``"size"`` (clients are asked for their number of
        samples once), ``"equal"``, or a mapping from the keys of the clients. With a scheme that
        hides sizes (``fedsampling``) write ``"equal"``; it warns otherwise.
    optimiser, aggregator
        What the server does with the answers, from `fedcohort.server`, or its name (``"adam"``,
        ``"memory"``).
    dropouts
        What becomes of the weights when chosen clients do not answer, from `fedcohort.server`,
        or its name (``"redraw"``, ``"hajek"``, ``"survivors"``, ``"none"``); `Redraw` by default.
    algorithm
        What a chosen client does, from `fedcohort.training`, or its name (``"fedprox:mu=0.1"``);
        plain SGD by default. Clients must have it: installed, or by ``client_app(algorithms=)``.
    hardened
        What is done about clients that lie, as for `fedcohort.simulate`: True for everything, or
        guards by name (``"size-cap+rate-cap"``).
    quorum
        The share of the draws that must be answered (of those that are waited for); below it the
        round is void and the model stays. So is a round for which nobody came. Three void rounds
        in a row are an error.
    stragglers
        When a round stops waiting, from `fedcohort.server._stragglers`, or its name
        (``"deadline:seconds=60"``, ``"over-commit:factor=1.3"``, ``"first:k=8"``); by default
        when all have answered or ``limits`` end it. ``dropouts`` is then ``"hajek"`` by default:
        late clients are not replaced.
    timed
        Whether the scheme is told how long clients take, as the server has measured it. By
        default it is, unless a seed is given: times do not repeat. They are measured, kept and
        reported in any case.
    limits
        How long to wait for whom.
    per_draw
        Send a client that was drawn c times c messages and average its answers, instead of one
        message that weighs c times as much.
    evaluate
        Who evaluates the model after every round: ``"everyone"``, the ``"cohort"``, a share of
        the clients (``0.1``) or ``"nobody"``. By default everyone who has an ``@app.evaluate()``,
        as with Flower's own strategies; each is sent the model for it, which is not in the
        ledger. Only a scheme that hides sizes (``fedsampling``) asks nobody unasked.
    largest
        The largest change of a single parameter that is believed.
    largest_size
        How many times the median size a client counts for at most, with a warning; None for any.
        A hardened run (with ``size-cap``) refuses clients that claim more, and names them.
    folder
        Where to keep checkpoints; a strategy that is started with the folder of an earlier run
        goes on with it.
    identity
        ``"asked"``: clients say who they are, and nobody checks it. ``"name"``: the name under
        which a node was registered, the setting for clients that are not trusted.
    newcomers
        Whether clients that come later may take part, from the next round on.
    statistics
        Names of arrays that are running statistics beside BatchNorm's and arrays of whole numbers,
        which need no name. The server averages running statistics over the clients of a round and
        does not step them. For a torch model they are the names in ``model.named_buffers()``.
    task
        A name for private answers: clients repeat their answer within one task.
    familiar
        Arguments of Flower's ``FedAvg``: ``train_metrics_aggr_fn``, ``evaluate_metrics_aggr_fn``,
        ``fraction_evaluate``, ``min_evaluate_nodes``, ``min_available_nodes`` (for ``clients``)
        and ``weighted_by_key`` (for metrics; the model is weighed by the scheme) are taken. What
        a scheme decides instead is answered by a sentence that says what to write.
    """

    VOID_ROUNDS = 3

    def __init__(
        self,
        scheme: Scheme[Any] | str | None = None,
        *,
        clients: int | None = None,
        seed: int | None = None,
        importance: Importance = "size",
        optimiser: Optimiser | str | None = None,
        aggregator: Aggregator | str | None = None,
        dropouts: DropOutRule | str | None = None,
        algorithm: Algorithm | str | None = None,
        hardened: Hardened = None,
        quorum: float = 0.5,
        stragglers: StragglerRule | str | None = None,
        timed: bool | None = None,
        limits: Limits | None = None,
        per_draw: bool = False,
        evaluate: Evaluators = None,
        largest: float = 1e6,
        largest_size: float | None = LARGEST_SIZE,
        folder: str | os.PathLike[str] | None = None,
        identity: str = "asked",
        newcomers: bool = True,
        statistics: Collection[str] = (),
        task: str = "fedcohort",
        **familiar: Unpack[Familiar],
    ) -> None:
        meant = understood(clients, evaluate, familiar)
        _fedavg_arguments.check(quorum, largest, largest_size, importance, identity, folder, limits)
        self.scheme, rule = prepared(
            _fedavg_arguments.given_scheme(scheme), straggler_rule(stragglers)
        )
        self._tells_times = seed is None if timed is None else timed
        self.clients, self.per_draw, self.limits = int(meant.clients), per_draw, limits or Limits()
        self.largest, self._averaging = float(largest), meant.train
        self.gate = Gate()
        setup = Setup(
            self.scheme,
            checked_seed(seed, "CohortStrategy"),
            optimiser_by_name(optimiser),
            aggregator_by_name(aggregator),
            rule.drop_outs if rule.withdraws and dropouts is None else dropout_rule(dropouts),
            float(quorum),
            algorithm_by_name(algorithm),
            guards(hardened),
            rule,
        )
        check_compatible(setup, FlowerCarrier)
        if per_draw:
            _fedavg_arguments.require_per_draw(setup)
        self.session = Session(
            setup,
            Population(
                self.gate,
                self.limits,
                importance,
                identity,
                word_of(setup.algorithm),
                _fedavg_arguments.asks_of_clients(setup),
                largest_size,
                refuses_liars=any(isinstance(guard, SizeCap) for guard in setup.guards),
            ),
            self.gate,
            self.limits,
            repeatable=seed is not None,
            folder=None if folder is None else Folder(Path(folder)),
            task=task,
            newcomers=newcomers,
            statistics=statistics,
        )
        self._evaluation = Evaluation(meant.evaluate, self.session, meant.evaluation, meant.least)
        self.cohorts: list[Cohort] = []
        """The cohorts of this session as they counted: after drop-outs and corrections."""
        self._verdict = Verdict(self.session)
        self._rejected: Counter[Fault] = Counter()  # up to the record before
        self._timeout, self._rounds = 3600.0, 1
        self._talk: Generator[Request, Any, Any] | None = None  # the round that is under way
        self._came: Arrivals | None = None  # the replies to it, where the loop is ours

    @property
    def seed(self) -> int:
        """The seed in force."""
        return self.session.setup.seed

    @property
    def void(self) -> int:
        """How many rounds of this session were void."""
        return self._verdict.void

    @property
    def dropouts(self) -> DropOutRule:
        """What becomes of the weights when chosen clients do not answer."""
        return self.session.setup.dropouts

    @property
    def ledger(self) -> Ledger:
        """What everything cost, and what was disclosed."""
        return self.session.ledger

    @property
    def models(self) -> list[dict[str, Array]]:
        """The models of now, as arrays: one, unless the local algorithm has several."""
        session = self.session
        return [dict(session.layout.arrays(m)) for m in session.state.models(session.setup)]

    def summary(self) -> None:
        """Say what will happen, and what the server will learn of its clients."""
        announce(self.session, self.clients, self.disclosures(), self._rounds)

    def disclosures(self) -> list[Disclosure]:
        """What the server will learn of its clients, told before it happens."""
        setup = self.session.setup
        told = [each for each in setup.disclosures(self._rounds) if each != SIZES]
        told += setup.algorithm.disclosures
        told += [EVALUATED] if self._evaluation.certain else []
        asks_sizes = self.session.population.importance == "size"
        return [SIZES, *told] if asks_sizes else told

    def _learnt(self) -> list[list[Any]]:
        return [list(each) for each in self.disclosures()]

    # -- the loop ----------------------------------------------------------------------------

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Evaluate | None = None,
        should_stop: ShouldStop | None = None,
        on_round: OnRound | None = None,
    ) -> Result:
        """Run until ``num_rounds`` rounds are done, those of an earlier session included.

        After each round, when all its metrics are there, ``on_round`` is called with its
        `fedcohort.server._records.Record`. Then ``should_stop`` is called with the number of the
        round and the result so far, as by flwr 1.43; the run ends if it returns True. The result
        contains the earlier rounds, with the single numbers of their metrics. What
        ``evaluate_fn`` says of the first model, before any round, is in the first result alone.
        """
        _fedavg_arguments.check_start(
            initial_arrays, num_rounds, should_stop=should_stop, on_round=on_round
        )
        folder, began = self.session.folder, time.perf_counter()
        with nullcontext() if folder is None else folder.locked():
            self._timeout, self._rounds = timeout, num_rounds
            self.session.facts = {"rounds": num_rounds, "disclosures": self._learnt()}
            name = type(self).__name__
            _monitoring.begins(name, num_rounds, initial_arrays, train_config, evaluate_config)
            self.summary()
            result = Result()
            arrays = result.arrays = self.session.resumed(initial_arrays)
            log.info("")
            done = self.session.state.round if self.session.begun else 0
            _monitoring.found(done, num_rounds)
            self._recall(result, done)
            if evaluate_fn is not None and done == 0:
                told = evaluate_fn(0, arrays)
                log.info("Initial global evaluation results: %s", told)
                self._keep(result.evaluate_metrics_serverapp, 0, told)
            configs = train_config or ConfigRecord(), evaluate_config or ConfigRecord()
            for server_round in range(done + 1, num_rounds + 1):
                log.info("")
                log.info("[ROUND %s/%s]", server_round, num_rounds)
                try:
                    arrays = self._play(server_round, arrays, configs, grid, result)
                except BudgetSpent as spent:
                    self._stop(str(spent))
                    num_rounds = server_round - 1
                    break
                if evaluate_fn is not None:
                    log.info("Global evaluation")
                    told = evaluate_fn(server_round, arrays)
                    log.info("\t└──> MetricRecord: %s", told)
                    self._keep(result.evaluate_metrics_serverapp, server_round, told, "server")
                if on_round is not None:
                    on_round(self.session.records[-1])
                if should_stop is not None and should_stop(server_round, result):
                    self._stop(f"should_stop returned True after round {server_round}.")
                    num_rounds = server_round
                    break
            self._verdict.run(max(0, num_rounds - done))
            _monitoring.ends(result, time.perf_counter() - began)
            return result

    def _stop(self, why: str) -> None:
        """Say why the run ends before its last round."""
        log.warning("\t└──> the run stops here. %s", why)
        if self.session.history is not None:
            self.session.history.settings({"stopped": why})

    def _play(
        self,
        server_round: int,
        arrays: ArrayRecord,
        configs: tuple[ConfigRecord, ConfigRecord],
        grid: Grid,
        result: Result,
    ) -> ArrayRecord:
        messages = self.configure_train(server_round, arrays, configs[0], grid)
        rule = self.session.setup.stragglers
        self._came = Arrivals(grid, list(messages), self._train_limit, rule)
        if self._came.early:
            self._carrier.wait(self._letters, self._came)
        new, metrics = self.aggregate_train(server_round, list(self._came))
        log.info("\t└──> Aggregated MetricRecord: %s", metrics)
        self._keep(result.train_metrics_clientapp, server_round, metrics)
        if new is not None:
            arrays = result.arrays = new
        messages = self.configure_evaluate(server_round, arrays, configs[1], grid)
        replies = exchanged(grid, list(messages), self.limits.evaluate or self._timeout)
        told = self.aggregate_evaluate(server_round, replies)
        if told is not None:
            log.info("\t└──> Aggregated MetricRecord: %s", told)
        self._keep(result.evaluate_metrics_clientapp, server_round, told, "evaluate")
        return arrays

    @property
    def _train_limit(self) -> float:
        return self.limits.train or self._timeout

    # -- training ----------------------------------------------------------------------------

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Who is there, what the scheme asks, the cohort, its invitations."""
        _fedavg_arguments.refuse_wrappers(self, sys._getframe(1))
        session, self._began = self.session, time.perf_counter()
        session.take(arrays)
        first = not hasattr(session, "grid")
        session.look(grid, self.clients)
        if first:
            self._evaluation.check(arrays)
            self.session.facts["disclosures"] = self._learnt()  # now it is known who evaluates
        if session.state.round != server_round - 1:
            raise BadInput(
                f"Flower begins round {server_round}, but {session.state.round} rounds are "
                "done: start the strategy by its own start(), or give it another folder."
            )
        if session.selection is None:
            session.afford()
        self._carrier = FlowerCarrier(
            session, dict(config), self._train_limit, self.largest, self.per_draw
        )
        selection = session.selection  # of a server that died before this round was over
        if selection is None:
            self._admit()
            selection = self._choose()
            self._carrier.chosen(selection)
        self._chosen = time.perf_counter()
        self._talk = train_and_aggregate(session.setup, session.state, selection, session.ledger)
        self._train = cast("TrainRequest", next(self._talk))  # the first thing that is wanted
        self._letters = self._carrier.invitations(self._train)
        return [letter.message for letter in self._letters]

    def _admit(self) -> None:
        """Let new clients in; those who cannot answer what the scheme must know stay out."""
        session, carrier = self.session, self._carrier
        new = session.newly_come() if session.newcomers else []
        if not new:
            return
        try:
            session.begins(drive(session.admit(new), carrier))
            log.info("\t├──> %d new clients take part: %s", len(new), new[:5])
        except (BadInput, TooFewClients) as error:
            log.warning("\t├──> new clients cannot take part yet: %s", error)
            session.left_out |= carrier.silent & set(new)

    def _choose(self) -> Selection:
        """The cohort of the round.

        A scheme that refuses the rows of clients that do not answer is asked again without them:
        they are not there in this round, or, if they could not answer what the scheme must know
        beforehand, not at all.
        """
        session, carrier, left_out = self.session, self._carrier, set[Any]()
        n = len(session.federation)
        while True:
            known = session.state.latencies if self._tells_times else {}
            state = replace(session.state, latencies=known)
            context = round_context(state, self._available(left_out))
            talk = select_cohort(session.setup, session.state, context, session.ledger)
            try:
                state, selection = drive(talk, carrier)
            except (BadInput, BadParameter, TooFewClients) as error:
                new = carrier.silent - left_out
                here = self._available(left_out | new)
                nobody = here is not None and len(here) == 0
                unknown = isinstance(error, TooFewClients) or session.state.scheme is None
                if not new or (nobody and unknown):
                    if not left_out:
                        raise
                    quote = "" if isinstance(error, TooFewClients) else self.gate.quote()
                    raise TooFewClients(
                        f"{len(left_out | new)} of {n} clients did not answer the questions of "
                        f"{self.scheme.name}, which cannot choose without them: {error}{quote}"
                    ) from error
                left_out |= new
                log.warning("\t├──> without %d clients that do not answer", len(left_out))
                if session.state.scheme is None:
                    session.left_out |= new
                    session.found([k for k in session.federation.ids if k not in left_out])
                continue
            session.begins(state)
            return selection

    def _available(self, left_out: set[Any]) -> Ints | None:
        here, ids = self.session.available, self.session.federation.ids
        if not left_out:
            return here
        everyone = np.arange(len(ids)) if here is None else here
        return np.array([i for i in everyone.tolist() if ids[i] not in left_out], dtype=np.int64)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The gate, drop-outs, the step, what the scheme observes, the checkpoint."""
        session, talk = self.session, self._talk
        if talk is None:
            raise BadInput("aggregate_train ends a round that configure_train began.")
        came, self._talk, self._came = self._came, None, None
        arrived = self._carrier.arrived(self._train, self._letters, replies, came)
        state, record = drive(talk, self._carrier, arrived)
        rejected, self._rejected = self.gate.counts - self._rejected, Counter(self.gate.counts)
        _monitoring.received("train", len(self._carrier.trained), rejected.total())
        metrics = self._averaging(self._carrier.reports())
        watch = self._carrier.watch()
        known = watch.believed(state.latencies, len(state.federation))
        state = replace(state, latencies=known)
        record = replace(
            record,
            latencies=watch.measured,
            late=watch.late,
            faults={fault.name.lower(): number for fault, number in rejected.items()},
            seconds=(self._chosen - self._began, time.perf_counter() - self._chosen),
            metrics={f"train/{name}": value for name, value in numbers(metrics).items()},
        )
        new = session.finished(state, record)
        self.cohorts.append(self._carrier.cohort)
        self._verdict.round(record, new is not None, self.VOID_ROUNDS)
        return new, MetricRecord({**metrics, **_summary(record, self._carrier.cohort)})

    # -- evaluation --------------------------------------------------------------------------

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask the cohort, or everyone who is there, how good the new model is."""
        last = self.cohorts[-1] if self.cohorts else Cohort.empty()
        return self._evaluation.invitations(arrays, config, last, server_round)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """The mean of what clients report, by importance; for show."""
        metrics = self._evaluation.metrics(replies)
        return None if metrics is None else MetricRecord(metrics)

    def _recall(self, result: Result, done: int) -> None:
        """Fill a result with the metrics of the rounds before this start, where they were kept."""
        session = self.session
        if done and not session.records and session.folder is not None:
            path = session.folder.path
            read = _history.read(path)[1] if _history.is_history(path) else []
            session.records = [record for record in read if record.round < done]
        measured = {
            "train": result.train_metrics_clientapp,
            "evaluate": result.evaluate_metrics_clientapp,
            "server": result.evaluate_metrics_serverapp,
        }
        for record in session.records:
            for source, where in measured.items():
                own: dict[str, Any] = {
                    name.removeprefix(f"{source}/"): value
                    for name, value in record.metrics.items()
                    if name.startswith(f"{source}/")
                }
                if source == "train":
                    own |= _summary(record, record.cohort)
                if own:
                    where[record.round + 1] = MetricRecord(own)

    def _keep(
        self, where: dict[int, MetricRecord], round: int, what: MetricRecord | None, by: str = ""
    ) -> None:
        """Keep metrics in Flower's result, and in the history those that no record has."""
        if what is None:
            return
        where[round] = what
        if not by:
            return
        session = self.session
        single = {k: v for k, v in what.items() if isinstance(v, int | float)}
        if session.history is not None:
            session.history.metrics(round - 1, single, by)
        record = session.records[-1]
        named = {f"{by}/{name}": float(value) for name, value in single.items()}
        session.records[-1] = replace(record, metrics={**record.metrics, **named})


def _summary(record: Record, cohort: Cohort) -> dict[str, Any]:
    """Return how a round went, as metrics of Flower."""
    return {
        "cohort-size": len(cohort),
        "cohort-weight": float(cohort.weights.sum()),
        "cohort-answered": record.filled,
        "cohort-rejected": sum(record.faults.values()),
        "cohort-void": int(record.void),
    }
