"""`patch`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def patch(
    clean: Tensor, corrupted: Tensor, head: int, position: int, w_o: Tensor
) -> Tensor:
    changed = corrupted.clone()
    changed[head, position] = clean[head, position]
    return changed.transpose(0, 1).flatten(1) @ w_o


def patched_at(
    clean: Tensor, corrupted: Tensor, head: int, where: slice, w_o: Tensor
) -> Tensor:
    changed = corrupted.clone()
    changed[head, where] = clean[head, where]
    return changed.transpose(0, 1).flatten(1) @ w_o


def exchanged(
    clean: Tensor, corrupted: Tensor, head: int, position: int, w_o: Tensor
) -> Tensor:
    return patch(corrupted, clean, head, position, w_o)


def everywhere(
    clean: Tensor, corrupted: Tensor, head: int, position: int, w_o: Tensor
) -> Tensor:
    return patched_at(clean, corrupted, head, slice(None), w_o)


def all_heads(
    clean: Tensor, corrupted: Tensor, head: int, position: int, w_o: Tensor
) -> Tensor:
    changed = corrupted.clone()
    changed[:, position] = clean[:, position]
    return changed.transpose(0, 1).flatten(1) @ w_o


def added(
    clean: Tensor, corrupted: Tensor, head: int, position: int, w_o: Tensor
) -> Tensor:
    changed = corrupted.clone()
    changed[head, position] += clean[head, position]
    return changed.transpose(0, 1).flatten(1) @ w_o


def zeroed(
    clean: Tensor, corrupted: Tensor, head: int, position: int, w_o: Tensor
) -> Tensor:
    return patch(torch.zeros_like(clean), corrupted, head, position, w_o)


def joined_by(join: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """The patch, with the heads put side by side in another way."""

    def wrong(
        clean: Tensor, corrupted: Tensor, head: int, position: int, w_o: Tensor
    ) -> Tensor:
        changed = corrupted.clone()
        changed[head, position] = clean[head, position]
        return join(changed).reshape(changed.shape[1], -1) @ w_o

    return wrong


def draw(rng: np.random.Generator) -> Args:
    heads, token, d = sizes(rng, 3)
    shape, width = (heads, token, d), heads * d
    at = int(rng.integers(1, heads)), int(rng.integers(1, token))
    return normal(rng, *shape), normal(rng, *shape), *at, normal(rng, width, width)


QUESTION = Question(
    id="17.3",
    title="Patch one head at one position",
    answer="patch",
    arguments=("clean", "corrupted", "head", "position", "w_o"),
    outputs=(Output("written", "token d_model"),),
    reference=patch,
    difficulty="easy",
    minutes=8,
    next_step="which run goes on, and which one lends a vector?",
    parts=(Part("what is written", 3, lambda rng: [draw(rng) for _ in range(3)]),),
    mistakes=(
        Mistake(
            "the_change_alone",
            "only what the patch changes is returned: the corrupted run goes on, and "
            "all its heads write at every position",
            lambda clean, corrupted, head, position, w_o: (
                patch(clean, corrupted, head, position, w_o)
                - corrupted.transpose(0, 1).flatten(1) @ w_o
            ),
        ),
        Mistake(
            "from_the_position_on",
            "all positions from `position` on are patched: one is asked for",
            lambda clean, corrupted, head, position, w_o: patched_at(
                clean, corrupted, head, slice(position, None), w_o
            ),
        ),
        Mistake(
            "position_before",
            "the position before is patched: positions are counted from 0",
            lambda clean, corrupted, head, position, w_o: patch(
                clean, corrupted, head, position - 1, w_o
            ),
        ),
        Mistake(
            "exchanged",
            "clean and corrupted run have changed places: the corrupted run goes on, "
            "and one vector comes from the clean one",
            exchanged,
        ),
        Mistake(
            "everywhere",
            "the head is patched at every position: then it no longer says at which "
            "one the information is",
            everywhere,
        ),
        Mistake(
            "all_heads",
            "all heads are patched at the position: then it no longer says which of "
            "them carries the information",
            all_heads,
        ),
        Mistake(
            "added",
            "the clean vector is added to the corrupted one: a patch replaces it",
            added,
        ),
        Mistake(
            "zeroed",
            "the vector is replaced by zeros: that is ablation; a patch puts in what "
            "the clean run had there",
            zeroed,
        ),
        Mistake(
            "features_interleaved",
            "the patch is right; then the order of the axes is wrong: a token's row "
            "has the numbers of head 0 first, then those of head 1",
            joined_by(lambda heads: heads.permute(1, 2, 0)),
        ),
        Mistake(
            "heads_not_moved",
            "the patch is right; then the heads are only reshaped: that mixes up the "
            "tokens; the order of the axes has to be token, head, d_head before it",
            joined_by(lambda heads: heads),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def mixed(choose):
    def answer(clean, corrupted, head, position, w_o):
        heads, token, _ = clean.shape
        h, t = torch.arange(heads)[:, None], torch.arange(token)[None]
        table = choose(
            clean, corrupted, (h == head)[..., None], (t == position)[..., None]
        )
        return torch.cat(list(table), dim=-1) @ w_o

    return answer


def patched(order):
    def answer(clean, corrupted, head, position, w_o):
        heads = [list(x) for x in corrupted]
        heads[head][position] = clean[head, position]
        table = torch.stack([torch.stack(x) for x in heads])
        return torch.einsum(order, table).reshape(table.shape[1], -1) @ w_o

    return answer


RIGHT = [mixed(lambda a, b, h, t: torch.where(h & t, a, b))]
WRONG = [
    (
        "the_change_alone",
        mixed(lambda a, b, h, t: (a - b) * (h & t)),
    ),
    ("exchanged", mixed(lambda a, b, h, t: torch.where(h & t, b, a))),
    ("everywhere", mixed(lambda a, b, h, t: torch.where(h, a, b))),
    ("all_heads", mixed(lambda a, b, h, t: torch.where(t, a, b))),
    ("features_interleaved", patched("htd->tdh")),
    ("heads_not_moved", patched("htd->htd")),
    ("added", mixed(lambda a, b, h, t: b + a * (h & t))),
    ("zeroed", mixed(lambda a, b, h, t: b * ~(h & t))),
]
