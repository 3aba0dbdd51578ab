from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fedcohort import Federation, Selector, scheme, theory
from fedcohort.cli import app
from fedcohort.core.errors import BadInput


@pytest.fixture
def sizes(tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("id,size\n" + "".join(f"c{9 - i},{100 + 90 * i}\n" for i in range(10)))
    return path


def run(*words):
    result = CliRunner().invoke(app(), ["advise", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_table_and_words(sizes):
    text = run("--sizes", sizes, "-m", 3, "--model-bytes", 1000)
    for word in ("scheme", "Sigma", "uniform", "md", "Use ", "Corollary 1", "cannot know"):
        assert word in text
    assert "\x1b[" not in text  # plain when piped


def test_json_is_the_advice(sizes):
    found = json.loads(run("--sizes", sizes, "-m", 3, "--json", "--rounds", 7))
    expected = theory.advise([100 + 90 * i for i in range(10)], m=3, rounds=7)
    assert found["recommended"] == expected.recommended
    row = next(row for row in found["rows"] if row["name"] == "md")
    assert row["sigma"] == pytest.approx(expected.row("md").sigma)


def test_a_saved_selector(tmp_path):
    selector = Selector(scheme("md", m=2), Federation.from_sizes([5, 3, 2]), seed=1)
    selector.save(tmp_path / "run.npz")
    assert json.loads(run("--saved", tmp_path / "run.npz", "-m", 2, "--json"))["n"] == 3


def test_labels_and_updates_follow_the_order_of_the_file(sizes, tmp_path):
    """Ids c9..c0 are sorted by the federation; rows of the files must go with them."""
    rng = np.random.default_rng(0)
    counts, updates = rng.integers(1, 20, (10, 3)), rng.normal(size=(10, 2))
    (tmp_path / "labels.csv").write_text("\n".join(",".join(map(str, row)) for row in counts))
    np.save(tmp_path / "updates.npy", updates)
    plain = [100 + 90 * i for i in range(10)]  # the order of the file
    for option, path, known in (
        ("--labels", tmp_path / "labels.csv", {"label_histograms": counts}),
        ("--updates", tmp_path / "updates.npy", {"updates": updates}),
    ):
        found = json.loads(run("--sizes", sizes, "-m", 3, option, path, "--json"))
        expected = theory.advise(plain, m=3, **known)
        row = next(row for row in found["rows"] if row["name"] == "md")
        assert row["score"] == pytest.approx(expected.row("md").score)


def test_plot_and_settings(sizes, tmp_path):
    run("--sizes", sizes, "-m", 6, "--plot", tmp_path / "deep" / "m.png")
    assert (tmp_path / "deep" / "m.png").read_bytes()[:4] == b"\x89PNG"
    text = run("--sizes", sizes, "-m", 6, "--scheme", "poisson:cap=true", "--secure-aggregation")
    assert "poisson" in text.split("Use ")[0]


def test_one_source_only(sizes):
    with pytest.raises(BadInput, match="one of them"):
        run("-m", 3)
    with pytest.raises(BadInput, match="one of them"):
        run("-m", 3, "--sizes", sizes, "--saved", sizes)
