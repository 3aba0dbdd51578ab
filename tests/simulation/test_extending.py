"""A run that is extended is the run that was so long from the start, bit for bit."""

from __future__ import annotations

from dataclasses import fields
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import Comparison, LocalWork, Trace, compare, scheme, simulate
from fedcohort._internal.errors import BadCheckpoint, BadInput, FedcohortWarning
from fedcohort.report._result import lacking
from fedcohort.schemes import schemes
from fedcohort.simulation import Centralised, DropOuts, Random
from fedcohort.simulation._storage import End
from fedcohort.training import Softmax

N = 12
WORK = LocalWork(steps=2, batch=5, lr=0.2)
SETTINGS: dict[str, dict[str, Any]] = {
    "fedsampling": {"K": 40, "when_imprecise": "accept"},
    "fedsampling-naive": {"rate": 0.4},
    "poisson": {"cap": True},
}
HOW: dict[str, dict[str, Any]] = {
    "plain": {"evaluate_every": 2, "measures": ["f1"]},
    "drop-outs": {
        "dropouts": DropOuts(Random(0.6), quorum=0.5),
        "optimiser": "adam:eta_g=0.1",
        "aggregator": "memory",
        "availability": "random:probability=0.8",
        "evaluate_every": 3,
    },
    "scaffold": {"algorithm": "scaffold", "hardened": True, "defer": 1},
}


def task() -> Softmax:
    rng = np.random.default_rng(5)
    sizes = 8 + np.arange(N) * 5 % 17
    whole = int(sizes.sum())
    x, y = rng.random((whole, 3)), rng.integers(0, 3, whole)
    parts = np.split(np.arange(whole), np.cumsum(sizes)[:-1])
    return Softmax(x, y, x, y, parts, 3, dtype=np.float64)


def built(name: str) -> Any:
    kind = schemes()[name]
    some = {"m": 4} if "m" in {field.name for field in fields(kind)} else {}
    return scheme(name, **{**some, **SETTINGS.get(name, {})})


def same(one: Trace, other: Trace) -> None:
    """Everything but the clock."""
    for field in fields(Trace):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            if field.name != "seconds":
                np.testing.assert_array_equal(a, b, err_msg=field.name)
                assert a.dtype == b.dtype
        elif field.name in ("pictures", "metrics", "faults"):
            assert list(a) == list(b)
            for key in a:
                np.testing.assert_array_equal(a[key], b[key], err_msg=f"{field.name} {key}")
        else:
            assert a == b, field.name


def extended(where: Path, run: Any, steps: tuple[int, ...], **options: Any) -> Trace:
    """The run in several pieces, each read from files."""
    trace: Trace | None = None
    for rounds in steps:
        trace = run(rounds=rounds, keep=where / "end.npz", before=trace, **options)
        trace.save(where / "trace.npz")
        trace = Trace.load(where / "trace.npz")
    assert trace is not None
    return trace


@pytest.mark.filterwarnings("ignore:.*groups of optics are doubtful")
@pytest.mark.parametrize(("name", "how"), [*zip(sorted(schemes()), cycle(HOW))])
def test_every_scheme_goes_on_as_if_nothing_had_been(name: str, how: str, tmp_path: Path) -> None:
    held, which = task(), built(name)

    def run(**options: Any) -> Trace:
        return simulate(held, which, seed=3, work=WORK, **{**HOW[how], **options})

    try:
        whole = run(rounds=7)
    except BadInput as error:  # parts that do not go together
        pytest.skip(str(error))
    same(extended(tmp_path, run, (2, 5, 7)), whole)


def test_several_models_are_extended_too(tmp_path: Path) -> None:
    held = task()

    def run(**options: Any) -> Trace:
        return simulate(
            held, "md:m=4", work=WORK, algorithm="ifca:k=2", optimiser="adam", **options
        )

    same(extended(tmp_path, run, (2, 5)), run(rounds=5))


def test_centralised_training_is_extended_too(tmp_path: Path) -> None:
    held, line = task(), Centralised(20)

    def run(**options: Any) -> Trace:
        return line.run(held, seed=3, work=WORK, measures=["client-accuracy"], **options)

    same(extended(tmp_path, run, (2, 7)), run(rounds=7))


