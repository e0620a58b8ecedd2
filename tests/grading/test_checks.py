"""What a learner sees: points, one telling line, and a picture of the progress."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import types

import pytest
import torch
import torch.nn.functional as F

from course_utils.grading.checks import (
    PROGRESS_FILE,
    as_html,
    check,
    grade_answer,
    progress,
    progress_html,
)
from course_utils.grading.diagnosis import judge
from course_utils.grading.questions import chapter_questions
from course_utils.grading.questions.model import Mistake, Output, Part, Question
from course_utils.models.attention import attention as library_attention


@pytest.fixture(autouse=True)
def _own_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def right(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / math.sqrt(keys.shape[-1]), dim=-1)
    return weights @ values, weights


def stub(queries, keys, values):
    raise NotImplementedError("write your answer here")


# ------------------------------------------------------------- the generic sentences


def raising(queries, keys, values):
    return queries @ keys.mT + torch.zeros(17, 19)


def one_result(queries, keys, values):
    return right(queries, keys, values)[0]


def a_row_too_few(queries, keys, values):
    context, weights = right(queries, keys, values)
    return context[..., 1:, :], weights


def not_a_number(queries, keys, values):
    context, weights = right(queries, keys, values)
    return context / 0 - context / 0, weights


def mutating(queries, keys, values):
    queries /= math.sqrt(keys.shape[-1])
    weights = torch.softmax(queries @ keys.mT, dim=-1)
    return weights @ values, weights


def ignoring_the_keys(queries, keys, values):
    slope = torch.arange(keys.shape[-2]) * queries.sum(-1, keepdim=True)
    weights = torch.softmax(slope, dim=-1)
    return weights @ values, weights


def looping(queries, keys, values):
    scores = torch.stack(
        [(queries[..., i, None, :] * keys).sum(-1) for i in range(queries.shape[-2])],
        dim=-2,
    )
    weights = torch.softmax(scores / math.sqrt(keys.shape[-1]), dim=-1)
    return weights @ values, weights


def looping_outside_torch(queries, keys, values):
    context, weights = right(queries, keys, values)
    assert all(float(x) >= 0 for x in range(keys.shape[-2]))
    return context, weights


def only_two_axes(queries, keys, values):
    if queries.dim() > 2:
        queries = queries * 0.9
    return right(queries, keys, values)


def shouting(queries, keys, values):
    context, weights = right(queries, keys, values)
    return context + 0.1, weights


GENERIC = [
    (stub, "unanswered", 0, "not answered yet: write the body of `attention`"),
    (..., "unanswered", 0, "not answered yet"),
    (torch.ones(3), "not_callable", 0, "got a Tensor, expected the function"),
    (raising, "exception", 0, r"raised RuntimeError: .*19.* at `return queries @ keys"),
    (one_result, "type", 0, r"returned a torch.Tensor, expected \(context, weights\)"),
    (lambda q, k, v: None, "type", 0, "returned None"),
    (a_row_too_few, "shape", 1, r"`context` has shape .* expected .*= \(query, d_v\)"),
    (not_a_number, "not_finite", 1, "`context` holds NaN or infinity"),
    (mutating, "mutated", 0, "changes its argument `queries` in place"),
    (ignoring_the_keys, "independent", 0, "does not depend on `keys`"),
    (looping, "loop", 3, "is right, but runs a Python loop over the tokens"),
    (looping_outside_torch, "loop", 3, "One matrix product does the work"),
    (only_two_axes, "only batch and heads", 3, "right for one sequence, wrong when"),
    (shouting, "leaves", 1, "the right `context` is there .* but then changed"),
    (lambda q, k: (q, k), "exception", 0, "raised TypeError"),
    (lambda q, k, v: sys.exit(0), "exception", 0, "raised SystemExit"),
]


@pytest.mark.parametrize(("answer", "kind", "points", "sentence"), GENERIC)
def test_a_failure_has_its_own_sentence(answer, kind, points, sentence):
    result = grade_answer("06.1", answer)
    assert (result.misconception, result.points) == (kind, points)
    assert re.search(sentence, result.hint), result.hint


def test_a_shape_names_the_axes_of_batch_and_head():
    def answer(queries, keys, values):
        context, weights = right(queries, keys, values)
        return context, weights if weights.dim() == 2 else weights[..., :1]

    hint = grade_answer("06.1", answer).hint
    assert "= (batch, query, key)" in hint


def test_a_stub_of_an_earlier_question_is_named():
    def cross_attention(x, memory, w_q, w_k, w_v):
        return stub(x @ w_q, memory @ w_k, memory @ w_v)

    result = grade_answer("06.3", cross_attention)
    assert result.hint == (
        "not answered yet: `cross_attention` calls `stub`; answer that first."
    )


def test_an_operator_that_pytorch_lacks_is_an_error_and_not_a_blank():
    def answer(queries, keys, values):
        return torch.softmax(queries.to_sparse(), dim=-1).to_mkldnn(), keys

    assert grade_answer("06.1", answer).misconception == "exception"


def test_true_and_false_for_numbers_are_named():
    result = grade_answer("06.4", lambda scores: torch.eye(len(scores)) > 0)
    assert result.hint.startswith("`jacobian` holds True and False, expected numbers")
    matrix_of_truth = grade_answer(
        "07.1", lambda to: (torch.eye(len(to))[to.argsort()] > 0, to.argsort())
    )
    assert matrix_of_truth.points == 1


# ------------------------------------------------------------- "from primitives"


def functional(q, k, v):
    return F.scaled_dot_product_attention(q, k, v), right(q, k, v)[1]


def by_another_name(q, k, v):
    return getattr(F, "scaled_dot" + "_product_attention")(q, k, v), right(q, k, v)[1]


def by_operator(q, k, v):
    context = torch.ops.aten.scaled_dot_product_attention.default(q, k, v)
    return context, right(q, k, v)[1]


def by_packet(q, k, v):
    return torch.ops.aten.scaled_dot_product_attention(q, k, v), right(q, k, v)[1]


def by_binding(q, k, v):
    return torch._C._nn.scaled_dot_product_attention(q, k, v), right(q, k, v)[1]


def by_module(q, k, v):
    torch.nn.MultiheadAttention(8, 2)(*[torch.ones(1, 8)] * 3)
    return right(q, k, v)


def by_function(q, k, v):
    eye = torch.eye(8)
    arguments = (
        *[torch.ones(1, 1, 8)] * 3,
        8,
        2,
        torch.cat([eye] * 3),
        None,
        None,
        None,
    )
    F.multi_head_attention_forward(*arguments, False, 0.0, eye, None)
    return right(q, k, v)


def by_map(q, k, v):  # a call from C
    f = torch._C._nn.scaled_dot_product_attention
    return next(map(f, [q], [k], [v])), right(q, k, v)[1]


def by_script(q, k, v):
    f = torch._C._nn.scaled_dot_product_attention
    script = torch.jit.trace(lambda *args: f(*args), (q, k, v), check_trace=False)
    return script(q, k, v), right(q, k, v)[1]


LIBRARY = [
    functional,
    by_another_name,
    by_operator,
    by_packet,
    by_binding,
    by_module,
    by_function,
    by_map,
    by_script,
]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("answer", LIBRARY, ids=lambda f: f.__name__)
def test_a_ready_made_attention_earns_nothing_where_it_was_to_be_written(answer):
    result = grade_answer("06.1", answer)
    assert (result.points, result.misconception) == (0, "library")
    assert "this question asks you to write attention yourself" in result.hint
    assert result.flags


def test_an_honest_endless_recursion_is_named_for_what_it_is():
    def answer(q, k, v):
        return answer(q, k, v)

    assert "RecursionError" in grade_answer("06.1", answer).hint


def test_a_ready_made_attention_is_welcome_where_it_was_not_the_question():
    def answer(x, memory, w_q, w_k, w_v):
        return library_attention(x @ w_q, memory @ w_k, memory @ w_v)

    result = grade_answer("06.3", answer)
    assert (result.points, result.flags) == (3, ())


# --------------------------------------------------------------- choices, and numbers

CHOICE = Question(
    id="00.1",
    title="Which axis?",
    answer="choose",
    arguments=(),
    outputs=(Output("choice"), Output("reason")),
    reference=lambda: ("b", 2),
    parts=(
        Part("choice", 1, lambda rng: [()], view=lambda value: value[0]),
        Part("reason", 1, lambda rng: [()], view=lambda value: value[1]),
    ),
    mistakes=(
        Mistake(
            "guessed",
            "right choice, wrong reason",
            lambda: ("b", 1),
            lambda args, value: value[0] == "b",
        ),
    ),
    next_step="choose.",
)


def judged(answer):
    from course_utils.grading.answer_runner import run

    return judge(CHOICE, 0, [run(answer) for _ in CHOICE.cases(0)])


def test_a_choice_with_its_reason_earns_by_part_and_need_not_be_a_function():
    assert judged(("b", 2)).points == 2
    assert judged(("b", 3)).hint == "right choice, wrong reason"
    assert judged(("a", 2)).points == 1
    assert judged((..., ...)).misconception == "unanswered"
    assert "`choice` is an int, expected a str" in judged((1, 2)).hint
    assert "`reason` is a bool, expected a number" in judged(("b", True)).hint


# -------------------------------------------------------------------- showing results


def test_check_prints_points_and_hint_outside_a_notebook(capsys):
    check("06.1", looping)
    said = capsys.readouterr().out
    assert said.startswith("○ 06.1 Scaled dot-product attention: 3 of 4 points\n")
    assert "already right: weights, context, batch and heads" in said
    check("06.1", right)
    assert capsys.readouterr().out == (
        "✓ 06.1 Scaled dot-product attention: 4 of 4 points\n"
    )


def test_check_displays_html_with_a_text_alternative_in_a_notebook(monkeypatch):
    shown = []
    fake = types.ModuleType("IPython")
    fake.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    fake.display = types.ModuleType("IPython.display")
    fake.display.display = lambda data, raw: shown.append(data)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", fake.display)
    check("06.1", stub)
    progress()
    result, picture = shown
    assert "<code>attention</code>" in result["text/html"]
    assert "not answered yet" in result["text/plain"]
    assert "Chapter 06: 0 of 28 points</strong>" in picture["text/html"]
    assert picture["text/plain"].startswith("Chapter 06: 0 of 28 points\n")


def test_what_an_answer_says_cannot_become_markup():
    def answer(queries, keys, values):
        raise ValueError("<script>alert(1)</script>")

    assert "<script>" not in as_html(grade_answer("06.1", answer))


def test_an_answer_leaves_the_learners_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    grade_answer("06.7", lambda: torch.rand(1))
    assert torch.equal(torch.rand(3), expected)


def test_an_answer_is_no_longer_watched_after_the_check():
    before = sys.gettrace(), sys.getprofile()
    grade_answer("06.1", raising)
    assert (sys.gettrace(), sys.getprofile()) == before


# --------------------------------------------------------------------------- progress


def test_progress_is_kept_between_runs_and_says_what_comes_next(tmp_path, capsys):
    check("06.1", right)
    check("06.5", lambda: (8, 32, 1))
    kept = json.loads((tmp_path / PROGRESS_FILE).read_text())
    assert kept["questions"]["06.5"] == {"answered": True, "points": 2}
    capsys.readouterr()
    progress()
    said = capsys.readouterr().out
    assert "Chapter 06: 6 of 28 points" in said
    assert "06.1 ████  4/4" in said
    assert "06.5 ██░   2/3" in said
    assert "next: 06.2" in said


def test_progress_is_drawn_in_words_that_wrap_and_bars_filled_as_earned():
    rows = [("06.1", "Scaled <dot>", 1, 4), ("06.2", "Done", 3, 3)]
    page = progress_html("06", rows)
    assert "<svg" not in page
    assert "1/4 Scaled &lt;dot&gt;" in page
    assert re.findall(r"width:(\d+)%", page) == ["25", "100"]
    assert "next: 06.1" in page


def test_progress_follows_the_newest_answer(capsys):
    check("06.1", right)
    check("06.1", stub)
    capsys.readouterr()
    progress("06")
    points = sum(question.points for question in chapter_questions("06"))
    assert f"Chapter 06: 0 of {points}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content",
    [b"{not json", b"\xff\xfe", b"[]", b'{"questions": {"06.1": 7}}', b"null"],
)
def test_an_unreadable_progress_file_is_set_aside_and_said(content, tmp_path, capsys):
    (tmp_path / PROGRESS_FILE).write_bytes(content)
    check("06.1", right)
    assert "could not be read" in capsys.readouterr().out
    assert (tmp_path / f"{PROGRESS_FILE}.unreadable").read_bytes() == content
    (tmp_path / PROGRESS_FILE).write_bytes(content)
    progress()
    assert (tmp_path / f"{PROGRESS_FILE}.unreadable-2").read_bytes() == content


def test_a_progress_file_that_cannot_be_written_does_not_stop_the_check(
    monkeypatch, capsys
):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    check("06.1", right)
    said = capsys.readouterr().out
    assert "4 of 4 points" in said
    assert "progress is not kept" in said
    assert os.listdir() == []


def test_points_of_a_changed_question_never_exceed_its_points(tmp_path, capsys):
    kept = {"questions": {"06.1": {"points": 99, "answered": True}}}
    (tmp_path / PROGRESS_FILE).write_text(json.dumps(kept))
    progress()
    assert "06.1 ████  4/4" in capsys.readouterr().out


def test_plain_values_never_come_from_a_class_that_pretends():
    class Pretender(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return True

    def answer(queries, keys, values):
        return queries.as_subclass(Pretender), keys.as_subclass(Pretender)

    result = grade_answer("06.1", answer)
    assert (result.points, result.misconception) == (0, "type")
