"""`leaky_weights`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def leaky_weights(d_model: int, slope: float) -> tuple[Tensor, Tensor]:
    eye = torch.eye(d_model)
    return torch.cat([eye, -eye], dim=1), torch.cat([eye, -slope * eye], dim=0)


def leaky(x: np.ndarray, slope: float) -> np.ndarray:
    return np.where(x > 0, x, slope * x)


def fit(args: Args, value: Any) -> bool:
    w_1, w_2 = value
    d_model = args[0]
    return w_1.shape == w_2.shape[::-1] and w_1.shape[0] == d_model


def computes(target: Any) -> Any:
    """Tell whether relu(x w_1) w_2 is `target(x, slope)` on many tokens."""

    def check(args: Args, value: Any) -> bool:
        if not fit(args, value):
            return False
        x = np.random.default_rng(0).standard_normal((50, args[0]))
        made = np.maximum(x @ np.asarray(value[0], float), 0) @ np.asarray(value[1])
        return np.allclose(made, target(x, args[1]), atol=1e-4)

    return check


def half_right(args: Args, value: Any, sign: float) -> bool:
    """Tell whether numbers of one sign come out right."""
    x = sign * np.abs(np.random.default_rng(1).standard_normal((50, args[0])))
    made = np.maximum(x @ np.asarray(value[0], float), 0) @ np.asarray(value[1])
    return np.allclose(made, leaky(x, args[1]), atol=1e-4)


def put_together(first: Any, second: Any) -> Any:
    """Weights that copy x and −x, then take `first` and `second` of the two."""

    def answer(d_model: int, slope: float) -> tuple[Tensor, Tensor]:
        eye = torch.eye(d_model)
        return torch.cat([eye, -eye], 1), torch.cat(
            [first(slope) * eye, second(slope) * eye]
        )

    return answer


def draw_slopes(rng: np.random.Generator) -> list[Args]:
    return [(3, float(rng.uniform(0.2, 0.4))), (5, float(-rng.uniform(0.4, 0.6)))]


QUESTION = Question(
    id="11.5",
    title="A feed-forward layer by hand",
    answer="leaky_weights",
    arguments=("d_model", "slope"),
    outputs=(
        Output("w_1", "d_model d_hidden", free=True),
        Output("w_2", "d_hidden d_model", free=True),
    ),
    reference=leaky_weights,
    difficulty="medium",
    minutes=12,
    next_step="which numbers do you need after the ReLU, to put the answer together?",
    parts=(
        Part("slope 0.1", 2, lambda rng: [(4, 0.1)], accepts=computes(leaky)),
        Part(
            "any slope and width",
            1,
            draw_slopes,
            accepts=computes(leaky),
            only_failure_hint="right for slope 0.1, wrong for another slope or width",
        ),
    ),
    mistakes=(
        Mistake(
            "one_copy",
            "negative numbers are lost: the ReLU leaves nothing of them in one copy of "
            "x, so a second set of hidden numbers is needed",
            lambda d_model, slope: (torch.eye(d_model), torch.eye(d_model)),
            computes(lambda x, slope: np.maximum(x, 0)),
        ),
        Mistake(
            "slope_ignored",
            "this is the identity of the chapter: negative numbers come through whole",
            lambda d_model, slope: leaky_weights(d_model, 1.0),
            computes(lambda x, slope: x),
        ),
        Mistake(
            "sign_lost",
            "negative numbers come out with the wrong sign: after the ReLU comes −x, "
            "which is positive",
            put_together(lambda slope: 1, lambda slope: slope),
            computes(lambda x, slope: np.where(x > 0, x, -slope * x)),
        ),
        Mistake(
            "slope_on_the_positive",
            "the slope acts on the positive numbers; they should come through as they "
            "are",
            put_together(lambda slope: slope, lambda slope: -1),
            computes(lambda x, slope: np.where(x > 0, slope * x, x)),
        ),
        Mistake(
            "slope_before_the_relu",
            "the slope stands before the ReLU: a negative one turns the sign there, "
            "and the wrong half is cut off; put it later, into the second matrix",
            lambda d_model, slope: (
                torch.cat([torch.eye(d_model), -slope * torch.eye(d_model)], 1),
                torch.cat([torch.eye(d_model), -torch.eye(d_model)]),
            ),
            computes(
                lambda x, slope: np.maximum(x, 0) - np.maximum(-slope * x, 0),
            ),
        ),
        Mistake(
            "only_the_slopes_size",
            "only the size of the slope counts: with one below zero, negative numbers "
            "come out as positive ones",
            put_together(lambda slope: 1, lambda slope: -abs(slope)),
            computes(lambda x, slope: np.where(x > 0, x, abs(slope) * x)),
        ),
        Mistake(
            "same_sign_twice",
            "both copies are cut off on the same side, as long as the slope is above "
            "zero: the second set of hidden numbers is made of −x",
            lambda d_model, slope: (
                torch.cat([torch.eye(d_model), slope * torch.eye(d_model)], 1),
                torch.eye(d_model).repeat(2, 1),
            ),
            computes(lambda x, slope: np.maximum(x, 0) + np.maximum(slope * x, 0)),
        ),
        Mistake(
            "laid_out_as_in_nn_linear",
            "the matrices lie as nn.Linear stores them, one row for each output; here "
            "they stand to the right of x, with d_model rows in the first",
            lambda d_model, slope: tuple(w.T for w in leaky_weights(d_model, slope)),
            lambda args, value: (
                not fit(args, value)
                and value[0].shape == value[1].shape[::-1]
                and value[0].shape[1] == args[0]
            ),
        ),
        Mistake(
            "do_not_fit",
            "the two matrices do not fit: w_1 has d_model rows, w_2 has d_model "
            "columns, and w_2 has as many rows as w_1 has columns",
            lambda d_model, slope: (
                torch.cat([torch.eye(d_model), -torch.eye(d_model)], 1),
                torch.eye(d_model),
            ),
            lambda args, value: not fit(args, value),
        ),
        Mistake(
            "positive_changed",
            "positive numbers do not come out as they went in: put x = 1 through both "
            "matrices",
            lambda d, s: (2 * torch.eye(d), torch.eye(d)),
            lambda args, value: fit(args, value) and not half_right(args, value, 1.0),
        ),
        Mistake(
            "negative_wrong",
            "positive numbers come out right, negative ones do not: put x = −1 through "
            "both matrices; what is left after the ReLU?",
            lambda d, s: (
                torch.cat([torch.eye(d)] * 2, 1),
                torch.eye(d).repeat(2, 1) / 2,
            ),
            lambda args, value: fit(args, value) and not half_right(args, value, -1.0),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def stacked(positive, negative):
    """Copies of −x and x, in the other order than the table's."""

    def answer(d_model, slope):
        eye = torch.eye(d_model)
        w_1 = torch.hstack([-3 * eye, eye])
        w_2 = torch.vstack([negative(slope) / 3 * eye, positive(slope) * eye])
        return w_1, w_2

    return answer


