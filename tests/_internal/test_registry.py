"""One registry, one spelling: every part of every kind, by name, by file and by entry point."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import fedcohort
from fedcohort._internal import registry as discovery
from fedcohort._internal.errors import (
    BadInput,
    BadParameter,
    FedcohortError,
    FedcohortWarning,
    MissingExtra,
    UnknownName,
)
from fedcohort._internal.parameters import (
    Flag,
    Labels,
    Maybe,
    Numbers,
    OneOf,
    Real,
    Whole,
    elements,
    pieces,
    split,
    value,
    written,
)
from fedcohort._internal.registry import Kind, PartOf, Prepared, kinds
from fedcohort.data.partition import PARTITIONS, Sizes
from fedcohort.data.sets import DATA_SETS
from fedcohort.schemes import SCHEMES, installed
from fedcohort.schemes.balanced import WordOrQuantity
from fedcohort.server import Optimiser, Plain, optimiser
from fedcohort.server._aggregators import AGGREGATORS
from fedcohort.server._optimizers import OPTIMISERS
from fedcohort.simulation import Random, availability
from fedcohort.training._algorithms import Parts
from fedcohort.training._models_dense import Widths
from helpers.examples import few

BUILT = kinds()
PARTS = [(name, part) for name, kind in BUILT.items() for part in kind]


def values(constraint: Any) -> st.SearchStrategy[Any]:
    """What a declared range accepts, edges included."""
    if isinstance(constraint, Maybe):
        return st.none() | values(constraint.inner)
    if isinstance(constraint, Whole):
        high = constraint.high
        numbers: st.SearchStrategy[Any] = st.integers(constraint.low, high)
        return numbers | st.sampled_from(constraint.words) if constraint.words else numbers
    if isinstance(constraint, Real):
        low = None if constraint.low == -math.inf else constraint.low
        high_ = None if constraint.high == math.inf else constraint.high
        numbers = st.floats(low, high_, exclude_min=constraint.open_low, allow_nan=False,
                            allow_infinity=False)  # fmt: skip
        return numbers | st.sampled_from(constraint.words) if constraint.words else numbers
    if isinstance(constraint, WordOrQuantity):
        return st.sampled_from([*constraint.words, "battery"])
    if isinstance(constraint, OneOf):
        return st.sampled_from(constraint.words)
    if isinstance(constraint, Flag):
        return st.booleans()
    if isinstance(constraint, Labels):
        return st.lists(st.integers(0, 9), max_size=5).map(tuple)
    if isinstance(constraint, Numbers):
        return st.lists(st.floats(0, 1e300), max_size=5).map(tuple)
    if isinstance(constraint, Sizes):
        return st.just("paper1") | st.lists(st.integers(1, 99), min_size=1).map(tuple)
    if isinstance(constraint, Widths):
        return st.integers(1, 99) | st.lists(st.integers(1, 99), min_size=1).map(tuple)
    if isinstance(constraint, Parts):
        names = st.sampled_from(["conv1", "fc.weight", "embedding"])
        return st.integers(0, 99) | st.lists(names, min_size=1, unique=True).map(tuple)
    raise AssertionError(f"no values for {constraint}: add them, so that the words are tested")


CHANCES = st.floats(0, 1) | st.lists(st.floats(0, 1), min_size=1, max_size=4).map(tuple)
FILES = st.sampled_from(["phones.csv", "../my data/a-1.jsonl", "/tmp/a.npz", "a,b=[c]:d.csv", "1"])
UNDECLARED = {("availability model", "random", "probability"): CHANCES}


@pytest.mark.parametrize(("kind", "name"), PARTS)
@few(20, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_word_of_a_part_reads_back_to_an_equal_part(kind: str, name: str, data: Any) -> None:
    parts = BUILT[kind]
    try:
        declared = parts.settings(parts[name])
    except MissingExtra as error:
        pytest.skip(str(error))
    given_: dict[str, Any] = {}
    for key, setting in declared.items():
        if setting.constraint is not None:
            given_[key] = data.draw(values(setting.constraint), label=key)
        elif (kind, name, key) in UNDECLARED:
            given_[key] = data.draw(UNDECLARED[kind, name, key], label=key)
        elif setting.required and setting.text:
            given_[key] = data.draw(FILES, label=key)
    try:
        built = parts.build(name, **given_)
    except (BadParameter, BadInput):
        reject()  # settings that do not go together: each kind refuses with its own sentence
    assert parts.build(built.spec) == built
    assert parts.build(built.spec).spec == built.spec
    assert parts.build(built.spec, files=False) == built


@pytest.mark.parametrize("kind", BUILT.values(), ids=list(BUILT))
def test_what_is_given_as_a_part_is_that_part(kind: Kind[Any]) -> None:
    if kind.name == "model":
        pytest.importorskip("torch")
    for name in kind:
        required = [key for key, each in kind.settings(kind[name]).items() if each.required]
        part = kind.build(name, **dict.fromkeys(required, 3))
        assert kind.build(part) is part


@pytest.mark.parametrize("kind", kinds().values(), ids=list(kinds()))
def test_names_and_descriptions_are_those_of_what_is_imported(kind: Kind[Any]) -> None:
    if kind.name == "model":
        pytest.importorskip("torch")
    assert list(kind) == sorted(kind.all())
    for name, part in kind.listed().items():
        assert kind.name_of(part.load()) == name
        assert part.summary, f"the {kind.name} '{name}' says nothing about itself"
        assert "\n" not in part.summary


def test_what_is_said_of_claims_is_so() -> None:
    for name, cls in SCHEMES.items():
        unbiased = any(claim.name == "UNBIASED" for claim in cls.claims)
        assert SCHEMES.listed()[name].declares("claims", "UNBIASED") is unbiased, name


NUMBERS = {
    "algorithm": 6,
    "partition": 7,
    "data set": 12,
    "model": 8,
    "schedule": 4,
    "panel": 14,
    "scheme": 36,
    "aggregator": 6,
    "drop-out rule": 4,
    "guard": 5,
    "optimiser": 4,
    "straggler rule": 4,
    "availability model": 8,
    "device model": 5,
}


def test_no_part_is_lost() -> None:
    """A part that is not found any more disappears without an error: count them."""
    assert {name: len(kind) for name, kind in kinds().items()} == NUMBERS


@pytest.mark.parametrize("kind", BUILT.values(), ids=list(BUILT))
def test_no_part_that_a_module_defines_is_overlooked(kind: Kind[Any]) -> None:
    """The source is read for classes with a literal name: others would be left out silently."""
    if kind.name == "model":
        pytest.importorskip("torch")
    modules = [file for each in kind.modules for file in list(discovery._files(each)) or [each]]
    members = [set(kind._members(importlib.import_module(module))) for module in modules]
    assert set().union(*members) == set(kind._own)


@pytest.mark.parametrize(
    "lines",
    [
        "from fedcohort.selection._scheme import Scheme\nclass A(Scheme[int]):",
        "from fedcohort.selection import Scheme as Base\nclass A(Base):",
        "import fedcohort\nclass A(fedcohort.Scheme):",
        "from fedcohort.schemes.classical import MD as Base\nclass A(Base):",
        "from fedcohort import Scheme\nclass Middle(Scheme): ...\nclass A(Middle):",
    ],
)
def test_a_base_class_is_recognized_under_any_name(lines: str, tmp_path: Path) -> None:
    file = tmp_path / "several.py"
    file.write_text(f"{lines}\n    name = 'one'\nclass B(A):\n    name = 'two'\n")
    source = discovery._Source("fedcohort.schemes.several", file)
    names = [source.name_of(node, "Scheme", "") for node in source.tree.body]
    assert [name for name in names if name] == ["one", "two"]


def in_a_new_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("words", [["schemes"], ["--help"], ["schemes", "md"]])
def test_a_listing_imports_no_heavy_library(words: list[str]) -> None:
    heavy = ["sklearn", "scipy.stats", "pandas", "joblib", "matplotlib", "plotly", "flwr"]
    if len(words) > 1:  # one scheme is priced, too, by dp-accounting, which wants it
        heavy.remove("scipy.stats")
    code = (
        "import sys\n"
        f"sys.argv = ['fedcohort', *{words}]\n"
        "from fedcohort.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert in_a_new_process(code) == "[]"


def test_importing_fedcohort_imports_little() -> None:
    code = (
        "import sys, fedcohort, fedcohort.schemes as package\n"
        "mine = [m for m in sys.modules if m.startswith('fedcohort.schemes.')]\n"
        "print(mine, 'scipy' in sys.modules, 'joblib' in sys.modules, type(package))"
    )
    assert in_a_new_process(code) == "[] False False <class 'module'>"


# -- words -----------------------------------------------------------------------------------


def test_brackets_hold_a_part_with_settings() -> None:
    word = "memory:guess=[ridge:alpha=1,solver=[cg:tol=2]],other=3"
    assert split(word) == ("memory", {"guess": "[ridge:alpha=1,solver=[cg:tol=2]]", "other": "3"})
    for wrong in ("a:b=[c", "a:b=c]", "a:b=[[c]", "a:b=]c["):
        with pytest.raises(BadInput, match="must close every bracket"):
            split(wrong)


@dataclass(frozen=True)
class Guessing(Plain):
    """An estimator with a part of its own."""

    guess: Annotated[Optimiser, PartOf(OPTIMISERS)] = dataclasses.field(default_factory=optimiser)
    label: str = ""

    name: ClassVar[str] = "guessing"


@pytest.fixture
def guessing(monkeypatch: pytest.MonkeyPatch) -> None:
    part = dataclasses.replace(
        AGGREGATORS.listed()["plain"], name="guessing", load=lambda: Guessing
    )
    monkeypatch.setitem(AGGREGATORS.listed(), "guessing", part)


@pytest.mark.usefixtures("guessing")
def test_a_setting_may_be_a_part() -> None:
    adam = optimiser("adam:eta_g=0.5")
    built = AGGREGATORS.build("guessing:guess=[adam:eta_g=0.5]")
    assert built == Guessing(adam)
    assert built.spec == f"guessing:guess=[{adam.spec}],label=[]"
    assert AGGREGATORS.build(built.spec) == built
    assert AGGREGATORS.build("guessing", guess="adam:eta_g=0.5") == built
    assert AGGREGATORS.build("guessing:guess=sgd") == Guessing()
    with pytest.raises(UnknownName, match="Did you mean 'adam'"):
        AGGREGATORS.build("guessing:guess=[adan:eta_g=1]")
    with pytest.raises(BadParameter, match="one of the optimisers adagrad, adam"):
        Guessing("adam")  # type: ignore[arg-type]


@pytest.mark.usefixtures("guessing")
def test_a_setting_that_is_a_part_comes_from_no_file_where_nobody_typed_it(tmp_path: Path) -> None:
    evil = tmp_path / "evil.py"
    evil.write_text("raise SystemExit('this ran')\n")
    with pytest.raises(BadInput):
        AGGREGATORS.build("guessing", files=False, guess=str(evil))
    with pytest.raises(BadInput):
        AGGREGATORS.build(f"guessing:guess=[{evil}]", files=False)


@pytest.mark.usefixtures("guessing")
@given(label=st.text(st.characters(codec="ascii", exclude_characters="[]"), max_size=8))
@settings(suppress_health_check=list(HealthCheck))
def test_any_text_can_be_written(label: str) -> None:
    built = Guessing(label=label)
    assert AGGREGATORS.build(built.spec) == built


def test_what_cannot_be_written_is_told() -> None:
    with pytest.raises(BadInput, match="cannot be written as a setting"):
        written(np.zeros(2))
    with pytest.raises(BadInput, match="cannot be written as a setting"):
        written("]open[")


@given(
    st.lists(
        st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none()
    ).map(tuple)
)
def test_tuples_of_plain_values_read_back(given_: tuple[Any, ...]) -> None:
    text = written(given_)
    assert value(text) == given_
    assert text.endswith(",") == (len(given_) < 2)  # where it would not be a tuple otherwise


@given(st.text("ab,[]=:", max_size=12))
def test_no_word_makes_a_crash(text: str) -> None:
    with contextlib.suppress(BadInput):
        name, found = split(f"part:{text}")
        assert name == "part"
        for each in found.values():
            value(each), elements(each), pieces(each)


# -- trust -----------------------------------------------------------------------------------


def test_a_file_is_run_only_where_a_person_names_it(tmp_path: Path) -> None:
    trap = tmp_path / "trap_one.py"
    trap.write_text("raise SystemExit('run')")
    for kind in kinds().values():
        with pytest.raises(BadInput, match=r"only a file that a person names .*" + kind.group):
            kind.find(str(trap), files=False)
    with pytest.raises(BadInput, match="only a file that a person names"):
        installed(f"{trap}:m=3")
    assert "trap_one" not in sys.modules


MINE = '''
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort import Citation, Scheme
from fedcohort.selection import NoState, Whole
from fedcohort.designs import Simple


@dataclass(frozen=True)
class Mine(Scheme[NoState]):
    """Equal chances."""

    m: Annotated[int, Whole(1)] = 10
    name: ClassVar[str] = "NAME"
    paper: ClassVar[Citation] = Citation("A", "B", "C", 2026)

    def law(self, federation):
        return Simple(federation.shares, self.m)
'''


def test_files_are_taken_where_parts_are_named_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flwr")
    from fedcohort.flower import CohortStrategy

    monkeypatch.setattr(sys, "path", sys.path.copy())
    path = tmp_path / "mine_typed.py"
    path.write_text(MINE.replace("NAME", "mine-typed"))
    word = f"{path}:m=2"
    assert fedcohort.scheme(word).spec == "mine-typed:m=2"
    federation = fedcohort.Federation.from_sizes([3, 2, 1])
    assert len(fedcohort.Selector(word, federation, seed=0).select()) == 2
    assert CohortStrategy(word, clients=3).scheme == fedcohort.scheme(word)


def test_a_checkpoint_that_names_a_file_does_not_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    trap = tmp_path / "trap_two.py"
    path = tmp_path / "mine_saved.py"
    path.write_text(MINE.replace("NAME", str(trap)))
    federation = fedcohort.Federation.from_sizes([3, 2, 1])
    fedcohort.Selector(f"{path}:m=2", federation, seed=0).save(tmp_path / "saved")
    trap.write_text("raise SystemExit('run')")
    with pytest.raises(FedcohortError, match="only a file that a person names is run"):
        fedcohort.Selector.load(tmp_path / "saved")
    assert "trap_two" not in sys.modules


@pytest.mark.usefixtures("guessing")
def test_nor_inside_of_brackets() -> None:
    with pytest.raises(BadInput, match="only a file that a person names"):
        AGGREGATORS.build("guessing:guess=[./trap.py:a=1]", files=False)


# -- the helpers -----------------------------------------------------------------------------


def test_the_same_helper_for_every_kind() -> None:
    assert fedcohort.optimiser("adam:eta_g=0.1") == optimiser("adam", eta_g=0.1)
    assert fedcohort.optimiser() == optimiser("sgd")
    assert fedcohort.aggregator(None) == Plain()
    assert fedcohort.dropout_rule("redraw:attempts=1").attempts == 1
    assert fedcohort.availability("random:probability=0.2,0.9") == Random((0.2, 0.9))
    assert availability() == availability("always")
    with pytest.raises(UnknownName, match="There is no optimiser named 3"):
        fedcohort.optimiser(3)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match=r"parameter of cyclic named 'group'.*Did you mean 'gro"):
        availability("cyclic:group=2")
    with pytest.raises(BadParameter, match=r"'eta_g' parameter of adam .* Got 'fast'"):
        optimiser("adam:eta_g=fast")


def test_parts_that_are_functions() -> None:
    built = PARTITIONS.build("iid:n=5")
    assert built == Prepared("iid", {"n": 5}, print)  # what it runs is what its name says
    assert built(y=np.zeros(10, int), rng=np.random.default_rng(0), groups=None).n == 5
    with pytest.raises(UnknownName, match="setting of the partition 'iid' named 'm'"):
        PARTITIONS.build("iid:m=5")
    with pytest.raises(BadInput, match="'iid' needs a value for 'n': write iid:n="):
        PARTITIONS.build("iid")


def test_every_kind_has_a_group_of_entry_points() -> None:
    groups = {kind.group for kind in kinds().values()}
    assert {"fedcohort.schemes", "fedcohort.data_sets", "fedcohort.availability_models"} <= groups
    assert all(part.isidentifier() for group in groups for part in group.split("."))


def test_every_kind_of_the_source_is_listed() -> None:
    root = Path(fedcohort.__file__).parent
    defined = 0
    for file in root.rglob("*.py"):
        for node in ast.parse(file.read_bytes()).body:
            call = getattr(node, "value", None)
            defined += isinstance(call, ast.Call) and ast.unparse(call.func) == "Kind"
    assert len(kinds()) == defined >= 8


SECOND = MINE.partition("@dataclass")[2].replace("Mine", "Second").replace("NAME", "second")
DERIVED = """

