"""Old public names work for one more version, and say what they are called now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import fedcohort
from fedcohort import core, server
from fedcohort.core.renamed import PARTS
from fedcohort.learning import Quadratic
from fedcohort.server.history import History, read
from fedcohort.simulation import Comparison


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (fedcohort, "Moment", "RoundContext"),
        (core, "Moment", "RoundContext"),
        (server, "Estimator", "Aggregator"),
        (server, "Nothing", "AsDrawn"),
        (server, "estimator", "aggregator"),
        (fedcohort, "estimator", "aggregator"),
    ],
)
def test_an_old_name_is_the_new_thing_with_a_warning(module, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} has become .*{new}") as heard:
        assert getattr(module, old) is getattr(module, new)
    assert {each.filename for each in heard} == {__file__}, "it points at the caller"


def test_a_name_that_never_was_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Moments'"):
        _ = fedcohort.Moments


TASK = Quadratic([[0.0], [1.0], [3.0]], sizes=[1, 2, 3])
NEW = {"optimiser": "adam", "aggregator": "memory"}
OLD = {"server": "adam", "estimator": "memory"}


def as_it_was(settings: dict[str, object]) -> dict[str, object]:
    """Settings as an older version wrote them."""
    before = {new: old for old, new in PARTS.items()}
    return {before.get(key, key): value for key, value in settings.items()}


def test_folders_that_an_older_version_wrote_are_read_and_resumed(tmp_path: Path) -> None:
    options = {"rounds": 2, "folder": tmp_path, "jobs": 1, **NEW}
    whole = fedcohort.compare(TASK, "md:m=2", seeds=1, **options)
    (file,) = tmp_path.glob("*.npz")
    trace = whole.traces[0]
    replace(trace, settings=as_it_was(dict(trace.settings))).save(file)
    path = tmp_path / "settings.json"
    told = json.loads(path.read_text())
    assert {*NEW} <= {*told["options"]}
    path.write_text(json.dumps({**told, "options": as_it_was(told["options"])}))
    again = Comparison.load(tmp_path)
    assert again.traces[0].settings == trace.settings
    assert again.settings["options"] == told["options"]
    more = fedcohort.compare(TASK, "md:m=2", seeds=2, **options)
    assert [each.seed for each in more.traces] == [0, 1]
    assert json.loads(path.read_text())["options"] == told["options"]


def test_a_history_that_an_older_version_wrote_is_read(tmp_path: Path) -> None:
    History(tmp_path).settings(OLD)
    settings, _ = read(tmp_path)
    assert settings == NEW
