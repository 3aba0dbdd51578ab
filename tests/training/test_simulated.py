"""Local algorithms in the simulator: what clients remember, and what the server counts of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from fedcohort import LocalWork, compare, scheme, simulate
from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort.cli import app
from fedcohort.server import AsDrawn, Plain, Redraw, Sgd
from fedcohort.server._state import Setup
from fedcohort.simulation import Always, DropOuts, Random
from fedcohort.simulation._engine import Simulation
from fedcohort.training import (
    MLP,
    Algorithm,
    FedProx,
    LocalRule,
    LocalSgd,
    Payload,
    Quadratic,
    Softmax,
    algorithm,
)
from fedcohort.training._algorithms import ALGORITHMS
from helpers.control import Control

FILE = Path(__file__).parents[1] / "helpers" / "control.py"
WORK = LocalWork(steps=3, batch=4, lr=0.1)
SIZES = np.array([30, 7, 0, 61, 1, 20, 11, 40])


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def softmax(kind: Any = Softmax) -> Any:
    rng = philox(0)
    x, y = rng.standard_normal((SIZES.sum(), 5)), rng.integers(0, 3, SIZES.sum())
    clients = np.split(rng.permutation(len(y)), np.cumsum(SIZES)[:-1])
    return kind(x, y, x[:20], y[:20], clients, 3)


def started(
    which: Algorithm, chosen: str = "md:m=3", dropouts: DropOuts | None = None, **options: Any
) -> Simulation:
    rule, quorum = (AsDrawn(), 0.0) if dropouts is None else (dropouts.rule, dropouts.quorum)
    setup = Setup(scheme(chosen), 5, Sgd(), Plain(), rule, quorum, which)
    task = options.pop("task", None) or softmax()
    return Simulation(task, setup, options.pop("work", WORK), Always(), dropouts)


def imbalance(run: Simulation) -> float:
    """|c - sum p_i c_i| beside the largest c_i."""
    c, p = run.state.algorithm["c"], run.state.federation.importance
    own = [p[i] * rows["c_i"] for i, rows in run.kept.items()]
    scale = max(float(np.abs(rows["c_i"]).max()) for rows in run.kept.values())
    return float(np.abs(c - np.sum(own, axis=0)).max()) / scale


DROPOUTS = {
    "everybody answers": None,
    "redraw": DropOuts(Random(0.6), rule=Redraw(attempts=2)),
    "void rounds": DropOuts(Random(0.5), rule=AsDrawn(), quorum=0.6),
}


@pytest.mark.parametrize("dropouts", DROPOUTS.values(), ids=DROPOUTS.keys())
@pytest.mark.parametrize("chosen", ["md:m=3", "uniform:m=3", "clustered-size:m=3", "optimal:m=3"])
def test_a_tally_is_the_sum_over_the_clients(chosen: str, dropouts: DropOuts | None) -> None:
    run = started(Control(), chosen, dropouts)
    void = 0
    for _ in range(25):
        before, kept = run.state, dict(run.kept)
        record = run.play()
        void += record.void
        if record.void:  # nothing has happened, neither here nor there
            assert run.state.algorithm is before.algorithm
            assert run.kept == kept
        elif run.kept:
            assert imbalance(run) <= 1e-12
    assert (void > 3) == (dropouts is DROPOUTS["void rounds"])
    assert np.abs(run.state.algorithm["c"]).max() > 1e-3  # it is no small thing
    lasting = run.state.counted
    assert sorted(run.kept) == np.flatnonzero(lasting >= 0).tolist()


def test_a_tally_by_omega_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = (Payload("c", "estimate"), Payload("gradient", "estimate"))
    monkeypatch.setattr(Control, "payloads", roles)
    monkeypatch.setattr(
        Control,
        "step",
        lambda self, server, sums: {**server, "c": server["c"] + sums["c"]},
    )
    run = started(Control(), "md:m=3")
    for _ in range(5):
        run.play()
    assert imbalance(run) > 1e-3


def test_an_estimate_is_weighed_as_the_update_is() -> None:
    run = started(Control(share=1.0), "uniform:m=3")
    for _ in range(3):
        before = run.state
        run.play()
        moved = run.state.theta - before.theta  # sum of omega_i delta_i
        np.testing.assert_allclose(
            run.state.algorithm["mean"], -moved / (WORK.lr * WORK.steps), rtol=1e-5, atol=1e-7
        )


def test_an_estimate_counts_by_samples_where_updates_do() -> None:
    run = started(
        Control(share=1.0), "fedsampling:K=60,epsilon=20,M=100", work=replace(WORK, batch=None)
    )
    for _ in range(6):
        before = run.state
        run.play()
        moved = run.state.theta - before.theta
        np.testing.assert_allclose(
            run.state.algorithm["mean"], -moved / (WORK.lr * WORK.steps), rtol=1e-4, atol=1e-6
        )
        assert imbalance(run) <= 1e-12
    assert 2 not in run.kept or not run.kept[2]["c_i"].any()  # it has no samples: no step


def test_a_client_that_is_asked_trains_by_the_rule_and_changes_nothing() -> None:
    """`optimal` asks everyone for the length of the update, then some send theirs."""
    trained: list[np.ndarray] = []

    class Noting(Quadratic):
        def local_updates(self, theta: Any, clients: Any, *rest: Any) -> Any:
            trained.append(clients)
            return super().local_updates(theta, clients, *rest)

    task = Noting(philox(1).standard_normal((6, 4)))
    run = started(Control(), "optimal:m=2", task=task)
    for number in range(4):
        run.play()
        assert len(trained) == number + 1  # nobody trains twice
        assert len(trained[-1]) == 6
        assert number or 0 < len(run.kept) < 6
        assert sorted(run.kept) == np.flatnonzero(run.state.counted >= 0).tolist()


def test_control_variates_stop_the_drift_of_clients() -> None:
    """Ten local steps on quadratics: FedAvg stops elsewhere, SCAFFOLD at the optimum."""
    curved = LocalWork(steps=10, lr=0.1, mu=0.5)
    task = Quadratic(philox(0).standard_normal((6, 5)), sizes=[1, 2, 3, 4, 5, 6])
    found = {
        which.name: simulate(task, "full", rounds=60, work=curved, algorithm=which).model
        for which in (LocalSgd(), Control())
    }
    np.testing.assert_allclose(found["control"], task.optimum, atol=1e-8)
    two = simulate(task, "md:m=2", rounds=300, work=curved, algorithm="./" + _relative(FILE))
    none = simulate(task, "md:m=2", rounds=300, work=curved)
    gap = [np.abs(trace.model - task.optimum).max() for trace in (two, none)]
    assert gap[0] < 1e-6 < 1e-2 < gap[1]


def _relative(file: Path) -> str:
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else str(file)


@pytest.mark.parametrize("kind", [Softmax, MLP, None])
def test_fedprox_is_the_proximal_term_bit_for_bit(kind: Any) -> None:
    task = Quadratic(philox(0).standard_normal((8, 5))) if kind is None else softmax(kind)
    options: dict[str, Any] = {"rounds": 4, "seed": 2}
    named = simulate(task, "md:m=3", work=WORK, algorithm="fedprox:mu=0.3", **options)
    built = simulate(task, "md:m=3", work=WORK, algorithm=FedProx(mu=0.3), **options)
    plain = simulate(task, "md:m=3", work=replace(WORK, mu=0.3), **options)
    without = simulate(task, "md:m=3", work=WORK, **options)
    assert named.model.tobytes() == built.model.tobytes() == plain.model.tobytes()
    assert not np.array_equal(named.model, without.model)
    assert named.settings["algorithm"] == {"name": "fedprox", "mu": 0.3}


def test_vectors_of_an_algorithm_are_booked() -> None:
    task, d = softmax(), softmax().dimension
    for chosen, extra in (("md:m=3", 0), ("optimal:m=3", 1)):
        plain, more = (
            simulate(task, chosen, rounds=3, work=WORK, algorithm=which)
            for which in (None, Control())
        )
        for round in range(3):
            one, other = len(plain.cohort(round)), len(more.cohort(round))
            asked = (7, 7) if extra else (one, other)  # who is asked for a norm has the model
            small = asked[0] * 4 * d + extra * 7 * 16
            large = asked[1] * 3 * 4 * d + extra * 7 * 16  # two vectors with each copy
            assert (plain.bytes_down[round], more.bytes_down[round]) == (small, large)
            up = plain.bytes_up[round] - one * 4 * d
            assert more.bytes_up[round] == up + other * 3 * 4 * d


def broken(change: str, value: Any) -> type[Control]:
    @dataclass(frozen=True)
    class Broken(Control):
        name: ClassVar[str] = "broken"

    setattr(Broken, change, value)
    return Broken


def says(payloads: Any, kept: Any) -> Callable[..., Any]:
    return lambda self, work, server, rows, updates, steps: (payloads(updates), kept(updates))


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (says(lambda u: {"c": u}, lambda u: {"c_i": u}), r"'payloads' declares: .* got \['c'\]"),
        (
            says(lambda u: {"c": u, "gradient": u}, lambda u: {}),
            r"'keeps_client' declares: \['c_i'\]; got \[\]",
        ),
        (
            says(lambda u: {"c": u, "gradient": u[:, 0]}, lambda u: {"c_i": u}),
            r"a vector per client for 'gradient': \(\d, 18\); got \(\d,\)",
        ),
    ],
)
def test_a_report_of_other_things_is_one_sentence(report: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=rf"Broken.report\(\) must give .*{sentence}"):
        started(broken("report", report)()).play()


def test_a_payload_that_is_not_finite_ends_the_run() -> None:
    report = says(lambda u: {"c": u * np.nan, "gradient": u}, lambda u: {"c_i": u})
    with pytest.raises(BadInput, match="Training diverged in round 0"):
        started(broken("report", report)()).play()


def test_algorithms_are_found_by_name_or_file() -> None:
    assert {"sgd", "fedprox"} <= set(ALGORITHMS)
    assert algorithm() == LocalSgd()
    assert algorithm("fedprox:mu=0.5") == FedProx(0.5)
    mine = algorithm(f"{FILE}:share=0.25")
    assert (mine.name, mine.spec) == ("control", "control:share=0.25")
    with pytest.raises(UnknownName, match="Did you mean 'fedprox'"):
        algorithm("fedprx")
    assert isinstance(LocalSgd().rule(WORK, {}, {}), LocalRule)


def test_compare_and_the_command_line_take_an_algorithm(tmp_path: Path) -> None:
    task, folder = softmax(), tmp_path / "python"
    options: dict[str, Any] = {"rounds": 2, "seeds": 1, "work": WORK, "folder": folder, "jobs": 1}
    done = compare(task, ["md:m=2"], algorithm=str(FILE), **options)
    assert done.traces[0].settings["algorithm"] == {"name": "control", "share": 0.5}
    with pytest.raises(BadInput, match="was made with algorithm = control"):
        compare(task, ["md:m=2"], algorithm="sgd", **options)
    words = ["compare", "md", "-m", 2, "-T", 2, "--seeds", 1, "--steps", 2, "--jobs", 1]
    words += ["--algorithm", f"{FILE}:share=1", "--out", tmp_path / "cli"]
    result = CliRunner().invoke(app(), [str(word) for word in words])
    assert result.exit_code == 0, result.output + str(result.exception)
    listed = CliRunner().invoke(app(), ["settings"]).output
    assert "--algorithm" in listed
    assert "fedprox:mu=0.1" in listed
