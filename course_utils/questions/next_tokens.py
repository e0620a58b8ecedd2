"""The questions of chapter 13: the shifted loss, and the loss of a joined sequence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal, sizes

# --------------------------------------------------------------- 13.1 the shifted loss


def next_token_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    return compared(logits[:, :-1], tokens[:, 1:])


def compared(logits: Tensor, wanted: Tensor, reduction: str = "mean") -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction=reduction)


def of_log_p(log_p: Tensor, tokens: Tensor) -> Tensor:
    """Finish the loss from log-probabilities that went wrong earlier."""
    return -log_p[:, :-1].gather(-1, tokens[:, 1:, None]).mean()


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


SHIFT = Question(
    id="13.1",
    title="The shifted loss",
    answer="next_token_loss",
    arguments=("logits", "tokens"),
    outputs=(Output("loss"),),
    reference=next_token_loss,
    next_step="which outputs have a token after them, and which tokens come after one?",
    parts=(
        Part("two tokens, one question", 1, draw_one_text),
        Part("whole texts", 2, draw_texts),
    ),
    mistakes=(
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
    ),
    packaged=("next_token_loss",),
)

# ---------------------------------------------------------------- 13.2 the joined loss


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


JOINED = Question(
    id="13.2",
    title="The loss of a joined sequence",
    answer="joined_loss",
    arguments=("logits", "tokens", "n_source"),
    outputs=(Output("loss"),),
    reference=joined_loss,
    next_step="write down a short sequence, and below each place what it is asked for.",
    parts=(
        Part("no padding", 2, draw_joined(0)),
        Part("with padding", 2, draw_joined(4)),
    ),
    mistakes=(
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

QUESTIONS = (SHIFT, JOINED)