def test_a_torch_model_is_extended_too(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from fedcohort.training import ClientData, LearningTask, TorchModel

    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Dropout(0.2), torch.nn.Linear(6, 3)
    )
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 4), dtype=np.float32), rng.integers(0, 3, 60)
    data = ClientData.divide(x, y, x, y, np.array_split(np.arange(60), 6), 3)
    held = LearningTask(TorchModel(net), data)

    def run(**options: Any) -> Trace:
        return simulate(held, "md:m=2", seed=3, work=WORK, **options)

    same(extended(tmp_path, run, (2, 5)), run(rounds=5))


def test_a_run_that_is_continued_wrongly_differs(tmp_path: Path) -> None:
    """The test above can fail: what a client of SCAFFOLD remembers is lost here."""
    held = task()

    def run(**options: Any) -> Trace:
        return simulate(held, "md:m=4", seed=3, work=WORK, algorithm="scaffold", **options)

    first = run(rounds=4, keep=tmp_path / "end.npz")
    plain = End.load

    def forgetful(*given: Any) -> End:
        end = plain(*given)
        return End(end.state, {}, end.waiting)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(End, "load", forgetful)
        wrong = run(rounds=8, keep=tmp_path / "end.npz", before=first)
    with pytest.raises(AssertionError):
        same(wrong, run(rounds=8))


def test_what_is_no_end_of_this_run_is_refused(tmp_path: Path) -> None:
    held = task()
    first = simulate(held, "md:m=4", rounds=2, work=WORK, keep=tmp_path / "end.npz")
    with pytest.raises(BadCheckpoint, match="is the end of another run"):
        simulate(held, "md:m=4", rounds=4, seed=1, keep=tmp_path / "end.npz", before=first)
    with pytest.raises(BadCheckpoint, match="There is no end of a run"):
        simulate(held, "md:m=4", rounds=4, keep=tmp_path / "other.npz", before=first)
    with pytest.raises(BadInput, match="A run of 2 rounds is extended to more"):
        simulate(held, "md:m=4", rounds=2, keep=tmp_path / "end.npz", before=first)
    with pytest.raises(BadInput, match="Got 4 rounds and no file"):
        simulate(held, "md:m=4", rounds=4, before=first)


def test_what_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedcohort.simulation._storage.LIMIT_BYTES", 10)
    with pytest.warns(FedcohortWarning, match="md: this run cannot be extended"):
        simulate(task(), "md:m=4", rounds=2, work=WORK, keep=tmp_path / "end.npz")
    assert not (tmp_path / "end.npz").exists()


def run(folder: Path, rounds: int, **options: Any) -> Comparison:
    options = {"seeds": 2, "jobs": 1, "work": WORK, "algorithm": "scaffold", **options}
    return compare(task(), ["md:m=4", "uniform:m=4"], rounds=rounds, folder=folder, **options)


def test_a_folder_is_extended_by_more_rounds(tmp_path: Path) -> None:
    run(tmp_path / "run", 3)
    longer = run(tmp_path / "run", 6)
    assert [trace.rounds for trace in longer.traces] == [6] * 4
    for one, other in zip(longer.traces, run(tmp_path / "new", 6).traces, strict=True):
        same(one, other)
    with pytest.raises(BadInput, match="was made with rounds = 6, now it is 3"):
        run(tmp_path / "run", 3)


def test_an_extension_that_was_interrupted_shows_whole_runs_and_goes_on(tmp_path: Path) -> None:
    def stop(done: int, total: int, trace: Any) -> None:
        if done == 2:
            raise KeyboardInterrupt

    run(tmp_path / "run", 3)
    found = run(tmp_path / "run", 6, finished=stop)
    assert found.interrupted
    assert lacking(found).startswith("2 runs of fewer than 6 rounds left out")
    half = Comparison.load(tmp_path / "run")
    assert [(t.label, t.seed, t.rounds) for t in half.traces] == [("md", 0, 6), ("uniform", 0, 6)]
    assert half.settings["shorter"] == 2
    done: list[int] = []
    assert len(run(tmp_path / "run", 6, finished=lambda a, b, t: done.append(a)).traces) == 4
    assert done == [3, 4]


def test_a_folder_without_the_ends_of_runs_begins_again_and_says_so(tmp_path: Path) -> None:
    run(tmp_path / "run", 3)
    for path in (tmp_path / "run" / "states").iterdir():
        path.unlink()
    with pytest.warns(FedcohortWarning, match="Its runs are not extended but begin again"):
        longer = run(tmp_path / "run", 6)
    for one, other in zip(longer.traces, run(tmp_path / "new", 6).traces, strict=True):
        same(one, other)
