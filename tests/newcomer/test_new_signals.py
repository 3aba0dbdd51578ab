"""A signal that looks at something new is one file, scheme and all, and works everywhere.

Each scheme beside this file was written as a student would: it asks for what no scheme of the
package looks at (single samples, a layer by its name, a battery), and no other file knows of it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer import Typer
from typer.testing import CliRunner

from bench import bench
from fedcohort import Federation, scheme, simulate
from fedcohort._internal.errors import CheckFailed
from fedcohort._internal.types import Array
from fedcohort.advice import advise
from fedcohort.advice._question_cost import bytes_of, rehearse
from fedcohort.cli import app
from fedcohort.selection import Scheme
from fedcohort.selection._queries import missing
from fedcohort.testing import check_scheme, run_check
from fedcohort.training import LocalWork, Softmax

FILES = sorted(
    path for path in Path(__file__).parent.glob("*.py") if path.stem != Path(__file__).stem
)
N, CLASSES, WORK = 8, 3, LocalWork(steps=3, batch=4, lr=0.1)

each_file = pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)


def found(file: Path) -> type[Scheme[Any]]:
    return type(scheme(str(file)))


def command(*words: object) -> str:
    result = CliRunner().invoke(app(), [str(word) for word in words])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.stdout


def batteries() -> Array:
    return np.linspace(0.0, 1.0, N)[np.random.default_rng(0).permutation(N)]


def task() -> Softmax:
    rng = np.random.default_rng(3)
    y = rng.integers(0, CLASSES, 120)
    x = rng.uniform(size=(120, 4)) + y[:, None] / 4
    made = Softmax(x, y, x[:40], y[:40], np.array_split(np.argsort(y), N), CLASSES)
    made.facts = {"battery": batteries()}
    return made


def test_there_are_three() -> None:
    assert [file.stem for file in FILES] == ["full_batteries", "last_bias", "tail_losses"]


@each_file
def test_check(file: Path) -> None:
    results = {result.name: result for result in check_scheme(found(file))}
    assert all(result.passed for result in results.values()), results
    assert results["signals"].applies
    assert "FAILED" not in command("check", file)


@each_file
def test_compare(file: Path, tmp_path: Path) -> None:
    told = command(
        *("compare", file, "uniform", "-m", 3, "--rounds", 2, "--seeds", 1, "--steps", 2),
        *("--partition", "iid:n=10", "--out", tmp_path / "run", "--jobs", 1),
    )
    assert found(file).name in told


@each_file
def test_bench(file: Path) -> None:
    program = Typer()
    program.command()(bench)
    words = [str(file), *("-n", "30"), *("-m", "3"), *("-d", "20"), "--json"]
    (row,) = json.loads(CliRunner().invoke(program, words).stdout)
    assert (row["note"], row["times uniform"] > 0) == ("", True)


@each_file
def test_what_its_questions_cost_is_known_before_training(file: Path) -> None:
    chooser, federation = found(file)(m=2), Federation.from_sizes([10] * 40)
    asked = rehearse(chooser, federation, 2)
    assert asked is not None
    (question,) = asked.round
    assert question.clients == 40
    row = {"battery": 8, "last_bias": 4 * 10, "tail_losses": 3 * 8}[question.signal.name]
    models = 40 if question.signal.needs_model else 2
    total = bytes_of(asked.round, 2, 4000, classes=10)
    assert total == 40 * (16 + row) + (2 + models) * 4000
    advice = advise(federation, 2, model_bytes=4000, settings={str(file): {}})
    facts = advice.row(str(file))
    assert facts.needs == f"{question.signal.name} of 40 clients a round"
    assert facts.bytes_per_round == total


@each_file
def test_flower(file: Path) -> None:
    pytest.importorskip("flwr")
    from fedcohort import flower

    chooser = scheme(str(file), m=3)
    trace = simulate(task(), chooser, rounds=3, seed=5, work=WORK)
    local = flower.task_client(task(), WORK)
    client = flower.client_app(local, signals=chooser.asks, simulated=True)
    strategy = flower.CohortStrategy(chooser, clients=N, seed=5)
    grid = flower.InProcessGrid(client, N, raises=True)
    strategy.start(grid, flower.first_model(task(), 5), num_rounds=3)
    chosen = np.split(trace.cohort_clients, trace.cohort_ends[:-1])
    assert [c.clients.tolist() for c in strategy.cohorts] == [c.tolist() for c in chosen]
    (signal,) = chooser.asks
    assert strategy.ledger.disclosures()[signal.name] == signal.discloses


def test_the_fullest_batteries_are_chosen_in_the_simulator() -> None:
    trace = simulate(task(), found(FILES[0])(m=3), rounds=1, work=WORK)
    assert trace.cohort_clients.tolist() == sorted(np.argsort(batteries())[-3:].tolist())


def greeting(client: Any) -> dict[str, Any]:
    from flwr.app import ConfigRecord, Message, RecordDict

    from fedcohort import flower
    from fedcohort.flower import _wire as wire

    grid = flower.InProcessGrid(client, 1, raises=True)
    config = ConfigRecord({wire.SIGNAL: wire.HELLO, wire.WANTS_SIZE: False})
    node = next(iter(grid.contexts))
    message = Message(RecordDict({wire.CONFIG: config}), node, wire.QUERY)
    (reply,) = grid.send_and_receive([message])
    return dict(reply.content[wire.CONFIG])


def test_a_client_greets_with_what_it_offers() -> None:
    pytest.importorskip("flwr")
    from fedcohort import flower
    from fedcohort.flower import _wire as wire

    asks = found(FILES[0]).asks
    full = flower.client_app(
        size=lambda context: 5, battery=lambda context: 0.5, colour=lambda context: 3, signals=asks
    )
    hello = greeting(full)
    assert hello[wire.OFFERS] == ["battery", "key", "size"]  # what no signal needs is not told
    assert missing(asks, hello[wire.OFFERS]) is None
    plain = flower.client_app(size=lambda context: 5)
    plain.train()(lambda message, context: message)
    plain.evaluate()(lambda message, context: message)
    offers = greeting(plain)[wire.OFFERS]
    assert sorted(offers) == ["evaluate", "key", "loss", "size", "update"]
    sentence = missing(asks, offers)
    assert sentence is not None
    assert sentence.startswith("This client has no 'battery', which the signal 'battery' needs:")
    whole = greeting(flower.client_app(flower.task_client(task(), WORK), signals=asks))
    assert {"battery", "feature_counts", "label_counts", "loss", "update"} <= {*whole[wire.OFFERS]}


# -- a signal that is not what it declares is found out ---------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"shape": (2,)}, r"declares answers of shape \(2,\)"),
        ({"lowest": 5.0}, "from 5 to inf; a client answered"),
        ({"whole": True}, ", whole; a client answered"),
        ({"needs": {"size"}}, r"looks at 'sample_losses', which is not among its needs \['size'\]"),
    ],
)
def test_a_wrong_declaration_is_a_failed_check(change: dict[str, Any], sentence: str) -> None:
    cls = found(FILES[2])
    (signal,) = cls.asks
    wrong = replace(signal, **change)

    class Wrong(cls):
        asks = frozenset({wrong})

        def select(self, state, federation, context, rng):
            talk = super().select(state, federation, context, rng)
            ask = next(talk)
            try:
                talk.send((yield replace(ask, signal=wrong)))
            except StopIteration as end:
                return end.value

    with pytest.raises(CheckFailed, match=sentence):
        run_check("signals", Wrong, stop=True)
