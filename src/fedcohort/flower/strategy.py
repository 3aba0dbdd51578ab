"""Any scheme as a Flower strategy."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fedcohort.core.cohort import Cohort
from fedcohort.core.disclosure import SIZES, Disclosure
from fedcohort.core.errors import BadInput, BadParameter, TooFewClients
from fedcohort.core.parameters import is_real, is_whole
from fedcohort.core.scheme import Scheme
from fedcohort.core.streams import checked_seed, stream
from fedcohort.core.types import Ints
from fedcohort.flower import wire
from fedcohort.flower.checkpoint import Folder
from fedcohort.flower.limits import Limits
from fedcohort.flower.population import Importance, Population
from fedcohort.flower.post import Letter
from fedcohort.flower.questions import Questions
from fedcohort.flower.session import Session
from fedcohort.flower.training import Training, mean_metrics
from fedcohort.ledger import Ledger
from fedcohort.schemes import as_scheme
from fedcohort.selector import Selector
from fedcohort.server import DropOutRule, Estimator, Optimiser, dropout_rule, optimiser
from fedcohort.server import estimator as estimator_by_name
from fedcohort.server.dropouts import Completed, complete
from fedcohort.server.gate import Gate

log = logging.getLogger("flwr.fedcohort")
EVALUATORS = ("nobody", "cohort", "everyone")
Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


class CohortStrategy(Strategy):
    """Chooses clients by a scheme and steps by its weights, exactly as the simulator does.

    A round: who is there; the scheme's questions, put to exactly the clients it names; the
    cohort, written down before anybody is invited; training; the gate; drop-outs; the step
    ``theta + eta_g * sum_i omega_i delta_i`` with the weights as they are. The same seed gives the
    same cohorts and weights as `fedcohort.simulate`, whatever the node ids.

    Parameters
    ----------
    scheme
        How to choose: a scheme, or its name as in ``"pow-d:m=3,d=6"``.
    clients
        How many clients to wait for before the first round.
    seed
        Given, the run can be repeated: clients get seeded generators for their mini-batches.
        None draws one, keeps it in the checkpoint, and clients use entropy of their own; for a
        deployment, where a client that guesses the seed could foresee the cohorts.
    importance
        The average that the server wants: ``"size"`` (clients are asked for their number of
        samples once), ``"equal"``, or a mapping from the keys of the clients.
    server, estimator
        What the server does with the answers, from `fedcohort.server`, or its name (``"adam"``,
        ``"memory"``).
    dropouts
        What becomes of the weights when chosen clients do not answer, from `fedcohort.server`,
        or its name (``"redraw"``, ``"hajek"``, ``"survivors"``, ``"none"``); `Redraw` by default.
    quorum
        The share of the draws that must be answered; below it the round is void and the model
        stays. So is a round for which nobody came. Three void rounds in a row are an error.
    limits
        How long to wait for whom.
    per_draw
        Send a client that was drawn c times c messages and average its answers, instead of one
        message that weighs c times as much.
    evaluate
        Who evaluates the model after every round: ``"nobody"``, ``"cohort"`` or ``"everyone"``.
        Flower's own strategies ask everyone; here it is not done unasked.
    largest
        The largest change of a single parameter that is believed.
    folder
        Where to keep checkpoints; a strategy that is started with the folder of an earlier run
        goes on with it.
    identity
        ``"asked"``, or ``"name"`` for the name under which a node was registered.
    newcomers
        Whether clients that come later may take part, from the next round on.
    task
        A name for private answers: clients repeat their answer within one task.
    """

    VOID_ROUNDS = 3

    def __init__(
        self,
        scheme: Scheme[Any] | str,
        *,
        clients: int,
        seed: int | None = None,
        importance: Importance = "size",
        server: Optimiser | str | None = None,
        estimator: Estimator | str | None = None,
        dropouts: DropOutRule | str | None = None,
        quorum: float = 0.5,
        limits: Limits | None = None,
        per_draw: bool = False,
        evaluate: str = "nobody",
        largest: float = 1e6,
        folder: str | os.PathLike[str] | None = None,
        identity: str = "asked",
        newcomers: bool = True,
        task: str = "fedcohort",
    ) -> None:
        _require("clients", is_whole(clients) and clients >= 1, "an int of at least 1", clients)
        _require("quorum", is_real(quorum) and 0 <= quorum <= 1, "a number in [0, 1]", quorum)
        _require("largest", is_real(largest) and largest > 0, "a number above 0", largest)
        known = isinstance(importance, Mapping) or importance in ("size", "equal")
        _require("importance", known, "'size', 'equal' or a mapping from keys", importance)
        _require("identity", identity in ("asked", "name"), "'asked' or 'name'", identity)
        _require("evaluate", evaluate in EVALUATORS, f"one of {EVALUATORS}", evaluate)
        paths = isinstance(folder, str | os.PathLike) or folder is None
        _require("folder", paths, "a path or None", folder)
        self.scheme = as_scheme(scheme)
        self.clients, self.quorum, self.per_draw = int(clients), float(quorum), per_draw
        self.dropouts, self.limits = dropout_rule(dropouts), limits or Limits()
        self.evaluate, self.largest = evaluate, float(largest)
        self.gate = Gate()
        self.session = Session(
            self.scheme,
            Population(self.gate, self.limits, importance, identity),
            self.gate,
            self.limits,
            seed=checked_seed(seed, "CohortStrategy"),
            repeatable=seed is not None,
            server=optimiser(server),
            estimator=estimator_by_name(estimator),
            folder=None if folder is None else Folder(Path(folder)),
            task=task,
            newcomers=newcomers,
        )
        self.cohorts: list[Cohort] = []
        """The cohorts of this session as they counted: after drop-outs and corrections."""
        self.void = 0
        self._void_in_a_row = 0
        self._timeout, self._rounds = 3600.0, 1

    @property
    def seed(self) -> int:
        """The seed in force."""
        return self.session.seed

    @property
    def ledger(self) -> Ledger:
        """What everything cost, and what was disclosed."""
        return self.session.ledger

    def summary(self) -> None:
        """Say what will happen, and what the server will learn of its clients."""
        log.info("\t├──> %s, %d clients", self.scheme, self.clients)
        biased = " (BIASED towards clients that answer more often)" if self.dropouts.biased else ""
        log.info("\t├──> drop-outs: %s%s, quorum %g", self.dropouts, biased, self.quorum)
        log.info("\t└──> the server learns, of each client:")
        for disclosure in self.disclosures():
            log.info("\t     %s", disclosure)

    def disclosures(self) -> list[Disclosure]:
        """What the server will learn of its clients, told before it happens."""
        told = [each for each in self.scheme.disclosures(self._rounds) if each != SIZES]
        asks_sizes = self.session.population.importance == "size"
        return [SIZES, *told] if asks_sizes else told

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
    ) -> Result:
        """Run until ``num_rounds`` rounds are done, those of an earlier session included."""
        folder = self.session.folder
        with nullcontext() if folder is None else folder.locked():
            self._timeout, self._rounds = timeout, num_rounds
            self.summary()
            result = Result()
            arrays = result.arrays = self.session.resumed(initial_arrays)
            done = self.session.selector.round if self.session.begun else 0
            if evaluate_fn is not None and done == 0:
                _keep(result.evaluate_metrics_serverapp, 0, evaluate_fn(0, arrays))
            configs = train_config or ConfigRecord(), evaluate_config or ConfigRecord()
            for server_round in range(done + 1, num_rounds + 1):
                log.info("[ROUND %s/%s]", server_round, num_rounds)
                arrays = self._play(server_round, arrays, configs, grid, result)
                if evaluate_fn is not None:
                    told = evaluate_fn(server_round, arrays)
                    _keep(result.evaluate_metrics_serverapp, server_round, told)
            return result

    def _play(
        self,
        server_round: int,
        arrays: ArrayRecord,
        configs: tuple[ConfigRecord, ConfigRecord],
        grid: Grid,
        result: Result,
    ) -> ArrayRecord:
        messages = self.configure_train(server_round, arrays, configs[0], grid)
        replies = _sent(grid, messages, self._train_limit)
        new, metrics = self.aggregate_train(server_round, replies)
        _keep(result.train_metrics_clientapp, server_round, metrics)
        if new is not None:
            arrays = result.arrays = new
        messages = self.configure_evaluate(server_round, arrays, configs[1], grid)
        replies = _sent(grid, messages, self.limits.evaluate or self._timeout)
        told = self.aggregate_evaluate(server_round, replies)
        _keep(result.evaluate_metrics_clientapp, server_round, told)
        return arrays

    @property
    def _train_limit(self) -> float:
        return self.limits.train or self._timeout

    # -- training ----------------------------------------------------------------------------

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Who is there, what the scheme asks, the cohort, its invitations."""
        session = self.session
        session.take(arrays)
        session.look(grid, self.clients)
        questions = Questions(session)
        if session.selector.round != server_round - 1:
            raise BadInput(
                f"Flower begins round {server_round}, but {session.selector.round} rounds are "
                "done: start the strategy by its own start(), or give it another folder."
            )
        cohort = session.selector.pending  # of a server that died before this round was over
        if cohort is None:
            if session.newcomers and (new := session.newly_come()):
                questions.admit(new)
            cohort = questions.choose()
            session.chosen()
        self._training = Training(
            session, dict(config), self._train_limit, self.largest, self.per_draw
        )
        self._letters = self._training.invitations(cohort.clients, cohort)
        log.info("\t├──> %d clients, weights sum to %.4g", len(cohort), cohort.weights.sum())
        return [letter.message for letter in self._letters]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The gate, drop-outs, the step, what the scheme observes, the checkpoint."""
        selector, training = self._selector(), self._training
        cohort = selector.pending
        if cohort is None:
            raise BadInput("aggregate_train ends a round that configure_train began.")
        rejected = sum(self.gate.counts.values())
        ended = self._ended(selector, cohort, replies)
        void = self.session.deserted or ended.void(self.quorum)
        updates = training.updates(ended.cohort.clients)
        new = self.session.step(ended.cohort, updates, void)
        selector.amend(ended.cohort)
        selector.observe(training.replies(ended.cohort.clients, updates))
        self.session.finished()
        self.cohorts.append(ended.cohort)
        told: dict[str, Any] = {
            **training.metrics(ended.cohort),
            "cohort-size": len(ended.cohort),
            "cohort-weight": float(ended.cohort.weights.sum()),
            "cohort-answered": ended.filled,
            "cohort-rejected": sum(self.gate.counts.values()) - rejected,
            "cohort-void": int(void),
        }
        log.info("\t├──> %s", told)
        self._note(void)
        return new, MetricRecord(told)

    def _ended(self, selector: Selector, cohort: Cohort, replies: Iterable[Message]) -> Completed:
        """The round after its drop-outs: the first answers are here, replacements are asked."""
        training, letters = self._training, self._letters
        waiting: list[tuple[list[Letter], Iterable[Message]]] = [(letters, replies)]

        def train(clients: Ints) -> Ints:
            if waiting:
                return training.receive(*waiting.pop())
            return training.replacements(clients, cohort)

        ended = complete(
            self.dropouts,
            cohort,
            selector.law,
            self.session.attendance,
            train,
            stream(self.seed, "replace", selector.round),
        )
        self.session.attendance = ended.attendance
        return ended

    def _note(self, void: bool) -> None:
        self.void += void
        self._void_in_a_row = self._void_in_a_row + 1 if void else 0
        if self._void_in_a_row >= self.VOID_ROUNDS:
            remedy = "Look at the clients' logs, raise the limit 'train', or lower 'quorum'."
            if not self.session.population.nodes:
                remedy = "Nobody is there any more: start the clients again, then the server."
            raise TooFewClients(
                f"Too few clients answered in {self.VOID_ROUNDS} rounds in a row (quorum "
                f"{self.quorum:g}; rejected so far: {self.gate.summary()}).{self.gate.quote()} "
                f"{remedy}"
            )

    def _selector(self) -> Selector:
        if not self.session.begun:
            raise BadInput("No round has begun: configure_train comes first.")
        return self.session.selector

    # -- evaluation --------------------------------------------------------------------------

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask the cohort, or everyone who is there, how good the new model is."""
        self._evaluated: list[Letter] = []
        if self.evaluate == "nobody":
            return []
        here = self.session.available
        everyone = np.arange(len(self._selector().federation)) if here is None else here
        wanted = self.cohorts[-1].clients if self.evaluate == "cohort" else everyone
        content = RecordDict({wire.ARRAYS: arrays, wire.CONFIG: ConfigRecord(dict(config))})
        self._evaluated = self.session.letters(wanted, lambda _: content, wire.EVALUATE)
        return [letter.message for letter in self._evaluated]

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """The mean of what clients report, by importance; for show."""
        if self.evaluate == "nobody":
            return None
        who = {letter.message.metadata.message_id: letter.client for letter in self._evaluated}
        importance = self._selector().federation.importance
        told = [
            (float(importance[who[reply.metadata.reply_to_message_id]]), reply)
            for reply in replies
            if not reply.has_error() and reply.metadata.reply_to_message_id in who
        ]
        return MetricRecord(dict(mean_metrics(told)))


def _require(name: str, fits: bool, must: str, got: object) -> None:
    if not fits:
        raise BadParameter(name, "CohortStrategy", must, got)


def _sent(grid: Grid, messages: Iterable[Message], timeout: float) -> Iterable[Message]:
    out = list(messages)
    return grid.send_and_receive(out, timeout=timeout) if out else []


def _keep(where: dict[int, MetricRecord], round: int, what: MetricRecord | None) -> None:
    if what is not None:
        where[round] = what
