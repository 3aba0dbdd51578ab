"""What used to end in a raw exception of numpy or Python ends in one sentence, of one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fedcohort.theory as theory
from fedcohort import Federation, Replies, Selector, scheme
from fedcohort._internal import environment as memory
from fedcohort._internal.errors import (
    BadParameter,
    FedcohortError,
    FedcohortWarning,
    TooLarge,
    UnknownName,
    brief,
    shown,
)
from fedcohort.cli import main
from fedcohort.schemes.clustered import ClusteredSimilarity
from fedcohort.server import guards
from fedcohort.simulation import Quadratic, availability, compare

FEDERATION = Federation.from_sizes([3, 2, 1])
DESIGN = scheme("md", m=2).law(FEDERATION)
TRAINING = theory.Training(eta_l=0.01, steps=5, rounds=10)


def observing(rows: Any) -> Any:
    chooser = Selector(scheme("clustered-similarity", m=3), FEDERATION, seed=0)
    clients = chooser.select().clients
    return chooser.observe(Replies(clients, {"update": rows[: len(clients)]}))


def asking(name: str, answer: Any) -> Any:
    ask = lambda ask: answer  # noqa: E731
    return Selector(scheme(name, m=1), FEDERATION, seed=0, ask=ask).select()


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "ragged updates": (lambda: observing([[1.0], [1.0, 2.0], [1.0]]), "one row of 'update' per"),
    "updates of text": (lambda: observing([["a"], ["b"], ["c"]]), "must be real numbers"),
    "2-D norms": (lambda: asking("optimal", np.ones((3, 2))), "'update_norm' must have one row"),
    "norms of text": (lambda: asking("optimal", ["a"] * 3), "of numbers; got"),
    "ragged norms": (lambda: asking("optimal", [[1], [1, 2], 3]), r"got \[\[1\], \[1, 2\], 3\]"),
    "2-D losses": (lambda: asking("pow-d", np.ones((2, 2))), "'loss' must have one row"),
    "zero classes": (lambda: asking("target", np.ones((3, 0))), "at least one class; got none"),
    "2-D ids": (lambda: Federation(sizes=[1, 2], ids=np.ones((2, 2))), "got rows of an array"),
    "one id": (lambda: Federation(sizes=[1, 2], ids=7), "'ids' must name every client once"),
    "text as ids": (lambda: Federation(sizes=[1, 2], ids="ab"), "'ids' must name every client"),
    "ragged importance": (lambda: Federation(importance=[[1], [1, 2]]), "one finite number"),
    "ragged available": (
        lambda: Selector("md", FEDERATION, seed=0).select(available=[[0], [0, 1]]),
        "'available' must be positions or a mask of 3 clients",
    ),
    "local weights of 0": (
        lambda: theory.convergence_bound(DESIGN, TRAINING, local_weights=np.zeros(5)),
        "must not all be 0",
    ),
    "local weights of another length": (
        lambda: theory.convergence_bound(DESIGN, TRAINING, local_weights=np.ones(4)),
        r"\(5,\) or \(3, 5\) numbers",
    ),
    "ragged local weights": (
        lambda: theory.largest_local_step(DESIGN, TRAINING, local_weights=[[1], [1, 2]]),
        "'local_weights' must be",
    ),
    "steps beyond all numbers": (
        lambda: theory.quadratic(DESIGN, np.ones((3, 1)), [0.0], eta_l=3, steps=2000),
        "2000 steps lead beyond all numbers. Got 3",
    ),
    "half a step": (lambda: theory.proximal_weights(2.5, 0.1, 0.1), "an int in"),  # type: ignore[arg-type]
    "NaN for mu": (lambda: theory.proximal_weights(2, np.nan, 0.1), "The 'mu' parameter"),
    "many seeds": (
        lambda: compare(Quadratic([[0.0]]), ["full"], rounds=1, seeds=10**30),
        "from 1 to 100000 seeds",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_sentence(case: str) -> None:
    call, says = CASES[case]
    with pytest.raises(FedcohortError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


# -- an error repeats no more than a line of what was given -----------------------------------

LONG = [
    "x" * 100_000,
    "two\nlines",
    10**5000,
    -(10**400),
    list(range(100_000)),
    np.zeros((300, 300)),
    dict.fromkeys(range(1000), "x" * 1000),
    [[[[[[["deep"] * 100] * 100]]]]],
]


def test_what_fits_a_line_is_told_whole() -> None:
    assert brief("x" * 80) == "x" * 80
    assert brief("x" * 81) == "x" * 77 + "..."


@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
def test_no_more_than_a_line(value: Any) -> None:
    for text in (shown(value), brief(value if isinstance(value, str) else "")):
        assert len(text) <= 80
        assert "\n" not in text
    for error in (BadParameter("m", "md", "an int", value), UnknownName("scheme", value, ["md"])):
        assert len(str(error)) < 250
        assert "\n" not in str(error)


WORDS = {
    "brackets": "[" * 100_000,
    "brackets in brackets": "[" * 50_000 + "]" * 50_000,
    "digits": "9" * 5000,
    "commas": "," * 100_000,
    "lists": "[1," * 30_000,
    "no setting": "x" * 100_000 + "=1,m",
}


@pytest.mark.parametrize("named", WORDS)
@pytest.mark.parametrize(
    "read",
    [
        lambda word: scheme(f"md:m={word}"),
        lambda word: scheme(f"md:m=2,m={word},m=3"),
        lambda word: guards(f"clip:times={word}"),
        lambda word: availability(f"random:probability={word}"),
    ],
    ids=["scheme", "twice", "guard", "availability"],
)
def test_whatever_stands_for_a_value_is_refused_in_a_line(read: Any, named: str) -> None:
    with pytest.raises(FedcohortError) as caught:
        read(WORDS[named])
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_a_value_that_cannot_be_shown() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "Rude" in shown(Rude())


# -- the command line -------------------------------------------------------------------------

# Since Python 3.14 a file with too long a name is just not there; before, asking is an error.
NO_FOLDER = "cannot be used" if sys.version_info < (3, 14) else "is not a run folder"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["compare", "md", "--seeds", "9" * 40], "--seeds must be an int in [1, 100000]"),
        (["compare", "md", "--seeds", "9" * 5000], "A number must have at most 50 digits"),
        (["compare", "md", "-o", "a\0b"], "NUL character; got 'a\\x00b'"),
        (["compare", "md", "-o", "\udcff\udcfe"], r"must be text in UTF-8; got '\udcff\udcfe'"),
        (["demo", "--out", "runs/\udcff"], "must be text in UTF-8"),
        (["demo", "--out", "\0"], "NUL character"),
        (["report", "a\0"], "NUL character"),
        (["advise", "--sizes", "\0"], "NUL character"),
        (["report", "x" * 5000], NO_FOLDER),
        (["check", "y" * 5000], "There is no scheme named"),
    ],
)
def test_words_that_no_command_can_take(
    words: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["fedcohort", *words])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith("Error: ")
    assert says in told
    assert len(told) < 700


# -- memory -----------------------------------------------------------------------------------


def test_similarity_says_what_fits_into_the_memory_that_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "_of_process", lambda: 3e9)
    many = Federation.from_sizes(np.ones(19_000, dtype=int))
    says = r"19000 of them would take 8.7 GB\. Use clustered-size or hcsfed beyond 11180 "
    with pytest.raises(TooLarge, match=says):
        Selector(ClusteredSimilarity(m=2), many, seed=0).select()


def test_what_is_free_is_never_more_than_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    known = memory.free_bytes()
    assert known > 0
    texts = {"/sys/fs/cgroup/memory.max": "5000", "/sys/fs/cgroup/memory.current": "4000"}
    monkeypatch.setattr(memory, "_read", lambda path: texts.get(path, ""))
    assert memory.free_bytes() == 1000
    texts["/sys/fs/cgroup/memory.stat"] = "anon 3900\ninactive_file 100"
    assert memory.free_bytes() == 1100
    for most, now in (("max", "4000"), ("5000", ""), ("", "4000")):  # no limit, or half of it
        texts.update(zip(texts, (most, now), strict=False))
        assert memory.free_bytes() == float("inf")
    monkeypatch.setattr(memory, "_read", lambda path: "MemAvailable: 7 kB" if "mem" in path else "")
    assert memory.free_bytes() == 7 * 1024
    monkeypatch.setattr(memory, "_read", lambda path: "")
    assert memory.free_bytes() == float("inf")
    resource = pytest.importorskip("resource")
    limit = 100 * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    monkeypatch.setattr(memory, "_read", lambda path: "40 9 9" if path.endswith("statm") else "")
    assert memory.free_bytes() == 60 * resource.getpagesize()


@pytest.mark.parametrize("digits", ["9" * 400, "9" * 3000])
@pytest.mark.parametrize("word", ["md:m=", "binomial:m=", "uniform:m=", "pow-d:m=2,d="])
def test_a_number_of_many_digits_is_not_repeated(word: str, digits: str) -> None:
    with pytest.raises(FedcohortError) as caught:
        Selector(word + digits, FEDERATION, seed=0, ask=lambda ask: [1.0] * 3).select()
    assert len(str(caught.value)) < 300


def test_more_samples_than_a_float_can_count_are_all_of_them() -> None:
    name = "fedsampling:mechanism=exact,K="
    with pytest.warns(FedcohortWarning, match="all take part") as caught:
        cohort = Selector(name + "9" * 400, FEDERATION, seed=0).select()
    assert cohort.data_rate == 1
    assert len(str(caught[0].message)) < 300
