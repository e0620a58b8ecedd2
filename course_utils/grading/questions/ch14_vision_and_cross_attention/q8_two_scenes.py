"""`two_scenes`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

HABIT = [7, 8, 9, 6, 5]  # the digit that each colour had in training
STORIES = ("stands_first", "is_largest", "has_habit")


def two_scenes() -> tuple[Tensor, Tensor]:
    scenes = torch.tensor(
        [[[0, 2], [1, 3], [2, 1]], [[1, 3], [0, 4], [2, 1]]]  # (colour, digit)
    )
    return scenes, torch.tensor([0, 0])


def answers(scene: np.ndarray, asked: int) -> dict[str, int]:
    """What each story says about a scene, and the truth."""
    colours, digits = scene[:, 0], scene[:, 1]
    return {
        "finds": int(digits[colours == asked][0]),
        "stands_first": int(digits[0]),
        "is_largest": int(digits.max()),
        "has_habit": HABIT[int(asked)],
    }


def fits(args: Args, value: Any) -> bool:
    """Two scenes of colours that differ, each with an object of the asked colour."""
    scenes, asked = value
    if scenes.shape[0] != 2 or scenes.shape[2] != 2 or asked.shape != (2,):
        return False
    if (np.asarray(scenes) % 1).any() or (np.asarray(asked) % 1).any():
        return False
    colours, digits = scenes[:, :, 0], scenes[:, :, 1]
    return bool(
        ((colours >= 0) & (colours < 5)).all()
        and ((digits >= 0) & (digits < 10)).all()
        and all(len(set(row.tolist())) == len(row) for row in colours)
        and all(color in row for color, row in zip(asked, colours))
    )


def pattern(value: Any, story: str) -> tuple[bool, ...]:
    """In which of the two scenes a story is right."""
    said = [answers(scene, int(asked)) for scene, asked in zip(*value)]
    return tuple(each[story] == each["finds"] for each in said)


def all_caught(args: Args, value: Any) -> bool:
    return fits(args, value) and all(not all(pattern(value, s)) for s in STORIES)


def told_apart(args: Args, value: Any) -> bool:
    patterns = {pattern(value, story) for story in STORIES}
    return all_caught(args, value) and len(patterns) == len(STORIES)


def failing(name: str, hint: str, value: Any, sign: Any) -> Mistake:
    made = torch.tensor(value[0]), torch.tensor(value[1])
    return Mistake(name, hint, lambda: made, lambda args, value: sign(value))


def never_wrong(story: str) -> Any:
    return lambda value: fits((), value) and all(pattern(value, story))


def alike(one: str, other: str) -> Any:
    return lambda value: (
        all_caught((), value) and pattern(value, one) == pattern(value, other)
    )


TRAINING = [[0, 7], [1, 3], [2, 1]]
QUESTION = Question(
    id="14.8",
    title="Two scenes that tell four stories apart",
    answer="two_scenes",
    arguments=(),
    outputs=(
        Output("scenes", "scene place property", free=True),
        Output("asked", "scene", free=True),
    ),
    reference=two_scenes,
    difficulty="hard",
    minutes=15,
    next_step="write down, for each story, in which of the two scenes it should be "
    "right; there are four patterns, and one is taken.",
    parts=(
        Part("every wrong story fails", 1, lambda rng: [()], accepts=all_caught),
        Part("and each in its own way", 2, lambda rng: [()], accepts=told_apart),
    ),
    mistakes=(
        failing(
            "colours_repeat",
            "two objects of a scene have the same colour: the colours of a scene all "
            "differ; each object is (colour, digit), in this order",
            ([[[0, 2], [0, 3]], [[1, 3], [0, 4]]], [0, 0]),
            lambda value: any(len(set(x)) < len(x) for x in value[0][..., 0].tolist()),
        ),
        failing(
            "colours_out_of_range",
            "a colour is above 4 or below 0: each object is (colour, digit), in this "
            "order, and the colours are 0 to 4",
            ([[[2, 0], [9, 1]], [[3, 1], [8, 0]]], [0, 0]),
            lambda value: not ((value[0][..., 0] >= 0) & (value[0][..., 0] < 5)).all(),
        ),
        failing(
            "digits_out_of_range",
            "a digit is above 9 or below 0: digits are 0 to 9",
            ([[[0, 2], [1, 10]], [[1, 3], [0, 8]]], [0, 0]),
            lambda value: not ((value[0][..., 1] >= 0) & (value[0][..., 1] < 10)).all(),
        ),
        failing(
            "asked_is_absent",
            "`asked` is the colour that is asked for, not a place: in one of the "
            "scenes no object has it",
            ([[[1, 7], [2, 3]], [[1, 8], [0, 3]]], [0, 1]),
            lambda value: any(
                color not in row for color, row in zip(value[1], value[0][..., 0])
            ),
        ),
        failing(
            "does_not_fit",
            "two scenes of the same number of objects, each (colour, digit) with "
            "colours 0 to 4 that differ within a scene, and an object of the asked "
            "colour in each",
            ([[[0, 2], [1, 3]]], [0]),
            lambda value: not fits((), value),
        ),
        failing(
            "as_in_training",
            "all four stories are right in both scenes, as in training: nothing was "
            "learned about any of them",
            ([TRAINING, TRAINING], [0, 0]),
            lambda value: all(never_wrong(story)(value) for story in STORIES),
        ),
        failing(
            "first_has_the_digit",
            "`stands_first` is right in both scenes, although the asked object stands "
            "elsewhere in one: the object that stands first has the same digit there",
            ([[[0, 2], [1, 3]], [[1, 4], [0, 4]]], [0, 0]),
            lambda value: (
                never_wrong("stands_first")(value)
                and (value[0][:, 0, 0] != value[1]).any()
            ),
        ),
        failing(
            "first_never_moved",
            "`stands_first` is right in both scenes: let the asked object stand "
            "elsewhere in one of them",
            ([[[0, 2], [1, 3]], [[0, 4], [1, 1]]], [0, 0]),
            never_wrong("stands_first"),
        ),
        failing(
            "always_largest",
            "`is_largest` is right in both scenes: let another object have a larger "
            "digit in one of them",
            ([[[1, 2], [0, 3]], [[0, 4], [1, 1]]], [0, 0]),
            never_wrong("is_largest"),
        ),
        failing(
            "habit_kept",
            "`has_habit` is right in both scenes, without looking at either: give the "
            "asked colour another digit in one of them",
            ([[[1, 2], [0, 7]], [[0, 7], [1, 9]]], [0, 0]),
            never_wrong("has_habit"),
        ),
        failing(
            "all_wrong_together",
            "every wrong story fails in the same scenes: you would know that one of "
            "them is not true, but not which would be; spread the failures",
            ([[[1, 4], [0, 3]], [[1, 4], [0, 3]]], [0, 0]),
            lambda value: (
                all_caught((), value)
                and len({pattern(value, story) for story in STORIES}) == 1
            ),
        ),
        failing(
            "first_like_largest",
            "`stands_first` and `is_largest` are right in the same scenes: separate "
            "where the asked object stands from how large its digit is",
            ([[[0, 4], [1, 3]], [[1, 6], [0, 3]]], [0, 0]),
            alike("stands_first", "is_largest"),
        ),
        failing(
            "first_like_habit",
            "`stands_first` and `has_habit` are right in the same scenes: separate "
            "where the asked object stands from whether its digit is the usual one",
            ([[[0, 7], [1, 9]], [[1, 2], [0, 3]]], [0, 0]),
            alike("stands_first", "has_habit"),
        ),
        failing(
            "largest_like_habit",
            "`is_largest` and `has_habit` are right in the same scenes: separate how "
            "large the asked digit is from whether it is the usual one",
            ([[[0, 3], [1, 9]], [[1, 2], [0, 7]]], [0, 0]),
            alike("is_largest", "has_habit"),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: (
        np.array([[[1, 9], [3, 6], [0, 2]], [[4, 3], [2, 9], [1, 0]]]),
        np.array([3, 4]),
    ),
    lambda: (torch.tensor([[[2, 4.0], [1, 6]], [[1, 1], [2, 3]]]), [2, 2]),
]
WRONG = [
    (
        "asked_is_absent",
        lambda: (torch.tensor([[[0, 1], [1, 2]], [[0, 1], [1, 2]]]), [3, 0]),
    ),
    ("colours_repeat", lambda: ([[[1, 8], [1, 3]], [[0, 7], [2, 1]]], [1, 0])),
    ("colours_out_of_range", lambda: ([[[2, 0], [9, 1]], [[3, 1], [8, 0]]], [2, 3])),
    ("digits_out_of_range", lambda: ([[[0, 2], [1, 10]], [[1, 3], [0, 8]]], [0, 0])),
    ("does_not_fit", lambda: (torch.tensor([[[0, 1], [1, 2]]]), torch.tensor([0]))),
    ("as_in_training", lambda: (torch.tensor([[[1, 8], [0, 2]]] * 2), [1, 1])),
    (
        "first_has_the_digit",
        lambda: (torch.tensor([[[3, 2], [1, 5]], [[1, 9], [0, 9]]]), [3, 0]),
    ),
    ("always_largest", lambda: (torch.tensor([[[1, 2], [0, 6]]] * 2), [0, 0])),
    ("all_wrong_together", lambda: (torch.tensor([[[1, 9], [0, 6]]] * 2), [0, 0])),
]
PARTIAL = [(1, lambda: (torch.tensor([[[1, 9], [0, 6]]] * 2), torch.zeros(2)))]
