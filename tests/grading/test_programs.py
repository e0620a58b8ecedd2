"""An answer's program, replayed where it cannot cheat."""

from __future__ import annotations

import json
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch

from course_utils.grading.answer_runner import run
from course_utils.grading.classroom import programs
from course_utils.grading.comparison import same
from course_utils.grading.questions import EXERCISES, find_file, load_files
from course_utils.grading.sandbox.replay import (
    Replay,
    function_of,
    record,
    tensors,
    to_tensors,
)
from course_utils.grading.sandbox.replayer import NotReplayedError, Replayer
from course_utils.grading.sandbox.sandbox import Limits

WATCHED = [
    file.QUESTION.id
    for chapter in EXERCISES
    for file in load_files(chapter)
    if programs.asks_how(file.QUESTION)
]


class Here:
    """Replays in this process, for programs that are known to be harmless."""

    def ask(self, program: Any, inputs: Any) -> Any:
        try:
            sent = json.loads(json.dumps(program))
            return Replay(tensors(tuple(map(to_tensors, inputs)))).run(sent)
        except Exception as error:
            raise NotReplayedError(str(error)) from error


def hidden(identifier: str, answer: Any, by: Any = None) -> str:
    """What is said of an answer's program."""
    question = find_file(identifier).QUESTION
    cases = question.cases("secret")
    chosen = programs.recorded_cases(cases)
    made = [record(answer, cases[i].args) for i in chosen]
    by = by or Here()
    return programs.what_is_hidden(question, cases, made, "secret", by)


def test_a_method_that_pytorch_writes_in_python_replays():
    program = record(lambda x: x.unflatten(-1, (2, 2)), (np.ones((3, 4)),))
    assert Here().ask(program, (np.ones((3, 4)),)).shape == (3, 2, 2)


@pytest.mark.parametrize("identifier", WATCHED)
def test_the_solution_of_a_question_that_asks_how_replays_on_other_inputs(identifier):
    question = find_file(identifier).QUESTION
    assert hidden(identifier, question.reference) == ""
    case = question.cases("secret")[0]
    other = programs.other_numbers(case.args, np.random.default_rng(0))
    old, new = (run(question.reference, args) for args in (case.args, other))
    assert not same(old.value, new.value)


def test_whole_numbers_change_places_for_the_replay():
    """A matrix made elsewhere from the positions turns no other positions."""
    x, positions = find_file("08.3").QUESTION.cases("secret")[0].args
    made = find_file("08.3").QUESTION.reference
    eye = torch.eye(x.shape[-1]).expand(len(x), -1, -1)
    turns = torch.stack([made(e, torch.tensor(positions)) for e in eye.unbind(1)], 1)

    def by_matrix(x, positions):
        return torch.einsum("ti,tij->tj", x, turns)

    assert "other results on other inputs" in programs.what_is_hidden(
        find_file("08.3").QUESTION,
        find_file("08.3").QUESTION.cases("secret")[:1],
        [record(by_matrix, (x, positions))],
        "secret",
        Here(),
    )


def test_nearly_every_right_answer_in_other_code_replays():
    """Those that don't keep their points; they are few, and flagged."""
    flagged = []
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for identifier in WATCHED:
            for i, answer in enumerate(find_file(identifier).RIGHT):
                count += 1
                if hidden(identifier, answer):
                    flagged.append((identifier, i))
    assert len(flagged) <= 0.15 * count, flagged


def in_numpy(queries, keys, values):
    scores = queries.numpy() @ keys.numpy().swapaxes(-1, -2)
    scores = np.exp(scores / keys.shape[-1] ** 0.5)
    weights = torch.from_numpy(scores / scores.sum(-1, keepdims=True))
    return weights @ values, weights


def by_library(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)
    f = torch.nn.functional.scaled_dot_product_attention
    return f(queries, keys, values), weights


