"""`next_token_loss`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def next_token_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    return compared(logits[:, :-1], tokens[:, 1:])


def compared(logits: Tensor, wanted: Tensor, reduction: str = "mean") -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction=reduction)


def of_log_p(log_p: Tensor, tokens: Tensor) -> Tensor:
    """Finish the loss from log-probabilities that went wrong earlier."""
    return -log_p[:, :-1].gather(-1, tokens[:, 1:, None]).mean()


def over_tokens(logits: np.ndarray, tokens: np.ndarray, cut: bool) -> float:
    """The softmax over the positions: all of them, or those that ask."""
    scores = torch.as_tensor(logits)
    n = scores.shape[1] - 1 if cut else scores.shape[1]
    log_p = F.pad(scores[:, :n].log_softmax(dim=1), (0, 0, 0, scores.shape[1] - n))
    return float(of_log_p(log_p, torch.as_tensor(tokens)))


def draw_texts(rng: np.random.Generator) -> list[Args]:
    drawn: list[Args] = []
    for _ in range(3):
        batch, token, piece = sizes(rng, 3, least=4)
        tokens = rng.integers(0, piece, size=(batch, token))
        drawn.append((2 * normal(rng, batch, token, piece), tokens))
    return drawn


def draw_one_text(rng: np.random.Generator) -> list[Args]:
    # two different tokens: were they equal, a missing shift would go unnoticed
    return [(2 * normal(rng, 1, 2, 7), rng.permutation(7)[None, :2])]


QUESTION = Question(
    id="13.1",
    title="The shifted loss",
    answer="next_token_loss",
    arguments=("logits", "tokens"),
    outputs=(Output("loss"),),
    reference=next_token_loss,
    difficulty="easy",
    minutes=6,
    next_step="which outputs have a token after them, and which tokens come after one?",
    parts=(
        Part("two tokens, one question", 1, draw_one_text),
        Part("whole texts", 2, draw_texts),
    ),
    mistakes=(
        Mistake(
            "divided_by_all",
            "the sum is divided by the number of all tokens: the first of each text "
            "is never asked for, so there are fewer questions",
            lambda logits, tokens: (
                compared(logits[:, :-1], tokens[:, 1:], "sum") / tokens.numel()
            ),
        ),
        Mistake(
            "not_shifted",
            "every output is compared with the token that stands at its own place: the "
            "model has read that one already, so it would learn to copy",
            compared,
        ),
        Mistake(
            "both_without_the_first",
            "the first place is left out of outputs and tokens alike, so nothing is "
            "shifted: only the tokens lose their first, the outputs lose their last",
            lambda logits, tokens: compared(logits[:, 1:], tokens[:, 1:]),
        ),
        Mistake(
            "both_without_the_last",
            "the last place is left out of outputs and tokens alike, so nothing is "
            "shifted: only the outputs lose their last, the tokens lose their first",
            lambda logits, tokens: compared(logits[:, :-1], tokens[:, :-1]),
        ),
        Mistake(
            "axes_not_joined",
            "`cross_entropy` takes the axis after the first for the pieces, and here "
            "that one holds places: join batch and places with `flatten(0, 1)`, and "
            "the tokens with `flatten()`",
            lambda logits, tokens: F.cross_entropy(logits[:, :-1], tokens[:, 1:]),
        ),
        Mistake(
            "shifted_back",
            "the shift goes the wrong way: outputs are asked for the token before "
            "them, which they have seen",
            lambda logits, tokens: compared(logits[:, 1:], tokens[:, :-1]),
        ),
        Mistake(
            "texts_cut",
            "the first axis is cut, and that one holds the texts: the shift runs along "
            "the places of each text, `[:, :-1]` and `[:, 1:]`",
            lambda logits, tokens: compared(logits[:-1], tokens[1:]),
        ),
        Mistake(
            "around_the_end",
            "the last output is asked for the first token: `roll` goes round in a "
            "circle; after the last token nothing is known, so nothing can be asked",
            lambda logits, tokens: compared(logits, tokens.roll(-1, dims=1)),
        ),
        Mistake(
            "shifted_twice",
            "outputs are asked for the token after the next; the next one stands one "
            "place on",
            lambda logits, tokens: compared(logits[:, :-2], tokens[:, 2:]),
        ),
        Mistake(
            "last_only",
            "only the last question is asked: every place of the text asks one, that "
            "is why one pass teaches so much",
            lambda logits, tokens: compared(logits[:, -2:-1], tokens[:, -1:]),
        ),
        Mistake(
            "not_averaged",
            "one loss for each question comes back: take the mean of them all",
            lambda logits, tokens: compared(logits[:, :-1], tokens[:, 1:], "none"),
        ),
        Mistake(
            "in_bits",
            "the loss is in bits: here the logarithm is the natural one, as in "
            "`cross_entropy`; bits are for comparing models",
            lambda logits, tokens: next_token_loss(logits, tokens) / math.log(2),
        ),
        Mistake(
            "summed",
            "the losses are added up: take their mean, or long texts would count for "
            "more",
            lambda logits, tokens: compared(logits[:, :-1], tokens[:, 1:], "sum"),
        ),
        Mistake(
            "summed_over_places",
            "the losses are added up over a text and averaged over the batch: take the "
            "mean of all questions",
            lambda logits, tokens: (
                compared(logits[:, :-1], tokens[:, 1:], "sum") / len(tokens)
            ),
        ),
        Mistake(
            "softmax_over_places",
            "the softmax runs over the places of the text: every place has its own "
            "distribution over the pieces, the last axis",
            lambda logits, tokens: of_log_p(torch.log_softmax(logits, 1), tokens),
            lambda args, value: any(
                np.isclose(float(value), over_tokens(args[0], args[1], cut), 1e-3, 1e-5)
                for cut in (False, True)
            ),
        ),
        Mistake(
            "no_softmax",
            "the scores are used as if they were log-probabilities: a log-softmax "
            "makes them so",
            of_log_p,
        ),
        Mistake(
            "no_logarithm",
            "the loss uses probabilities: it is the mean of −log p",
            lambda logits, tokens: of_log_p(torch.softmax(logits, -1), tokens),
        ),
        Mistake(
            "softmax_twice",
            "the softmax is taken twice: `cross_entropy` expects scores and takes it "
            "itself",
            lambda logits, tokens: next_token_loss(torch.softmax(logits, -1), tokens),
        ),
        Mistake(
            "sign_missing",
            "the sign is missing: log-probabilities are negative, a loss is to be made "
            "small",
            lambda logits, tokens: -next_token_loss(logits, tokens),
        ),
        Mistake(
            "texts_joined",
            "the texts are joined before the shift: the last place of one text is "
            "asked for the first token of the next; shift inside each text",
            lambda logits, tokens: F.cross_entropy(
                logits.flatten(0, 1)[:-1], tokens.flatten()[1:]
            ),
        ),
    ),
    packaged=("next_token_loss",),
)


# ----------------------------------------------------------------------- specimens


def question_by_question(asks, per_row=False):
    """A loss that goes through the places one by one: asks(i, row, n_source)."""

    def answer(logits, tokens, n_source=0):
        rows = []
        for scores, row in zip(logits, tokens):
            losses = []
            for i in range(len(row)):
                j = asks(i, row, n_source)
                if j is not None:
                    p = torch.exp(scores[i]) / torch.exp(scores[i]).sum()
                    losses.append(-math.log(float(p[row[j]])))
            rows.append(losses)
        if per_row:
            means = [sum(losses) / len(losses) for losses in rows]
            return torch.tensor(sum(means) / len(means))
        every = [loss for losses in rows for loss in losses]
        return torch.tensor(sum(every) / len(every))

    return answer


def following(i, row, n_source, first=0, padding=True):
    """The place after i, if it is asked for."""
    inside = n_source + first <= i < len(row) - 1
    return i + 1 if inside and (padding or row[i + 1] != 0) else None


def asks(**options):
    return lambda i, row, n_source: following(i, row, n_source, **options)


def only_for(loss):
    return lambda logits, tokens: loss(logits, tokens)


shifted = question_by_question(asks())
RIGHT = [
    only_for(shifted),
    lambda logits, tokens: nn.CrossEntropyLoss()(
        logits.transpose(1, 2)[:, :, :-1], tokens[:, 1:]
    ),
]
WRONG = [
    (
        "softmax_over_places",
        lambda logits, tokens: (
            -logits[:, :-1].log_softmax(1).gather(-1, tokens[:, 1:, None]).mean()
        ),
    ),
    ("not_shifted", only_for(question_by_question(lambda i, row, n: i))),
    (
        "shifted_back",
        only_for(question_by_question(lambda i, row, n: i - 1 if i else None)),
    ),
    (
        "around_the_end",
        only_for(question_by_question(lambda i, row, n: (i + 1) % len(row))),
    ),
    (
        "last_only",
        only_for(
            question_by_question(lambda i, row, n: i + 1 if i + 2 == len(row) else None)
        ),
    ),
    ("sign_missing", lambda logits, tokens: -shifted(logits, tokens)),
    (
        "summed",
        lambda logits, tokens: nn.CrossEntropyLoss(reduction="sum")(
            logits.transpose(1, 2)[:, :, :-1], tokens[:, 1:]
        ),
    ),
    (
        "softmax_twice",
        lambda logits, tokens: shifted(torch.softmax(logits, -1), tokens),
    ),
    (
        "no_logarithm",
        lambda logits, tokens: (
            -torch.softmax(logits, -1)[:, :-1].gather(-1, tokens[:, 1:, None]).mean()
        ),
    ),
    (
        "both_without_the_first",
        only_for(question_by_question(lambda i, row, n: i or None)),
    ),
    (
        "both_without_the_last",
        only_for(
            question_by_question(lambda i, row, n: i if i + 1 < len(row) else None)
        ),
    ),
    (
        "axes_not_joined",
        lambda logits, tokens: nn.CrossEntropyLoss()(
            logits.narrow(1, 0, tokens.shape[1] - 1),
            tokens.narrow(1, 1, tokens.shape[1] - 1),
        ),
    ),
    (
        "texts_cut",
        lambda logits, tokens: nn.CrossEntropyLoss()(
            logits[:-1].transpose(1, 2), tokens[1:]
        ),
    ),
    (
        "not_averaged",
        lambda logits, tokens: torch.cat(
            [
                nn.CrossEntropyLoss(reduction="none")(scores[:-1], row[1:])
                for scores, row in zip(logits, tokens)
            ]
        ),
    ),
    (
        "in_bits",
        lambda logits, tokens: (
            -torch.log2(torch.softmax(logits, -1))[:, :-1]
            .gather(-1, tokens[:, 1:, None])
            .mean()
        ),
    ),
]