class Shared(Second):
    pass


@dataclass(frozen=True)
class Third(Shared):
    \"\"\"A scheme whose base class is in this file.\"\"\"

    name: ClassVar[str] = "third"
"""


def test_a_file_of_a_package_may_define_several_parts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = "class Other:\n    name = 'battery'\n"  # it derives from no scheme
    several = f"{MINE.replace('NAME', 'first')}\n\n@dataclass{SECOND}{DERIVED}\n\n{other}"
    (tmp_path / "several.py").write_text(several)
    (tmp_path / "with_nothing.py").write_text(other)
    monkeypatch.setattr(fedcohort.schemes, "__path__", [str(tmp_path)])
    SCHEMES.refresh()
    try:
        assert list(SCHEMES) == ["first", "second", "third", "with-nothing"]
        assert [SCHEMES[name].name for name in list(SCHEMES)[:3]] == ["first", "second", "third"]
        assert SCHEMES.listed()["third"].summary == "A scheme whose base class is in this file."
        with pytest.raises(BadInput, match="it must define a scheme named 'with-nothing'"):
            fedcohort.scheme("with-nothing")
    finally:
        monkeypatch.undo()
        SCHEMES.refresh()


def test_a_broken_part_is_left_out_of_every_kind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sound = sorted(DATA_SETS.all())
    assert "digits" in sound
    (tmp_path / "broken_part.py").write_text("import no_such_module_at_all\n")
    package = importlib.import_module(DATA_SETS.modules[0])
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    DATA_SETS.refresh()
    try:
        with pytest.warns(FedcohortWarning, match="ModuleNotFoundError in line 1.*It is left out"):
            found = DATA_SETS.all()
        assert sorted(found) == sound
        with pytest.raises(BadInput, match=r"broken_part\.py' cannot be loaded"):
            DATA_SETS.build("broken-part")
    finally:
        monkeypatch.undo()
        DATA_SETS.refresh()
