"""``fedcohort price``, as it is typed."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console
from typer.testing import CliRunner

from fedcohort import Federation, scheme
from fedcohort._internal.errors import FedcohortError
from fedcohort.cli import app
from fedcohort.cli.privacy import show_all
from fedcohort.privacy import price
from fedcohort.schemes import SCHEMES

pytest.importorskip("dp_accounting")


def run(*words):
    result = CliRunner().invoke(app(), ["price", *words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_one_scheme_is_told_in_words():
    out = run("binomial", "-n", "1000", "-T", "500")
    assert "1.326" in out
    assert "16.53" in out
    assert "344.5" in out
    assert "if nobody learns who took part" in out
    assert "The seed is a secret" in out


def test_json_has_every_number():
    told = json.loads(run("poisson", "-n", "100", "-m", "5", "-T", "20", "--json"))
    assert told["epsilon"] < told["seen"] < told["unamplified"]
    assert told["covered"] is True
    assert told["adjacency"] == "add-remove"


def test_several_schemes_are_a_table_with_the_cheapest_first():
    lines = run("pow-d", "md", "binomial", "-n", "100", "-m", "5", "-T", "20").splitlines()
    rows = [line.split()[0] for line in lines if line.startswith(("pow-d", "md", "binomial"))]
    assert rows == ["binomial", "md", "pow-d"]
    assert any("of the sums alone" in line for line in lines)


def test_an_oracle_is_labelled():
    assert "target (oracle) " in run("md", "target", "-n", "10", "-m", "2", "-T", "5")
    listed = CliRunner().invoke(app(), ["schemes"]).output
    assert [line for line in listed.splitlines() if "oracle" in line] == [
        line for line in listed.splitlines() if line.startswith("target ")
    ]


def test_where_the_laws_have_no_room_beside_the_numbers_they_stand_below():
    words, federation = ["md", "poisson", "binomial"], Federation.from_sizes([1] * 20)
    prices = [price(scheme(word, m=2), federation, 5, 1.0, 1e-5) for word in words]
    out = Console(file=io.StringIO(), force_terminal=True, width=60, color_system=None)
    show_all(words, prices, out)
    shown = " ".join(out.file.getvalue().split())
    assert f"binomial: {prices[2].how}" in shown or f"poisson, binomial: {prices[2].how}" in shown
    assert shown.count(prices[2].how) == 1  # that of poisson, too
    assert f"md: {prices[0].how}" in shown
    assert "--json: law" not in shown


def test_a_wanted_epsilon_gives_the_noise():
    told = json.loads(run("binomial", "-n", "100", "-T", "20", "--epsilon", "1", "--json"))
    assert 0.98 < told["epsilon"] <= 1


def test_both_neighbours_stand_side_by_side():
    told = json.loads(run("md", "-n", "20", "-T", "5", "--adjacency", "both", "--json"))
    assert [each["adjacency"] for each in told] == ["add-remove", "replace-one"]
    assert told[1]["deviation"] == pytest.approx(2 * told[0]["deviation"])
    table = run("md", "-n", "20", "-T", "5", "--adjacency", "both")
    assert "neighbour" in table


def test_advice_tells_the_noise_of_a_wanted_epsilon(tmp_path):
    file = tmp_path / "sizes.csv"
    file.write_text("3\n" + "1\n" * 20)
    words = ["advise", str(file), "-m", "4", "-T", "10", "--epsilon", "2", "--json"]
    more = ["--only", "poisson", "--only", "uniform", "--only", "pow-d"]
    result = CliRunner().invoke(app(), [*words, *more], catch_exceptions=False)
    rows = {row["name"]: row for row in json.loads(result.output)["rows"]}
    assert 1.95 < rows["poisson"]["epsilon"] <= 2
    assert 0 < rows["poisson"]["deviation"] < rows["uniform"]["deviation"]
    assert rows["pow-d"]["deviation"] is None  # no noise on the sum covers its choice


def test_a_scheme_tells_what_it_costs():
    result = CliRunner().invoke(app(), ["schemes", "binomial"], catch_exceptions=False)
    assert "epsilon 7.05" in result.output


def test_clients_of_different_sizes_pay_differently(tmp_path):
    file = tmp_path / "sizes.csv"
    file.write_text("5\n" + "1\n" * 20)
    out = run("poisson", "--sizes", str(file), "-m", "4", "-T", "5")
    assert "worst-off" in out
    assert "of the cheapest" in out


TABLE = "hospital,beds,patients\na,9,5\n" + "".join(f"{i},{i % 3},1\n" for i in range(20))


def test_one_of_several_columns_has_the_sizes(tmp_path):
    file, alone = tmp_path / "table.csv", tmp_path / "sizes.csv"
    file.write_text(TABLE)
    alone.write_text("5\n" + "1\n" * 20)
    words = ("poisson", "-m", "4", "-T", "5", "--json", "--sizes")
    wanted = run(*words, str(alone))
    for column in ("patients", "3"):
        assert run(*words, str(file), "--column", column) == wanted
    with pytest.raises(FedcohortError, match="say which has the sizes, as in --column"):
        run(*words, str(file))


def test_importances_count_without_sizes(tmp_path):
    file = tmp_path / "importance.csv"
    file.write_text("5\n" + "1\n" * 20)
    words = ("poisson", "-m", "4", "-T", "5", "--json")
    asked = json.loads(run(*words, "-n", "21", "--importance", str(file)))
    sized = json.loads(run(*words, "--sizes", str(file)))
    assert asked["epsilon"] == pytest.approx(sized["epsilon"])
    assert asked["curve"][0][1] < asked["curve"][-1][1]


def test_json_has_no_infinity(tmp_path):
    file = tmp_path / "sizes.csv"
    file.write_text("5\n" + "1\n" * 20)
    loud = ("--noise", "0.001", "--json")

    def refuse(word):
        raise AssertionError(word)

    told = json.loads(run("md", "--sizes", str(file), *loud), parse_constant=refuse)
    assert told["epsilon"] is None
    advise = ["advise", str(file), "-m", "4", "--only", "md", *loud]
    result = CliRunner().invoke(app(), advise, catch_exceptions=False)
    told = json.loads(result.output, parse_constant=refuse)
    assert told["rows"][0]["epsilon"] is None
    assert "worst-off client epsilon without bound" in told["plain"][2]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--noise", "1", "--epsilon", "2"], "leave out --noise or --epsilon"),
        (["--column", "2"], "leave out --column or -n"),
        (["--importance", "nowhere.csv"], "--importance must be equal, size or a CSV file"),
    ],
)
def test_nothing_is_ignored(words, says):
    with pytest.raises(FedcohortError, match=says):
        run("md", "-n", "5", *words)


@pytest.mark.parametrize(
    "words", [["md"], ["md", "-n", "5", "--sizes", "x.csv"], ["md", "-n", "0"]]
)
def test_clients_must_be_given_once(words):
    with pytest.raises(FedcohortError, match="-n"):
        run(*words)


def test_all_schemes_are_priced_but_for_those_that_do_not_apply(tmp_path, monkeypatch):
    """The largest client has half of everything, so 'poisson' cannot have m = 4."""
    file = tmp_path / "f.csv"
    file.write_text("20\n" + "1\n" * 20)
    names = ["binomial", "poisson", "pow-d"]
    monkeypatch.setattr("fedcohort.cli.privacy.SCHEMES", Some(names))
    out = run("--sizes", str(file), "-m", "4", "-T", "3")
    assert "Not applicable: poisson. The 'm' parameter of poisson must be at most" in out
    assert run(str(file), "-m", "4", "-T", "3") == out  # as `advise f.csv`
    told = json.loads(run(str(file), "-m", "4", "-T", "3", "--json"))
    assert [("epsilon" in each, "not_applicable" in each) for each in told] == [
        (True, False), (True, False), (False, True)
    ]  # fmt: skip
    with pytest.raises(FedcohortError, match="of poisson must be at most"):
        run(str(file), *names, "-m", "4", "-T", "3")
    with pytest.raises(FedcohortError, match="once: as a word or by --sizes"):
        run(str(file), "--sizes", str(file))


class Some:
    """The installed schemes, of which only some are listed."""

    def __init__(self, names):
        self.names, self.build = names, SCHEMES.build

    def __iter__(self):
        return iter(self.names)
