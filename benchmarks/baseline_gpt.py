"""Peers' designs of a language model, re-created from what they do.

`PlainGPT` is nanoGPT's design (Karpathy 2022): pre-norm blocks, with biases as in GPT-2
or, as in its recipes, without; one fused projection for queries, keys and values, the
fused kernel, a tied output layer.
Its generation has no cache. `ConcatenatingCache` is the design of most libraries: keys
and values grow by `torch.cat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.transformer import GPT


class PlainNorm(nn.Module):
    """Layer norm with a scale and, if asked, a shift."""

    def __init__(self, width: int, bias: bool):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.scale.shape, self.scale, self.shift, 1e-5)


class ConcatenatingCache:
    """The keys and values so far, copied into a longer tensor at every token."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    @property
    def length(self) -> int:
        """The number of tokens read so far."""
        return 0 if self.keys is None else self.keys.shape[2]

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values


class PlainBlock(nn.Module):
    """One block, everything written out in its `forward`."""

    def __init__(self, width: int, heads: int, bias: bool):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = PlainNorm(width, bias), PlainNorm(width, bias)
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.up = nn.Linear(width, 4 * width, bias=bias)
        self.down = nn.Linear(4 * width, width, bias=bias)
        self.drop = nn.Dropout(0.0)

    def forward(self, x: Tensor, cache: ConcatenatingCache | None = None) -> Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = self.qkv(self.norm_1(x)).split(width, dim=2)
        q, k, v = (part.view(shape).transpose(1, 2) for part in (q, k, v))
        if cache is not None:
            k, v = cache.extend(k, v)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        mixed = mixed.transpose(1, 2).contiguous().view(batch, length, width)
        x = x + self.drop(self.out(mixed))
        return x + self.drop(self.down(F.gelu(self.up(self.norm_2(x)))))


class PlainGPT(nn.Module):
    """nanoGPT's design: learned positions, blocks, norm, a tied output layer."""

    def __init__(
        self,
        n_tokens: int,
        max_length: int,
        width: int,
        heads: int,
        layers: int,
        bias: bool = False,
    ):
        super().__init__()
        self.max_length = max_length
        self.tokens = nn.Embedding(n_tokens, width)
        self.places = nn.Embedding(max_length, width)
        self.drop = nn.Dropout(0.0)
        self.blocks = nn.ModuleList(
            PlainBlock(width, heads, bias) for _ in range(layers)
        )
        self.norm = PlainNorm(width, bias)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        for name, p in self.named_parameters():
            if name.endswith(("out.weight", "down.weight")):
                nn.init.normal_(p, std=0.02 / (2 * layers) ** 0.5)

    def forward(
        self, tokens: Tensor, caches: Sequence[ConcatenatingCache] | None = None
    ) -> Tensor:
        """Return the logits of every next token."""
        first = caches[0].length if caches else 0
        where = torch.arange(first, first + tokens.shape[1])
        x = self.drop(self.tokens(tokens) + self.places(where))
        for i, block in enumerate(self.blocks):
            x = block(x, caches[i] if caches else None)
        return self.norm(x) @ self.tokens.weight.T

    def next_logits(self, tokens: Tensor) -> Tensor:
        """Read everything again for one new token: generation with no cache."""
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.norm(x[:, -1]) @ self.tokens.weight.T


def plain_adamw(model: nn.Module, lr: float = 1e-3) -> torch.optim.AdamW:
    """nanoGPT's optimiser on a CPU: weights decay by 0.1, nothing else, not fused."""
    weights = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": weights, "weight_decay": 0.1},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99))


@torch.no_grad()
def same_weights(ours: GPT, plain: PlainGPT) -> PlainGPT:
    """Copy our weights into nanoGPT's design; our biases, not copied, must be 0."""
    if any(p.any() for name, p in ours.named_parameters() if name.endswith("bias")):
        raise ValueError(
            "our model has biases other than 0, which nanoGPT's design may lack; copy "
            "before training."
        )
    plain.tokens.weight.copy_(ours.embedding.weight)
    plain.places.weight.copy_(ours.positions.table)
    plain.norm.scale.copy_(ours.norm.weight)
    block: Any
    mine: Any  # blocks of a ModuleList, of which only Module is known
    for block, mine in zip(plain.blocks, ours.blocks):
        copied = {
            block.norm_1.scale: mine.around_attention.norm.weight,
            block.norm_2.scale: mine.around_feed_forward.norm.weight,
            block.qkv.weight: mine.attention.qkv.weight,
            block.out.weight: mine.attention.output.weight,
            block.up.weight: mine.feed_forward.wide.weight,
            block.down.weight: mine.feed_forward.narrow.weight,
        }
        for theirs, value in copied.items():
            theirs.copy_(value)
    return plain
