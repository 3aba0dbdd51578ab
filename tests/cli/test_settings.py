"""``fedcohort settings``: what it lists is what `compare` takes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fedcohort import data
from fedcohort.cli import app
from fedcohort.data.partition import PARTITIONS
from fedcohort.server import aggregator, optimiser
from fedcohort.server._guards import GUARDS
from fedcohort.simulation import availability, devices
from fedcohort.simulation._problem import MODELS

run = CliRunner().invoke


@pytest.fixture(scope="module")
def listed():
    return json.loads(run(app(), ["settings", "--json"]).stdout)


def test_all_are_listed_with_a_summary(listed):
    names = {option: [row["name"] for row in rows] for option, rows in listed.items()}
    assert names["--data"] == list(data.names())
    assert names["--partition"] == list(PARTITIONS)
    assert names["--model"] == list(MODELS)
    assert all(row["summary"] for rows in listed.values() for row in rows)


def test_the_defaults_are_settings_that_are_taken(listed):
    for row in listed["--optimiser"]:
        assert optimiser(row["name"], **row["settings"]) == optimiser(row["name"])
    for row in listed["--availability"]:
        if row["name"] == "replay":  # of which file must be said
            continue
        assert availability(row["name"], **row["settings"]) == availability(row["name"])
    for row in listed["--aggregator"]:
        assert aggregator(row["name"], **row["settings"]) == aggregator(row["name"])
    for row in listed["--devices"]:
        if row["name"] != "table":
            assert devices(row["name"], **row["settings"]) == devices(row["name"])
    for row in listed["--guard"]:
        assert GUARDS.build(row["name"], **row["settings"]) == GUARDS.build(row["name"])
    assert {row["name"] for row in listed["--aggregator"]} >= {"memory", "plain"}


def test_what_must_be_given_stands_without_a_value():
    shown = run(app(), ["settings"]).stdout
    assert "dirichlet-per-class:n,alpha,min_size=1" in shown
    assert "mlp:hidden=50" in shown


def test_a_data_set_that_is_not_there_is_said_to_be_missing(monkeypatch, tmp_path):
    monkeypatch.setattr("fedcohort.data._sources.search_folders", lambda *_: [tmp_path])
    monkeypatch.setenv("FEDCOHORT_DATA", str(tmp_path))
    shown = run(app(), ["settings"]).stdout
    assert "compare --data mnist says where" in " ".join(shown.split())
