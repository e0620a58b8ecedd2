"""Random sequences written twice: the second copy can be predicted, the first can't."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from course_utils.doors import check_arguments
from course_utils.shapes import Float, Int, require_sizes
from course_utils.tasks.synthetic import shuffled


def repeated(
    batch: int, generator: Generator, length: int = 16, n_tokens: int = 64
) -> Int[Tensor, "batch token"]:
    """Draw `length` different tokens for every row, and write them twice.

    Token t + length equals token t, so that a model which finds the earlier copy of
    the token it reads can name the next one. Guessing gets 1 / n_tokens. Used in
    chapter 17.
    """
    require_sizes(batch=batch, length=length, n_tokens=n_tokens)
    if length > n_tokens:
        raise ValueError(
            f"length is {length}, but there are only {n_tokens} different tokens; "
            "raise n_tokens."
        )
    once = shuffled(batch, n_tokens, generator)[:, :length]
    return torch.cat([once, once], dim=1)


def second_copy(
    logits: Float[Tensor, "batch token n_tokens"], tokens: Int[Tensor, "batch token"]
) -> tuple[Float[Tensor, "prediction n_tokens"], Int[Tensor, "prediction"]]:
    """Take the predictions inside the second copy, and the tokens they should name.

    From position n on each logit row is followed by a token that was seen n places
    before: n - 1 predictions a row. Used in chapter 17.
    """
    if logits.shape[:2] != tokens.shape or tokens.shape[1] < 4 or tokens.shape[1] % 2:
        raise ValueError(
            f"logits are {tuple(logits.shape)} and tokens {tuple(tokens.shape)}, "
            "expected (batch, token, n_tokens) and (batch, token), the tokens two "
            "copies of at least 2."
        )
    n = tokens.shape[1] // 2
    return logits[:, n:-1].flatten(0, 1), tokens[:, n + 1 :].flatten()


def unseen_chance(length: int) -> float:
    """Return what can be had by knowing which tokens have not come a second time.

    With m of them left one is right: the mean of 1/m over m = 1 … length - 1. Used in
    chapter 17.
    """
    require_sizes(length=length)
    if length < 2:
        raise ValueError(f"length is {length}, expected 2 or more: a copy to predict.")
    return sum(1 / m for m in range(1, length)) / (length - 1)


check_arguments(__name__)
