"""Where an answer leaves the path, for programs of any shape."""

from __future__ import annotations

import numpy as np

from course_utils.grading.departure import Path
from course_utils.grading.program import Step


def test_a_long_program_whose_steps_share_their_parents_is_read_once():
    # one path through 300 such steps in 2 ** 300: going back along each never ends
    ones = np.ones(3)
    steps = [Step(ones, "tensor", 1, "x = …", (-1,))]
    steps += [Step(ones, "add", 2, "x += x", (i, i)) for i in range(300)]
    path = Path(steps, [], [])
    assert all(path.given)
    assert path.is_levelled(300)


def test_numbers_written_down_are_not_given():
    ones = np.ones(3)
    written = Step(ones, "ones", 1, "ones(3)", ())
    made = Step(ones, "add", 2, "a + a", (0, 0))
    assert Path([written, made], [], []).given == [False, False]


def test_a_piece_of_a_line_was_right_before_only_in_an_earlier_round():
    value = np.arange(3.0)

    def step(value, at, number):
        return Step(value, "add", 2, "x = f(x); y = f(x)", (-2,), at=at, round=number)

    first, others = step(value, 4, 1), [step(value + 7, 4, 1), step(value + 7, 9, 2)]
    path = Path([first, *others, step(value + 7, 4, 2)], [first], [])
    assert [path.was_right_before(i) for i in range(4)] == [False, False, False, True]
