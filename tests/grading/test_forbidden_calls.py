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
from torch import nn

import course_utils
from course_utils.grading.answer_runner import to_tensors
from course_utils.grading.checks import PUBLIC_SEED, grade_answer
from course_utils.grading.classroom.submission_grader import examine, judge_all
from course_utils.grading.classroom.submissions import Notebook
from course_utils.grading.questions import (
    EXERCISES,
    chapter_questions,
    find_file,
    find_question,
)
from course_utils.grading.sandbox.replayer import replayer
from course_utils.grading.sandbox.sandbox import Limits
from course_utils.grading.scoring import expectations
from course_utils.models.attention import MultiHeadAttention
from tools.notebooks.io import read

ROOT = Path(__file__).parents[2]
QUESTIONS = [q for chapter in EXERCISES for q in chapter_questions(chapter)]
PACKAGE = Path(course_utils.__file__).parent


def defined() -> dict[str, str]:
    """The module of each function and class of the package."""
    return {
        node.name: ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path in sorted(PACKAGE.rglob("*.py"))
        if "grading" not in path.parts  # a `count` there is nobody's answer
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
    result = grade_answer(identifier, after(getattr(module, name), question))
    assert (result.points, result.misconception) == (0, "package")
    assert f"the package's own `course_utils.{DEFINED[name]}.{name}" in result.hint
    assert result.hint.endswith("write it yourself.")
    assert result.flags
    assert (
        grade_answer(identifier, after(lambda: None, question)).points
        == question.points
    )


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.id)
def test_what_a_question_file_holds_earns_nothing(question):
    for answer in (question.reference, after(question.reference, question)):
        result = grade_answer(question.id, answer)
        assert (result.points, result.misconception) == (0, "package")
        assert "the question's own solution" in result.hint
    specimen = grade_answer(question.id, find_file(question.id).RIGHT[0])
    assert (specimen.points, specimen.misconception) == (0, "package")


def by_module(x, w_qkv, w_o, n_heads):
    module = MultiHeadAttention(x.shape[-1], n_heads, bias=False)
    module.qkv.weight = nn.Parameter(w_qkv.T.contiguous())
    module.output.weight = nn.Parameter(w_o.T.contiguous())
    with torch.no_grad():
        return module(x, need_weights=True)


def test_a_module_that_hides_the_work_is_no_answer_to_the_layer():
    assert grade_answer("10.3", by_module).misconception == "package"


@pytest.mark.parametrize(
    "call",
    [
        lambda x, g, b, eps, n: F.layer_norm(x, x.shape[-1:], g, b, eps),
        lambda x, g, b, eps, n: torch.layer_norm(x, x.shape[-1:], g, b, eps),
        lambda x, g, b, eps, n: torch.nn.LayerNorm(x.shape[-1], eps=eps)(x) * g + b,
    ],
)
def test_what_pytorch_has_under_the_same_name_is_no_answer_either(call):
    result = grade_answer("11.1", call)
    assert (result.points, result.misconception) == (0, "library")
    assert "calls PyTorch's own `layer_norm`; write it yourself." in result.hint


IMPORTED = """
from course_utils.models import attention as theirs

def causal_mask(n_queries, n_keys, window):
    return theirs.causal_mask(n_queries, n_keys)

def masked_softmax(scores, mask, sink):
    return theirs.masked_softmax(scores, mask)

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
    limits = Limits(seconds=5)
    given = examine(notebook, asked, "secret", limits)
    by = replayer(limits, "bubblewrap")
    results, more = judge_all(notebook, asked, "secret", given, by)
    lost = {result.question: result for result in results if result.hint}
    assert lost.keys() == names.keys()
    for identifier, name in names.items():
        whole = f"course_utils.models.attention.{name}"
        # the package's mask takes other arguments: what it raised is said first
        said = "raised ValueError" if name == "padding_mask" else "the package's own `"
        assert said in lost[identifier].hint
        assert lost[identifier].points == 0
        assert f"{identifier} library:{whole}" in [*given.flags, *more]
