"""A transformer with nothing in it but attention: small enough to be taken apart.

Pre-norm, rotary positions, no feed-forward layers, no biases and norms without weights.
So the stream is a plain sum of what the embedding and every head wrote into it.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.blocks import SelfMaps, stack_layers
from course_utils.models.positions import rotary
from course_utils.models.transformer import require_tokens
from course_utils.shapes import Float, Int, require_heads, require_sizes


class AttentionBlock(nn.Module):
    """One layer of heads that read the normed stream and add to it.

    $x + sum_r C_r W_O^r$, the heads attending over $norm(x)$. Taught in chapter 17.
    """

    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, elementwise_affine=False)
        self.attention = MultiHeadAttention(d_model, n_heads, bias=False)

    def forward(
        self, x: Float[Tensor, "batch token d_model"], need_weights: bool = False
    ) -> tuple[
        Float[Tensor, "batch token d_model"],
        Float[Tensor, "batch head token token"] | None,
    ]:
        turn = partial(rotary, positions=torch.arange(x.shape[1], device=x.device))
        update, weights = self.attention(
            self.norm(x), causal=True, need_weights=need_weights, rotate=turn
        )
        return x + update, weights


class AttentionOnly(nn.Module):
    """Predict the next token with `n_layers` layers of heads and nothing else.

    $logits = norm(E[x] + sum_r C_r W_O^r) U$, over all layers' heads. Used in
    chapter 17.
    """

    def __init__(
        self, n_tokens: int, d_model: int = 64, n_heads: int = 2, n_layers: int = 2
    ):
        super().__init__()
        require_sizes(n_tokens=n_tokens, n_layers=n_layers)
        require_heads(d_model, n_heads)
        self.embedding = nn.Embedding(n_tokens, d_model)
        self.blocks = nn.ModuleList(
            AttentionBlock(d_model, n_heads) for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model, elementwise_affine=False)
        self.head = nn.Linear(d_model, n_tokens, bias=False)

    def forward(
        self, tokens: Int[Tensor, "batch token"], need_weights: bool = False
    ) -> tuple[Float[Tensor, "batch token n_tokens"], SelfMaps]:
        """Return the logits of every next token, and the weights if asked for."""
        require_tokens(tokens, "tokens")
        x, all_weights = self.embedding(tokens), []
        for block in self.blocks:
            x, weights = block(x, need_weights)
            all_weights.append(weights)
        return self.head(self.norm(x)), stack_layers(all_weights)


check_arguments(__name__)
