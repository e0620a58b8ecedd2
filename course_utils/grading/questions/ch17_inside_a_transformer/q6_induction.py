"""`induction`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

NEAR = 1e-3  # as the exercise says


def circuit(
    own: Tensor, back: int = 1, strength: float = 50.0, masked: bool = True
) -> Tensor:
    n = len(own)
    note = torch.zeros_like(own)
    note[back:] = own[: n - back]
    allowed = torch.ones(n, n, dtype=torch.bool).tril() | (not masked)
    scores = (strength * own @ note.T).masked_fill(~allowed, -torch.inf)
    return scores.softmax(dim=-1) @ own


def induction(own: Tensor) -> Tensor:
    return circuit(own)


def draw(rng: np.random.Generator) -> Args:
    """Some tokens, a gap, and the tokens again: none with its follower after it."""
    n, gap = int(rng.integers(5, 9)), int(rng.integers(1, 4))
    ids = 1 + rng.permutation(n + gap + 2)[: n + gap]  # some tokens never appear
    again = rng.permutation(n)
    while (np.diff(again) == 1).any():
        again = rng.permutation(n)
    order = np.concatenate([ids, ids[again[: n - gap % 2]]])  # of even length
    twice = n + gap + 3  # a token that stands twice in a row, not at the beginning
    order = np.insert(order, int(rng.integers(2, n)), [twice, twice])
    return (np.eye(n + gap + 4, dtype=np.float32)[order],)


# ------------------------------------------------------------ what is asked of a result


def asked(own: np.ndarray) -> list[tuple[int, int]]:
    """Each position whose token has come before, and where it came."""
    ids = own.argmax(axis=-1).tolist()
    return [(i, ids.index(x)) for i, x in enumerate(ids) if x in ids[:i]]


def asked_alone(own: np.ndarray) -> tuple[int, int]:
    """The first such position up to which the token to copy stands only once."""
    ids = own.argmax(axis=-1).tolist()
    rows = asked(own)
    once = (row for row in rows if ids[: row[0] + 1].count(ids[row[1] + 1]) == 1)
    return next(once, rows[0])


def error(args: Args, value: Any) -> float:
    """How far the worst asked number is from the token that followed."""
    rows = asked(args[0])
    due = args[0][[copy + 1 for _, copy in rows]]
    return float(np.abs(np.asarray(value)[[i for i, _ in rows]] - due).max())


def copies(args: Args, value: Any) -> bool:
    return error(args, value) <= NEAR


def causal(args: Args, value: Any) -> bool:
    """Whether no position knows a token that first comes later.

    Such a token must get no more weight than those that never come.
    """
    ids, value = args[0].argmax(axis=-1), np.asarray(value)
    absent = value[:, args[0].sum(axis=0) == 0].max(axis=1)
    leaks = [
        value[i, list(set(ids[i + 1 :]) - set(ids[: i + 1]))].max(initial=-1.0)
        for i in range(len(ids))
    ]
    return copies(args, value) and bool((np.array(leaks) <= absent + NEAR).all())


def is_one_hot(args: Args) -> bool:
    return set(np.unique(args[0])) == {0.0, 1.0}


def as_in(wrong: Callable[[Tensor], Tensor]) -> Callable[[Args, Any], bool]:
    """Whether a result equals that of a wrong answer where something is asked."""

    def sign(args: Args, value: Any) -> bool:
        if not is_one_hot(args):  # a probe
            return True
        rows = [i for i, _ in asked(args[0])]
        made = wrong(torch.as_tensor(args[0])).numpy()[rows]
        return bool(np.allclose(np.asarray(value)[rows], made, atol=NEAR))

    return sign


def is_weak(args: Args, value: Any) -> bool:
    """Whether the right key is found at every asked position, by too little."""
    if not is_one_hot(args):
        return True
    i, copy = asked_alone(args[0])
    weight = float((np.asarray(value)[i] * args[0][copy + 1]).sum())
    if 0 < weight < 1:  # it may come from a circuit with this strength
        strength = math.log(weight * i / (1 - weight))
        weak = as_in(lambda own: circuit(own, strength=strength))
        if strength > 0 and weak(args, value) and error(args, value) > 1e-6:
            return True
    best = np.asarray(value).argmax(axis=-1)
    ids, rows = args[0].argmax(axis=-1), asked(args[0])
    leads = all(best[i] == ids[copy + 1] for i, copy in rows)
    return leads and 1e-6 < error(args, value) < 1


def mistake(name: str, hint: str, wrong: Callable[[Tensor], Tensor]) -> Mistake:
    return Mistake(name, hint, wrong, as_in(wrong))


def exchanged(own: Tensor) -> Tensor:
    note = F.pad(own[:-1], (0, 0, 1, 0))
    allowed = torch.ones(len(own), len(own), dtype=torch.bool).tril()
    scores = (50 * note @ own.T).masked_fill(~allowed, -torch.inf)
    return scores.softmax(dim=-1) @ own


def looking_ahead(own: Tensor) -> Tensor:
    note = F.pad(own[1:], (0, 0, 0, 1))
    allowed = torch.ones(len(own), len(own), dtype=torch.bool).tril(-1)
    allowed[0, 0] = True
    scores = (50 * own @ note.T).masked_fill(~allowed, -torch.inf)
    return scores.softmax(dim=-1) @ own


def wrapped(own: Tensor) -> Tensor:
    """The circuit whose first position notes the last token."""
    allowed = torch.ones(len(own), len(own), dtype=torch.bool).tril()
    scores = 50 * own @ own.roll(1, dims=0).T
    return scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1) @ own


def softmax_over_queries(own: Tensor) -> Tensor:
    note = F.pad(own[:-1], (0, 0, 1, 0))
    allowed = torch.ones(len(own), len(own), dtype=torch.bool).tril()
    scores = (50 * own @ note.T).masked_fill(~allowed, -torch.inf)
    return scores.softmax(dim=0) @ own


def never_itself(own: Tensor) -> Tensor:
    """The circuit in which a position does not see itself."""
    note = F.pad(own[:-1], (0, 0, 1, 0))
    allowed = torch.ones(len(own), len(own), dtype=torch.bool).tril(-1)
    allowed[0, 0] = True
    scores = (50 * own @ note.T).masked_fill(~allowed, -torch.inf)
    return scores.softmax(dim=-1) @ own


def note_copied(own: Tensor) -> Tensor:
    note = F.pad(own[:-1], (0, 0, 1, 0))
    allowed = torch.ones(len(own), len(own), dtype=torch.bool).tril()
    scores = (50 * own @ note.T).masked_fill(~allowed, -torch.inf)
    return scores.softmax(dim=-1) @ note


def half_back(own: Tensor) -> Tensor:
    half, out = len(own) // 2, torch.zeros_like(own)
    out[half:] = own.roll(-1, dims=0)[: len(own) - half]
    return out


QUESTION = Question(
    id="17.6",
    title="An induction circuit by hand",
    answer="induction",
    arguments=("own",),
    outputs=(Output("copied", "token n_tokens"),),
    reference=induction,
    difficulty="hard",
    minutes=15,
    tolerance=NEAR,
    next_step="take one token that comes again, and follow it by hand: the notes, its "
    "scores, its weights, and what they copy. Which is the first that surprises you?",
    parts=(
        Part(
            "tokens that come again",
            3,
            lambda rng: [draw(rng) for _ in range(3)],
            accepts=copies,
        ),
        Part(
            "nothing from the future",
            1,
            lambda rng: [draw(rng) for _ in range(3)],
            accepts=causal,
            only_failure_hint="right where a token comes again, but a position before "
            "that has weight on a token that first comes later: both layers are causal",
        ),
    ),
    mistakes=(
        mistake(
            "next_token",
            "what stands after each position is returned: that is the future, and not "
            "what followed the earlier copy",
            lambda own: own.roll(-1, dims=0),
        ),
        mistake(
            "fixed_distance",
            "the copy is made from a fixed distance back: tokens come again anywhere, "
            "so a comparison of tokens has to find the place",
            half_back,
        ),
        mistake(
            "no_mask",
            "layer 2 sees the future: half of the weight is on the note of the token "
            "itself, one position later; mask the keys after the query",
            lambda own: circuit(own, masked=False),
        ),
        mistake(
            "one_layer",
            "the token itself is repeated: the keys have to speak of the token before, "
            "by its note, and the values of the token that stands there",
            lambda own: circuit(own, back=0),
        ),
        mistake(
            "query_and_key_exchanged",
            "the note asks and the token is the key: that finds the token before, and "
            "copies it; the token asks, and is compared with the notes",
            exchanged,
        ),
        mistake(
            "note_of_the_next",
            "the note is of the token after: layer 2 then copies what stood before the "
            "token, and a causal layer 1 could not even see it",
            looking_ahead,
        ),
        mistake(
            "note_wraps",
            "the first position notes the last token, as `roll` wraps around: nothing "
            "stands before the first token, and its note is zero",
            wrapped,
        ),
        mistake(
            "softmax_over_queries",
            "the softmax runs over the queries: every query shares out one unit among "
            "its keys",
            softmax_over_queries,
        ),
        mistake(
            "note_copied",
            "the note is copied, that is the token itself: what stands at the key is "
            "its value",
            note_copied,
        ),
        mistake(
            "never_itself",
            "a position does not see itself: where a token stands twice in a row, what "
            "followed the first is the second, and that is the position itself",
            never_itself,
        ),
        mistake(
            "two_back",
            "what is copied stands one place too far on: the note is of the token two "
            "positions back, or the values are those of the next position",
            lambda own: circuit(own, back=2),
        ),
        Mistake(
            "too_soft",
            "the right key is found, but at the worst position its weight is too weak: "
            "multiply the scores until the softmax picks one key",
            lambda own: circuit(own, strength=1.0),
            is_weak,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def looked_up(shift, ahead=False):
    """Without a softmax; `ahead` copies from the token's own follower as well."""

    def answer(own):
        ids, rows = own.argmax(-1).tolist(), []
        for i, x in enumerate(ids):
            known = x in ids[:i] or ahead
            place = min(ids.index(x) + shift, len(ids) - 1) if known else 0
            rows.append(own[place])
        return torch.stack(rows)

    return answer


