"""BERT: GPT without the causal mask, trained to fill blanks; and a head for labels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import KeyValueCache, padding_mask
from course_utils.models.blocks import SelfMaps, stack_layers
from course_utils.models.transformer import GPT, require_tokens
from course_utils.shapes import Float, Int

IGNORE = -100  # cross_entropy leaves targets of this value out


def mask_tokens(
    tokens: Int[Tensor, "batch token"],
    mask: int,
    n_tokens: int,
    generator: torch.Generator,
    share: float = 0.15,
    n_special: int = 4,
) -> tuple[Int[Tensor, "batch token"], Int[Tensor, "batch token"]]:
    """Blank out some tokens, and return what is read and what is to be predicted.

    Each token that is not special is chosen with probability `share`. Of the chosen,
    80 % become the id `mask`, 10 % a random token, 10 % stay. The target of every
    other position is -100, which the loss leaves out. Taught in chapter 18.
    """
    if not 0 < share < 1:
        raise ValueError(f"share is {share}, expected a number between 0 and 1.")
    chosen = torch.rand(tokens.shape, generator=generator) < share
    chosen &= tokens >= n_special  # never padding, begin or end
    fate = torch.rand(tokens.shape, generator=generator)
    other = torch.randint(n_special, n_tokens, tokens.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), mask, tokens)
    inputs = torch.where(chosen & (fate >= 0.9), other, inputs)
    return inputs, torch.where(chosen, tokens, IGNORE)


def masked_loss(
    model: nn.Module,
    inputs: Int[Tensor, "batch token"],
    targets: Int[Tensor, "batch token"],
) -> Float[Tensor, ""]:
    """Ask for the blanked tokens only: the mean of $-log p(x_t | read)$.

    Taught in chapter 18.
    """
    logits, _ = model(inputs)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE)


class BERT(GPT):
    """Read a sentence from both sides: the parts of `GPT`, and no causal mask.

    Only padding is hidden. It has GPT's parameters, name for name. Taught in chapter
    18.
    """

    def read(
        self,
        tokens: Int[Tensor, "batch token"],
        caches: tuple[KeyValueCache, ...] | None = None,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch token d_model"], SelfMaps]:
        """Return every token's state before the output layer."""
        require_tokens(tokens, "tokens")
        x = self.embedding(tokens) + self.positions(tokens.shape[1])
        x, all_weights = self.dropout(x), []
        for block in self.blocks:
            x, weights = block(x, mask=padding_mask(tokens), need_weights=need_weights)
            all_weights.append(weights)
        return self.norm(x), stack_layers(all_weights)

    def start(self, tokens: Int[Tensor, "batch token"]) -> tuple[KeyValueCache, ...]:
        """Refuse: what a token's keys are depends on tokens that don't exist yet."""
        raise ValueError(
            "BERT can't write token by token: every state depends on later tokens, so "
            "nothing can be kept; use a GPT."
        )


class SentenceClassifier(nn.Module):
    """Put a linear layer on a body's states: the mean over real tokens, then logits.

    $logits = W mean_t(h_t) + b$, with $h$ from `body.read`. Taught in chapter 18.
    """

    def __init__(self, body: GPT, n_classes: int):
        super().__init__()
        self.body = body
        self.head = nn.Linear(body.embedding.embedding_dim, n_classes)

    def features(
        self, tokens: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch d_model"]:
        """Return the mean of the states of the real tokens."""
        states, _ = self.body.read(tokens)
        real = padding_mask(tokens).mT  # (batch, token, 1)
        return (states * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)

    def forward(
        self, tokens: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch n_classes"]:
        return self.head(self.features(tokens))


check_arguments(__name__)
