"""`induction`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def circuit(own: Tensor, back: int = 1) -> Tensor:
    n = len(own)
    note = torch.zeros_like(own)
    note[back:] = own[: n - back]
    allowed = torch.ones(n, n, dtype=torch.bool).tril()
    scores = (50 * own @ note.T).masked_fill(~allowed, -torch.inf)
    return scores.softmax(dim=-1) @ own


def induction(own: Tensor) -> Tensor:
    return circuit(own)


def draw(rng: np.random.Generator) -> Args:
    n, n_tokens = sizes(rng, 2, least=4)
    once = rng.permutation(n_tokens + n)[:n]
    return (np.eye(n_tokens + n, dtype=np.float32)[np.concatenate([once, once])],)


def second_half(value: np.ndarray) -> np.ndarray:
    value = np.asarray(value)
    return value[len(value) // 2 : -1]


def one_layer(own: Tensor) -> Tensor:
    n = len(own)
    allowed = torch.ones(n, n, dtype=torch.bool).tril()
    return (50 * own @ own.T).masked_fill(~allowed, -torch.inf).softmax(dim=-1) @ own


QUESTION = Question(
    id="17.6",
    title="An induction circuit by hand",
    answer="induction",
    arguments=("own",),
    outputs=(Output("copied", "token n_tokens"),),
    reference=induction,
    difficulty="hard",
    minutes=15,
    tolerance=1e-3,
    next_step="layer 1 notes the token before; what is the key of layer 2 made of?",
    parts=(
        Part(
            "the second copy",
            4,
            lambda rng: [draw(rng) for _ in range(3)],
            view=second_half,
        ),
    ),
    mistakes=(
        Mistake(
            "one_layer",
            "the token is compared with the tokens themselves: that finds the earlier "
            "copy, and repeats it; the keys have to speak of the token before",
            one_layer,
        ),
        Mistake(
            "note_of_the_next",
            "the note is of the token after: layer 2 then copies what stood before the "
            "token, and a causal layer 1 could not even see it",
            lambda own: looking_ahead(own),
        ),
        Mistake(
            "two_back",
            "the note is of the token two positions back",
            lambda own: circuit(own, back=2),
        ),
        Mistake(
            "too_soft",
            "the weights are spread over all keys: multiply the scores until the "
            "softmax picks one",
            lambda own: soft(own, 1.0),
        ),
    ),
)


def looking_ahead(own: Tensor) -> Tensor:
    note = F.pad(own[1:], (0, 0, 0, 1))
    allowed = torch.ones(len(own), len(own), dtype=torch.bool).tril(-1)
    allowed[0, 0] = True
    scores = (50 * own @ note.T).masked_fill(~allowed, -torch.inf)
    return scores.softmax(dim=-1) @ own


def soft(own: Tensor, strength: float) -> Tensor:
    note = F.pad(own[:-1], (0, 0, 1, 0))
    allowed = torch.ones(len(own), len(own), dtype=torch.bool).tril()
    scores = (strength * own @ note.T).masked_fill(~allowed, -torch.inf)
    return scores.softmax(dim=-1) @ own


# ----------------------------------------------------------------------- specimens


def looked_up(shift):
    def answer(own):
        ids = own.argmax(-1).tolist()
        rows = [own[min(ids.index(i) + shift, len(ids) - 1)] for i in ids]
        return torch.stack(rows)

    return answer


RIGHT = [looked_up(1), lambda own: soft(own, 80.0)]
WRONG = [
    ("one_layer", one_layer),
    ("note_of_the_next", looking_ahead),
    ("two_back", lambda own: circuit(own, 2)),
    ("too_soft", lambda own: soft(own, 1.0)),
]
