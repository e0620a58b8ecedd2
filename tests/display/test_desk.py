"""A person at the desk: chapters and exercises, from top to bottom, in a browser.

In JupyterLab with the course's versions; with Colab's in the classic Notebook, whose
widgets are as old as Colab's own.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from coin import COIN, notebook
from lab_server import (
    CLASSIC,
    LAB,
    Frontend,
    opened,
    run_all,
    running_browser,
    served_classic,
    served_lab,
)
from nbformat.v4 import new_code_cell, new_markdown_cell

from course_utils.grading.questions import chapter_questions
from tools.notebooks.io import ROOT, read
from tools.notebooks.repo_links import colab_source
from tools.site.browser import chromium

pytestmark = pytest.mark.xdist_group("desk")
CHAPTERS = ("03_bahdanau_attention", "06_queries_keys_values")
CHAPTERS += ("12_transformer", "13_decoder_only")
WRONG = {
    "06_queries_keys_values": (
        "no_scale",
        "def attention(queries, keys, values):\n"
        "    weights = (queries @ keys.mT).softmax(dim=-1)\n"
        "    return weights @ values, weights",
    ),
    "09_masking": (
        "no_window_top_left",
        "def causal_mask(n_queries, n_keys, window):\n"
        "    return torch.ones(n_queries, n_keys).tril().bool()",
    ),
    "13_decoder_only": (
        "not_shifted",
        "def next_token_loss(logits, tokens):\n"
        "    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())",
    ),
}
THE_END = "the last cell has run"
TRAINING = """
import time, torch
from course_utils.training.loop import train

def batch(step, generator):
    time.sleep(2)
    return (torch.randn(4, 3, generator=generator),)

model = torch.nn.Linear(3, 2)
train(model, batch, lambda model, x: model(x).square().mean(), steps=5000)
print("the training is over")
"""
# Looked for now and then: looking all the time would leave the page none to run in.
COUNT_BARS = """output => {
  window.bars = 0;
  setInterval(() => {
    window.bars += document.querySelectorAll(`${output} progress`).length;
  }, 100);
}"""
OVER = """([end, code, output, error]) => {
  const last = [...document.querySelectorAll(code)].at(-1)?.querySelector(output);
  return document.querySelector(error) || (last && last.textContent.includes(end));
}"""
SELECTED = "(cells, selected) => cells.map((cell) => cell.matches(selected))"


@dataclass
class Desk:
    """A browser, what it shows notebooks with, and where that is served."""

    browser: Any
    look: Frontend
    address: str

    def opened(self, name: str) -> Any:
        return opened(self.browser, self.address, name, look=self.look)


def write_notebooks(folder: Path, **metadata: Any) -> None:
    """Copies of the notebooks, each of which says when it is over, and one more."""
    names = {*CHAPTERS, *WRONG}
    live = notebook(
        new_markdown_cell("# One"),
        new_code_cell(f"from IPython.display import HTML\nHTML({COIN.html!r})"),
        new_markdown_cell("# Two"),
        new_code_cell(TRAINING),
        new_code_cell("print('a later ' + 'cell')"),
    )
    pages = [f"{kind}/{n}" for kind in ("book", "exercises") for n in names]
    for name in (*pages, "live"):
        nb = live if name == "live" else read(ROOT / f"{name}.ipynb")
        nb.cells = [cell for cell in nb.cells if cell.source != colab_source()]
        nb.cells.append(new_code_cell(f"print({THE_END[:8]!r} + {THE_END[8:]!r})"))
        nb.metadata.update(metadata)
        (folder / name).parent.mkdir(exist_ok=True)
        nbformat.write(nb, folder / f"{name}.ipynb")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(LAB, marks=pytest.mark.browser, id="jupyterlab"),
        pytest.param(CLASSIC, marks=pytest.mark.colab, id="colab"),
    ],
)
def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """A desk with copies of the notebooks, whose kernel makes short work of them."""
    if not chromium():
        pytest.skip("there is no Chromium (apt-get install chromium)")
    folder = tmp_path_factory.mktemp("desk")
    startup = folder / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("tiny_startup.py"), startup / "tiny.py")
    tiny = {"IPYTHONDIR": str(folder / "ipython"), "COURSE_PRESET": "tiny"}
    if request.param is LAB:
        write_notebooks(folder)
        server = served_lab(folder, **tiny)
    else:
        write_notebooks(folder, kernelspec={"name": "colab", "display_name": "Colab"})
        colab = request.getfixturevalue("installed")
        server = served_classic(folder, colab, **tiny)
    with server as address, running_browser() as browser:
        yield Desk(browser, request.param, address)


def run_to_the_end(desk: Desk, name: str) -> Any:
    """A page on which every cell of the notebook has run, and none has failed."""
    look, page = desk.look, desk.opened(name)
    page.evaluate(COUNT_BARS, look.output)
    run_all(page, look)
    over = [THE_END, look.code, look.output, look.error]
    page.wait_for_function(OVER, arg=over, polling=1000, timeout=600_000)
    assert page.locator(look.error).all_inner_texts() == []
    return page


def followed(desk: Desk, page: Any, link: str, folder: str, name: str) -> str:
    """The title of the notebook that a link opens."""
    link = page.locator(f"{desk.look.words} a:text-is('{link}')").first
    if desk.look.opens_pages:
        with page.expect_popup() as opening:
            link.click()
        page = opening.value
    else:
        link.click()
    page.wait_for_url(f"**/{folder}/{name}.ipynb*")
    title = page.locator(f"{desk.look.words}:visible h1").first.inner_text()
    if desk.look.opens_pages:
        page.close()
    return title


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_runs_whole_with_bars_and_figures(desk: Desk, name: str) -> None:
    page, output = run_to_the_end(desk, f"book/{name}.ipynb"), desk.look.output
    assert page.evaluate("window.bars") > 0
    assert page.locator(f"{output} progress").count() == 0  # each left a line
    assert page.locator(f"{output} .course-figure svg").count() > 0
    assert page.locator(f"{output} .course-widget svg > *").count() > 0
    if name.startswith("06"):
        slide_by_keyboard(page)
    if name.startswith("13"):
        let_it_write(page)
        ask(page)
    title = followed(desk, page, "Exercise", "exercises", name)
    assert title.startswith("Exercises:")
    page.close()


def slide_by_keyboard(page: Any) -> None:
    """An interactive of the book answers to the arrows."""
    says = page.locator("#scale-explorer .cw-says")
    before = says.inner_text()
    page.locator("#scale-explorer input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    assert says.inner_text() != before


def let_it_write(page: Any) -> None:
    """The model in the cell's output writes, token after token."""
    page.locator("#next-token [data-control=write]").click()
    page.locator("#next-token [data-key=token-9]").wait_for()