def by_fused(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)
    with torch._C.DisableTorchFunction():
        context = weights @ values
    return context, weights


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (in_numpy, "its calls give other results"),
        (by_library, "calls scaled_dot_product_attention"),
        (by_fused, "its calls give other results"),
        (lambda q, k, v: 1 / 0, "no record (ZeroDivisionError)"),
    ],
)
def test_what_computes_elsewhere_is_told(answer, said):
    assert said in hidden("06.1", answer)


@pytest.mark.parametrize("depth", [900, 5000])
def test_a_program_nested_too_deeply_stops_nobody(depth):
    question = find_file("06.1").QUESTION
    cases = question.cases("secret")
    deep: list[Any] = []
    for _ in range(depth):
        deep = [deep]
    for calls in ([[deep, [], []]], [["torch.add", deep, []]]):
        made = [{"calls": calls, "result": None}] * len(programs.recorded_cases(cases))
        said = programs.what_is_hidden(question, cases, made, "secret", Here())
        assert said.startswith(("calls", "no replay"))


def test_no_program_at_all_is_told():
    question = find_file("06.1").QUESTION
    cases = question.cases("secret")
    said = programs.what_is_hidden(question, cases, [], "secret", Here())
    assert said == "no record (nothing sent)"


@pytest.mark.parametrize(
    "name",
    [
        "torch.load",
        "torch.save",
        "torch.set_default_dtype",
        "torch.manual_seed",
        "torch.compile",
        "torch.hub.load",
        "torch._C._set_grad_enabled",
        "torch.Tensor.__class__",
        "os.system",
        "torch.Tensor.__init__.__globals__",
        "",
        3,
    ],
)
def test_a_program_can_name_nothing_but_operations(name):
    with pytest.raises((ValueError, AttributeError)):
        function_of(name)
    with pytest.raises((ValueError, AttributeError, TypeError)):
        Replay([]).get({"dtype": str(name).removeprefix("torch.") if name else name})


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_replayer_survives_every_program():
    by = Replayer(Limits(seconds=2), "bubblewrap")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    program = record(lambda x: (x.T @ x, x.sum().item()), (x,))
    value = by.ask(program, (2 * x,))
    np.testing.assert_allclose(value[0], 4 * x.T @ x)
    assert value[1] == 15  # a number is a literal: it does not follow the inputs
    bad = [
        {"calls": [["torch.zeros", [{"is": 10**12}], []]], "result": {"call": [0]}},
        {"calls": [["torch.load", [{"is": "x"}], []]], "result": {"is": 1}},
        {"calls": [], "result": {"call": [7]}},
        {"calls": "x", "result": 3},
        {
            "calls": [["torch.ones", [{"is": 3000}, {"is": 3000}], []]],
            "result": {"is": 1},
        },
    ]
    large = [["torch.Tensor.matmul", [{"call": [0]}, {"call": [0]}], []]] * 2000
    bad[-1]["calls"] += large
    for one in bad:
        with pytest.raises(NotReplayedError):
            by.ask(one, (x,))
    assert by.ask(program, (x,))[1] == 15
    by.stop()


@pytest.mark.sandbox
@pytest.mark.slow
def test_what_others_left_in_a_replayer_costs_nobody_a_flag():
    by = Replayer(Limits(seconds=2, memory=1600 << 20), "bubblewrap")
    x = np.ones((2, 3), np.float32)
    lent = ["torch.ones", [{"is": 30_000_000}], [["requires_grad", {"is": True}]]]
    again = {"is": True}
    leak = [  # a second derivative holds on to what it came from
        lent,
        ["torch.Tensor.select", [{"call": [0]}, {"is": 0}, {"is": 0}], []],
        ["torch.Tensor.mul", [{"call": [1]}, {"call": [1]}], []],
        ["torch.Tensor.backward", [{"call": [2]}, {"is": None}, again, again], []],
    ]
    large = {"calls": [["torch.ones", [{"is": 110_000_000}], []]], "result": {"is": 1}}
    by.start()
    for _ in range(6):
        with suppress(NotReplayedError):
            by.ask_once({"calls": leak, "result": {"call": [2]}}, (x,))
    first = by.process
    assert by.ask(large, (x,)) == 1
    assert by.process is not first
    by.stop()
