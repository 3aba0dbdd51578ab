"""What one client of eight can do to a run: every attack that we know, and what becomes of it.

`make hostile` prints the table; `tests/flower/test_hostile.py` asserts every row of it.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict

from fedcohort import flower
from fedcohort._internal.errors import FedcohortWarning
from fedcohort.flower import _wire as wire
from fedcohort.server import Fault
from helpers import lies
from helpers.flower_play import QUICK, ROUNDS, WORK, N, app, task
from helpers.lies import LIAR, Lie, Lying

HONEST = frozenset(range(N)) - {LIAR}
TEXT = np.array(["a", "b"])
MEGABYTES = np.zeros(1_250_000)


class Labelled:
    """A client that has labels, of which the usual ones have none."""

    label_counts = np.array([3, 5])

    def __init__(self, context: Any) -> None:
        honest = flower.task_client(task(), WORK)(context)
        self.size, self.loss, self.update = honest.size, honest.loss, honest.update


def evaluating() -> flower.CohortClientApp:
    """Clients that evaluate: each says 1."""
    clients = flower.client_app(flower.task_client(task(), WORK))

    @clients.evaluate()
    def evaluate(message: Message, context: Any) -> Message:
        return Message(RecordDict({"metrics": MetricRecord({"loss": 1.0})}), reply_to=message)

    return clients


@dataclass(frozen=True)
class Attack:
    """One client that does not do what it is asked for.

    Parameters
    ----------
    what
        In words.
    grid
        Makes the nodes, of which one is hostile.
    faults
        What its reports may be counted as; none where they are no fault of a report.
    scheme, options
        Of the run.
    silent
        The exchange in which the client might as well have said nothing: the model must be, to
        the last bit, what it would be then; "" if it cannot be, None where nothing is lost.
    """

    what: str
    grid: Callable[[], flower.InProcessGrid]
    faults: tuple[Fault, ...] = ()
    scheme: str = "full"
    options: dict[str, Any] = field(default_factory=dict)
    silent: str | None = "train"

    @property
    def honest(self) -> frozenset[int]:
        """Whose answers must all count."""
        return frozenset(range(N)) - ({LIAR} if self.silent is not None else set())


def _training(what: str, lie: Lie, *faults: Fault, **more: Any) -> Attack:
    return Attack(f"trains: {what}", partial(Lying, lie), faults, **more)


def _greeting(what: str, lie: Lie, *faults: Fault, **more: Any) -> Attack:
    more = {"options": {"clients": N - 1}, "silent": wire.HELLO, **more}
    return Attack(f"says who it is: {what}", partial(Lying, lie, [wire.HELLO]), faults, **more)


def _loss(what: str, lie: Lie, *faults: Fault) -> Attack:
    grid = partial(Lying, lie, ["loss"])
    return Attack(f"asked for its loss: {what}", grid, faults, "pow-d:m=3,d=8", silent="loss")


def _norm(what: str, row: np.ndarray, *faults: Fault) -> Attack:
    grid = partial(Lying, lies.answer("update_norm", row), ["update_norm"])
    return Attack(f"asked for its norm: {what}", grid, faults, "optimal:m=3", silent="update_norm")


def _labels(what: str, row: np.ndarray, *faults: Fault) -> Attack:
    lie, client = lies.answer("label_histogram", row), flower.client_app(Labelled)
    grid = partial(Lying, lie, ["label_histogram"], client=client)
    return Attack(
        f"asked for its labels: {what}",
        grid,
        faults,
        "static-uniform:m=3",
        silent="label_histogram",
    )


def _listened(what: str, row: np.ndarray, *faults: Fault) -> Attack:
    lie = lies.answer("loss", row)
    return Attack(f"trains, tells a loss: {what}", partial(Lying, lie), faults, "rpow-d:m=8,d=8")


def _evaluated(what: str, lie: Lie, *faults: Fault) -> Attack:
    grid = partial(Lying, lie, ["evaluate"], client=evaluating())
    options = {"evaluate": "everyone"}
    return Attack(f"evaluates: {what}", grid, faults, options=options, silent="evaluate")


def _sized(size: Any, *faults: Fault) -> Attack:
    lie = lies.answer("size", np.array(size))
    shown = f"2**{size.bit_length() - 1}" if isinstance(size, int) and size > 2**60 else f"{size}"
    return _greeting(f"a size of {shown}", lie, *faults, silent=wire.HELLO if faults else None)


class Twin(flower.InProcessGrid):
    """A ninth node says that it is client LIAR: from the beginning, or when the run has begun."""

    def __init__(self, later: bool) -> None:
        super().__init__(
            app(), N + 1, node_config=lambda i: {"partition-id": LIAR} if i == N else {}
        )
        self.away = later

    def get_node_ids(self) -> Iterable[int]:
        return {n for n in super().get_node_ids() if not (self.away and self.partition[n] == N)}

    def deliver(self, message: Message) -> Message | None:
        self.away &= message.metadata.message_type != "train"
        return super().deliver(message)


OTHER_NAME = lies.metadata(src_node_id=12345)
MORE = ArrayRecord({"x": Array(np.zeros(2))})
ATTACKS = [
    _training("raises an error", lies.raises, Fault.FAILED),
    _training("is gone", lies.gone, Fault.FAILED),
    _training("nothing", lies.silent, Fault.MISSING),
    _training("NaN", lies.update(theta=np.array([np.nan, 0])), Fault.NOT_FINITE),
    _training("infinity", lies.update(theta=np.array([np.inf, 0])), Fault.NOT_FINITE),
    _training("1e30", lies.update(theta=np.array([1e30, 0])), Fault.OUT_OF_RANGE),
    _training("-1e30", lies.update(theta=np.array([-1e30, 0])), Fault.OUT_OF_RANGE),
    _training("-2**63", lies.update(theta=np.full(2, -(2**63))), Fault.OUT_OF_RANGE),
    _training("shape (3,)", lies.update(theta=np.zeros(3)), Fault.WRONG_SHAPE),
    _training("a scalar", lies.update(theta=np.array(1.0)), Fault.WRONG_SHAPE),
    _training("text", lies.update(theta=TEXT), Fault.WRONG_TYPE),
    _training("complex numbers", lies.update(theta=np.array([1j, 0])), Fault.WRONG_TYPE),
    _training("garbage", lies.update(theta=lies.npy("garbage")), Fault.WRONG_TYPE),
    _training(
        "header 'descr': ()",
        lies.update(theta=lies.npy("{'descr': (), 'fortran_order': False, 'shape': (2,)}")),
        Fault.WRONG_TYPE,
    ),
    _training(
        "header of 5,000 signs",
        lies.update(
            theta=lies.npy("{'descr':'<f8','fortran_order':False,'shape':(" + "-" * 5000 + "1,)}")
        ),
        Fault.WRONG_TYPE,
    ),
    _training(
        "header of 9,000 brackets", lies.update(theta=lies.npy("[" * 9000)), Fault.WRONG_TYPE
    ),
    _training("more numbers than bytes", lies.update(theta=lies.BOMB), Fault.WRONG_TYPE),
    _training(
        "a pickle",
        lies.update(theta=Array("float64", (2,), "pickle", b"cos\nsystem\n.")),
        Fault.WRONG_TYPE,
    ),
    _training(
        "an array too many", lies.update(theta=np.zeros(2), more=np.zeros(2)), Fault.WRONG_KEYS
    ),
    _training("another key", lies.update(weights=np.zeros(2)), Fault.WRONG_KEYS),
    _training("a record too many", lies.records(more=MORE), Fault.WRONG_KEYS),
    _training("parameters and change", lies.records(arrays=None), Fault.WRONG_KEYS),
    _training("no record", lies.nothing, Fault.WRONG_KEYS),
    _training("10 MB", lies.update(theta=MEGABYTES), Fault.TOO_LARGE),
    _training("16 MB of metrics", lies.metrics(long=[0.0] * 2_000_000), Fault.TOO_LARGE),
    _training("10 MB of text", lies.config(text="x" * 10_000_000), Fault.TOO_LARGE),
    _training("for another round", lies.metadata(group_id="77"), Fault.OTHER_ROUND),
    _training("in another's name", OTHER_NAME, Fault.NOT_ASKED),
    _training(
        "to another question", lies.metadata(reply_to_message_id="message-0"), Fault.NOT_ASKED
    ),
    _training("what makes readers fail", lies.unreadable, Fault.UNREADABLE),
    _training(
        "odd metrics", lies.metrics(loss=float("nan"), odd=1e308, **{"a\nb": 1}), silent=None
    ),
    Attack("trains: what Flower cannot read", partial(lies.Jammed, app(), N), (Fault.FAILED,)),
    Attack(
        "everybody answers twice, and late",
        partial(lies.Twice, app(), N),
        (Fault.TWICE, Fault.LATE),
        silent=None,
    ),
    _listened("shape (5,)", np.zeros(5), Fault.WRONG_SHAPE),
    _listened("NaN", np.array(np.nan), Fault.NOT_FINITE),
    _listened("text", np.array("high"), Fault.WRONG_TYPE),
    _listened("1e300", np.array(1e300), Fault.OUT_OF_RANGE),
    _loss("nothing", lies.silent, Fault.MISSING),
    _loss("shape (5,)", lies.answer("loss", np.zeros(5)), Fault.WRONG_SHAPE),
    _loss("NaN", lies.answer("loss", np.array(np.nan)), Fault.NOT_FINITE),
    _loss("1e300", lies.answer("loss", np.array(1e300)), Fault.OUT_OF_RANGE),
    _loss("another name", lies.answer("gain", np.array(1.0)), Fault.WRONG_KEYS),
    _loss("10 MB", lies.answer("loss", MEGABYTES), Fault.TOO_LARGE),
    _loss("what makes readers fail", lies.unreadable, Fault.UNREADABLE),
    _norm("-1", np.array(-1.0), Fault.OUT_OF_RANGE),
    _norm("1e30", np.array(1e30), Fault.OUT_OF_RANGE),
    _norm("shape (1, 1)", np.zeros((1, 1)), Fault.WRONG_SHAPE),
    _labels("halves", np.full(2, 0.5), Fault.OUT_OF_RANGE),
    _labels("less than none", np.full(2, -1), Fault.OUT_OF_RANGE),
    _labels("1e300", np.full(2, 1e300), Fault.OUT_OF_RANGE),
    _labels("three classes", np.zeros(3, np.int64), Fault.WRONG_SHAPE),
    _labels("no class", np.zeros(0), Fault.WRONG_SHAPE),
    _greeting("nothing", lies.silent, Fault.MISSING),
    _greeting("raises an error", lies.raises, Fault.FAILED),
    _greeting("what makes readers fail", lies.unreadable, Fault.UNREADABLE),
    _greeting("no key", lies.key(""), Fault.OUT_OF_RANGE),
    _greeting("a text for a key", lies.key("x"), Fault.OUT_OF_RANGE),
    _greeting("a number for a key", lies.key(2.5), Fault.OUT_OF_RANGE),
    _greeting("a key of 201 letters", lies.key(201 * "x"), Fault.OUT_OF_RANGE),
    _greeting("a key of two lines", lies.key("a\nb"), Fault.OUT_OF_RANGE),
    _greeting("10 MB", lies.config(text="x" * 10_000_000), Fault.TOO_LARGE),
    _sized(-1, Fault.OUT_OF_RANGE),
    _sized(2.5, Fault.OUT_OF_RANGE, Fault.WRONG_TYPE),
    _sized(float("nan"), Fault.NOT_FINITE),
    _sized(2**63, Fault.OUT_OF_RANGE),
    _sized(2**62),
    Attack("claims a key, with its owner", partial(Twin, False), (Fault.TAKEN,), silent=wire.HELLO),
    Attack("claims a key, after its owner", partial(Twin, True), (Fault.TAKEN,), silent=None),
    _evaluated("NaN", lies.metrics(loss=float("nan")), Fault.NOT_FINITE),
    _evaluated("1e308", lies.metrics(loss=1e308), Fault.NOT_FINITE),
    _evaluated("8 MB", lies.metrics(loss=[0.0] * 1_000_000), Fault.TOO_LARGE),
    _evaluated("arrays", lies.records(more=MORE), Fault.WRONG_KEYS),
    _evaluated("in another's name", OTHER_NAME, Fault.NOT_ASKED),
    _evaluated("what makes readers fail", lies.unreadable, Fault.UNREADABLE),
]


@dataclass(frozen=True)
class Outcome:
    """What became of an attack."""

    ended: str
    counted: int
    lost: int
    """Answers of honest clients that did not count."""
    model: str

    @property
    def well(self) -> bool:
        """Whether the run went on without the attacker, and with everybody else."""
        return self.ended == "finishes" and self.lost == 0 and not self.model.startswith("not")


def outcome(attack: Attack) -> Outcome:
    """Play a run under attack."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", FedcohortWarning)  # of losses that are left out
        strategy, ended = _strategy(attack, folder), "finishes"
        try:
            result = strategy.start(attack.grid(), flower.first_model(task(), 3), num_rounds=ROUNDS)
        except Exception as error:
            ended = f"ends: {error!r}"[:80]
        counted = sum(strategy.gate.counts[fault] for fault in attack.faults)
        lost = _lost(attack, strategy)
        done = ended == "finishes" and len(strategy.cohorts) == ROUNDS
        model = _model(attack, result.arrays["theta"].numpy()) if done else "not finished"
        return Outcome(ended, counted, lost, model)


