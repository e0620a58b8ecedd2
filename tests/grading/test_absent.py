"""What a question asks for is taken out of the package that a worker sees."""

from __future__ import annotations

import ast
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from course_utils.grading.classroom.submission_grader import examine, judge_all
from course_utils.grading.classroom.submissions import Notebook
from course_utils.grading.questions import EXERCISES, chapter_questions
from course_utils.grading.sandbox import absent, sandbox
from course_utils.grading.sandbox.absent import covers, without
from course_utils.grading.sandbox.replayer import replayer
from course_utils.grading.sandbox.sandbox import Limits, started
from tools.notebooks.io import read

ROOT = Path(__file__).parents[2]
PACKAGED = {
    name
    for chapter in EXERCISES
    for question in chapter_questions(chapter)
    for name in question.packaged
}


def definitions(source: str) -> dict[str, str]:
    tree = ast.parse(source)
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {x.name: ast.dump(x) for x in tree.body if isinstance(x, kinds)}


def test_a_definition_loses_its_body_and_its_neighbours_lose_nothing():
    source = "@cache\ndef f(x):\n    return 7\n\n\ndef g(x):\n    return f(x)\n"
    made = without(source, frozenset({"f"}))
    assert made is not None
    assert "7" not in made
    assert definitions(made)["g"] == definitions(source)["g"]
    space: dict = {}
    exec(made, space)
    with pytest.raises(RuntimeError, match="the package has no `f`"):
        space["g"](1)


def test_a_class_can_be_named_and_inherited_but_not_made():
    made = without("class A:\n    x = 7\n    def f(self): ...\n", frozenset({"A"}))
    assert made is not None
    space: dict = {}
    exec(made + "\nclass B(A): pass\n", space)
    assert not hasattr(space["A"], "x")
    with pytest.raises(RuntimeError, match="the package has no `A`"):
        space["B"]()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PACKAGED))
def test_no_module_keeps_what_is_taken_out(name):
    changed = dict(covers(frozenset({name})))
    modules = [place for place in changed if place.endswith(".py")]
    assert len(modules) == 1 or name in ("rotate", "rotary")
    for path in (ROOT / "course_utils").rglob("*.py"):
        if "grading" not in path.parts and str(path) not in changed:
            assert name not in definitions(path.read_text(encoding="utf-8"))


def test_many_threads_find_the_same_files(monkeypatch):
    monkeypatch.setattr(absent, "MADE", {})
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(covers, [frozenset({"causal_mask"})] * 8))
    assert len(set(found)) == 1


@pytest.mark.sandbox
def test_nothing_of_it_is_ever_on_the_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = frozenset({"causal_mask"})
    with started(Limits(), "bubblewrap", names) as process:
        assert process.poll() is None
        assert list(tmp_path.iterdir()) == []  # for a `kill -9` to leave behind


# A notebook that reads the cases from the frames of its worker and lets the package
# answer them, before anything watches; and one that asks in a thread.
BY_FRAMES = """
import sys
table, frame = {}, sys._getframe()
while frame:
    questions = frame.f_locals.get("questions")
    if isinstance(questions, dict) and "09.1" in questions:
        from course_utils.models.attention import causal_mask as own
        for q, k, window in questions["09.1"]["cases"]:
            table[q, k, window] = own(q, k).triu(k - q - window + 1)
    frame = frame.f_back
"""
BY_THREAD = """
from concurrent.futures import ThreadPoolExecutor
from course_utils.models.attention import causal_mask as own
pool = ThreadPoolExecutor(1)
"""
TO_COMPARE = """
from course_utils.models.attention import causal_mask as own
assert (own(3, 5) == causal_mask(3, 5, 5)).all()
"""


def solution(answer: str = "") -> list[str]:
    notebook = read(ROOT / "solutions" / "09_masking.ipynb")
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    if answer:
        head = r"(def causal_mask\(.*?\):\n).*"
        cells = [re.sub(head, rf"\1    {answer}", x, flags=re.S) for x in cells]
        assert any(answer in cell for cell in cells)
    return cells


def grade(cells: list[str]) -> tuple[int, list[str]]:
    asked, limits = chapter_questions("09")[:1], Limits()
    notebook = Notebook(tuple(cells), digest="\n".join(cells))
    found = examine(notebook, asked, "secret", limits)
    by = replayer(limits, "bubblewrap")
    results, more = judge_all(notebook, asked, "secret", found, by)
    return results[0].points, [*found.flags, *more]


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "answer"),
    [
        (BY_FRAMES, "return table[n_queries, n_keys, window]"),
        (
            BY_THREAD,
            "return pool.submit(lambda q, k, w: own(q, k).triu(k - q - w + 1), "
            "n_queries, n_keys, window).result()",
        ),
    ],
)
def test_an_answer_that_only_the_package_knows_is_flagged(before, answer):
    points, flags = grade([before, *solution(answer)])
    assert points == 3
    assert flags == ["09.1 right only with the package's own causal_mask"]


@pytest.mark.sandbox
@pytest.mark.slow
def test_whoever_compares_an_answer_with_the_package_s_gets_no_flag():
    assert grade([*solution(), TO_COMPARE]) == (3, [])


@pytest.mark.sandbox
def test_an_installed_copy_of_the_package_is_not_to_be_seen(tmp_path, monkeypatch):
    copy = tmp_path / "course_utils"
    (copy / "grading" / "questions").mkdir(parents=True)
    (copy / "__init__.py").touch()
    before = sandbox.library_path()
    monkeypatch.setattr(sandbox, "library_path", lambda: [str(tmp_path), *before])
    cells = (
        "import os, course_utils\n"
        f"raise ValueError(os.listdir({str(copy)!r}), course_utils.__file__)",
    )
    request = {**sandbox.NOTHING, "cells": cells}
    said = [m for m in sandbox.converse(request, sandbox.Limits()) if "broken" in m]
    assert said[0]["error"] == f"ValueError: ([], '{sandbox.PACKAGE}/__init__.py')"


def test_packages_of_another_environment_are_to_be_seen(tmp_path, monkeypatch):
    other = tmp_path / "lib" / "site-packages"
    other.mkdir(parents=True)
    (other / "of_another.py").write_text("found = 3")
    monkeypatch.setattr(sys, "path", [*sys.path, str(other), str(tmp_path)])
    assert str(other) in sandbox.library_path()
    assert str(tmp_path) not in sandbox.library_path()


@pytest.mark.sandbox
def test_a_worker_that_does_not_start_says_why(monkeypatch):
    monkeypatch.setattr(sandbox, "library_path", lambda: [str(ROOT)])
    said = sandbox.sandbox_problem()
    assert "No module named" in str(said)
