"""The book on paper: all pages in one document, nothing dead and nothing lost."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tools.notebooks.repo_links import published
from tools.site.browser import LAUNCH, chromium, served
from tools.site.pdf import bound, listed, make_pdf, write_pdf

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("COURSE_SITE", ROOT / "_build" / "html")).resolve()

LOOK = r"""() => {
  const ids = [...document.querySelectorAll("[id]")].filter((e) => !e.closest("svg"))
    .map((e) => e.id);
  const inside = [...document.querySelectorAll('a[href^="#"]')]
    .map((a) => decodeURIComponent(a.getAttribute("href").slice(1)));
  const used = [...document.querySelectorAll("use")].map(
    (u) => (u.getAttribute("xlink:href") || u.getAttribute("href")).slice(1));
  return {
    twice: ids.filter((id, i) => ids.indexOf(id) !== i),
    lost: inside.filter((id) => !document.getElementById(id)),
    glyphless: used.filter((id) => !document.getElementById(id)).length,
    broken: [...document.images].filter((i) => !i.naturalWidth).map((i) => i.src),
    live: document.querySelectorAll("script, .cw-controls, details:not([open])").length,
    widgets: document.querySelectorAll(".course-widget").length,
    stills: [...document.querySelectorAll(".still a")].map((a) => a.href),
    empty: [...document.querySelectorAll(".course-widget > svg")].filter(
      (stage) => !stage.children.length).length,
    wide: [...document.querySelectorAll("pre")]
      .filter((e) => e.scrollWidth > e.clientWidth + 1).length,
    titles: [...document.querySelectorAll(".front li")].map((li) => li.innerText),
  };
}"""


@pytest.mark.browser
def test_all_pages_stand_in_one_document(tmp_path: Path) -> None:
    pages = listed(SITE)
    with served(SITE) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=LAUNCH)
        document = bound(browser, address, pages, "A title")
        found = document.evaluate(LOOK)
        write_pdf(document, tmp_path / "course.pdf")
        browser.close()
    for fault in ("twice", "lost", "broken"):
        assert found[fault] == [], fault
    for fault in ("glyphless", "live", "empty", "wide"):
        assert found[fault] == 0, fault
    assert len(found["titles"]) == len(pages) == len(set(found["titles"]))
    chapters = [p for p in pages if re.match(r"book/\d\d_", p)]
    assert found["widgets"] == len(found["stills"]) >= len(chapters)
    assert all(link.startswith(published()) for link in found["stills"])
    printed = (tmp_path / "course.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > len(pages)
    assert not (tmp_path / "course.partial").exists()


def test_without_a_site_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="build it with: make book"):
        make_pdf(tmp_path, tmp_path / "course.pdf")


def test_a_page_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "intro.html").write_text("<article></article>")
    with pytest.raises(ValueError, match=r"no page 'book/99', .* book/intro"):
        make_pdf(tmp_path, tmp_path / "course.pdf", ["book/99"])
