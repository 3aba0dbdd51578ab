"""``fedcohort reproduce``: lists, runs one or all, writes, and ends with what was found."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fedcohort._internal import registry
from fedcohort._internal.errors import own_line
from fedcohort.cli import app, main
from fedcohort_papers import command
from fedcohort_papers.recipes import RECIPES, Claim, Close, Computed, Exact, Recipe, Scale
from fedcohort_papers.reproduction import COMPUTED

MINE = """
from fedcohort_papers.recipes import Claim, Computed, Exact, Recipe, Scale


def compute(scale, seed):
    return Computed({"x": [1.0, 2.0]}, {"answer": scale.numbers["answer"]})


MINE = Recipe(
    "mine",
    "The answer",
    "A paper of mine",
    where="Table 1",
    compute=compute,
    scales={"quick": Scale(changed="Nothing.", numbers={"answer": 42})},
    claims=(Claim("the answer", "42", Exact("answer", 42, 0)),),
)
"""


def said(*words: object) -> Result:
    return CliRunner().invoke(app(), ["reproduce", *map(str, words)])


def made(name: str, answer: float, paper: str = "P") -> Recipe:
    def compute(scale: Scale, seed: int) -> Computed:
        if answer < 0:
            raise ValueError("no answer")
        return Computed(samples={"answer": answer})

    claim = Claim("the answer", "42", Exact("answer", 42, 0))
    return Recipe(name, "T", paper, compute=compute, scales={"quick": Scale()}, claims=(claim,))


def test_a_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_answer.py").write_text(MINE)
    found = said("./mine_answer.py")
    assert found.exit_code == 0, found.output
    assert "At this scale: Nothing." in found.output
    assert "A paper of mine, Table 1" in found.output
    folder = tmp_path / "reproduced" / "mine-quick"
    assert json.loads((folder / "mine.json").read_text())["verdict"] == "reproduced"
    assert (folder / "mine.csv").read_text().splitlines() == ["x", "1.0", "2.0"]


def test_the_example_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_of_the_docs.py").write_text(page.split("```python\n")[1].split("```")[0])
    found = said("./mine_of_the_docs.py", "--json", "--jobs", 1)
    assert found.exit_code in (0, 2, 3), found.output
    assert json.loads(found.stdout)["claims"][0]["units"] == 2


def test_an_entry_point_is_listed_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = SimpleNamespace(name="theirs", value="them:R", load=lambda: made("theirs", 42))
    honest = registry.entry_points

    def points(group: str) -> Any:
        return [point] if group == "fedcohort.recipes" else honest(group=group)

    monkeypatch.setattr(registry, "entry_points", points)
    RECIPES.refresh()
    try:
        listed = json.loads(said("--json").stdout)
        assert "theirs" in {row["name"] for row in listed}
        assert said("theirs", "--out", tmp_path).exit_code == 0
    finally:
        monkeypatch.undo()
        RECIPES.refresh()


def test_no_recipe_is_lost() -> None:
    """A recipe that is not found any more disappears without an error: count them."""
    assert len(RECIPES) == 53


def test_the_list_is_by_paper() -> None:
    found = said()
    assert found.exit_code == 0
    papers = [line for line in found.output.splitlines() if "On the Impact of Client" in line]
    assert len(papers) == 1
    assert "impact-fig4" in found.output
    rows = json.loads(said("--json").stdout)
    assert {"claims", "scales", "paper", "where"} <= rows[0].keys()
    only = json.loads(said("--paper", "impact", "--json").stdout)
    assert {row["name"].split("-")[0] for row in only} == {"impact"}
    names = [row["name"] for row in only]
    assert names.index("impact-fig2") < names.index("impact-fig10")


@pytest.mark.parametrize(("answer", "code"), [(42, 0), (43, 2)])
def test_exit_codes(
    answer: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "recipe", lambda name: made("x", answer))
    found = said("x", "--out", tmp_path, "--json")
    assert found.exit_code == code
    assert json.loads(found.stdout)["claims"][0]["printed"] == "42"


def test_an_undecided_claim_ends_with_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undecided = replace(
        made("x", 42),
        claims=(Claim("the answer", "42", Close(COMPUTED, "answer", 42, 1)),),
        compute=lambda scale, seed: Computed(samples={"answer": 42 + seed / 10}),
    )
    monkeypatch.setattr(command, "recipe", lambda name: undecided)
    found = said("x", "--out", tmp_path, "--seeds", 2)
    assert found.exit_code == 3
    assert "too few" in found.output


def test_a_scale_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    found = said("hcsfed-fig1", "--scale", "full", "--out", tmp_path / "new")
    assert "has no scale 'full'" in str(found.exception)
    assert not (tmp_path / "new").exists()


def test_numbers_that_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused for one recipe; of all they are left out with a word, and not recorded."""
    monkeypatch.setattr(command, "recipe", lambda name: made("x", 42))
    found = said("x", "--partitions", 5, "--out", tmp_path)
    assert "'partitions' parameter of the recipe 'x' must be 1" in str(found.exception)
    monkeypatch.setattr(command, "recipes", lambda: {"x": made("x", 42)})
    found = said("--all", "--seeds", 4, "--partitions", 5, "--out", tmp_path)
    assert found.exit_code == 0
    assert "x: --seeds 4 makes no difference, left out." in found.output
    facts = json.loads((tmp_path / "x-quick" / "x.json").read_text())
    assert (facts["seeds"], facts["partitions"]) == (1, 1)
    assert "--ray" not in found.output
    found = said("--all", "--ray", "local", "--out", tmp_path)
    assert found.exit_code == 0
    assert "it computes here, in this process: --ray makes no difference" in found.output


