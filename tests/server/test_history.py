"""The records of a run in a folder: readable while it goes on, and after it was killed."""

from __future__ import annotations

import json
import math
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort._internal import files as journal
from fedcohort._internal.errors import BadCheckpoint, CannotSave
from fedcohort.selection import Cohort
from fedcohort.server._history import FILE, History, is_history, read
from fedcohort.server._ledger import Entry
from fedcohort.server._records import Record

SETTINGS: dict[str, Any] = {"scheme": "md", "parameters": {"m": 2}, "seed": 7, "rounds": 5}


def record(round: int, clients: tuple[int, ...] = (0, 2), **changes: Any) -> Record:
    weights = [1 / (3 + client) for client in clients]
    entries = (Entry(round, "training", 2, 4, 100, 50, "the model update"),)
    cohort = Cohort.of(clients, weights)
    return Record(round, cohort, np.array(clients), 3, entries=entries, **changes)


def test_what_was_written_is_read_bit_for_bit(tmp_path: Path) -> None:
    assert not is_history(tmp_path)
    history = History(tmp_path)
    history.settings(SETTINGS)
    history.append(record(0, faults={"missing": 1}, seconds=(0.1, 0.3)))
    history.append(record(1, void=True, filled=1 / 3))
    assert is_history(tmp_path)
    settings, records = read(tmp_path)
    assert settings == SETTINGS
    assert [each.as_json() for each in records] == [
        record(0, faults={"missing": 1}, seconds=(0.1, 0.3)).as_json(),
        record(1, void=True, filled=1 / 3).as_json(),
    ]


