"""The whole book as one PDF, printed by Chromium from the built site.

    python -m tools.site.pdf [--pages book/06_queries_keys_values …]

Every page is opened and drawn, an interactive is kept as it stands, with a link to the
living one, and all pages are put into one document in the order of `_toc.yml`: links
between pages lead to the page in the PDF. The result is `_build/course.pdf`, written
whole or not at all.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import yaml

from tools.notebooks.io import ROOT
from tools.notebooks.repo_links import published
from tools.notebooks.toc import entries
from tools.site.browser import DRAWN, LAUNCH, chromium, served

# What a page becomes on paper: its article, with no scripts and no controls.
FREEZE = r"""({ pages, home }) => {
  const article = document.querySelector("article");
  const own = location.pathname.slice(1).replace(/\.html$/, "");
  const anchor = (page, id) => `${page.replace("/", "-")}${id ? "--" + id : ""}`;
  for (const widget of article.querySelectorAll(".course-widget")) {
    const link = document.createElement("p");
    link.className = "still";
    link.innerHTML = `A still. On the site it answers: <a></a>`;
    const there = `${home}${own}.html#${widget.id}`;
    link.lastChild.href = link.lastChild.textContent = there;
    widget.append(link);
    widget.querySelectorAll("[tabindex]").forEach((e) => e.removeAttribute("tabindex"));
  }
  const gone = "script, .headerlink, .copybtn, .cw-controls, .cw-chain, details.hide, "
    + "noscript, .prev-next-footer, .tb-hint";
  article.querySelectorAll(gone).forEach((element) => element.remove());
  article.querySelectorAll("details").forEach((element) => { element.open = true; });
  article.querySelectorAll("a[href]").forEach((link) => {
    // a drawing has links, too
    const to = new URL(link.getAttribute("href"), location);
    if (to.origin !== location.origin) return;
    const page = decodeURI(to.pathname).slice(1).replace(/\.html$/, "");
    const inside = "#" + anchor(page, to.hash.slice(1));
    const outside = home + to.pathname.slice(1) + to.hash;
    link.setAttribute("href", pages.includes(page) ? inside : outside);
  });
  article.querySelectorAll("img").forEach((image) => {
    image.loading = "eager";
    image.src = image.src;  // the whole address: the page around it will be another
  });
  article.querySelectorAll("[id]").forEach((element) => {
    if (!element.closest("svg")) element.id = anchor(own, element.id);
  });
  article.id = anchor(own, "");
  return { html: article.outerHTML, title: document.querySelector("h1").innerText,
    id: article.id };
}"""

# All pages in one document, in place of the page that is open: its styles stay.
BIND = r"""({ title, parts }) => {
  document.documentElement.dataset.theme = "light";
  document.documentElement.dataset.mode = "light";
  document.title = title;
  document.querySelectorAll("script").forEach((script) => script.remove());
  const list = parts.map((part) => `<li><a href="#${part.id}">${part.title}</a></li>`);
  document.body.innerHTML =
    `<section class="front"><h1>${title}</h1><ol>${list.join("")}</ol></section>`
    + parts.map((part) => part.html).join("");
  document.body.className = "on-paper";
}"""

PAPER = """
.on-paper { display: block; font-size: 10.5pt; padding: 0; background: #fff; }
.on-paper article { break-before: page; padding: 0; max-width: none; }
.on-paper .front ol { list-style: none; padding: 0; line-height: 1.9; }
.on-paper .front h1 { margin: 6rem 0 3rem; }
.on-paper pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 8.5pt; }
.on-paper table { font-size: 9pt; }
.on-paper :is(h1, h2, h3) { break-after: avoid; }
.on-paper :is(.course-figure, .course-widget, blockquote, table, .math) {
  break-inside: avoid; }
.on-paper .course-widget { max-width: 100%; }
.on-paper .still { font-size: 8.5pt; margin: .6rem 0 0; overflow-wrap: anywhere; }
"""
FOOTER = (
    '<div style="width:100%;font-size:8px;text-align:center">'
    '<span class="pageNumber"></span></div>'
)


def listed(site: Path, root: Path = ROOT) -> list[str]:
    """The pages of `_toc.yml` that are built, in order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    names = [entry.removesuffix(".md") for entry in entries(toc)]
    return [name for name in names if (site / f"{name}.html").is_file()]


def bound(browser: Any, address: str, pages: list[str], title: str) -> Any:
    """One browser page that holds all of the book's."""
    page = browser.new_page(viewport={"width": 760, "height": 1000})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")  # nothing plays
    parts: list[dict[str, Any]] = []
    for number, name in enumerate(pages, 1):
        print(f"\r  {number}/{len(pages)} {name:<50}", end="", flush=True)
        page.goto(f"{address}{name}.html", wait_until="load")
        page.wait_for_function(DRAWN)
        parts.append(page.evaluate(FREEZE, {"pages": pages, "home": published()}))
    print()
    page.evaluate(BIND, {"title": title, "parts": parts})
    page.add_style_tag(content=PAPER)
    page.evaluate("() => Promise.all([...document.images].map((i) => i.decode()))")
    return page


def write_pdf(page: Any, path: Path) -> None:
    """Print what the browser holds, all of it or nothing."""
    partial = path.with_suffix(".partial")
    page.pdf(
        path=str(partial),
        format="A4",
        margin=dict.fromkeys(("top", "bottom", "left", "right"), "18mm"),
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=FOOTER,
        outline=True,
        tagged=True,
    )
    os.replace(partial, path)


def make_pdf(site: Path, out: Path, pages: list[str] | None = None) -> str:
    """Print the book; return what there is to say about it."""
    from playwright.sync_api import sync_playwright

    known = listed(site)
    if not known:
        raise ValueError(f"there is no site in {site}; build it with: make book")
    unknown = [name for name in pages or [] if name not in known]
    if unknown:
        raise ValueError(
            f"there is no page {unknown[0]!r}, expected some of: {', '.join(known)}"
        )
    path = chromium()
    if path is None:
        raise ValueError(
            "there is no Chromium to print with (apt-get install chromium)"
        )
    title = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["title"]
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=LAUNCH)
        write_pdf(bound(browser, address, pages or known, title), out)
        browser.close()
    return f"{out} ({out.stat().st_size / 1e6:.1f} MB)"


def main() -> int:
    """Read the command line and print the book."""
    parser = argparse.ArgumentParser(prog="python -m tools.site.pdf")
    parser.add_argument("--pages", nargs="*", help="some pages only, as in _toc.yml")
    asked = parser.parse_args()
    build = ROOT / "_build"
    try:
        print(make_pdf(build / "html", build / "course.pdf", asked.pages))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
