"""Speculative decoding: a cheap draft proposes tokens, and the model's text stays its.

The model reads several proposed tokens in one pass, which costs it little more than
one, and keeps those that it might have written itself. By theorem 19.1 the text is
distributed as if the model had written it alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.doors import check_arguments
from course_utils.evaluation.decoding import evaluating
from course_utils.models.transformer import GPT
from course_utils.shapes import Float, Int, shape_of

Draft = Callable[[Tensor], Tensor]
"""From the tokens so far (token,) to the probabilities of the next one (n_tokens,)."""


def rest_of(
    p: Float[Tensor, "*batch token"], q: Float[Tensor, "*batch token"]
) -> Float[Tensor, "*batch token"]:
    """Return what the draft left to be drawn: max(p - q, 0), divided by its sum.

    Where p = q nothing is left, and nothing is ever rejected; then p itself is
    returned. Taught in chapter 19.
    """
    rest = (p - q).clamp(min=0)
    total = rest.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, rest / total, p)


def accept_drafts(
    p: Float[Tensor, "_ n_tokens"],
    q: Float[Tensor, "draft n_tokens"],
    drafted: Int[Tensor, "draft"],
    generator: torch.Generator | None = None,
) -> Int[Tensor, "kept"]:
    """Keep drafted tokens while u < p / q, then add one of the model's own.

    Row i of `p` and `q` holds the probabilities of token i; `p` has one row more, for
    the token after the last. The first rejected token is replaced by one drawn from
    `rest_of`, and what was drafted after it is dropped. Taught in chapter 19.
    """
    k = len(drafted)
    if p.shape[0] != k + 1 or q.shape[0] != k:
        raise ValueError(
            f"p has shape {shape_of(p)} and q {shape_of(q)}, expected {k + 1} and {k} "
            f"rows for {k} drafted tokens: the model also scores what comes after."
        )
    at = torch.arange(k)
    u = torch.rand(k, generator=generator)
    accepted = u < p[at, drafted] / q[at, drafted]
    n = int(accepted.long().cumprod(dim=0).sum())  # up to the first rejected one
    last = p[n] if n == k else rest_of(p[n], q[n])
    return torch.cat([drafted[:n], torch.multinomial(last, 1, generator=generator)])


class Round(NamedTuple):
    """One pass of the model: what was drafted, and what it wrote."""

    drafted: list[int]
    written: list[int]

    @property
    def accepted(self) -> int:
        """How many drafted tokens were kept: all that was written but the last."""
        return len(self.written) - 1


class Speculated(NamedTuple):
    """The prompt with what was written after it, and the rounds that wrote it."""

    tokens: Int[Tensor, "token"]
    rounds: list[Round]


def speculate(
    model: GPT,
    draft: Draft,
    prompt: Int[Tensor, "prompt"],
    n_tokens: int,
    n_drafted: int = 4,
    generator: torch.Generator | None = None,
) -> Speculated:
    """Continue a prompt by `n_tokens`, drafting `n_drafted` tokens for each pass.

    The text has the distribution of `generate(model, …)` at temperature 1, whatever the
    draft. Used in chapter 19.
    """
    if prompt.dim() != 1 or len(prompt) == 0:
        raise ValueError(
            f"prompt has shape {shape_of(prompt)}, expected (token,), one text with at "
            "least one token."
        )
    if len(prompt) + n_tokens > model.max_length + 1:
        raise ValueError(
            f"{len(prompt)} tokens and {n_tokens} more, expected at most "
            f"{model.max_length + 1} for a model of max_length {model.max_length}."
        )
    rounds: list[Round] = []
    with evaluating(model):
        tokens, caches = prompt, model.start(prompt[None, :-1])
        while (left := len(prompt) + n_tokens - len(tokens)) > 0:
            text, q = tokens, []
            for _ in range(min(n_drafted, left - 1)):
                q.append(draft(text))
                new = torch.multinomial(q[-1], 1, generator=generator)
                text = torch.cat([text, new])
            drafted, known = text[len(tokens) :], len(tokens) - 1
            x, _ = model.read(text[None, known:], caches)  # all of them in one pass
            p = torch.softmax(model.head(x[0]), dim=-1)
            written = accept_drafts(
                p, torch.stack(q) if q else p[:0], drafted, generator
            )
            for cache in caches:  # what was rejected is forgotten
                cache.length = known + len(written)
            tokens = torch.cat([tokens, written])
            rounds.append(Round(drafted.tolist(), written.tolist()))
    return Speculated(tokens.clone(), rounds)


def expected_tokens(accepted: float, n_drafted: int) -> float:
    """Return how many tokens a pass writes if each draft is accepted this often.

    $1 + a + a^2 + … + a^k$: the i-th draft counts if the i - 1 before it were accepted
    too. Used in chapter 19.
    """
    if not 0 <= accepted <= 1:
        raise ValueError(f"accepted is {accepted}, expected a share from 0 to 1.")
    return sum(accepted**i for i in range(n_drafted + 1))


check_arguments(__name__)
