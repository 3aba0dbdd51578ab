"""What is measured beside losses and accuracy, against plain loops."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from typer.testing import CliRunner

from fedcohort import Comparison, LocalWork, Trace, compare, report, simulate
from fedcohort._internal import store
from fedcohort._internal.errors import BadInput, BadParameter, FedcohortError, UnknownName
from fedcohort.cli import app
from fedcohort.maths._statistics import f1_by_class, macro_f1, worst_share
from fedcohort.report import _ranking
from fedcohort.report._tables import sheets as all_sheets
from fedcohort.training import ClientData, Dense, LearningTask, PlainLoop, Quadratic, Softmax

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype(np.float32)
Y = RNG.integers(0, 3, 60)
CLIENTS_ROWS = [np.arange(0, 20), np.arange(20, 26), np.arange(26, 60)]
X_TEST = RNG.normal(size=(30, 4)).astype(np.float32)
Y_TEST = RNG.integers(0, 3, 30)
CLIENTS = "client-accuracy"
OWN = [np.array([3, 1, 4, 15, 9]), np.arange(0), np.array([2, 6, 5, 3])]  # one is held twice
WORK = LocalWork(steps=5, lr=0.3, batch=8)


def softmax(**options: Any) -> Softmax:
    return Softmax(X, Y, X_TEST, Y_TEST, CLIENTS_ROWS, 3, **options)


def own() -> Softmax:
    return softmax(test_clients=OWN, importance=[0.5, 0.3, 0.2])


def by_hand(task: LearningTask, theta: NDArray[Any]) -> list[float]:
    right = task.predictions(theta) == Y_TEST
    return [float(right[rows].mean()) if len(rows) else np.nan for rows in OWN]


@pytest.mark.parametrize("trainer", ["batched", "plain"])
def test_accuracy_on_clients_own_tests(trainer: str) -> None:
    task: LearningTask = own()
    if trainer == "plain":
        data = ClientData.divide(X, Y, X_TEST, Y_TEST, CLIENTS_ROWS, 3, OWN)
        task = LearningTask(Dense((4, 3), start="zero"), data, PlainLoop(), [0.5, 0.3, 0.2])
    thetas = RNG.normal(size=(40, task.dimension))
    found = task.evaluate(thetas).client_accuracy
    np.testing.assert_allclose(found, [by_hand(task, theta) for theta in thetas])
    assert softmax().evaluate(thetas).client_accuracy is None


def test_the_papers_mean_the_worst_tenth_and_the_spread() -> None:
    task = own()
    trace = simulate(task, "full", rounds=3, work=WORK)
    each = by_hand(task, trace.model)
    np.testing.assert_allclose(trace.client_accuracy, each)
    a, _, b = each  # the second has no test samples: it does not count
    assert trace.metrics["client_accuracy"][-1] == pytest.approx((0.5 * a + 0.2 * b) / 0.7)
    assert trace.metrics["client_worst_tenth"][-1] == pytest.approx(min(a, b))
    assert trace.metrics["client_spread"][-1] == pytest.approx(abs(a - b) / 2)


@given(
    st.lists(st.floats(0, 1) | st.just(float("nan")), min_size=1, max_size=30),
    st.sampled_from([0.1, 0.25, 0.5, 1.0]),
)
def test_the_worst_share_by_hand(values: list[float], share: float) -> None:
    there = sorted(v for v in values if v == v)
    count = max(1, -int(-Fraction(str(share)) * len(there) // 1))
    expected = np.mean(there[:count]) if there else np.nan
    np.testing.assert_allclose(worst_share([values], share), [expected])


def test_where_the_test_set_is_everybody_s_labels_are_mixed() -> None:
    """The expectation over test sets with a client's labels, by exact enumeration of a draw."""
    task = softmax()
    trace = simulate(task, "full", rounds=2, work=WORK, measures="client-accuracy")
    right = task.predictions(trace.model) == Y_TEST
    exact = Fraction(0)
    for rows in CLIENTS_ROWS:
        drawn = [  # a label of the client, then a test sample of that label
            Fraction(int(right[y == Y_TEST].sum()), int((y == Y_TEST).sum())) for y in Y[rows]
        ]
        exact += Fraction(len(rows), len(Y)) * sum(drawn) / len(drawn)
    assert trace.metrics["client_accuracy"][-1] == pytest.approx(float(exact))