def _strategy(attack: Attack, folder: str | None = None) -> flower.CohortStrategy:
    settings: dict[str, Any] = {"clients": N, "seed": 3, "limits": QUICK, **attack.options}
    return flower.CohortStrategy(attack.scheme, folder=folder, **settings)


def _lost(attack: Attack, strategy: flower.CohortStrategy) -> int:
    """Reports of honest clients that were rejected, and places that they should have had."""
    faults = strategy.gate.by_client.items()
    late = (Fault.TWICE, Fault.LATE)
    lost = sum(n for (who, fault), n in faults if who in attack.honest and fault not in late)
    if attack.scheme == "full":
        ids = strategy.session.federation.ids if strategy.cohorts else ()
        there = [{ids[i] for i in cohort.clients} for cohort in strategy.cohorts]
        lost += sum(len(attack.honest - clients) for clients in there)
    return lost


def _model(attack: Attack, theta: np.ndarray) -> str:
    if not np.isfinite(theta).all():
        return "not finite"
    if attack.silent is None:
        return "finite"
    grid = Lying(lies.silent, [attack.silent], client=evaluating())
    if attack.scheme.startswith("static"):
        grid = Lying(lies.silent, [attack.silent], client=flower.client_app(Labelled))
    options = {"clients": N - 1} if attack.silent == wire.HELLO else {}
    same = replace(attack, options={**attack.options, **options})
    result = _strategy(same).start(grid, flower.first_model(task(), 3), num_rounds=ROUNDS)
    alike = np.array_equal(result.arrays["theta"].numpy(), theta)
    return "as if it were silent" if alike else "not as if it were silent"


def main() -> int:
    """Print the table; 1 if an attack succeeds."""
    logging.getLogger("flwr").setLevel(logging.CRITICAL)
    print(f"{len(ATTACKS)} attacks of one client of {N}, {ROUNDS} rounds each\n")
    print(f"{'attack':44}{'counted as':30}{'the run':10}{'lost':>6}  model")
    bad = 0
    for attack in ATTACKS:
        found = outcome(attack)
        names = " or ".join(fault.name.lower() for fault in attack.faults)
        counted = f"{names} x{found.counted}" if names else "-"
        line = f"{attack.what:44}{counted:30}{found.ended:10}{found.lost:6}"
        print(f"{line}  {found.model}")
        bad += not found.well or (bool(attack.faults) and not found.counted)
    print(f"\n{bad} succeed. 'lost' are answers of the honest clients that did not count.")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
