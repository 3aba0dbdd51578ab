"""``--hardened`` on the command line: what is withdrawn shows wherever a claim would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedcohort._internal.errors import BadInput
from fedcohort.cli import app
from fedcohort.selection import Claim
from fedcohort.server import guards
from fedcohort.simulation import Comparison

run = CliRunner().invoke
QUICK = ["--rounds", "2", "--seeds", "1", "--jobs", "1", "--steps", "1"]


def test_schemes_show_what_is_withdrawn() -> None:
    plain, hardened = (run(app(), ["schemes", *more]).output for more in ([], ["--hardened"]))
    line = next(line for line in hardened.splitlines() if line.startswith("md "))
    assert line.split()[1] == "withdrawn"
    assert "withdrawn" not in plain
    fedavg = next(line for line in hardened.splitlines() if line.startswith("fedavg "))
    assert fedavg.split()[1] == "no"
    (told,) = json.loads(run(app(), ["schemes", "md", "--hardened", "--json"]).output)
    assert told["withdrawn"] == sorted([Claim.UNBIASED.value, Claim.NO_WORSE_THAN_MD.value])
    assert told["claims"] == [Claim.SUMS_TO_ONE.value]
    assert told["unbiased"] is False
    assert "withdrawn" in run(app(), ["schemes", "md", "--hardened"]).output


@pytest.mark.parametrize("option", ["--unbiased", "--secure-aggregation"])
def test_no_scheme_is_listed_for_what_does_not_hold_behind_guards(option: str) -> None:
    for more in ([], ["--json"]):
        with pytest.raises(BadInput, match="No scheme is like that in a hardened run"):
            raise run(app(), ["schemes", "--hardened", option, *more]).exception
    assert run(app(), ["schemes", "--hardened", "--asks", "loss"]).exit_code == 0


def test_a_hardened_scheme_has_no_epsilon_and_no_secure_sum() -> None:
    """`gaussian` refuses these guards, and a secure sum refuses `clip`."""
    pytest.importorskip("dp_accounting")
    (plain,) = json.loads(run(app(), ["schemes", "md", "--json"]).output)
    (told,) = json.loads(run(app(), ["schemes", "md", "--hardened", "--json"]).output)
    assert "; epsilon " in plain["privacy"]
    assert told["privacy"].startswith("no epsilon. The aggregator 'gaussian' hides how long")
    assert plain["secure_aggregation"] == "yes"
    assert told["secure_aggregation"].startswith("no: the guard 'clip' must see single updates")
    others = told["secure_aggregation"].partition("hardened=")[2].strip("'")
    assert not any(guard.needs_rows for guard in guards(others))
    words = " ".join(run(app(), ["schemes", "md", "--hardened"]).output.split())
    assert "secure agg. no: secure aggregation cannot be used with it: the guard 'clip'" in words


def test_a_comparison_says_it_in_the_table_and_in_the_report(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    words = ["compare", "md:m=3", "pow-d:m=3", "--hardened", "-o", str(folder), *QUICK]
    result = run(app(), words)
    assert result.exit_code == 0, result.output
    said = f"Withdrawn for md: that {Claim.UNBIASED.value}."
    assert "Hardened by size-cap:times=1.75" in result.output
    assert said in " ".join(result.output.split())
    page = (folder / "report.html").read_text()
    assert said in page
    assert "Withdrawn for pow-d" not in page
    (first, _) = Comparison.load(folder).traces
    assert first.settings["withdrawn"]
    other = run(app(), [*words[:3], "-o", str(folder), *QUICK])
    assert isinstance(other.exception, BadInput)  # another comparison is in that folder


def test_a_comparison_without_guards_is_called_as_ever(tmp_path: Path) -> None:
    run(app(), ["compare", "md:m=3", "-o", str(tmp_path / "runs"), *QUICK])
    assert (
        "hardened" not in json.loads((tmp_path / "runs" / "settings.json").read_text())["options"]
    )


def test_bits_are_disclosed_instead_of_losses(tmp_path: Path) -> None:
    words = ["compare", "pow-d:m=3", "--guard", "losses:report=bit", "-o", str(tmp_path / "x")]
    result = run(app(), [*words, *QUICK])
    assert "loss_bit (when asked)" in result.output
    assert "loss (when asked)" not in result.output


def test_all_or_some() -> None:
    result = run(app(), ["compare", "md:m=3", "--hardened", "--guard", "clip", *QUICK])
    assert isinstance(result.exception, BadInput)
    assert "not both" in str(result.exception)
    with pytest.raises(BadInput, match="twice"):
        raise run(app(), ["compare", "md", "--guard", "clip", "--guard", "clip", *QUICK]).exception
