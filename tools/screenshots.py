"""Photographs site, explorer, notebook and report: on a desk, on a phone, in the dark.

``make screenshots``, or, where they are there already,
``python tools/screenshots.py build/site runs/demo/report.html build/screenshots``
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.browser import BROWSER, DRIVER, opened

PAGES = {
    "home": "index.html",
    "tutorial": "tutorials/first-comparison.html",
    "questions": "questions.html",
    "explorer": "explorer.html",
    "scheme": "schemes/clustered-size.html",
    "schemes": "schemes/index.html",
    "reference": "reference/api/server.html",
    "gallery": "gallery.html",
    "notebook": "notebooks/own_model.html",
    "cohort": "notebooks/look_at_a_cohort.html",
}
LOOKS = {
    "desktop": (1280, 1000, False, "light"),
    "phone": (390, 844, True, "light"),
    "dark": (1280, 1000, False, "dark"),
}
"""Width, height, whether it is a phone, and what the reader's system prefers."""
READY = """
return document.readyState === "complete"
  && [...document.querySelectorAll(".js-plotly-plot")].every((each) => each.querySelector("svg"));
"""


def photograph(browser: Any, page: Path, look: str, place: Path) -> bool:
    """One picture; whether the page is wider than the screen."""
    from selenium.webdriver.support.ui import WebDriverWait

    width, height, phone, scheme = LOOKS[look]
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
    browser.get("about:blank")
    browser.get(page.as_uri())
    browser.execute_script("localStorage.clear()")  # where the last reader's choice is kept
    browser.refresh()
    WebDriverWait(browser, 60).until(lambda each: each.execute_script(READY))
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    place.write_bytes(base64.b64decode(taken["data"]))
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    return int(wide) > width


def main(site: str, report: str, folder: str) -> None:
    """All pages in all looks."""
    if not (BROWSER and DRIVER):
        sys.exit("Pictures need a browser: apt-get install chromium chromium-driver")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    pages = {name: Path(site).resolve() / path for name, path in PAGES.items()}
    pages["report"] = Path(report).resolve()
    missing = [str(path) for path in pages.values() if not path.is_file()]
    if missing:
        sys.exit(f"These pages are missing: {', '.join(missing)}. Run `make docs` and `make demo`.")
    with tempfile.TemporaryDirectory() as scratch, opened(Path(scratch)) as browser:
        for name, page in pages.items():
            for look in LOOKS:
                wide = photograph(browser, page, look, place / f"{name}-{look}.png")
                print(f"{place / name}-{look}.png{': wider than the screen' if wide else ''}")


if __name__ == "__main__":
    main(*sys.argv[1:])
