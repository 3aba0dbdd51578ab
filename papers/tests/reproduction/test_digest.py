"""The digest of a recipe's settings: it survives a restructuring and sees every other change."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, make_dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.schemes.classical import MD
from fedcohort.schemes.fedsampling import FedSampling
from fedcohort.simulation import Arm, Problem
from fedcohort.training import LocalWork
from fedcohort_papers import recipes as package
from fedcohort_papers.recipes import (
    Cell,
    Claim,
    Close,
    Computed,
    Exact,
    Judged,
    Recipe,
    Run,
    Scale,
    Tuned,
    recipes,
)
from helpers.makers import loaded as loaded_maker

maker = loaded_maker("make_reproduction")
REKEY = Path(__file__).parents[3] / "docs" / "rekey_results.py"
RENAME = REKEY.with_name("rename_fedsampling_results.py")


def compute(scale: Scale, seed: int) -> Computed:
    return Computed(samples={"answer": 42.0})


def some_arms(m: int, task: Any) -> list[str]:
    return [f"md:m={m}"]


@dataclass(frozen=True)
class Arms:
    m: int = 3

    name: ClassVar[str] = "my-arms"

    def __call__(self, task: Any) -> list[str]:
        return [f"md:m={self.m}"]


@dataclass(frozen=True)
class NoName:
    def __call__(self, task: Any) -> list[str]:
        return ["full"]


@dataclass(frozen=True)
class Network:
    """A model with contents that have no plain value."""

    layers: Any = field(default_factory=object)
    name: str = "torch"


CELL = Cell("one", Problem("digits", "iid:n=4"), ["full", MD(m=3)], rounds=4)
QUICK = Scale()
MINE = Recipe(
    "mine",
    "The answer",
    "A paper",
    cells=(CELL,),
    compute=compute,
    scales={"quick": QUICK},
    claims=(Claim("the answer", "42", Exact("answer", 42, 0)),),
)


def of(cell: Cell) -> str:
    return replace(MINE, cells=(cell,)).digest(QUICK)


def loaded(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@contextmanager
def elsewhere(*kinds: type) -> Iterator[None]:
    """Give classes the module path and the qualified name of another place."""
    places = [(kind, kind.__module__, kind.__qualname__) for kind in kinds]
    for kind in kinds:
        kind.__module__, kind.__qualname__ = "elsewhere", f"Outer.{kind.__name__}"
    yield
    for kind, module, name in places:
        kind.__module__, kind.__qualname__ = module, name


def test_recipes_in_other_modules_keep_their_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {
        (name, scale): recipe.digest(recipe.scales[scale])
        for name, recipe in recipes().items()
        for scale in recipe.scales
    }
    moved = {}
    for path in Path(str(package.__file__)).parent.glob("*/*.py"):
        name = f"moved_{path.parent.name}_{path.stem}"
        for recipe in vars(loaded(path, name, monkeypatch)).values():
            if isinstance(recipe, Recipe):
                with elsewhere(Cell, Problem, LocalWork, Tuned, FedSampling, Recipe):
                    moved |= {(recipe.name, each): recipe.digest(recipe.scales[each])
                              for each in recipe.scales}  # fmt: skip
    assert moved == expected
    assert len(set(moved.values())) > 60


WORK = LocalWork(lr=0.1)
CHANGES: tuple[Callable[[Recipe], Recipe], ...] = (
    lambda recipe: replace(recipe, version=2),
    lambda recipe: replace(recipe, name="other"),
    lambda recipe: replace(recipe, compute=None),
    lambda recipe: replace(recipe, cells=(*recipe.cells, replace(CELL, name="two"))),
    *(
        partial(lambda changes, recipe: replace(recipe, cells=(replace(CELL, **changes),)), changes)
        for changes in (
            {"name": "other"},
            {"rounds": 5},
            {"work": WORK},
            {"work": replace(WORK, mu=0.1)},
            {"arms": ["full", MD(m=4)]},
            {"arms": ["md:m=3", "full"]},
            {"arms": {"full": "full", "md": "md:m=3"}},
            {"arms": ["full", Arm("md:m=3", optimiser="adam")]},
            {"arms": partial(some_arms, 3)},
            {"arms": partial(some_arms, 4)},
            {"arms": Arms(4)},
            {"arms": Arms()},
            {"arms": partial(Arms())},
            {"problem": Problem("digits", "iid:n=5")},
            {"problem": Problem("digits", "iid:n=4", model="mlp:hidden=5")},
            {"problem": Problem("digits", "iid:n=4", partition_seed=1)},
            {"problem": Problem("digits", "iid:n=4", importance=np.full(4, 0.25))},
            {"options": {"evaluate_every": 2}},
            {"options": {"evaluate_on": 2}},
            {"options": {"measures": (len, Path("curves"))}},
            {"tuned": Tuned({"lr": (0.1, 1.0)})},
            {"tuned": Tuned({"lr": (0.1, 2.0)})},
            {"tuned": Tuned({"lr": (0.1, 1.0)}, seeds=3)},
        )
    ),
)


def test_every_change_of_a_setting_is_seen() -> None:
    digests = [MINE.digest(QUICK), *(change(MINE).digest(QUICK) for change in CHANGES)]
    for numbers in ({"steps": 3}, {"steps": (3, 4)}, {"steps": float("inf")}):
        digests.append(MINE.digest(replace(QUICK, numbers=numbers)))
    digests.append(MINE.digest(replace(QUICK, rounds=2)))
    assert len(set(digests)) == len(digests)


def test_seeds_order_and_spelling_do_not_count() -> None:
    assert MINE.digest(replace(QUICK, seeds=9, partitions=3, minutes=1.0)) == MINE.digest(QUICK)
    assert of(replace(CELL, arms=["full", "md:m=3"])) == of(CELL)
    assert of(replace(CELL, rounds=np.int64(4))) == of(CELL)  # type: ignore[arg-type]
    one, other = {"evaluate_on": 5, "evaluate_every": 2}, {"evaluate_every": 2, "evaluate_on": 5}
    assert of(replace(CELL, options=one)) == of(replace(CELL, options=other))


@pytest.mark.parametrize("name", ["work", "problem", "arms"])
def test_a_new_field_counts_only_away_from_its_default(name: str) -> None:
    before: Any = {"work": WORK, "problem": CELL.problem, "arms": MD(m=3)}[name]
    wider: Any = make_dataclass(
        type(before).__name__, [("warmup", int, 0)], bases=(type(before),), frozen=True
    )
    same, other = (
        [value] if name == "arms" else value
        for value in (wider(**vars(before)), wider(**vars(before), warmup=1))
    )
    before = [before] if name == "arms" else before
    assert of(replace(CELL, **{name: same})) == of(replace(CELL, **{name: before}))
    assert of(replace(CELL, **{name: other})) != of(replace(CELL, **{name: before}))


def test_an_opaque_value_counts_by_the_name_that_its_author_gave() -> None:
    def digest(model: Any) -> str:
        return of(replace(CELL, problem=Problem("digits", "iid:n=4", model=model)))

    assert digest(Network(name="mine")) == digest(Network(name="mine"))
    assert digest(Network(name="mine")) != digest(Network(name="yours"))
    with pytest.raises(BadInput, match=r"'mine\.cells\.one\.problem\.model\.layers' must be a "):
        digest(Network())


def test_a_function_without_a_name_is_refused_before_any_run(tmp_path: Path) -> None:
    def reads_around(task: Any) -> list[str]:
        return [str(tmp_path)]

    refused = {
        "Got a lambda; define a function with 'def'": lambda task: ["full"],
        "'reads_around', which reads variables around it; pass them as arg": reads_around,
        "a callable NoName without a name; give its class": NoName(),
    }
    for sentence, arms in refused.items():
        recipe = replace(MINE, cells=(replace(CELL, arms=arms),))
        with pytest.raises(BadInput, match=rf"'mine\.cells\.one\.arms' must be .*{sentence}"):
            Run.of(recipe, "quick", tmp_path)
    with pytest.raises(BadParameter, match="'version' parameter of the recipe 'mine' must be an"):
        replace(MINE, version=0)


def test_a_result_that_does_not_count_says_which_setting_differs(tmp_path: Path) -> None:
    recipe = replace(MINE, cells=())
    facts = Judged.of(Run.of(recipe, "quick", tmp_path)()).as_dict()
    assert list(maker.outdated({"mine": recipe}, [facts])) == []
    newer = replace(recipe, version=2)
    assert list(maker.outdated({"mine": newer}, [facts])) == [
        "mine-quick: version: absent before, 2 now"
    ]
    assert list(maker.outdated({}, [facts])) == ["mine-quick: no such recipe or scale"]


def test_only_a_result_that_matches_by_its_old_key_gets_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rekey = loaded(REKEY, "rekey", monkeypatch)
    facts = {"recipe": "mine", "settings": rekey.old_key(MINE, QUICK), "verdict": "reproduced"}
    new = rekey.rekeyed(facts, MINE, QUICK)
    assert list(new) == ["recipe", "digest", "settings", "verdict"]
    assert new["digest"] == MINE.digest(QUICK)
    for changed in (change(MINE) for change in CHANGES[2:]):
        assert rekey.rekeyed(facts, changed, QUICK) is None


def test_an_arm_gets_another_label_only_with_the_same_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rekey = loaded(REKEY, "rekey", monkeypatch)

    def recipe(arms: dict[str, str], first: str) -> Recipe:
        claims = (
            Claim(f"{first} is good", "1", Close("accuracy", first, 1, 0.5)),
            Claim("md is good", "1", Close("accuracy", "md", 1, 0.5)),
        )
        cell = replace(CELL, arms=arms, rounds=2)
        return replace(MINE, cells=(cell,), compute=None, claims=claims, scales={"quick": QUICK})

    before = recipe({"mine": "full", "md": "md:m=3", "gone": "md:m=2"}, "mine")
    after = recipe({"mine": "uniform:m=3", "mine, sound": "full", "md": "md:m=3"}, "mine, sound")
    facts = Judged.of(Run.of(before, "quick", tmp_path, jobs=1)()).as_dict()
    new = rekey.relabelled(facts, after, QUICK, {"mine": "mine, sound"})
    assert [each["statement"] for each in new["claims"]] == ["mine, sound is good", "md is good"]
    assert new["settings"]["cells"]["one"]["arms"] == {
        "mine, sound": "full",
        "md": "md:m=3",
        "gone": "md:m=2",
    }
    assert rekey.relabelled(new, after, QUICK, {"mine": "mine, sound"}) is None  # it has them
    run_again = Judged.of(Run.of(after, "quick", tmp_path / "again", jobs=1)()).as_dict()
    assert rekey.relabelled(run_again, after, QUICK, {"mine": "mine, sound"}) is None  # has both
    other = recipe({"mine, sound": "md:m=4", "md": "md:m=3"}, "mine, sound")
    assert rekey.relabelled(facts, other, QUICK, {"mine": "mine, sound"}) is None
    longer = replace(QUICK, rounds=3)
    assert rekey.relabelled(facts, after, longer, {"mine": "mine, sound"}) is None


def test_only_a_result_of_the_same_runs_gets_new_names(monkeypatch: pytest.MonkeyPatch) -> None:
    rename = loaded(RENAME, "rename", monkeypatch)

    def with_arms(rounds: int = 1, **arms: str) -> Recipe:
        cell = replace(MINE.cells[0], arms=arms, rounds=rounds, tuned=None)
        return replace(
            MINE, cells=(cell,), claims=(Claim("a is 1", "1", Close("accuracy", "a", 1, 0.1)),)
        )

    before = with_arms(old="md:m=2")
    criterion = str(Close("accuracy", "old", 1, 0.1))
    told = {"statement": "old is 1", "criterion": criterion, "verdict": "reproduced"}
    facts = {"recipe": "mine", "settings": before.settings(QUICK), "claims": [told]}
    names = {"old": "a"}
    new = rename.renamed(facts, with_arms(a="md:m=2"), QUICK, names)
    assert new["digest"] == with_arms(a="md:m=2").digest(QUICK)
    assert [(each["statement"], each["verdict"]) for each in new["claims"]] == [
        ("a is 1", "reproduced")
    ]
    assert "added" not in new
    more = with_arms(a="md:m=2", b="full")
    assert rename.renamed(facts, more, QUICK, names) is None
    assert rename.renamed(facts, more, QUICK, names, ("b",))["added"] == ["b"]
    for other in (with_arms(a="md:m=3"), with_arms(rounds=2, a="md:m=2"), with_arms(old="md:m=2")):
        assert rename.renamed(facts, other, QUICK, names) is None