def test_metrics_come_later_and_need_not_be_finite(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.append(record(0, metrics={"loss": math.inf, "f1": 0.5}))
    history.metrics(0, {"accuracy": 0.25}, "evaluate")
    history.metrics(0, {"loss": np.float32(0.5)}, "server")
    history.metrics(0, {"rows": [1.0, 2.0], "x": math.nan})  # type: ignore[dict-item]
    history.metrics(0, {})
    (found,) = read(tmp_path)[1]
    assert set(found.metrics) == {"loss", "f1", "evaluate/accuracy", "server/loss", "x"}
    assert math.isnan(found.metrics["loss"])
    assert found.metrics["server/loss"] == 0.5


def test_settings_are_written_once_and_again_where_they_change(tmp_path: Path) -> None:
    History(tmp_path).settings(SETTINGS)
    size = (tmp_path / FILE).stat().st_size
    again = History(tmp_path)
    again.settings(SETTINGS)
    assert (tmp_path / FILE).stat().st_size == size
    again.settings({**SETTINGS, "rounds": 9})
    again.settings({"sizes": np.array([3, 4]), "limit": math.inf, "shape": (2, 3), "what": None})
    assert read(tmp_path)[0] == {
        **SETTINGS, "rounds": 9, "sizes": [3, 4], "limit": "inf", "shape": [2, 3], "what": None,
    }  # fmt: skip
    assert (tmp_path / FILE).read_text().count('"scheme"') == 1


def test_a_round_played_again_counts_once(tmp_path: Path) -> None:
    History(tmp_path).append(record(0))
    resumed = History(tmp_path)
    resumed.append(record(0, clients=(1,)))
    resumed.append(record(1))
    _, records = read(tmp_path)
    assert [each.round for each in records] == [0, 1]
    assert records[0].cohort.clients.tolist() == [1]


def test_clients_that_come_later_have_their_place_in_all_records(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.settings({"ids": ["b", "d"], "importance": [0.5, 0.5]})
    history.append(record(0, clients=(0, 1)))
    history.settings({"ids": ["a", "b", "c", "d"], "importance": [0.25] * 4})
    history.append(record(1, clients=(0, 3)))
    settings, (first, second) = read(tmp_path)
    assert settings["ids"] == ["a", "b", "c", "d"]
    assert first.cohort.clients.tolist() == [1, 3] == first.invited.tolist()
    assert first.cohort.weights.tolist() == [1 / 3, 1 / 4]
    assert second.cohort.clients.tolist() == [0, 3]
    history.settings({"ids": ["a", "b"]})
    with pytest.raises(BadCheckpoint, match="names a client that is not known"):
        read(tmp_path)


def test_every_cut_can_be_read_and_gone_on_with(tmp_path: Path) -> None:
    """A crash leaves a prefix; a reader takes the whole lines and leaves the rest as it is."""
    history = History(tmp_path)
    history.settings(SETTINGS)
    history.append(record(0))
    history.append(record(1))
    path = tmp_path / FILE
    content = path.read_bytes()
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        lines = content[:length].count(b"\n")
        settings, records = read(tmp_path)
        assert settings == (SETTINGS if lines else {})
        assert [each.round for each in records] == list(range(max(0, lines - 1)))
        assert path.read_bytes() == content[:length]
        History(tmp_path).append(record(7))
        assert read(tmp_path)[1][-1].round == 7


def test_a_killed_writer_leaves_what_it_finished(tmp_path: Path) -> None:
    code = """
import sys; sys.path.insert(0, sys.argv[2])
from test_history import *
history = History(Path(sys.argv[1]))
history.settings(SETTINGS)
round = 0
while True:
    history.append(record(round)); print(round, flush=True); round += 1
"""
    here = str(Path(__file__).parent)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), here], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for _ in range(20):
            told = int(writer.stdout.readline())
        assert len(read(tmp_path)[1]) >= told + 1  # while it writes
        os.kill(writer.pid, signal.SIGKILL)
        told = max([told, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    settings, records = read(tmp_path)
    assert settings == SETTINGS
    assert len(records) >= told + 1
    assert [each.round for each in records] == list(range(len(records)))


def test_damage_and_foreign_files_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match=r"has no history\.jsonl"):
        read(tmp_path)
    history = History(tmp_path)
    history.append(record(0))
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(content.replace(b"training", b"TRAINING"))
    with pytest.raises(BadCheckpoint, match="its report does"):
        read(tmp_path)
    with pytest.raises(BadCheckpoint, match="damaged at line 1"):
        History(tmp_path).append(record(1))
    (tmp_path / FILE).write_bytes(content)
    history._append({"metrics": {"x": 1.0}})
    with pytest.raises(BadCheckpoint, match="of another version"):
        read(tmp_path)


def test_a_folder_that_cannot_be_written_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotSave, match="cannot be written"):
        History(tmp_path / "none").append(record(0))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_is_neither_read_nor_written(tmp_path: Path, make: Any) -> None:
    make(tmp_path / FILE)
    history = History(tmp_path)
    for _ in range(2):  # what could not be read is not taken for an empty file the second time
        with pytest.raises(CannotSave, match=r"it is (a folder|no plain file)"):
            history.settings(SETTINGS)
        with pytest.raises(CannotSave, match=r"it is (a folder|no plain file)"):
            history.append(record(0))
    with pytest.raises(BadCheckpoint, match=r"cannot be read: it is (a folder|no plain file)"):
        read(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        {"settings": 5},
        {"record": 5},
        {"record": {**record(0).as_json(), "available": 1e400}},
        {"record": {**record(0).as_json(), "filled": "x" * 5000}},
        {"round": 0, "metrics": {"x": 10**400}},
        {"round": 1e400, "metrics": {}},
    ],
)
def test_lines_that_nobody_wrote_get_a_sentence(tmp_path: Path, line: dict[str, Any]) -> None:
    text = json.dumps(line)
    digest = journal._chained("", text)
    (tmp_path / FILE).write_text(f"{digest} {text}\n")
    with pytest.raises(BadCheckpoint) as caught:
        read(tmp_path)
    assert len(str(caught.value)) < 300
    History(tmp_path).settings(SETTINGS)  # the run itself does not need it


def test_clients_whose_names_are_no_names_get_a_sentence(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.settings({"ids": [[1], [2]]})
    history.append(record(0))
    history.settings({"ids": [[1], [2], [3]]})
    with pytest.raises(BadCheckpoint, match="names a client that is not known"):
        read(tmp_path)


def test_records_are_for_the_owner_of_the_run(tmp_path: Path) -> None:
    History(tmp_path).append(record(0))
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
