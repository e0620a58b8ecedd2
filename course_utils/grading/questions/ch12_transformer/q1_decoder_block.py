"""`decoder_block`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


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


def step_by_step(
    x: Tensor,
    memory: Tensor,
    w: Tensor,
    kept: tuple[int, ...] = (1, 1, 1),
    again: bool = False,
    last: Callable[[Tensor], Tensor] = norm,
) -> Tensor:
    """The block, with one of its sums or norms left out."""
    read = norm(x)
    x = kept[0] * x + attend(read, read, w[0], True)
    x = kept[1] * x + attend(read if again else norm(x), memory, w[1])
    return kept[2] * x + think(last(x), w[2])


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


QUESTION = Question(
    id="12.1",
    title="The decoder's block",
    answer="decoder_block",
    arguments=("x", "memory", "w"),
    outputs=(Output("stream", "token d_model"),),
    reference=decoder_block,
    given=("norm", "attend", "think"),
    difficulty="medium",
    minutes=10,
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
            "back_not_added",
            "what the look back found takes the stream's place: it is added to it, as "
            "with the other layers",
            lambda x, m, w: step_by_step(x, m, w, kept=(0, 1, 1)),
        ),
        Mistake(
            "across_not_added",
            "what the look across found takes the stream's place: it is added to it, "
            "as with the other layers",
            lambda x, m, w: step_by_step(x, m, w, kept=(1, 0, 1)),
        ),
        Mistake(
            "norm_of_before",
            "the look across asks with the normed stream of before the look back: each "
            "layer norms the stream as it is by then",
            lambda x, m, w: step_by_step(x, m, w, again=True),
        ),
        Mistake(
            "thinking_not_normed",
            "the last layer reads the stream itself: it reads through a norm, as the "
            "two looks do",
            lambda x, m, w: step_by_step(x, m, w, last=lambda x: x),
        ),
        Mistake(
            "matrices_exchanged",
            "the two looks have each other's matrix: `w[0]` belongs to the look back, "
            "`w[1]` to the look across",
            lambda x, m, w: built(x, m, w[[1, 0, 2]]),
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
        Mistake(
            "normed_once",
            "there is one norm, at the start of the block: each layer reads the stream "
            "through a norm of its own, and the stream itself stays as it is",
            lambda x, m, w: built(norm(x), m, w, stream=lambda y: y),
        ),
        Mistake(
            "only_the_first_normed",
            "the look back alone reads through a norm: each of the three layers does",
            lambda x, m, w: built(
                built(x, m, w, order="back"),
                m,
                w,
                order="across think",
                stream=lambda y: y,
            ),
        ),
    ),
    packaged=("DecoderBlock",),
)


# ----------------------------------------------------------------------- specimens


def read(x):
    return nn.LayerNorm(x.shape[-1], elementwise_affine=False)(x)


def look(asking, asked, w, hidden=None):
    """Softmax over the asked tokens, one weight at a time by exponentials."""
    scores = torch.einsum("...td,de,...se->...ts", asking, w, asked)
    powers = torch.exp(scores / math.sqrt(asked.shape[-1]))
    if hidden is not None:
        powers = powers * ~hidden
    return powers / powers.sum(-1, keepdim=True) @ asked


def later(n, m):
    return torch.arange(m) > torch.arange(n)[:, None]


def decoder(
    x,
    memory,
    w,
    blind=True,
    triangle=False,
    layers="bat",
    skip=True,
    normed=read,
    memory_norm=lambda m: m,
):
    n, m = x.shape[-2], memory.shape[-2]
    found = {
        "b": lambda y: look(y, y, w[0], later(n, n) if blind else None),
        "a": lambda y: look(
            y, memory_norm(memory), w[1], later(n, m) if triangle else None
        ),
        "t": lambda y: torch.clamp(y @ w[2], min=0),
    }
    for layer in layers:
        new = found[layer](normed(x))
        x = x + new if skip else new
    return x


def with_options(**options):
    return lambda x, memory, w: decoder(x, memory, w, **options)


def normed_afterwards(x, memory, w):
    n = x.shape[-2]
    x = read(x + look(x, x, w[0], later(n, n)))
    x = read(x + look(x, memory, w[1]))
    return read(x + torch.clamp(x @ w[2], min=0))


def half_normed(x, memory, w):
    n = x.shape[-2]
    x = x + look(read(x), x, w[0], later(n, n))
    x = x + look(read(x), memory, w[1])
    return x + torch.clamp(read(x) @ w[2], min=0)


def normed_on_the_way_out(x, memory, w):
    n = x.shape[-2]
    x = x + read(look(x, x, w[0], later(n, n)))
    x = x + read(look(x, memory, w[1]))
    return x + read(torch.clamp(x @ w[2], min=0))


def stream_lost(x, memory, w):
    n, x = x.shape[-2], read(x)
    x = read(x + look(x, x, w[0], later(n, n)))
    x = read(x + look(x, memory, w[1]))
    return x + torch.clamp(x @ w[2], min=0)


def in_parallel(x, memory, w):
    n, y = x.shape[-2], read(x)
    found = [look(y, y, w[0], later(n, n)), look(y, memory, w[1])]
    return x + sum(found) + torch.clamp(y @ w[2], min=0)


def one_by_one(x, memory, w, add=(1, 1), stale=False, last=read):
    n, first = x.shape[-2], read(x)
    found = look(first, first, w[0], later(n, n))
    x = x + found if add[0] else found
    found = look(first if stale else read(x), memory, w[1])
    x = x + found if add[1] else found
    return x + torch.clamp(last(x) @ w[2], min=0)


RIGHT = [decoder, one_by_one]
WRONG = [
    ("back_not_added", lambda x, m, w: one_by_one(x, m, w, add=(0, 1))),
    ("across_not_added", lambda x, m, w: one_by_one(x, m, w, add=(1, 0))),
    ("norm_of_before", lambda x, m, w: one_by_one(x, m, w, stale=True)),
    ("thinking_not_normed", lambda x, m, w: one_by_one(x, m, w, last=lambda x: x)),
    (
        "matrices_exchanged",
        lambda x, m, w: decoder(x, m, torch.stack([w[1], w[0], w[2]])),
    ),
    ("not_causal", with_options(blind=False)),
    ("causal_across", with_options(triangle=True)),
    ("masks_exchanged", with_options(blind=False, triangle=True)),
    ("no_cross_attention", with_options(layers="bt")),
    ("no_self_attention", with_options(layers="at")),
    ("nothing_thought", with_options(layers="ba")),
    ("across_first", with_options(layers="abt")),
    ("no_residual", with_options(skip=False)),
    ("no_norm", with_options(normed=lambda x: x)),
    ("memory_normed", with_options(memory_norm=read)),
    ("one_matrix", lambda x, memory, w: decoder(x, memory, w[0].repeat(3, 1, 1))),
    ("post_norm", normed_afterwards),
    ("keys_as_they_are", half_normed),
    ("added_to_the_normed", stream_lost),
    ("side_by_side", in_parallel),
    ("found_normed", normed_on_the_way_out),
    (
        "last_not_added",
        lambda x, memory, w: torch.clamp(
            read(decoder(x, memory, w, layers="ba")) @ w[2], min=0
        ),
    ),
    ("norm_at_the_end", lambda x, memory, w: read(decoder(x, memory, w))),
]
