"""Every block of every page runs as it is printed: in order, in an empty folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import pages

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/**/*.md"))
    if any(map(pages.is_code, pages.blocks(path.read_text(encoding="utf-8"))))
)
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
"""With the Python that runs the tests as ``python``."""

QUICK = {"docs/data.md", "docs/python.md"}
"""Run by `make test`; the others by `make docs`."""


@pytest.mark.parametrize(
    "page",
    [page if page in QUICK else pytest.param(page, marks=pytest.mark.site) for page in PAGES],
)
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    script = ROOT / "tests" / "helpers" / "pages.py"
    env = {**os.environ, "PATH": PATH, "COLUMNS": "110"}
    env |= {"NO_COLOR": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, script, ROOT / page],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-6000:]


def test_what_is_not_run_says_why() -> None:
    for page in PAGES:
        for block in pages.blocks((ROOT / page).read_text(encoding="utf-8")):
            if pages.is_code(block) and block.not_run:
                assert len(block.not_run.split()) > 3, (page, block.line)


PAGE = """
```python
x = 2
print("round 1 of", x * 50)
```

```text
round 1 of 100
```

```sh
echo accuracy 93.41 %, 12 s; echo second; echo third
```

```text
accuracy 93.2 %, ... s
...
third
```

<!-- run with: 1000 => 3 -->
```python
y = sum(range(1000))
```
<!-- first: z = y -->
```python
assert z == 3
```

```python title="folder/mine.py"
print("mine")
```

```console
$ python folder/mine.py
```
```text
mine
```

<!-- not run: it would end the test -->
```sh
exit 3
```
"""


def play(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    (folder / "page.md").write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", PATH)
    return pages.play(folder / "page.md")


def test_a_page_is_run_as_written(tmp_path, monkeypatch):
    assert play(PAGE, tmp_path, monkeypatch) == 6


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = 2", "x = y"),  # a name that is not there
        ("x = 2", "x = 3"),  # other output than printed
        ("round 1", "rounds 1"),
        ("93.41", "73.41"),
        ("echo third", "true"),
        ("third\n```", "third\n```\n\n```sh\nfalse\n```"),  # a command that fails
        ("print(\"mine\")", "print('yours')"),
        ("1000 => 3", "2000 => 3"),  # a change that changes nothing
    ],
)  # fmt: skip
def test_a_page_that_is_wrong_is_caught(tmp_path, monkeypatch, old, new):
    with pytest.raises((AssertionError, NameError)):
        play(PAGE.replace(old, new, 1), tmp_path, monkeypatch)
