from __future__ import annotations

import pytest


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path, request):
    """A machine without any data, except for the tests of the real sets."""
    if "real" in request.node.name:
        return
    for variable in (
        "FEDCOHORT_DATA", "TORCH_HOME", "KERAS_HOME", "SCIKIT_LEARN_DATA", "XDG_CACHE_HOME",
        "HF_HOME", "HF_HUB_CACHE",
    ):  # fmt: skip
        monkeypatch.delenv(variable, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
