"""A person at the desk: chapters and exercises in JupyterLab, from top to bottom."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from lab_server import IDLE, opened, run_all, running_browser, served_lab
from nbformat.v4 import new_code_cell

from course_utils.grading.questions import chapter_questions
from tools.notebooks.io import ROOT, read

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("desk")]
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
# Looked for now and then: looking all the time would leave the page none to run in.
COUNT_BARS = """
window.bars = 0;
setInterval(() => {
  window.bars += document.querySelectorAll(".jp-OutputArea progress").length;
}, 100);
"""
OVER = """([end, error]) => {
  const cells = document.querySelectorAll(".jp-Notebook .jp-CodeCell");
  const last = cells[cells.length - 1];
  const output = last && last.querySelector(".jp-OutputArea-output");
  return document.querySelector(error) || (output && output.textContent.includes(end));
}"""
ERROR = ".jp-OutputArea-output:has(.ansi-red-fg)"  # a traceback, in whatever type


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A JupyterLab on copies of the notebooks, each of which says when it is over."""
    folder = tmp_path_factory.mktemp("desk")
    names = {*CHAPTERS, *WRONG}
    for name in (f"{kind}/{n}.ipynb" for kind in ("book", "exercises") for n in names):
        nb = read(ROOT / name)
        nb.cells.append(new_code_cell(f"print({THE_END[:8]!r} + {THE_END[8:]!r})"))
        (folder / name).parent.mkdir(exist_ok=True)
        nbformat.write(nb, folder / name)
    startup = folder / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("tiny_startup.py"), startup / "tiny.py")
    tiny = {"IPYTHONDIR": str(folder / "ipython"), "COURSE_PRESET": "tiny"}
    with served_lab(folder, **tiny) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as running:
        yield running


def run_to_the_end(browser: Any, lab: str, name: str) -> Any:
    """A page on which every cell of the notebook has run, and none has failed."""
    page = opened(browser, lab, name)
    page.wait_for_selector(IDLE)
    page.evaluate(COUNT_BARS)
    run_all(page)
    page.wait_for_function(OVER, arg=[THE_END, ERROR], polling=1000, timeout=600_000)
    assert page.locator(ERROR).all_inner_texts() == []
    return page


def visible(page: Any, folder: str, name: str) -> Any:
    """The notebook that a link has opened."""
    page.wait_for_url(f"**/{folder}/{name}.ipynb*")
    return page.locator(".jp-Notebook:visible .jp-RenderedMarkdown h1").first


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_runs_whole_with_bars_and_figures(
    browser: Any, lab: str, name: str
) -> None:
    page = run_to_the_end(browser, lab, f"book/{name}.ipynb")
    quiet = "progress=False" in (ROOT / "book" / f"{name}.ipynb").read_text("utf-8")
    assert quiet or page.evaluate("window.bars") > 0
    assert page.locator(".jp-OutputArea progress").count() == 0  # each left a line
    assert page.locator(".jp-OutputArea .course-figure svg").count() > 0
    assert page.locator(".jp-OutputArea .course-widget svg > *").count() > 0
    if name.startswith("06"):
        slide_by_keyboard(page)
    if name.startswith("13"):
        let_it_write(page)
        ask_for_nothing(page)
    page.locator(".jp-RenderedMarkdown a:text-is('Exercise')").first.click()
    title = visible(page, "exercises", name)
    assert title.inner_text().startswith("Exercises:")
    page.close()


def slide_by_keyboard(page: Any) -> None:
    """An interactive answers to the arrows, and JupyterLab does not."""
    cells = page.locator(".jp-Cell").count()
    says = page.locator("#scale-explorer .cw-says")
    before = says.inner_text()
    page.locator("#scale-explorer input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    assert says.inner_text() != before
    assert page.locator(".jp-Cell").count() == cells


def let_it_write(page: Any) -> None:
    """The model in the cell's output writes, token after token."""
    page.locator("#next-token [data-control=write]").click()
    page.locator("#next-token [data-key=token-9]").wait_for()


def ask_for_nothing(page: Any) -> None:
    """The live box answers, and an empty prompt gets a sentence."""
    box = page.locator(".widget-text input").first
    box.fill("")
    box.press("Enter")
    page.get_by_text("the prompt is empty").wait_for()


def answered(page: Any, function: str, source: str) -> None:
    """Write an answer in place of the one that stands there, and check it."""
    cell = page.locator(f".jp-CodeCell:has-text('def {function}(')").first
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)
    page.keyboard.press("Shift+Enter")  # runs it, and goes on to the check
    page.keyboard.press("Shift+Enter")


@pytest.mark.parametrize("name", WRONG)
def test_an_exercise_is_blank_then_wrong_then_right(
    browser: Any, lab: str, name: str
) -> None:
    question = chapter_questions(name[:2])[0]
    mistake, wrong = WRONG[name]
    (hint,) = [m.hint for m in question.mistakes if m.id == mistake]
    solution = read(ROOT / "solutions" / f"{name}.ipynb")
    (right,) = [
        c.source for c in solution.cells if f"def {question.answer}(" in c.source
    ]
    page = run_to_the_end(browser, lab, f"exercises/{name}.ipynb")
    check = page.locator(f".jp-CodeCell:has-text('check(\"{question.id}\"')").first
    verdict = check.locator("[role=status]")
    assert "not answered yet" in verdict.inner_text()
    answered(page, question.answer, wrong)
    check.get_by_text(re.split("[`$:]", hint)[0]).wait_for()
    answered(page, question.answer, re.sub(r"(?m)^ *### .*\n?", "", right))
    check.get_by_text(f"{question.points} of {question.points} points").wait_for()
    page.locator(".jp-RenderedMarkdown a:text-is('Chapter')").first.click()
    assert not visible(page, "book", name).inner_text().startswith("Exercises")
    page.close()
