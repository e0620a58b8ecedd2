"""What a person meets who opens JupyterLab: trust, themes, the first page."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from coin import COIN, notebook
from lab_server import PATIENCE, opened, running_browser, served_lab
from nbformat.v4 import new_code_cell, new_output

from course_utils.display.figures import figure_html
from course_utils.display.svg import colour
from tools.notebooks.io import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("jupyterlab")]
DOT = f'<svg width="90" height="90"><path d="M0 0h9v9" style="fill:{colour("blue")}"/>'
FIGURE = figure_html(f"{DOT}<text y='40'>word</text></svg>", "A caption.")
INK, BLUE, SURFACE = "rgb(230, 233, 239)", "rgb(116, 179, 255)", "rgb(25, 30, 39)"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A JupyterLab of its own on two notebooks; its address."""
    folder = tmp_path_factory.mktemp("lab")
    shown = new_output("display_data", {"text/html": COIN.html, "text/plain": "coin"})
    stored = new_code_cell("COIN", outputs=[shown], execution_count=1)
    nbformat.write(notebook(stored), folder / "stored.ipynb")
    nbformat.write(notebook(new_code_cell()), folder / "empty.ipynb")
    name = "06_queries_keys_values.ipynb"
    for path in (f"book/{name}", f"exercises/{name}", "book/lab_start.md"):
        (folder / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    with served_lab(folder) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as running:
        yield running


def test_an_interactive_that_may_not_run_says_how_to_wake_it(
    browser: Any, lab: str
) -> None:
    page = opened(browser, lab, "stored.ipynb")
    asleep = page.get_by_text("choose File, then Trust Notebook")
    asleep.wait_for()
    assert page.locator(".jp-OutputArea circle").count() == 0
    page.close()


def computed(page: Any, selector: str, name: str) -> str:
    ask = "([s, n]) => getComputedStyle(document.querySelector(s))[n]"
    return page.evaluate(ask, [selector, name])


def figure_colours(page: Any) -> tuple[str, ...]:
    """What has no colour of its own, what has one, and the card."""
    return (
        computed(page, ".course-figure text", "fill"),
        computed(page, ".course-figure path", "fill"),
        computed(page, ".course-figure", "backgroundColor"),
    )


@pytest.mark.parametrize(
    ("attributes", "scheme", "dark"),
    [
        ('theme="dark"', "light", True),  # Colab, whatever the system prefers
        ('theme="light"', "dark", False),
        ("", "dark", True),
        ("", "light", False),
    ],
)
def test_interactives_and_figures_follow_the_page_before_the_system(
    browser: Any, attributes: str, scheme: str, dark: bool
) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.set_content(f"<html {attributes}><body>{COIN.html}{FIGURE}</body></html>")
    assert (computed(page, "#coin", "color") == INK) is dark
    colours = figure_colours(page)
    if dark:
        assert colours == (INK, BLUE, SURFACE)
    else:
        assert colours == ("rgb(27, 35, 48)", "rgb(31, 95, 168)", "rgb(253, 253, 254)")
    page.close()


def test_interactives_and_figures_follow_a_dark_jupyterlab(
    browser: Any, lab: str
) -> None:
    page = opened(browser, lab, "empty.ipynb")
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.evaluate(
        "html => document.body.insertAdjacentHTML('beforeend', html)",
        COIN.html + FIGURE,
    )
    assert computed(page, "#coin", "color") == INK
    assert figure_colours(page) == (INK, BLUE, SURFACE)
    page.close()


def test_make_lab_opens_a_page_that_leads_to_chapters_and_exercises(
    browser: Any, lab: str
) -> None:
    command = (ROOT / "Makefile").read_text("utf-8")
    (start,) = re.findall(r"--LabApp\.default_url='([^']+)'", command)
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{lab}{start}?reset")  # with no notebook of an earlier test behind it
    exercise = page.locator(".jp-RenderedMarkdown a[href*='exercises/06']")
    exercise.click()
    page.wait_for_url("**/exercises/06_queries_keys_values.ipynb*")
    page.wait_for_selector(".jp-Notebook:visible .jp-Cell")
    page.close()