def ask(page: Any) -> None:
    """The live box answers, and an empty prompt gets a sentence."""
    box = page.locator(".widget-text input").first
    box.fill("The rain")
    box.press("Enter")
    page.locator(".jupyter-widgets pre:has-text('The rain')").wait_for()
    box.fill("")
    box.press("Enter")
    page.get_by_text("the prompt is empty").wait_for()


def test_the_keys_of_an_interactive_are_its_own_and_an_interrupt_stops_the_run(
    desk: Desk,
) -> None:
    look, page = desk.look, desk.opened("live.ipynb")
    run_all(page, look)
    says = page.locator("#coin .cw-says")
    page.wait_for_selector("#coin circle")
    page.locator("#coin input[type=range]").click()  # in its middle
    cells = page.locator(look.cell)
    selected = cells.evaluate_all(SELECTED, look.selected)

    for key in ("j", "ArrowRight", "ArrowRight", "ArrowLeft", "x"):
        page.keyboard.press(key)  # as a command: next cell, cut the cell
    assert says.inner_text().startswith("p 0.5, blue, 0")
    page.locator("#coin select").focus()
    page.keyboard.press("x")
    page.keyboard.press("ArrowDown")
    assert says.inner_text().startswith("p 0.5, red, 0")
    page.locator("#coin button").focus()
    for key in ("Enter", "Space", "d", "d"):
        page.keyboard.press(key)
    assert says.inner_text().startswith("p 0.5, red, 2")
    page.locator("#coin [data-key=dot]").focus()
    for key in ("ArrowRight", "x"):
        page.keyboard.press(key)
    page.locator("#coin [data-key=bar]").focus()
    for key in ("Enter", "x"):
        page.keyboard.press(key)
    assert says.inner_text() == "p 0.5, red, 2, 50, yes"
    box = page.locator("#coin [data-key=dot]").bounding_box()
    page.mouse.move(box["x"] + 12, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + 72, box["y"] + 12, steps=3)
    page.mouse.up()
    assert says.inner_text() == "p 0.5, red, 2, 110, yes"
    assert cells.evaluate_all(SELECTED, look.selected) == selected
    assert cells.evaluate_all("cells => cells.every((c) => c.offsetHeight)")

    page.wait_for_selector(f"{look.output} progress")  # the bar of the training
    for item in look.interrupt:
        page.click(item)
    page.wait_for_selector("text=The model keeps what it learned")
    page.wait_for_selector(look.idle)
    text = "\n".join(page.locator(look.output).all_inner_texts())
    assert "Stopped after " in text
    assert "the training is over" not in text
    assert "a later cell" not in text
    assert "Traceback" not in text
    page.close()


def answered(desk: Desk, page: Any, function: str, source: str) -> None:
    """Write an answer in place of the one that stands there, and check it."""
    cell = page.locator(f"{desk.look.code}:has-text('def {function}(')").first
    cell.locator(desk.look.editor).click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)
    page.keyboard.press("Shift+Enter")  # runs it, and goes on to the check
    page.keyboard.press("Shift+Enter")


@pytest.mark.parametrize("name", WRONG)
def test_an_exercise_is_blank_then_wrong_then_right(desk: Desk, name: str) -> None:
    question = chapter_questions(name[:2])[0]
    mistake, wrong = WRONG[name]
    (hint,) = [m.hint for m in question.mistakes if m.id == mistake]
    solution = read(ROOT / "solutions" / f"{name}.ipynb")
    (right,) = [
        c.source for c in solution.cells if f"def {question.answer}(" in c.source
    ]
    page = run_to_the_end(desk, f"exercises/{name}.ipynb")
    check = page.locator(f"{desk.look.code}:has-text('check(\"{question.id}\"')").first
    verdict = check.locator("[role=status]")
    assert "not answered yet" in verdict.inner_text()
    answered(desk, page, question.answer, wrong)
    check.get_by_text(re.split("[`$:]", hint)[0]).wait_for()
    answered(desk, page, question.answer, re.sub(r"(?m)^ *### .*\n?", "", right))
    check.get_by_text(f"{question.points} of {question.points} points").wait_for()
    title = followed(desk, page, "Chapter", "book", name)
    assert not title.startswith("Exercises")
    page.close()
