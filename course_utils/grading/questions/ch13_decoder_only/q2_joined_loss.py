"""`joined_loss`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_next_token_loss import asks, question_by_question, shifted


def joined_loss(logits: Tensor, tokens: Tensor, n_source: int) -> Tensor:
    return asked_from(logits, tokens, n_source)


def asked_from(
    logits: Tensor, tokens: Tensor, first: int, padding: bool = False
) -> Tensor:
    """Ask at places `first`, first + 1, … for what follows, padding or not."""
    wanted = tokens[:, first + 1 :]
    losses = F.cross_entropy(
        logits[:, first:-1].flatten(0, 1), wanted.flatten(), reduction="none"
    )
    counts = (wanted.flatten() != 0) | padding
    return losses[counts].mean()


def by_rows(logits: Tensor, tokens: Tensor, n_source: int) -> Tensor:
    rows = [
        joined_loss(own, row, n_source)
        for own, row in zip(logits.split(1), tokens.split(1))
    ]
    return torch.stack(rows).mean()


def divided_by_all(logits: Tensor, tokens: Tensor, n_source: int) -> Tensor:
    wanted = tokens[:, n_source + 1 :]
    share = (wanted != 0).float().mean()
    return joined_loss(logits, tokens, n_source) * share


def divided_by_everything(logits: Tensor, tokens: Tensor, n_source: int) -> Tensor:
    return added_up(logits, tokens, n_source) / tokens[:, 1:].numel()


def unshifted(logits: Tensor, tokens: Tensor, n_source: int) -> Tensor:
    wanted = tokens[:, n_source:].flatten()
    losses = F.cross_entropy(
        logits[:, n_source:].flatten(0, 1), wanted, reduction="none"
    )
    return losses[wanted != 0].mean()


def unshifted_after_begin(logits: Tensor, tokens: Tensor, n_source: int) -> Tensor:
    return unshifted(logits, tokens, n_source + 1)


def mask_of_the_input(logits: Tensor, tokens: Tensor, n_source: int) -> Tensor:
    losses = F.cross_entropy(
        logits[:, n_source:-1].mT, tokens[:, n_source + 1 :], reduction="none"
    )
    return losses[tokens[:, n_source:-1] != 0].mean()


def added_up(logits: Tensor, tokens: Tensor, n_source: int) -> Tensor:
    questions = (tokens[:, n_source + 1 :] != 0).sum()
    return joined_loss(logits, tokens, n_source) * questions


def axes_not_joined(logits: Tensor, tokens: Tensor, n_source: int) -> Tensor:
    wanted = tokens[:, n_source + 1 :]
    return F.cross_entropy(logits[:, n_source:-1], wanted, ignore_index=0)


def end_not_asked(logits: Tensor, tokens: Tensor, n_source: int) -> Tensor:
    return joined_loss(logits, torch.where(tokens == 2, 0, tokens), n_source)


def draw_joined(longest_rest: int) -> Any:
    """Draw batches of source, <bos>, words, <eos>, and padding of several lengths."""

    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for _ in range(2):
            n_source, piece = (int(n) for n in rng.permutation(np.arange(4, 8))[:2])
            batch, target = 3, 6 + longest_rest
            tokens = rng.integers(3, piece + 6, size=(batch, n_source + target))
            tokens[:, n_source] = 1
            for row in range(batch):
                end = n_source + target - 1 - row * longest_rest // 2
                tokens[row, end] = 2
                tokens[row, end + 1 :] = 0
            drawn.append((2 * normal(rng, *tokens.shape, piece + 6), tokens, n_source))
        return drawn

    return cases


QUESTION = Question(
    id="13.2",
    title="The loss of a joined sequence",
    answer="joined_loss",
    arguments=("logits", "tokens", "n_source"),
    outputs=(Output("loss"),),
    reference=joined_loss,
    difficulty="medium",
    minutes=10,
    next_step="write down a short sequence, and below each place what it is asked for.",
    parts=(
        Part("no padding", 2, draw_joined(0)),
        Part("with padding", 2, draw_joined(4)),
    ),
    mistakes=(
        Mistake(
            "mask_of_the_input",
            "a question is left out where the token at its own place is padding: it "
            "is the token asked for, the next one, that must not be padding",
            mask_of_the_input,
        ),
        Mistake(
            "source_counted",
            "the loss asks for the words of the source as well: they are given, and "
            "the model should spend nothing on guessing them",
            lambda logits, tokens, n_source: asked_from(logits, tokens, 0),
        ),
        Mistake(
            "begin_asked",
            "the loss also asks for <bos>, at the last place of the source; <bos> is "
            "given, and the first word is asked for at its place",
            lambda logits, tokens, n_source: asked_from(logits, tokens, n_source - 1),
        ),
        Mistake(
            "first_word_not_asked",
            "the first word of the target is never asked for: its question stands at "
            "the place of <bos>",
            lambda logits, tokens, n_source: asked_from(logits, tokens, n_source + 1),
        ),
        Mistake(
            "not_shifted",
            "outputs are compared with the token at their own place; the output of a "
            "place is about the next one",
            unshifted,
        ),
        Mistake(
            "not_shifted_after_begin",
            "<bos> is left out of outputs and tokens alike, so nothing is shifted: the "
            "output at <bos> is the answer to the first question",
            unshifted_after_begin,
        ),
        Mistake(
            "end_not_asked",
            "<eos> is never asked for: then the model would not learn when to stop",
            end_not_asked,
        ),
        Mistake(
            "axes_not_joined",
            "`cross_entropy` takes the axis after the first for the pieces, and here "
            "that one holds places: join batch and places with `flatten(0, 1)`, and "
            "the tokens with `flatten()`",
            axes_not_joined,
        ),
        Mistake(
            "padding_counted",
            "padding is asked for as well: where the next token is 0 there is no "
            "question",
            lambda logits, tokens, n_source: asked_from(
                logits, tokens, n_source, padding=True
            ),
        ),
        Mistake(
            "everything_counted",
            "all places are asked, source and padding among them: only the words of "
            "the target and its end count",
            lambda logits, tokens, n_source: asked_from(
                logits, tokens, 0, padding=True
            ),
        ),
        Mistake(
            "mean_of_means",
            "each sentence is averaged by itself and then the sentences: a word of a "
            "short sentence would count for more; take one mean over all questions",
            by_rows,
        ),
        Mistake(
            "summed",
            "the losses are added up: divide by the number of questions",
            added_up,
        ),
        Mistake(
            "divided_by_sentences",
            "the sum is divided by the number of sentences: divide by the number of "
            "questions",
            lambda logits, tokens, n_source: (
                added_up(logits, tokens, n_source) / len(tokens)
            ),
        ),
        Mistake(
            "divided_by_all",
            "the sum is divided by all places, padding among them: divide by the "
            "number of questions",
            divided_by_all,
        ),
        Mistake(
            "divided_by_everything",
            "what does not count is set to 0 and still takes part in the mean: divide "
            "by the number of questions, without the places of the source",
            divided_by_everything,
        ),
        Mistake(
            "sign_missing",
            "the sign is missing: a loss is the mean of −log p",
            lambda logits, tokens, n_source: -joined_loss(logits, tokens, n_source),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


joined = question_by_question(asks(padding=False))
RIGHT = [joined]
WRONG = [
    (
        "not_shifted_after_begin",
        question_by_question(lambda i, row, n: i if i > n and row[i] != 0 else None),
    ),
    (
        "end_not_asked",
        question_by_question(
            lambda i, row, n: (
                i + 1 if i >= n and (row[i + 1 : i + 2] > 2).any() else None
            )
        ),
    ),
    (
        "axes_not_joined",
        lambda logits, tokens, n_source: nn.CrossEntropyLoss(ignore_index=0)(
            logits[:, :-1][:, n_source:], tokens[:, 1:][:, n_source:]
        ),
    ),
    (
        "summed",
        lambda logits, tokens, n_source: (
            joined(logits, tokens, n_source)
            * int((tokens[:, n_source + 1 :] > 0).sum())
        ),
    ),
    (
        "divided_by_sentences",
        lambda logits, tokens, n_source: (
            nn.CrossEntropyLoss(ignore_index=0, reduction="sum")(
                logits.transpose(1, 2)[:, :, n_source:-1], tokens[:, n_source + 1 :]
            )
            / len(logits)
        ),
    ),
    (
        "divided_by_everything",
        lambda logits, tokens, n_source: (
            nn.CrossEntropyLoss(reduction="none")(
                logits[:, :-1].transpose(1, 2), tokens[:, 1:]
            )
            * (torch.arange(1, tokens.shape[1]) > n_source)
            * (tokens[:, 1:] != 0)
        ).mean(),
    ),
    ("source_counted", lambda logits, tokens, n_source: joined(logits, tokens, 0)),
    ("begin_asked", question_by_question(asks(first=-1, padding=False))),
    ("first_word_not_asked", question_by_question(asks(first=1, padding=False))),
    ("padding_counted", question_by_question(asks())),
    ("mean_of_means", question_by_question(asks(padding=False), per_row=True)),
    (
        "not_shifted",
        question_by_question(
            lambda i, row, n: i if i >= n and row[i] != 0 else None,
        ),
    ),
    ("everything_counted", lambda logits, tokens, n_source: shifted(logits, tokens)),
]