def attention(query, key, value, strength, masked=True):
    scores = strength * torch.einsum("id,jd->ij", query, key)
    if masked:
        scores = scores + torch.full_like(scores, -torch.inf).triu(1)
    return torch.softmax(scores, dim=1) @ value


def strict(own, notes):
    scores = (60 * own @ notes.T).exp().tril(-1)
    scores[0, 0] = 1
    return scores / scores.sum(1, keepdim=True) @ own


def before(own):
    return torch.cat([torch.zeros_like(own[:1]), own[:-1]])


def fixed(own):
    out, n = torch.zeros_like(own), len(own) // 2
    out[n:] = own.roll(-1, 0)[: len(own) - n]
    return out


RIGHT = [
    looked_up(1),
    lambda own: attention(own, before(own), own, 80.0),
    lambda own: attention(own, before(own), own, 50 / own.shape[1] ** 0.5),
]
WRONG = [
    ("next_token", lambda own: own.roll(-1, dims=0)),
    ("next_token", lambda own: torch.cat([own[1:], own[:1]])),
    ("fixed_distance", fixed),
    ("no_mask", lambda own: attention(own, before(own), own, 50.0, masked=False)),
    ("one_layer", lambda own: attention(own, own, own, 30.0)),
    ("query_and_key_exchanged", lambda own: attention(before(own), own, own, 30.0)),
    ("note_of_the_next", looking_ahead),
    ("note_wraps", lambda own: attention(own, own.roll(1, 0), own, 30.0)),
    (
        "too_soft",
        lambda own: attention(own, before(own), own, own.shape[1] ** -0.5),
    ),
    ("never_itself", lambda own: strict(own, before(own))),
    ("two_back", lambda own: attention(own, before(before(own)), own, 40.0)),
    ("too_soft", lambda own: attention(own, before(own), own, 1.0)),
    (
        "too_soft",
        lambda own: attention(own, before(own), own, 20 / own.shape[1] ** 0.5),
    ),
]
PARTIAL = [(3, looked_up(1, ahead=True))]
