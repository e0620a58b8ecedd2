"""`teacher_forcing`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def teacher_forcing(target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return target[:, :-1], target[:, 1:], target[:, 1:] != 0


def draw_targets(rng: np.random.Generator) -> list[Args]:
    cases = []
    for _ in range(2):
        batch, token = sizes(rng, 2, least=4)
        target = np.zeros((batch, token + 2), np.int64)
        for row in range(batch):
            words = token if row == 0 else int(rng.integers(1, token))
            target[row, : words + 2] = [1, *rng.integers(3, 40, words), 2]
        cases.append((target,))
    return cases


QUESTION = Question(
    id="02.3",
    title="What the decoder reads and what it is to say",
    answer="teacher_forcing",
    arguments=("target",),
    outputs=(
        Output("target_in", "token"),
        Output("target_out", "token"),
        Output("counted", "token"),
    ),
    reference=teacher_forcing,
    difficulty="easy",
    minutes=5,
    next_step="write one target sentence on paper twice, shifted by one place.",
    parts=(
        Part("read", 1, draw_targets, view=first),
        Part("said", 1, draw_targets, view=second),
        Part("counted", 1, draw_targets, view=lambda value: value[2]),
    ),
    mistakes=(
        Mistake(
            "leak",
            "the decoder reads the very token that it is to say at that place: it "
            "learns to copy, and knows nothing when it has to speak by itself",
            lambda t: (t[:, 1:], t[:, 1:], t[:, 1:] != 0),
        ),
        Mistake(
            "leak_with_begin",
            "nothing is shifted: at every place the decoder reads the token that it is "
            "to say there",
            lambda t: (t[:, :-1], t[:, :-1], t[:, :-1] != 0),
        ),
        Mistake(
            "backwards",
            "the two have changed places: the decoder would read a token and be asked "
            "for the one before it",
            lambda t: (t[:, 1:], t[:, :-1], t[:, :-1] != 0),
        ),
        Mistake(
            "backwards_counted_right",
            "what is read and what is said have changed places: the decoder would read "
            "a token and be asked for the one before it",
            lambda t: (t[:, 1:], t[:, :-1], t[:, 1:] != 0),
        ),
        Mistake(
            "nothing_cut",
            "the whole target is read and the whole target is said: read all but the "
            "last token, say all but the first",
            lambda t: (t, t, t != 0),
        ),
        Mistake(
            "rolled",
            "rolling brings the first token round to the last place: the decoder would "
            "be asked for <bos> at the end; cut it off instead",
            lambda t: (t, t.roll(-1, dims=1), t.roll(-1, dims=1) != 0),
        ),
        Mistake(
            "across_the_batch",
            "the cut goes through the sentences, not through their tokens: the batch "
            "stays whole",
            lambda t: (t[:-1], t[1:], t[1:] != 0),
        ),
        Mistake(
            "two_apart",
            "what is read and what is said are two places apart: the decoder never "
            "sees the token just before the one it is to say",
            lambda t: (t[:, :-2], t[:, 2:], t[:, 2:] != 0),
        ),
        Mistake(
            "end_not_read",
            "the end token is taken out wherever it stands: what is read is cut off at "
            "the last place alone, where a short sentence has its padding",
            lambda t: (t[:, :-1] * (t[:, :-1] != 2), t[:, 1:], t[:, 1:] != 0),
        ),
        Mistake(
            "end_not_counted",
            "the end token does not count here: then nobody teaches the decoder when "
            "to stop",
            lambda t: (t[:, :-1], t[:, 1:], t[:, 1:] > 2),
        ),
        Mistake(
            "counted_where_read",
            "counted are the places where something real is read; what matters is "
            "whether something real is to be said",
            lambda t: (t[:, :-1], t[:, 1:], t[:, :-1] != 0),
        ),
        Mistake(
            "padding_counted",
            "the padding counts and the words do not: True marks what is to be said",
            lambda t: (t[:, :-1], t[:, 1:], t[:, 1:] == 0),
        ),
        Mistake(
            "all_counted",
            "everything counts, the padding too: the decoder would be paid for saying "
            "padding after the end",
            lambda t: (t[:, :-1], t[:, 1:], torch.ones_like(t[:, 1:]).bool()),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def lists(read, said):
    def answer(target):
        rows = target.tolist()
        inputs = torch.tensor([read(row) for row in rows])
        outputs = torch.tensor([said(row) for row in rows])
        return inputs, outputs, outputs.bool()

    return answer


RIGHT = [lists(lambda r: r[:-1], lambda r: r[1:])]
WRONG = [
    ("leak", lists(lambda r: r[1:], lambda r: r[1:])),
    ("leak_with_begin", lists(lambda r: r[:-1], lambda r: r[:-1])),
    ("backwards", lists(lambda r: r[1:], lambda r: r[:-1])),
    ("rolled", lists(lambda r: r, lambda r: r[1:] + r[:1])),
    ("two_apart", lists(lambda r: r[:-2], lambda r: r[2:])),
    (
        "end_not_read",
        lists(lambda r: [0 if i == 2 else i for i in r[:-1]], lambda r: r[1:]),
    ),
    (
        "all_counted",
        lambda t: (t[:, :-1], t[:, 1:], torch.full_like(t[:, 1:], True).bool()),
    ),
]
NOT_IN_HINTS = {"[:, :-1]"}
