"""A server that is killed goes on where it stopped."""

from __future__ import annotations

import numpy as np
import pytest

import fedcohort
from fedcohort._internal import store
from fedcohort._internal.errors import BadCheckpoint, BadInput, CannotSave, FedcohortError, InUse
from fedcohort.server import Adam, Memory, Redraw

pytest.importorskip("flwr")
from flwr.app import (
    ConfigRecord,
    Message,
)

from fedcohort import flower
from helpers.flower_play import (
    QUICK,
    ROUNDS,
    Coming,
    Counting,
    N,
    app,
    play,
    silent,
    task,
)


class Dies(flower.InProcessGrid):
    """The server is killed at the n-th exchange: before or after the clients have answered."""

    def __init__(self, at: int, after: bool, silent: tuple[int, ...] = ()) -> None:
        super().__init__(app(), N)
        self.left, self.after, self.silent = at, after, silent

    def deliver(self, message: Message) -> Message | None:
        away = self.partition[message.metadata.dst_node_id] in self.silent
        if away and message.metadata.message_type == "train":
            return None
        return super().deliver(message)

    def push_messages(self, messages):
        self.left -= 1
        if self.left == 0 and not self.after:
            raise KeyboardInterrupt
        names = super().push_messages(messages)
        if self.left == 0:
            raise KeyboardInterrupt
        return names


@pytest.mark.parametrize(
    ("name", "after"),
    [("md", False), ("pow-d", False), ("pow-d", True), ("clustered-size", True)],
)
def test_a_server_that_is_killed_goes_on_with_the_same_cohorts(name, after, tmp_path) -> None:
    scheme = fedcohort.scheme(name, m=3, **({"d": 5} if name == "pow-d" else {}))
    whole, expected = play(flower.InProcessGrid(app(), N), scheme, rounds=5, optimiser=Adam())
    for at in (1, 2, 3, 6, 9, 11) if name == "pow-d" else range(1, 7):
        folder = tmp_path / f"{name}-{after}-{at}"
        with pytest.raises(KeyboardInterrupt):
            play(Dies(at, after), scheme, rounds=5, optimiser=Adam(), folder=folder)
        again, theta = play(
            flower.InProcessGrid(app(), N), scheme, rounds=5, optimiser=Adam(), folder=folder
        )
        np.testing.assert_array_equal(theta, expected)
        done = len(again.cohorts)
        assert again.cohorts == whole.cohorts[5 - done :]


@pytest.mark.parametrize("after", [False, True])
def test_a_server_that_is_killed_still_replaces_within_clusters(after: bool, tmp_path) -> None:
    groups = (0, 0, 0, 0, 1, 1, 1, 1)
    scheme = fedcohort.scheme("target", m=2, groups=groups)
    settings = {"rounds": 4, "importance": "equal", "dropouts": Redraw(attempts=3)}
    whole, expected = play(silent(0, 1, 2), scheme, **settings)
    for at in range(2, 6):
        folder = tmp_path / str(at)
        with pytest.raises(KeyboardInterrupt):
            play(Dies(at, after, (0, 1, 2)), scheme, **settings, folder=folder)
        again, theta = play(silent(0, 1, 2), scheme, **settings, folder=folder)
        assert again.cohorts == whole.cohorts[4 - len(again.cohorts) :]
        np.testing.assert_array_equal(theta, expected)


def test_a_server_that_is_killed_with_new_clients_goes_on_with_them(tmp_path) -> None:
    """They were let in and chosen among after model and memory were written down."""
    scheme = fedcohort.scheme("clustered-similarity", m=3)

    def began(folder=None):
        options = {"clients": N - 2, "seed": 3, "limits": QUICK, "aggregator": "memory"}
        strategy = flower.CohortStrategy(scheme, folder=folder, **options)
        return strategy, strategy.session.resumed(flower.first_model(task(), 3))

    def rounds(strategy, arrays, numbers, killed=None) -> None:
        grid = Coming(app(), N)
        for number in numbers:
            grid.hidden = {0, 3} if number < 4 else set()
            messages = list(strategy.configure_train(number, arrays, ConfigRecord(), grid))
            if number == killed:
                return
            arrays, _ = strategy.aggregate_train(number, grid.send_and_receive(messages))

    whole, arrays = began()
    rounds(whole, arrays, range(1, 7))
    first, arrays = began(tmp_path)
    rounds(first, arrays, range(1, 7), killed=4)
    again, arrays = began(tmp_path)
    session = again.session
    assert session.state.round == 3
    assert len(session.state.attendance.asked) == len(session.state.federation) == N
    rounds(again, arrays, range(4, 7))
    assert again.cohorts == whole.cohorts[3:]
    np.testing.assert_array_equal(session.state.theta, whole.session.state.theta)
    np.testing.assert_array_equal(
        session.state.attendance.asked, whole.session.state.attendance.asked
    )


