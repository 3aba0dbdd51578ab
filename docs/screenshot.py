"""Photograph the report of a run folder with headless Chromium: the picture in the README.

python docs/screenshot.py runs/demo docs/images/report.png
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from fedcohort import Comparison, report

SIZE = (1280, 1840)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
    "--force-prefers-reduced-motion", "--virtual-time-budget=8000",
)  # fmt: skip


def main(folder: str, picture: str) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("A screenshot needs Chromium: apt-get install chromium")
    place = Path(picture).resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        page = report.write(Comparison.load(folder), Path(scratch) / "report.html")
        subprocess.run(  # noqa: S603 - our own page
            [browser, *FLAGS, f"--user-data-dir={scratch}/profile", f"--screenshot={place}",
             f"--window-size={SIZE[0]},{SIZE[1]}", page.as_uri()],
            check=True, stderr=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip
    shrink(place)
    print(f"{place}: {place.stat().st_size / 1000:.0f} kB")


def shrink(place: Path) -> None:
    """256 colours: a third of the bytes."""
    from PIL import Image

    with Image.open(place) as image:
        few = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(place, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