def test_the_list_says_how_much_a_scale_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = {"quick": Scale(), "standard": Scale(seeds=3, partitions=5), "full": Scale(minutes=7)}
    monkeypatch.setattr(command, "recipes", lambda: {"x": replace(made("x", 42), scales=scales)})
    found = " ".join(said().output.split())
    assert "x T 1 3 x 5 1, 7 min" in found
    assert "yes" not in found


def test_all_go_on_after_one_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = {"good": made("good", 42), "bad": made("bad", -1), "wrong": made("wrong", 7, "Q")}
    monkeypatch.setattr(command, "recipes", lambda: every)
    found = said("--all", "--out", tmp_path)
    assert found.exit_code == 1
    assert "no answer" in found.output
    for name in every:
        assert name in found.stdout
    assert (tmp_path / "wrong-quick" / "wrong.json").is_file()
    assert said("--all", "--paper", "q", "--out", tmp_path).exit_code == 2
    every.pop("bad")
    every.pop("wrong")
    assert said("--all", "--out", tmp_path).exit_code == 0
    assert said("--all", "--out", tmp_path, "--scale", "full").exit_code == 3  # it has none
    rows = json.loads(said("--all", "--out", tmp_path, "--json").stdout)
    assert [row["verdict"] for row in rows] == ["reproduced"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["x", "--all"], "not both"),
        (["--paper", "nobody"], "No recipe is of a paper with 'nobody'"),
        (["impact-fig1", "--scale", "huge"], "--scale must be"),
        (["impact-fig1", "--partitions", "0"], "--partitions must be"),
        (["impact-fig1", "--jobs", "0"], "--jobs must be"),
    ],
)
def test_bad_words(words: list[str], why: str) -> None:
    found = said(*words)
    assert why in str(found.exception)


def ended(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str]:
    """Exit code and errors, as in a terminal."""
    monkeypatch.setattr(sys, "argv", ["fedcohort", "reproduce", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--jobs", "2000"], "The option --jobs must be"),
        (["--seeds", "0"], "The option --seeds must be"),
        (["-o", "-"], "The option --out must be a path."),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_no_trace(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, told = ended(["impact-fig1", *words], monkeypatch, capsys)
    assert code == 1
    assert sentence in told
    assert told.count("\n") <= 2
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "afile").write_text("mine")
    code, told = ended(["impact-fig1", "--out", "afile"], monkeypatch, capsys)
    assert code == 1
    assert "Error: 'afile' cannot be used: " in told
    assert (tmp_path / "afile").read_text() == "mine"


def test_an_interrupted_recipe_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(scale: Scale, seed: int) -> Computed:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    claim = Claim("the answer", "42", Exact("answer", 42, 0))
    scales = {"quick": Scale()}
    stopped = Recipe("x", "A figure", "A paper", compute=stop, scales=scales, claims=(claim,))
    monkeypatch.setattr(command, "recipe", lambda name: stopped)
    code, told = ended(["x"], monkeypatch, capsys)
    assert code == 130
    assert told.startswith("x: A figure.\n")
    assert "Interrupted; what is finished is kept. Go on with: fedcohort reproduce x" in told


def test_a_line_of_the_papers_is_not_the_users() -> None:
    """Not even where they are installed from their source."""
    with pytest.raises(AttributeError) as error:
        made("x", 42).settings(None)  # type: ignore[arg-type]
    frames = traceback.extract_tb(error.value.__traceback__)
    assert "fedcohort_papers" in frames[-1].filename
    found = own_line(error.value)
    assert found is not None
    assert found.file == __file__


def test_a_listing_of_commands_does_not_import_the_papers() -> None:
    code = (
        "import sys; from fedcohort.cli import app\n"
        "app()(['--help'], standalone_mode=False)\n"
        "print(sorted(name for name in sys.modules if name.startswith('fedcohort_papers')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    listed, _, loaded = done.stdout.strip().rpartition("\n")
    assert "Repeat a figure or table of a paper: figure, tables" in listed
    assert loaded == "['fedcohort_papers']"