@pytest.mark.parametrize(
    ("name", "after"), [("clustered-size", True), ("clustered-similarity", False)]
)
def test_a_server_that_is_killed_at_any_write_goes_on_with_the_same_cohorts(
    name: str, after: bool, tmp_path, monkeypatch
) -> None:
    scheme = fedcohort.scheme(name, m=3)
    whole, expected = play(flower.InProcessGrid(app(), N), scheme, rounds=3, aggregator=Memory())
    real = store.save
    for at in range(1, 9):  # 1 write at the beginning, 1 when the scheme begins, 2 a round
        left = [at]

        def save(*args, left=left):
            left[0] -= 1
            if left[0] == 0 and not after:
                raise KeyboardInterrupt
            real(*args)
            if left[0] == 0:
                raise KeyboardInterrupt

        settings = {"rounds": 3, "aggregator": Memory(), "folder": tmp_path / str(at)}
        with monkeypatch.context() as patch:
            patch.setattr(store, "save", save)
            with pytest.raises(KeyboardInterrupt):
                play(flower.InProcessGrid(app(), N), scheme, **settings)
        again, theta = play(flower.InProcessGrid(app(), N), scheme, **settings)
        np.testing.assert_array_equal(theta, expected)
        assert again.cohorts == whole.cohorts[3 - len(again.cohorts) :]


def test_a_table_that_scheme_and_estimator_share_is_written_once(tmp_path) -> None:
    scheme = fedcohort.scheme("clustered-similarity", m=3)
    strategy, _ = play(flower.InProcessGrid(app(), N), scheme, aggregator="memory", folder=tmp_path)
    state = strategy.session.state
    assert state.aggregator.latest is scheme.latest(state.scheme)
    with np.load(tmp_path / f"state-{ROUNDS:06d}.npz") as kept:
        assert kept["aggregator.latest.kept"].size == 0
        assert kept["state.latest.kept"].shape == (N, 2)


def test_a_cohort_that_was_written_down_is_not_drawn_again(tmp_path) -> None:
    """Losses have changed in between, so drawing again would choose others."""
    scheme = fedcohort.scheme("pow-d", m=2, d=8)
    grid = Counting(app(), N)
    strategy = flower.CohortStrategy(scheme, clients=N, seed=3, folder=tmp_path)
    arrays = flower.first_model(task(), 3)
    strategy.session.resumed(arrays)
    list(strategy.configure_train(1, arrays, ConfigRecord(), grid))
    chosen = strategy.session.selection.cohort
    asked = Counting(app(), N)
    again, _ = play(asked, scheme, rounds=1, folder=tmp_path)
    assert again.cohorts[0] == chosen
    assert sum(kind.startswith("query") for kind, _ in asked.seen) == N  # only: who are you?


def test_a_folder_of_another_run_is_refused_and_a_second_server_too(tmp_path) -> None:
    play(flower.InProcessGrid(app(), N), fedcohort.scheme("md", m=3), folder=tmp_path)
    with pytest.raises(BadInput, match=r"holds a run of md\(m=3\)"):
        play(flower.InProcessGrid(app(), N), fedcohort.scheme("md", m=4), folder=tmp_path)
    strategy = flower.CohortStrategy("full", clients=N, folder=tmp_path / "x")
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch, strategy.session.folder.locked():
        patch.setattr("fedcohort.flower._session.PATIENCE", 0.05)
        with pytest.raises(InUse, match="Another server runs on the folder"):
            strategy.start(flower.InProcessGrid(app(), N), flower.first_model(task(), 0))


