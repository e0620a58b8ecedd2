"""The interactive of chapter 19, and the picture of its passes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from course_utils.display.speculation_diagrams import passes
from course_utils.display.widgets.accepted_mass import accepted_mass
from course_utils.evaluation.speculative import Round


def test_the_picture_has_a_box_for_every_token():
    rounds = [Round([1, 2, 3], [1, 9]), Round([4, 5, 6], [4, 5, 6, 7])]
    drawn = "".join(passes(rounds, lambda token: f"t{token}").wide.parts)
    for token in (1, 2, 3, 9, 4, 5, 6, 7):
        assert drawn.count(f">t{token}<") == 1


def test_too_many_drafts_for_the_picture_are_refused():
    with pytest.raises(ValueError, match="has room for 12 rounds"):
        passes([Round([1] * 5, [1])], str)
    with pytest.raises(ValueError, match="expected 6 to 30"):
        accepted_mass(n_tokens=3)


@pytest.mark.browser
def test_the_page_says_the_overlap(tmp_path: Path):
    """Equal bells overlap whole; far apart, hardly at all."""
    from playwright.sync_api import sync_playwright

    (tmp_path / "page.html").write_text(f"<body>{accepted_mass().html}</body>", "utf-8")
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page()
        page.goto(f"file://{tmp_path}/page.html")

        def said(**chosen: int) -> str:
            for key, place in chosen.items():
                page.locator(f"[data-control={key}]").fill(str(place))
            return page.inner_text(".cw-says")

        assert "Accepted: 1.00" in said(p=10, q=10, pWide=3, qWide=3, k=3)
        assert "a pass writes 5.00 tokens" in said(k=3)
        assert "Accepted: 0.00" in said(p=0, q=24, pWide=0, qWide=0)
        browser.close()
