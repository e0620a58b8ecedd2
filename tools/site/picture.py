"""The picture of the live transformer that the README shows.

python -m tools.site.picture     photograph the built site (make book) again
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tools.notebooks.io import ROOT
from tools.site.browser import LAUNCH, chromium, served

PICTURE = ROOT / "book" / "_static" / "live_transformer.png"
LIMIT = 150_000  # bytes


def photograph(site: Path, picture: Path) -> None:
    """Write a picture of the front page's translator, a head switched off."""
    if not (site / "index.html").is_file():
        raise ValueError(f"there is no site in {site}; build it with: make book")
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=LAUNCH)
        page = browser.new_page(
            viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
        )
        page.goto(f"{address}book/intro.html")
        page.wait_for_function("window.courseTransformer")
        page.locator("#translator [data-control=one]").click()
        page.wait_for_timeout(500)
        page.evaluate("document.activeElement.blur()")
        page.locator("#translator").screenshot(path=picture)
        browser.close()
    if (size := picture.stat().st_size) > LIMIT:
        raise ValueError(f"{picture} has {size:,} bytes, expected {LIMIT:,} at most.")


if __name__ == "__main__":
    try:
        photograph(ROOT / "_build" / "html", PICTURE)
    except ValueError as error:
        sys.exit(str(error))