def test_a_folder_that_cannot_be_is_one_sentence(tmp_path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        strategy = flower.CohortStrategy("full", clients=N, folder=folder)
        with pytest.raises(CannotSave, match=r"The folder '.*file.*' cannot be used .* choose one"):
            strategy.start(flower.InProcessGrid(app(), N), flower.first_model(task(), 0))


def test_a_finished_run_is_not_run_again(tmp_path) -> None:
    _, theta = play(flower.InProcessGrid(app(), N), "full", folder=tmp_path)
    strategy, again = play(flower.InProcessGrid(app(), N), "full", folder=tmp_path)
    assert strategy.cohorts == []
    np.testing.assert_array_equal(theta, again)


@pytest.mark.parametrize("name", ["cluster", "cluster-neyman", "hcsfed"])
def test_a_server_that_is_killed_keeps_law_and_ledger_of_a_scheme_that_asks(name, tmp_path) -> None:
    scheme = fedcohort.scheme(name, m=3, strata=3)
    away = silent(0, 1, 2)
    whole, expected = play(away, scheme, rounds=4, quorum=0.0)
    for at in range(3, 8):
        folder = tmp_path / str(at)
        with pytest.raises(KeyboardInterrupt):
            play(Dies(at, False, (0, 1, 2)), scheme, rounds=4, quorum=0.0, folder=folder)
        again, theta = play(silent(0, 1, 2), scheme, rounds=4, quorum=0.0, folder=folder)
        assert again.cohorts == whole.cohorts[4 - len(again.cohorts) :]
        np.testing.assert_array_equal(theta, expected)
        booked = {purpose for purpose, _ in again.ledger.by_purpose().items()}
        assert booked == {purpose for purpose, _ in whole.ledger.by_purpose().items()}
        cost, once = (each.ledger.by_purpose()["training"] for each in (again, whole))
        assert (cost.messages, cost.bytes_up) == (once.messages, once.bytes_up)
        assert cost.bytes_down >= once.bytes_down  # who has the model is known to the dead alone


def forged(folder, change) -> None:
    """Change the newest state of a folder; its checksum is right."""
    path = max(folder.glob("state-*.npz"))
    header, arrays = store.load(path, "flower-state")
    change(header, arrays)
    store.save(path, header, arrays)


@pytest.mark.parametrize(
    "value", [-1, None, "x", [[1]], {"a": 1}, "9" * 5000, pytest.param(10**400, id="huge"), True]
)
@pytest.mark.parametrize("name", ["scheme", "parameters", "facts", "seed", "round", "ids", "state"])
def test_a_forged_header_ends_in_a_sentence(tmp_path, name, value) -> None:
    scheme = "clustered-similarity:m=3"
    play(flower.InProcessGrid(app(), N), scheme, 2, folder=tmp_path)
    forged(tmp_path, lambda header, arrays: header.update({name: value}))
    if (name, value) == ("state", None):  # nothing is remembered yet
        play(flower.InProcessGrid(app(), N), scheme, 3, folder=tmp_path)
        return
    with pytest.raises((BadCheckpoint, BadInput)) as caught:
        play(flower.InProcessGrid(app(), N), scheme, 3, folder=tmp_path)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("value", [-1, None, "x", [[1]], {"a": 1}, True, 10**15])
@pytest.mark.parametrize("name", ["latest", "length", "seed"])
def test_a_forged_memory_of_a_scheme_ends_in_a_sentence(tmp_path, name, value) -> None:
    scheme = "clustered-similarity:m=3"
    play(flower.InProcessGrid(app(), N), scheme, 2, folder=tmp_path)
    forged(tmp_path, lambda header, arrays: header["state"].update({name: value}))
    if (name, value) == ("seed", 10**15):  # as good as any other
        play(flower.InProcessGrid(app(), N), scheme, 3, folder=tmp_path)
        return
    with pytest.raises(FedcohortError):
        play(flower.InProcessGrid(app(), N), scheme, 3, folder=tmp_path)


@pytest.mark.parametrize("value", [1e300, -1.0])
@pytest.mark.parametrize(
    "name", ["distances", "rows_apart", "tree", "latest.kept", "latest.recent", "groups"]
)
def test_forged_numbers_of_a_scheme_end_in_a_sentence(tmp_path, name, value) -> None:
    scheme = "clustered-similarity:m=3"
    play(flower.InProcessGrid(app(), N), scheme, 2, folder=tmp_path)

    def change(header, arrays) -> None:
        like = arrays[f"state.{name}"]
        arrays[f"state.{name}"] = np.full(like.shape, value)

    forged(tmp_path, change)
    if name.startswith("latest") and value < 0:  # an update may have any direction
        play(flower.InProcessGrid(app(), N), scheme, 3, folder=tmp_path)
        return
    with pytest.raises(BadCheckpoint, match="does not hold a whole run"):
        play(flower.InProcessGrid(app(), N), scheme, 3, folder=tmp_path)


def test_distances_between_rows_that_a_file_lacks_are_computed(tmp_path) -> None:
    scheme = "clustered-similarity:m=3"
    whole, expected = play(flower.InProcessGrid(app(), N), scheme, 4)
    play(flower.InProcessGrid(app(), N), scheme, 2, folder=tmp_path)
    forged(tmp_path, lambda header, arrays: arrays.update({"state.rows_apart": np.empty((0, 0))}))
    again, theta = play(flower.InProcessGrid(app(), N), scheme, 4, folder=tmp_path)
    assert again.cohorts == whole.cohorts[2:]
    np.testing.assert_array_equal(theta, expected)