RIGHT = [stacked(lambda s: 1, lambda s: -s)]
WRONG = [
    ("only_the_slopes_size", stacked(lambda s: 1, lambda s: -abs(s))),
    (
        "same_sign_twice",
        lambda d, s: (
            torch.hstack([2 * s * torch.eye(d), torch.eye(d)]),
            torch.vstack([torch.eye(d) / 2, torch.eye(d)]),
        ),
    ),
    ("one_copy", lambda d, s: (2 * torch.eye(d).flip(0), torch.eye(d).flip(0) / 2)),
    ("slope_ignored", stacked(lambda s: 1, lambda s: -1)),
    ("sign_lost", stacked(lambda s: 1, lambda s: s)),
    ("slope_on_the_positive", stacked(lambda s: s, lambda s: -1)),
    (
        "laid_out_as_in_nn_linear",
        lambda d, s: (torch.ones(3 * d, d), torch.ones(d, 3 * d)),
    ),
    (
        "slope_before_the_relu",
        lambda d, s: (
            torch.hstack([-2 * s * torch.eye(d), torch.eye(d)]),
            torch.vstack([-torch.eye(d) / 2, torch.eye(d)]),
        ),
    ),
    ("do_not_fit", lambda d, s: (torch.ones(d, 2 * d), torch.ones(d, 3 * d))),
]
