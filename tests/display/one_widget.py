"""One interactive in a browser, alone on a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STOPS = "e => [...e.querySelectorAll('*')].filter((x) => x.tabIndex >= 0).length"


@contextmanager
def opened(html: str, folder: Path, width: int = 720) -> Iterator[Any]:
    """The page of an interactive, and at the end nothing that went wrong in it."""
    from playwright.sync_api import sync_playwright

    (folder / "page.html").write_text(
        f"<!doctype html><meta charset=utf-8><body>{html}</body>", "utf-8"
    )
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page(viewport={"width": width, "height": 900})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((folder / "page.html").as_uri())
        page.wait_for_selector(".cw-says:not(:empty)")
        yield page
        browser.close()
    assert errors == []


def stops(page: Any) -> int:
    """How often Tab stops in the interactive."""
    found: int = page.locator(".course-widget").evaluate(STOPS)
    return found
