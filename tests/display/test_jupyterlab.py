"""What a person meets who runs a notebook in JupyterLab: keys, bars, trust, themes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from lab_server import IDLE, PATIENCE, opened, run_all, running_browser, served_lab
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils.display.figures import figure_html
from course_utils.display.interactive import button, select, slider, widget
from course_utils.display.svg import colour
from tools.notebooks.io import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("jupyterlab")]
SCRIPT = """
const dot = ui.circle(state.at || 40, 60, 12, {});
ui.active(dot, {key: "dot", label: "a dot", at: [state.at || 40, 60], step: 10,
  drag: (x) => { state.at = Math.round(x); }});
const bar = ui.rect(200, 50, 30, 20, {});
ui.active(bar, {key: "bar", label: "a bar", press: () => { state.pressed = "yes"; }});
ui.say(`p ${state.p}, ${state.colour}, ${state.count}, ${state.at}, ${state.pressed}`);
"""
WIDGET = widget(
    "coin",
    "A coin",
    [
        slider("p", "probability", [0.1, 0.5, 0.9]),
        select("colour", "colour", ["blue", "red"]),
        button("count", "throw"),
    ],
    script=SCRIPT,
    alt="A dot to drag and a bar to press, and what was done with them.",
)
DOT = f'<svg width="90" height="90"><path d="M0 0h9v9" style="fill:{colour("blue")}"/>'
FIGURE = figure_html(f"{DOT}<text y='40'>word</text></svg>", "A caption.")
INK, BLUE, SURFACE = "rgb(230, 233, 239)", "rgb(116, 179, 255)", "rgb(25, 30, 39)"
TRAINING = """
import time, torch
from course_utils.training.loop import train

def batch(step, generator):
    time.sleep(0.02)
    return (torch.randn(4, 3, generator=generator),)

model = torch.nn.Linear(3, 2)
train(model, batch, lambda model, x: model(x).square().mean(), steps=5000)
print("the training is over")
"""


def notebook(*cells: Any) -> nbformat.NotebookNode:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=list(cells), metadata={"kernelspec": kernel})


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A JupyterLab of its own on two notebooks; its address."""
    folder = tmp_path_factory.mktemp("lab")
    shown = new_output("display_data", {"text/html": WIDGET.html, "text/plain": "coin"})
    stored = new_code_cell("WIDGET", outputs=[shown], execution_count=1)
    show = f"from IPython.display import HTML\nHTML({WIDGET.html!r})"
    nbformat.write(notebook(stored), folder / "stored.ipynb")
    live = notebook(
        new_markdown_cell("# One"),
        new_code_cell(show),
        new_markdown_cell("# Two"),
        new_code_cell(TRAINING),
        new_code_cell("print('a later ' + 'cell')"),
    )
    nbformat.write(live, folder / "live.ipynb")
    name = "06_queries_keys_values.ipynb"
    for path in (f"book/{name}", f"exercises/{name}", "book/start.md"):
        (folder / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    with served_lab(folder) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as running:
        yield running


def test_the_keys_of_an_interactive_are_its_own_and_an_interrupt_stops_the_run(
    browser: Any, lab: str
) -> None:
    page = opened(browser, lab, "live.ipynb")
    page.wait_for_selector(IDLE)  # loaded, and its kernel ready
    run_all(page)
    says = page.locator("#coin .cw-says")
    page.wait_for_selector("#coin circle")
    cells = page.locator(".jp-Cell").count()

    page.locator("#coin input[type=range]").focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert says.inner_text().startswith("p 0.5, blue, 0")
    page.locator("#coin select").focus()
    page.keyboard.press("x")  # in JupyterLab's command mode: cut the cell
    page.keyboard.press("ArrowDown")
    assert says.inner_text().startswith("p 0.5, red, 0")
    page.locator("#coin button").focus()
    for key in ("Enter", "Space", "d", "d"):
        page.keyboard.press(key)
    assert says.inner_text().startswith("p 0.5, red, 2")
    page.locator("#coin [data-key=dot]").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#coin [data-key=bar]").focus()
    page.keyboard.press("Enter")
    assert says.inner_text() == "p 0.5, red, 2, 50, yes"
    box = page.locator("#coin [data-key=dot]").bounding_box()
    page.mouse.move(box["x"] + 12, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + 72, box["y"] + 12, steps=3)
    page.mouse.up()
    assert says.inner_text() == "p 0.5, red, 2, 110, yes"
    assert page.locator(".jp-Cell").count() == cells
    assert (
        page.locator(".jp-Cell.jp-mod-hidden, .jp-MarkdownHeadingCollapsed").count()
        == 0
    )

    page.wait_for_selector(".jp-OutputArea progress")  # the bar of the training
    page.click("button[data-command='notebook:interrupt-kernel'], [title^='Interrupt']")
    page.wait_for_selector("text=The model keeps what it learned")
    text = "\n".join(page.locator(".jp-OutputArea").all_inner_texts())
    assert "Stopped after " in text
    assert "the training is over" not in text
    assert "a later cell" not in text
    assert "Traceback" not in text
    page.close()


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
    page.set_content(f"<html {attributes}><body>{WIDGET.html}{FIGURE}</body></html>")
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
    page = opened(browser, lab, "live.ipynb")
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.evaluate(
        "html => document.body.insertAdjacentHTML('beforeend', html)",
        WIDGET.html + FIGURE,
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
