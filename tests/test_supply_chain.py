"""The lock file and the page of licences against what is declared and what is installed."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TABLE = dict(re.findall(r"^\| ([a-z0-9_.-]+) \| (.+?) \| .+ \|$", PAGE, re.MULTILINE))
FAMILIES = ("BSD", "MIT", "Apache", "MPL", "PSF", "ISC", "GPL")


def name_of(requirement: str) -> str:
    return re.split(r"[<>=\[ ;]", requirement)[0].lower()


def locked() -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9_.-]+)==(\S+)", LOCK, re.MULTILINE))


def test_everything_that_is_needed_is_locked_with_hashes_and_no_host() -> None:
    assert {name_of(each) for each in PROJECT["dependencies"]} <= set(locked())
    entries = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)
    assert all("--hash=sha256:" in entry for entry in entries if entry.strip())
    assert not re.search(r"://|--index|--find-links|--trusted", LOCK)


def test_the_lock_and_the_constraints_agree() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = {name.lower(): version for name, version in re.findall(r"^(\S+)==(\S+)", text, re.M)}
    assert {name: pinned.get(name, version) for name, version in locked().items()} == locked()


def test_every_package_has_its_licence_on_the_page() -> None:
    assert set(locked()) <= set(TABLE)
    extras = {
        name_of(each)
        for extra, wants in PROJECT["optional-dependencies"].items()
        if extra not in {"dev", "test"}
        for each in wants
    }
    assert extras <= set(TABLE)


def test_nothing_that_is_needed_is_under_the_gpl_alone() -> None:
    for name in locked():
        choices = re.split(r" OR ", TABLE[name])
        assert any("GPL" not in choice for choice in choices), name
    wanted = [each for some in PROJECT["optional-dependencies"].values() for each in some]
    assert [name_of(each) for each in wanted].count("kmedoids") == 1
    assert "kmedoids" in " ".join(PROJECT["optional-dependencies"]["dev"])


@pytest.mark.parametrize("name", sorted(TABLE))
def test_the_page_says_what_the_package_says(name: str) -> None:
    try:
        told = metadata(name)
    except PackageNotFoundError:
        pytest.skip("not installed here")
    classifiers = [c for c in told.get_all("Classifier") or [] if c.startswith("License")]
    says = " ".join([str(told.get("License-Expression")), str(told.get("License")), *classifiers])
    known = {family for family in FAMILIES if family.lower() in says.lower()}
    if "Python Software Foundation" in says:
        known.add("PSF")
    if "Redistribution and use in source and binary forms" in says:
        known.add("BSD")
    assert known & {family for family in FAMILIES if family in TABLE[name]}, says[:200]
    if known == {"GPL"}:
        assert "GPL" in TABLE[name]
