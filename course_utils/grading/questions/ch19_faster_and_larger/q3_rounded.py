"""`rounded`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def rounded(w: Tensor, bits: int) -> Tensor:
    scales = w.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
    return (w / scales).round() * scales


def one_scale(w: Tensor, bits: int) -> Tensor:
    scale = w.abs().max() / (2 ** (bits - 1) - 1)
    return (w / scale).round() * scale


def by_column(w: Tensor, bits: int) -> Tensor:
    return rounded(w.T, bits).T


def no_sign_bit(w: Tensor, bits: int) -> Tensor:
    return rounded(w, bits + 1)


def cut_off(w: Tensor, bits: int) -> Tensor:
    scales = w.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
    return (w / scales).trunc() * scales


def not_scaled_back(w: Tensor, bits: int) -> Tensor:
    scales = w.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
    return (w / scales).round()


def no_absolute(w: Tensor, bits: int) -> Tensor:
    scales = w.amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
    return (w / scales).round() * scales


def least_to_largest(w: Tensor, bits: int) -> Tensor:
    low, high = w.amin(dim=1, keepdim=True), w.amax(dim=1, keepdim=True)
    scales = (high - low) / (2**bits - 1)
    return ((w - low) / scales).round() * scales + low


def draw(rng: np.random.Generator) -> Args:
    rows, columns = sizes(rng, 2, least=4)
    w = normal(rng, rows, columns) * (1 + np.arange(rows, dtype=np.float32))[:, None]
    w[:, 0] = -1.5 * np.abs(w).max(axis=1)  # the largest entry is negative
    w[:, 1] = np.abs(w[:, 1]) + 0.1
    return w, int(rng.integers(4, 7))


QUESTION = Question(
    id="19.3",
    title="Weights in few bits",
    answer="rounded",
    arguments=("w", "bits"),
    outputs=(Output("weights", "row column"),),
    reference=rounded,
    difficulty="easy",
    minutes=8,
    next_step="what is the largest whole number, and which entry of a row becomes it?",
    parts=(Part("the rounded weights", 3, lambda rng: [draw(rng) for _ in range(3)]),),
    mistakes=(
        Mistake(
            "least_to_largest",
            "the steps divide the way from the least to the largest entry: here zero "
            "stays zero, and the scale comes from the largest size",
            least_to_largest,
        ),
        Mistake(
            "one_scale",
            "the whole matrix has one scale: give each row its own, so that a large "
            "row does not make the steps of a small one coarse",
            one_scale,
        ),
        Mistake(
            "by_column",
            "each column has a scale: here each row has one, max over its columns",
            by_column,
        ),
        Mistake(
            "no_sign_bit",
            "one bit too many: with a sign, b bits hold whole numbers up to 2^(b - 1) "
            "- 1, at 8 bits 127",
            no_sign_bit,
        ),
        Mistake(
            "cut_off",
            "the fraction is cut off: round to the nearest whole number, so that no "
            "weight moves by more than half a scale",
            cut_off,
        ),
        Mistake(
            "not_scaled_back",
            "these are the whole numbers: multiply them by the scales again",
            not_scaled_back,
        ),
        Mistake(
            "no_absolute",
            "the scale comes from the largest entry, not from the largest in size: a "
            "large negative weight then becomes more than the bits hold",
            no_absolute,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_rows(size, nearest=torch.round, more=0, back=True):
    def answer(w, bits):
        found = []
        for row in w:
            step = size(row, w) / (2 ** (bits + more - 1) - 1)
            found.append(nearest(row / step) * (step if back else 1))
        return torch.stack(found)

    return answer


def largest(row, w):
    return row.abs().max()


RIGHT = [by_rows(largest), by_rows(lambda row, w: max(row.max(), -row.min()))]
WRONG = [
    ("one_scale", by_rows(lambda row, w: w.abs().max())),
    ("by_column", lambda w, bits: by_rows(largest)(w.T, bits).T),
    ("no_sign_bit", by_rows(largest, more=1)),
    ("cut_off", by_rows(largest, lambda x: x.sign() * x.abs().floor())),
    ("not_scaled_back", by_rows(largest, back=False)),
    ("no_absolute", by_rows(lambda row, w: row.max())),
]
