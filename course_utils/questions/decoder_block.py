"""The questions of chapter 12 on the decoder: its block, its masks, its size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second, sizes

# ------------------------------------------------------------------ 12.1 the block


def norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def attend(asking: Tensor, asked: Tensor, w: Tensor, causal: bool = False) -> Tensor:
    """One head without keys of its own: scores (asking W) · asked, values asked."""
    scores = asking @ w @ asked.mT / asked.shape[-1] ** 0.5
    if causal:
        future = torch.ones(scores.shape[-2:]).triu(1).bool()
        scores = scores.masked_fill(future, -torch.inf)
    return torch.softmax(scores, dim=-1) @ asked


def think(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x @ w)


def decoder_block(x: Tensor, memory: Tensor, w: Tensor) -> Tensor:
    return built(x, memory, w)


def built(
    x: Tensor,
    memory: Tensor,
    w: Tensor,
    back: Callable[[Tensor, Tensor], Tensor] = lambda y, w: attend(y, y, w, True),
    across: Callable[[Tensor, Tensor, Tensor], Tensor] = attend,
    stream: Callable[[Tensor], Tensor] = norm,
    kept: float = 1.0,
    order: str = "back across think",
) -> Tensor:
    """The block with one of its parts made differently."""
    for part in order.split():
        read = stream(x)
        if part == "back":
            found = back(read, w[0])
        elif part == "across":
            found = across(read, memory, w[1])
        else:
            found = think(read, w[2])
        x = kept * x + found
    return x


def from_memory(x: Tensor, memory: Tensor, w: Tensor) -> Tensor:
    """Cross-attention with the roles exchanged, cut or filled to fit the stream."""
    found = attend(memory, x, w)
    n = x.shape[-2]
    return F.pad(found, (0, 0, 0, max(0, n - found.shape[-2])))[..., :n, :]


def causal_across(x: Tensor, memory: Tensor, w: Tensor) -> Tensor:
    return attend(x, memory, w, True)


def post_norm(x: Tensor, memory: Tensor, w: Tensor) -> Tensor:
    x = norm(x + attend(x, x, w[0], True))
    x = norm(x + attend(x, memory, w[1]))
    return norm(x + think(x, w[2]))


def keys_as_they_are(x: Tensor, memory: Tensor, w: Tensor) -> Tensor:
    x = x + attend(norm(x), x, w[0], True)
    x = x + attend(norm(x), memory, w[1])
    return x + think(norm(x), w[2])


def added_to_the_normed(x: Tensor, memory: Tensor, w: Tensor) -> Tensor:
    x = norm(x) + attend(norm(x), norm(x), w[0], True)
    x = norm(x) + attend(norm(x), memory, w[1])
    return norm(x) + think(norm(x), w[2])


def found_normed(x: Tensor, memory: Tensor, w: Tensor) -> Tensor:
    x = x + norm(attend(x, x, w[0], True))
    x = x + norm(attend(x, memory, w[1]))
    return x + norm(think(x, w[2]))


def side_by_side(x: Tensor, memory: Tensor, w: Tensor) -> Tensor:
    read = norm(x)
    looks = attend(read, read, w[0], True) + attend(read, memory, w[1])
    return x + looks + think(read, w[2])


def draw_block(longer: bool) -> Any:
    """Draw a stream and a memory of another length, the matrices of three layers."""

    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for batch in ((), (2,)):
            few, many, d_model = sorted(sizes(rng, 2)) + sizes(rng, 1, least=4)
            target, source = (few, many) if longer else (many, few)
            drawn.append(
                (
                    normal(rng, *batch, target, d_model),
                    normal(rng, *batch, source, d_model),
                    normal(rng, 3, d_model, d_model),
                )
            )
        return drawn

    return cases


BLOCK = Question(
    id="12.1",
    title="The decoder's block",
    answer="decoder_block",
    arguments=("x", "memory", "w"),
    outputs=(Output("stream", "token d_model"),),
    reference=decoder_block,
    next_step="three lines of the form x = x + …: look back, look across, think.",
    parts=(
        Part("a source that is longer", 2, draw_block(True)),
        Part("a source that is shorter", 2, draw_block(False)),
    ),
    mistakes=(
        Mistake(
            "not_causal",
            "the target sees its own future: the look back needs causal=True",
            lambda x, m, w: built(x, m, w, back=lambda y, w: attend(y, y, w)),
        ),
        Mistake(
            "causal_across",
            "the look at the source is masked as if it were the future: the whole "
            "source is known before the first word is written",
            lambda x, m, w: built(x, m, w, across=causal_across),
        ),
        Mistake(
            "masks_exchanged",
            "the mask is on the wrong look: the target's future is hidden, the source "
            "is open",
            lambda x, m, w: built(
                x, m, w, back=lambda y, w: attend(y, y, w), across=causal_across
            ),
        ),
        Mistake(
            "memory_asks",
            "the memory asks the stream: the queries come from the target, keys and "
            "values from the source",
            lambda x, m, w: built(x, m, w, across=from_memory),
        ),
        Mistake(
            "no_cross_attention",
            "the memory is not used: this is a block of a language model, which has "
            "nothing to translate",
            lambda x, m, w: built(x, m, w, order="back think"),
        ),
        Mistake(
            "no_self_attention",
            "the target never looks at what it has written: the look back is missing",
            lambda x, m, w: built(x, m, w, order="across think"),
        ),
        Mistake(
            "nothing_thought",
            "the third layer is missing: after both looks each word works by itself",
            lambda x, m, w: built(x, m, w, order="back across"),
        ),
        Mistake(
            "across_first",
            "the source is asked before the target has looked back: the two looks "
            "have changed places",
            lambda x, m, w: built(x, m, w, order="across back think"),
        ),
        Mistake(
            "no_residual",
            "what a layer found takes the place of the stream; it is added to it",
            lambda x, m, w: built(x, m, w, kept=0.0),
        ),
        Mistake(
            "no_norm",
            "the layers read the stream as it is: in the pre-norm order each reads it "
            "through a norm",
            lambda x, m, w: built(x, m, w, stream=lambda y: y),
        ),
        Mistake(
            "post_norm",
            "this is the post-norm order, norm(x + …): in the pre-norm order the norm "
            "stands in front of the layer, and the sum is left as it is",
            post_norm,
        ),
        Mistake(
            "keys_as_they_are",
            "the look back asks through the norm, but what is asked has not gone "
            "through it: both arguments of attend are the normed stream",
            keys_as_they_are,
        ),
        Mistake(
            "added_to_the_normed",
            "what a layer found is added to the normed stream; it is added to the "
            "stream itself",
            added_to_the_normed,
        ),
        Mistake(
            "found_normed",
            "the norm is put around what a layer found, x + norm(f(x)): it belongs in "
            "front of the layer, x + f(norm(x))",
            found_normed,
        ),
        Mistake(
            "last_not_added",
            "both looks are added to the stream, but what was thought takes its place; "
            "it is added as well",
            lambda x, m, w: built(x, m, w) - built(x, m, w, order="back across"),
        ),
        Mistake(
            "side_by_side",
            "all three layers read the same x: each has to read what the one before "
            "it left",
            side_by_side,
        ),
        Mistake(
            "norm_at_the_end",
            "there is one norm too many, at the end: the norm after the last layer "
            "belongs to the stack and not to the block",
            lambda x, m, w: norm(built(x, m, w)),
        ),
        Mistake(
            "memory_normed",
            "the memory goes through the norm of the stream; the encoder has normed it "
            "already",
            lambda x, m, w: built(
                x, m, w, across=lambda y, m, w: attend(y, norm(m), w)
            ),
        ),
        Mistake(
            "one_matrix",
            "all three layers use the same matrix: w holds one for each, in the order "
            "back, across, think",
            lambda x, m, w: built(x, m, w[:1].expand(3, -1, -1)),
        ),
    ),
    packaged=("DecoderBlock",),
)


# ------------------------------------------------------------------ 12.2 the masks


def masks(lengths: Any, n_source: int, n_target: int) -> tuple[Tensor, Tensor]:
    lengths = torch.as_tensor(lengths)
    own = torch.ones(n_target, n_target).tril().bool()
    real = torch.arange(n_source) < lengths[:, None]  # (batch, source)
    return own, real[:, None].expand(-1, n_target, -1)


def draw_lengths(rng: np.random.Generator) -> list[Args]:
    drawn: list[Args] = []
    for batch in (2, 3):
        n_source, n_target = sizes(rng, 2, least=4)
        lengths = rng.permutation(np.arange(1, n_source + 1))[:batch]
        drawn.append((lengths.astype(np.int64), n_source, n_target))
    return drawn


def own_is(name: str, hint: str, make: Callable[[int], Tensor]) -> Mistake:
    def wrong(lengths: Any, n_source: int, n_target: int) -> Any:
        return make(n_target), masks(lengths, n_source, n_target)[1]

    return Mistake(
        name,
        hint,
        wrong,
        lambda args, value: np.array_equal(value[0], make(args[2]).numpy()),
    )


def cross_is(name: str, hint: str, make: Callable[..., Tensor]) -> Mistake:
    def wrong(lengths: Any, n_source: int, n_target: int) -> Any:
        own = masks(lengths, n_source, n_target)[0]
        return own, make(torch.as_tensor(lengths), n_source, n_target)

    def sign(args: Args, value: Any) -> bool:
        return np.array_equal(value[1], wrong(*args)[1].numpy())

    return Mistake(name, hint, wrong, sign)


def spread(row: Tensor, n_target: int) -> Tensor:
    return row[:, None].expand(-1, n_target, -1)


MASKS = Question(
    id="12.2",
    title="Two masks",
    answer="masks",
    arguments=("lengths", "n_source", "n_target"),
    outputs=(Output("own", "target key"), Output("cross", "batch target source")),
    reference=masks,
    next_step="True where looking is allowed; compare positions with `torch.arange`.",
    parts=(
        Part("the target's own mask", 2, draw_lengths, view=first),
        Part("the mask of the source", 2, draw_lengths, view=second),
    ),
    mistakes=(
        own_is(
            "own_inverted",
            "the own mask allows the future and forbids the past: True means may look",
            lambda n: torch.ones(n, n).triu(1).bool(),
        ),
        own_is(
            "own_not_itself",
            "the own mask forbids a word to look at itself: then the first word has "
            "nothing to look at",
            lambda n: torch.ones(n, n).tril(-1).bool(),
        ),
        own_is(
            "own_transposed",
            "the own mask has rows and columns exchanged: rows ask, and may look at "
            "columns before them",
            lambda n: torch.ones(n, n).triu().bool(),
        ),
        own_is(
            "own_open",
            "the own mask allows everything: the word to be predicted is one place to "
            "the right, in plain sight",
            lambda n: torch.ones(n, n).bool(),
        ),
        own_is(
            "own_one_ahead",
            "the own mask lets every word look one place ahead, at the word it is to "
            "predict",
            lambda n: torch.ones(n, n).tril(1).bool(),
        ),
        cross_is(
            "cross_inverted",
            "the mask of the source allows the padding and forbids the words: that is "
            "PyTorch's other convention; here True means may look",
            lambda lengths, n, m: spread(torch.arange(n) >= lengths[:, None], m),
        ),
        cross_is(
            "cross_one_too_many",
            "the mask of the source allows one place too many: places count from 0, so "
            "a source of 3 words has the places 0, 1, 2",
            lambda lengths, n, m: spread(torch.arange(n) <= lengths[:, None], m),
        ),
        cross_is(
            "cross_open",
            "the mask of the source allows everything: shorter sources are filled up "
            "with padding, which is nothing to look at",
            lambda lengths, n, m: torch.ones(len(lengths), m, n).bool(),
        ),
        cross_is(
            "cross_causal",
            "the mask of the source is a triangle as well: every word of the target "
            "may look at the whole source",
            lambda lengths, n, m: (
                spread(torch.arange(n) < lengths[:, None], m)
                & torch.ones(m, n).tril().bool()
            ),
        ),
    ),
)


# ---------------------------------------------------------------------- 12.3 the size


def attention_size(d: int) -> int:
    return 4 * d * d + 4 * d


def feed_forward_size(d: int, h: int) -> int:
    return 2 * d * h + d + h


def count(d_model: int, d_hidden: int) -> tuple[int, int]:
    d, thinking = d_model, feed_forward_size(d_model, d_hidden)
    encoder = attention_size(d) + thinking + 2 * 2 * d
    return encoder, 2 * attention_size(d) + thinking + 3 * 2 * d


def draw_widths(rng: np.random.Generator) -> list[Args]:
    return [tuple(8 * n for n in sizes(rng, 2, least=4)) for _ in range(3)]


def one_norm(d: int, h: int) -> tuple[int, int]:
    thinking = feed_forward_size(d, h) + 2 * d
    return attention_size(d) + thinking, 2 * attention_size(d) + thinking


def both_are(name: str, hint: str, encoder: Any, decoder: Any) -> Mistake:
    """A slip in both numbers, recognised in either."""

    def wrong(d: int, h: int) -> tuple[int, int]:
        return encoder(d, h), decoder(d, h)

    def sign(args: Args, value: Any) -> bool:
        made = zip(value, wrong(*args), count(*args))
        return any(float(v) == w != right for v, w, right in made)

    return Mistake(name, hint, wrong, sign)


SIZE = Question(
    id="12.3",
    title="How many parameters has a block?",
    answer="count",
    arguments=("d_model", "d_hidden"),
    outputs=(Output("encoder"), Output("decoder")),
    reference=count,
    tolerance=1e-9,
    next_step="add up the parts: attention, feed-forward, norms; matrices and biases.",
    parts=(
        Part("the encoder's block", 1, draw_widths, view=first),
        Part("the decoder's block", 2, draw_widths, view=second),
    ),
    mistakes=(
        Mistake(
            "one_norm_a_block",
            "one norm is counted in each block: every layer has its own, so two in the "
            "encoder's and three in the decoder's",
            one_norm,
        ),
        both_are(
            "matrices_alone",
            "the matrices are right, but nothing else is counted: biases, and a scale "
            "and a shift for every norm",
            lambda d, h: 4 * d * d + 2 * d * h,
            lambda d, h: 8 * d * d + 2 * d * h,
        ),
        both_are(
            "no_biases",
            "the biases are missing: every projection and both layers of the "
            "feed-forward part have one",
            lambda d, h: 4 * d * d + 2 * d * h + 4 * d,
            lambda d, h: 8 * d * d + 2 * d * h + 6 * d,
        ),
        both_are(
            "no_norms",
            "the norms are missing: each has a scale and a shift for every feature",
            lambda d, h: attention_size(d) + feed_forward_size(d, h),
            lambda d, h: 2 * attention_size(d) + feed_forward_size(d, h),
        ),
        both_are(
            "norm_without_shift",
            "a norm is counted with one vector: it has a scale and a shift",
            lambda d, h: attention_size(d) + feed_forward_size(d, h) + 2 * d,
            lambda d, h: 2 * attention_size(d) + feed_forward_size(d, h) + 3 * d,
        ),
        both_are(
            "no_output_matrix",
            "attention is counted with three matrices: W_O makes four",
            lambda d, h: count(d, h)[0] - d * d - d,
            lambda d, h: count(d, h)[1] - 2 * (d * d + d),
        ),
        both_are(
            "hidden_bias_missing",
            "the wide layer of the feed-forward part is counted without its bias, "
            "which has d_hidden numbers",
            lambda d, h: count(d, h)[0] - h,
            lambda d, h: count(d, h)[1] - h,
        ),
        both_are(
            "hidden_bias_too_narrow",
            "both biases of the feed-forward part are counted with d_model numbers: "
            "that of the wide layer has d_hidden",
            lambda d, h: count(d, h)[0] - h + d,
            lambda d, h: count(d, h)[1] - h + d,
        ),
        both_are(
            "cross_has_no_matrices",
            "the decoder's second attention is counted with its norm alone: it has "
            "four projections of its own",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[1] - attention_size(d),
        ),
        both_are(
            "blocks_alike",
            "both blocks are given the same number: the decoder's has a second "
            "attention, with its norm",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[0],
        ),
        both_are(
            "cross_without_norm",
            "the second attention of the decoder is counted without the norm that "
            "belongs to it",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[1] - 2 * d,
        ),
        both_are(
            "two_feed_forwards",
            "the decoder is given two feed-forward layers: it has one, at the end",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[1] + feed_forward_size(d, h),
        ),
    ),
)

QUESTIONS = (BLOCK, MASKS, SIZE)
