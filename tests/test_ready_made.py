"""Calling the package's own answer is no answer, in any question."""

from __future__ import annotations

import ast
import importlib
from contextlib import suppress
from inspect import signature
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import course_utils
from course_utils.answers import to_tensors
from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.examiner import examine, judge_all
from course_utils.judging import expectations, reference_code
from course_utils.questions import CHAPTERS, chapter_questions, find_question
from course_utils.sandbox import Limits
from course_utils.submissions import Notebook
from tools.files import read

ROOT = Path(__file__).parent.parent
QUESTIONS = [q for chapter in CHAPTERS for q in chapter_questions(chapter)]
GRADER = ("checks", "grading")  # a `count` and a `merge` there are nobody's answer


def defined() -> dict[str, str]:
    """The module of each function and class of the package."""
    return {
        node.name: path.stem
        for path in sorted(Path(course_utils.__file__).parent.glob("*.py"))
        if path.stem not in GRADER
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


DEFINED = defined()
READY_MADE = [(q.id, name) for q in QUESTIONS for name in q.packaged]
LISTED = [q for q in QUESTIONS if q.answer in DEFINED]


@pytest.mark.parametrize("question", LISTED, ids=lambda q: q.id)
def test_what_has_the_name_of_a_package_function_is_known_to_be_ready_made(question):
    assert question.answer in question.packaged


def after(call, question):
    """An answer that is right, but for the call that it makes first."""
    values = iter([record.value for record in expectations(question, PUBLIC_SEED)[1]])
    needed = [p for p in signature(call).parameters.values() if p.default is p.empty]
    names = [p.name for p in needed if p.kind is not p.VAR_POSITIONAL]

    def answer(*args):
        with suppress(Exception):  # whatever it makes of such arguments
            call(**dict.fromkeys(names))
        value = to_tensors(next(values))
        return tuple(value) if len(question.outputs) > 1 else value

    return answer


@pytest.mark.parametrize(("identifier", "name"), READY_MADE)
def test_the_packages_own_answer_earns_nothing(identifier, name):
    question = find_question(identifier)
    module = importlib.import_module(f"course_utils.{DEFINED[name]}")
    result = verdict(identifier, after(getattr(module, name), question))
    assert (result.points, result.misconception) == (0, "package")
    assert f"the package's own `course_utils.{DEFINED[name]}.{name}" in result.hint
    assert result.hint.endswith("write it yourself.")
    assert result.flags
    assert verdict(identifier, after(lambda: None, question)).points == question.points


# A reference that shares its code with a mistake can't be told from it.
TOLD_APART = [q for q in QUESTIONS if reference_code(q) is not None]


@pytest.mark.parametrize("question", TOLD_APART, ids=lambda q: q.id)
def test_the_solution_of_the_checks_earns_nothing(question):
    for answer in (question.reference, after(question.reference, question)):
        result = verdict(question.id, answer)
        assert (result.points, result.misconception) == (0, "package")
        assert "the question's own solution" in result.hint


@pytest.mark.parametrize(
    "call",
    [
        lambda x, g, b, eps: F.layer_norm(x, x.shape[-1:], g, b, eps),
        lambda x, g, b, eps: torch.layer_norm(x, x.shape[-1:], g, b, eps),
        lambda x, g, b, eps: torch.nn.LayerNorm(x.shape[-1], eps=eps)(x) * g + b,
    ],
)
def test_what_pytorch_has_under_the_same_name_is_no_answer_either(call):
    result = verdict("11.1", call)
    assert (result.points, result.misconception) == (0, "library")
    assert "calls PyTorch's own `layer_norm`; write it yourself." in result.hint


IMPORTED = """
from course_utils import attention as theirs
from course_utils.attention import causal_mask, masked_softmax

def padding_mask(lengths, n_keys, left):
    return theirs.padding_mask(lengths, n_keys)
"""


@pytest.mark.sandbox
@pytest.mark.slow
def test_the_grader_gives_nothing_for_it_and_flags_it():
    found = read(ROOT / "solutions" / "09_masking.ipynb").cells
    cells = [cell.source for cell in found if cell.cell_type == "code"]
    names = {"09.1": "causal_mask", "09.2": "padding_mask", "09.4": "masked_softmax"}
    starts = tuple(f"def {name}" for name in names.values())
    cells = [IMPORTED if cell.startswith(starts) else cell for cell in cells]
    notebook, asked = Notebook(tuple(cells), digest="own"), chapter_questions("09")
    records, flags = examine(notebook, asked, "secret", Limits(seconds=5))
    results, more = judge_all(notebook, asked, "secret", records)
    lost = {result.question: result for result in results if result.hint}
    assert lost.keys() == names.keys()
    for identifier, name in names.items():
        whole = f"course_utils.attention.{name}"
        assert f"the package's own `{whole}`" in lost[identifier].hint
        assert lost[identifier].points == 0
        assert f"{identifier} library:{whole}" in [*flags, *more]