def test_a_class_without_test_samples_does_not_count() -> None:
    there = Y_TEST != 2
    clients = [np.flatnonzero(Y == 2), np.flatnonzero(Y != 2)]
    task = Softmax(X, Y, X_TEST[there], Y_TEST[there], clients, 3)
    trace = simulate(task, "full", rounds=1, work=WORK, measures=["client-accuracy"])
    told = task.predictions(trace.model)
    y = Y_TEST[there]
    shares = [(c == Y).sum() / (Y != 2).sum() for c in (0, 1)]
    expected = sum(s * (told[y == c] == c).mean() for c, s in enumerate(shares))
    assert trace.metrics["client_accuracy"][0] == pytest.approx(expected)


labels = st.integers(2, 6).flatmap(
    lambda c: st.tuples(
        st.just(c),
        st.lists(st.tuples(st.integers(0, c - 1), st.integers(0, c - 1)), min_size=1, max_size=40),
    )
)


@given(labels)
def test_macro_f1_is_scikit_learn_s(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    from sklearn.metrics import f1_score

    classes, pairs = drawn
    truth, told = zip(*pairs, strict=True)
    expected = f1_score(truth, told, average="macro", zero_division=0)
    assert macro_f1(truth, told, classes) == pytest.approx(expected)


def test_f1_of_every_round_and_of_every_class() -> None:
    task = softmax()
    trace = simulate(task, "full", rounds=4, work=WORK, measures=["f1"], evaluate_every=2)
    told = task.predictions(trace.model)
    assert trace.metrics["f1"][-1] == pytest.approx(macro_f1(Y_TEST, told, 3))
    assert np.flatnonzero(np.isfinite(trace.metrics["f1"])).tolist() == [1, 3]
    np.testing.assert_allclose(trace.f1, f1_by_class(Y_TEST, told, 3))
    assert simulate(Quadratic([[0.0]]), "full", rounds=1).f1.shape == (0,)


def test_perplexity_is_measured_where_the_next_token_is_told() -> None:
    tokens = RNG.integers(0, 3, (60, 4))
    data = ClientData.divide(tokens, Y, tokens[:30], Y_TEST, CLIENTS_ROWS, 3, vocabulary=3)
    task = LearningTask(Dense((4, 3), start="zero"), data)
    trace = simulate(task, "full", rounds=2, work=WORK)
    np.testing.assert_allclose(trace.metrics["perplexity"], np.exp(trace.test_loss))
    assert trace.initial[1] == pytest.approx(np.log(3))
    assert "perplexity" not in simulate(softmax(), "full", rounds=1, work=WORK).metrics


def test_the_first_model_is_measured() -> None:
    task = softmax()
    trace = simulate(task, "md:m=2", rounds=2, work=WORK)
    found = task.evaluate(task.initial(0)[None])
    first = [found.train_loss[0], found.test_loss[0], found.accuracy[0]]
    np.testing.assert_array_equal(trace.initial, first)


def test_of_several_models_each_client_has_its_own() -> None:
    """As IFCA has them: every client is served by the model with the lowest loss for it."""
    task = own()
    trace = simulate(
        task, "full", rounds=3, work=WORK, algorithm="ifca:k=2", measures=["f1", CLIENTS]
    )
    models = trace.model.reshape(2, -1)
    best = task.client_losses(models).argmin(axis=0)
    right = [task.predictions(theta) == Y_TEST for theta in models]
    each = [
        right[j][rows].mean() if len(rows) else np.nan for j, rows in zip(best, OWN, strict=True)
    ]
    np.testing.assert_allclose(trace.client_accuracy, each)
    mean = (0.5 * each[0] + 0.2 * each[2]) / 0.7
    assert trace.metrics["client_accuracy"][-1] == pytest.approx(mean)
    shares = [sum(p for p, j in zip(task.importance, best, strict=True) if j == k) for k in (0, 1)]
    told = [task.predictions(theta) for theta in models]
    expected = sum(s * macro_f1(Y_TEST, t, 3) for s, t in zip(shares, told, strict=True))
    assert trace.metrics["f1"][-1] == pytest.approx(expected)
    classes = sum(s * f1_by_class(Y_TEST, t, 3) for s, t in zip(shares, told, strict=True))
    np.testing.assert_allclose(trace.f1, classes)
    mixed = simulate(softmax(), "full", rounds=2, work=WORK, algorithm="ifca:k=2", measures=CLIENTS)
    task, models = softmax(), mixed.model.reshape(2, -1)
    best = task.client_losses(models).argmin(axis=0)
    right = [task.predictions(theta) == Y_TEST for theta in models]
    levels = [
        np.mean([right[j][y == Y_TEST].mean() for y in Y[rows]])
        for j, rows in zip(best, CLIENTS_ROWS, strict=True)
    ]
    level = task.importance @ levels
    assert mixed.metrics["client_accuracy"][-1] == pytest.approx(level)


def test_a_model_that_tells_no_class_is_not_asked_to() -> None:
    class Mute(Dense):
        def predictions(self, theta: Any, x: Any) -> Any:
            return None

    data = ClientData.divide(X, Y, X_TEST, Y_TEST, CLIENTS_ROWS, 3, OWN)
    task = LearningTask(Mute((4, 3), start="zero"), data, PlainLoop())
    trace = simulate(task, "full", rounds=1, work=WORK, measures=[])
    assert len(trace.f1) == len(trace.client_accuracy) == 0
    assert np.isfinite(trace.initial[1])


# Evaluation on some samples

sizes = st.lists(st.integers(0, 12), min_size=1, max_size=8).filter(sum)


@given(sizes, st.integers(1, 60), st.booleans())
def test_a_subset_has_every_client_s_share(sizes: list[int], samples: int, tests: bool) -> None:
    total = sum(sizes)
    ends = np.cumsum([0, *sizes])
    order = np.random.default_rng(1).permutation(total)
    clients = [order[a:b] for a, b in pairwise(ends)]
    x = np.arange(total)[:, None]
    held = clients if tests else None
    data = ClientData.divide(x, x[:, 0] % 2, x, x[:, 0] % 2, clients, 2, held)
    few, again = data.subset(samples), data.subset(samples)
    for i, rows in enumerate(clients):
        mine = few.samples(few.part(i))[0][:, 0].tolist()
        assert mine == again.samples(again.part(i))[0][:, 0].tolist()
        assert set(mine) <= set(rows.tolist())
        assert len(set(mine)) == len(mine)
        wish = samples * len(rows) / total
        assert abs(len(mine) - min(len(rows), max(wish, 1 if len(rows) else 0))) <= 0.5
        if tests:
            theirs = few.test_samples(i)[0][:, 0].tolist()
            assert set(theirs) <= set(rows.tolist())
            assert bool(theirs) == bool(len(rows))
    if not tests:
        assert len(few.y_test) == min(total, samples)


def test_evaluation_on_a_subset_and_on_all() -> None:
    task = own()
    whole = simulate(task, "md:m=2", rounds=3, work=WORK)
    all_of_it = simulate(task, "md:m=2", rounds=3, work=WORK, evaluate_on=1000)
    np.testing.assert_allclose(all_of_it.train_loss, whole.train_loss, rtol=1e-6)
    np.testing.assert_array_equal(all_of_it.client_accuracy, whole.client_accuracy)
    some = simulate(task, "md:m=2", rounds=3, work=WORK, evaluate_on=12)
    np.testing.assert_array_equal(some.model, whole.model)  # training is not touched
    assert some.sizes.tolist() == [20, 6, 34]
    assert some.settings["evaluate_on"] == 12
    few = task.subset(12)
    assert few.sizes.tolist() == [4, 1, 7]
    np.testing.assert_array_equal(few.importance, task.importance)
    expected = sum(p * loss for p, loss in zip(few.importance, some.client_losses, strict=True))
    assert some.train_loss[-1] == pytest.approx(expected)


def test_what_cannot_be_measured_is_told_before_the_first_round() -> None:
    flat = Quadratic([[0.0], [1.0]])
    with pytest.raises(
        UnknownName, match=r"no measure named 'f2'\. Known: client-accuracy, f1, perp"
    ):
        simulate(softmax(), "full", rounds=1, measures="f2")
    with pytest.raises(BadInput, match=r"measure 'f1' needs classes and a test set; .*'quadratic'"):
        simulate(flat, "full", rounds=1, measures=["f1"])
    without = Softmax(X, Y, None, None, CLIENTS_ROWS, 3)
    with pytest.raises(BadInput, match="needs classes and a test set"):
        simulate(without, "full", rounds=1, measures=["client-accuracy"])
    with pytest.raises(BadInput, match="'quadratic' cannot be evaluated on some of its samples"):
        simulate(flat, "full", rounds=1, evaluate_on=3)
    for name in ("evaluate_on", "defer"):
        with pytest.raises(BadParameter, match=f"'{name}' parameter of simulate"):
            simulate(flat, "full", rounds=1, **{name: 0})  # type: ignore[arg-type]


# In trace, table and report


def test_traces_keep_it_and_older_ones_are_read(tmp_path: Path) -> None:
    trace = simulate(own(), "full", rounds=2, work=WORK, measures=["client-accuracy", "f1"])
    trace.save(tmp_path / "new.npz")
    again = Trace.load(tmp_path / "new.npz")
    for name in ("initial", "client_accuracy", "f1"):
        np.testing.assert_array_equal(getattr(again, name), getattr(trace, name))
    assert again.metrics.keys() == trace.metrics.keys()
    header, arrays = store.load(tmp_path / "new.npz", "trace")
    later = ("initial", "client_accuracy", "f1")
    old = {k: v for k, v in arrays.items() if k not in later and not k.startswith("metric.")}
    store.save(tmp_path / "old.npz", header, old)
    before = Trace.load(tmp_path / "old.npz")
    assert np.isnan(before.initial).all()
    assert len(before.f1) == len(before.client_accuracy) == 0
    mixed = Comparison((before,), {"schemes": {"full": "full"}, "rounds": 2, "seeds": [0]})
    row = report.summary(mixed).iloc[0]
    assert np.isnan(row["initial_loss"])
    assert "f1" not in row


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare(
        own(), ["full", "md:m=2"], rounds=4, seeds=2, jobs=1, work=WORK,
        measures=["client-accuracy", "f1"], centralised=20,
    )  # fmt: skip


def test_the_table_has_it(compared: Comparison) -> None:
    table = report.summary(compared).set_index("scheme")
    for label in ("full", "md"):
        traces = compared.of(label)
        for name in ("client_worst_tenth", "f1"):
            expected = np.mean([trace.metrics[name][-1] for trace in traces])
            assert table.loc[label, name] == pytest.approx(expected)
        first = np.mean([trace.initial[0] for trace in traces])
        assert table.loc[label, "initial_loss"] == pytest.approx(first)
    assert len(compared.of("centralised")[0].client_accuracy) == 3
    classes = _ranking.f1_by_class(compared)
    assert len(classes) == 3 * 3
    sheets = all_sheets(compared)
    assert "f1" in sheets
    assert "progress-client_accuracy-raw" in sheets
    assert "accuracy" in sheets["participation"]


def test_the_page_and_the_terminal_show_it(
    compared: Comparison, tmp_path: Path, capsys: Any
) -> None:
    page = report.write(compared, tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("Accuracy of the worst tenth of clients", "Macro F1", "First loss"):
        assert words in page
    report.print_summary(compared)
    shown = capsys.readouterr().out
    assert "Worst tenth" in shown
    assert "F1" in shown


def test_the_command_line_has_it(tmp_path: Path) -> None:
    told = ["--rounds", "2", "--seeds", "1", "--jobs", "1"]
    told += ["--measure", "f1", "--measure", "client-accuracy"]
    more = ["--evaluate-on", "100", "--defer", "1", "--json", "--out", str(tmp_path)]
    shown = CliRunner().invoke(app(), ["compare", "full", *told, *more])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)[0]["f1"] > 0
    kept = json.loads((tmp_path / "settings.json").read_text())["options"]
    assert kept["evaluate_on"] == "100"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"measures": ["f2"]}, "no measure named 'f2'"),
        ({"evaluate_on": -1}, "'evaluate_on' parameter .* Got -1"),
        ({"evaluate_every": 0}, "'evaluate_every' parameter .* Got 0"),
        ({"defer": 0}, "'defer' parameter .* Got 0"),
    ],
)
def test_a_comparison_refuses_it_before_any_process_is_started(
    given: dict[str, Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedcohort.simulation._workers.Processes.each", None)
    with pytest.raises(FedcohortError, match=told):
        compare(softmax(), "md:m=2", rounds=1, folder=tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()
