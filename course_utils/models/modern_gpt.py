"""A GPT of today's blocks, with caches that hold less and batches of any lengths.

At the defaults of `Choices` it is chapter 13's `GPT`, number for number, from the same
seed and with the same names of parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import KeyValueCache
from course_utils.models.blocks import SelfMaps, stack_layers
from course_utils.models.choices import Choices
from course_utils.models.modern import ModernBlock, norm_named, soft_cap
from course_utils.models.positions import (
    LearnedPositions,
    alibi,
    rotate,
    rotate_halves,
    rotations,
)
from course_utils.models.transformer import empty_caches, require_tokens
from course_utils.shapes import Bool, Float, Int, shape_of


class WindowCache(KeyValueCache):
    """Keys and values of the last window - 1 tokens: no later query sees the others.

    What it holds stops growing, however long the text. Used in chapter 16.
    """

    def __init__(self, keys: Tensor, values: Tensor, window: int, length: int = 0):
        super().__init__(keys, values, length)
        self.window = window

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Put the new tokens behind those kept, return all, and keep the last."""
        self.length += keys.shape[-2]
        keys = torch.cat([self.keys, keys], dim=-2)
        values = torch.cat([self.values, values], dim=-2)
        first = max(keys.shape[-2] - (self.window - 1), 0)
        self.keys, self.values = keys[:, :, first:], values[:, :, first:]
        return keys, values

    def select(self, rows: Int[Tensor, "row"]) -> WindowCache:
        """Copy the given rows of the batch."""
        return WindowCache(self.keys[rows], self.values[rows], self.window, self.length)


class ModernState(NamedTuple):
    """What a text read so far leaves: each layer's cache, and each row's padding."""

    caches: tuple[KeyValueCache, ...]
    padding: Int[Tensor, "batch"]


def cache_bytes(state: ModernState) -> int:
    """Count the bytes of keys and values that a state holds. Used in chapter 16."""
    return sum(c.keys.nbytes + c.values.nbytes for c in state.caches)


def padding_left(lengths: Int[Tensor, "batch"], n_tokens: int) -> Int[Tensor, "batch"]:
    """Return how many tokens of padding stand before each row of a batch.

    The last tokens of all rows then stand in one column, where writing goes on.
    """
    if lengths.dim() != 1 or lengths.max() > n_tokens or lengths.min() < 1:
        raise ValueError(
            f"lengths is {lengths.tolist()!s:.60}, expected one length from 1 to "
            f"{n_tokens} for each row."
        )
    return n_tokens - lengths


def visible_keys(
    n_queries: int,
    n_keys: int,
    end: int,
    window: int | None,
    padding: Int[Tensor, "batch"],
) -> Bool[Tensor, "batch query key"]:
    """Say which keys each query may see: the past, in the window, and no padding.

    Both end at column `end` of the batch. A padded query sees itself, so that no row is
    empty; nobody sees it.
    """
    keys = torch.arange(end - n_keys, end, device=padding.device)
    queries = keys[n_keys - n_queries :, None]
    past = keys <= queries
    if window is not None:
        past = past & (queries - keys < window)
    return (past & (keys >= padding[:, None, None])) | (keys == queries)


class ModernGPT(nn.Module):
    """Continue a text with today's blocks; at the defaults it is chapter 13's GPT.

    $logits = cap(head(norm(block_L(… block_1(E[x])))))$, with the switches of
    `Choices`. `padding` tells how many tokens at the left of each row are none.
    Used in chapter 16.
    """

    def __init__(
        self,
        n_tokens: int,
        max_length: int,
        d_model: int = 128,
        n_heads: int = 4,
        n_layers: int = 2,
        d_hidden: int | None = None,
        choices: Choices | None = None,
    ):
        super().__init__()
        c = self.choices = Choices() if choices is None else choices
        self.n_heads, self.max_length = n_heads, max_length
        self.embedding = nn.Embedding(n_tokens, d_model)
        if c.positions == "learned":
            self.positions = LearnedPositions(max_length, d_model, std=0.1)
        self.dropout = nn.Dropout(c.dropout)
        self.blocks = nn.ModuleList(
            ModernBlock(d_model, n_heads, d_hidden, c) for _ in range(n_layers)
        )
        self.norm = norm_named(c.norm, d_model, c.eps, c.bias)
        self.head = nn.Linear(d_model, n_tokens, bias=False)
        self.initialise()
        if c.tied:
            self.head.weight = self.embedding.weight

    def initialise(self) -> None:
        """Start as chapter 13's GPT does, or with branches and head at zero."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for block in self.blocks:
            block = cast(ModernBlock, block)
            for last in (block.attention.output, block.feed_forward.narrow):
                std = (2 * len(self.blocks) * last.in_features) ** -0.5
                nn.init.normal_(last.weight, std=0 if self.choices.zero_start else std)
        if self.choices.zero_start and not self.choices.tied:
            nn.init.zeros_(self.head.weight)
        nn.init.normal_(self.embedding.weight, std=0.1)

    def window_of(self, layer: int) -> int | None:
        """Return the window of a layer; None sees everything before it."""
        windows = self.choices.windows
        return windows[layer % len(windows)]

    def place(
        self, x: Tensor, where: Int[Tensor, "batch token"]
    ) -> tuple[Tensor, Callable[[Tensor], Tensor] | None]:
        """Add positions to the tokens, or return how queries and keys are turned."""
        c = self.choices
        if c.positions == "learned":
            self.positions(int(where.max()) + 1)  # refuses what is too long
            return x + self.positions.table[where], None
        if c.positions != "rotary":
            return x, None
        turns = rotations(where.flatten(), x.shape[-1] // self.n_heads, c.base)
        turns = turns.unflatten(0, where.shape)[:, None]  # the same for every head
        turn = rotate if c.layout == "neighbours" else rotate_halves
        return x, partial(turn, rotation=turns)

    def read(
        self,
        tokens: Int[Tensor, "batch token"],
        state: ModernState | None = None,
        padding: Int[Tensor, "batch"] | None = None,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch token d_model"], SelfMaps]:
        """Return every token's state before the output layer."""
        require_tokens(tokens, "tokens")
        n, first = tokens.shape[1], state.caches[0].length if state else 0
        padding = tokens.new_zeros(1) if padding is None else padding
        require_padding(padding, tokens)
        padded = bool((padding > 0).any())
        columns = torch.arange(first, first + n, device=tokens.device)
        where = (columns - padding[:, None]).clamp(min=0)
        x = self.embedding(tokens)
        if self.choices.norm_embedding:
            x = nn.functional.rms_norm(x, x.shape[-1:])
        x, turn = self.place(x, where)
        x, all_weights = self.dropout(x), []
        for layer, block in enumerate(self.blocks):
            cache, window = (
                state.caches[layer] if state else None,
                self.window_of(layer),
            )
            before = first if window is None else min(first, window - 1)
            mask = None
            if padded or (window is not None and n + before > window):
                mask = visible_keys(n, n + before, first + n, window, padding)
            bias = None
            if self.choices.positions == "alibi":
                bias = alibi(self.n_heads, n, n + before, device=x.device)
            x, weights = block(x, mask, mask is None, need_weights, turn, cache, bias)
            all_weights.append(weights)
        return self.norm(x), stack_layers(all_weights)

    def logits(self, x: Float[Tensor, "*batch d_model"]) -> Tensor:
        """Score every token, softly capped if the model does that."""
        cap = self.choices.logit_cap
        return self.head(x) if cap is None else soft_cap(self.head(x), cap)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        need_weights: bool = False,
        padding: Int[Tensor, "batch"] | None = None,
    ) -> tuple[Float[Tensor, "batch token n_tokens"], SelfMaps]:
        """Return the logits of every next token, and the weights if asked for."""
        x, weights = self.read(tokens, None, padding, need_weights)
        return self.logits(x), weights

    def start(
        self,
        tokens: Int[Tensor, "batch token"],
        padding: Int[Tensor, "batch"] | None = None,
    ) -> ModernState:
        """Read a beginning (it may be empty) into the caches of all layers."""
        n_kv_heads = cast(ModernBlock, self.blocks[0]).attention.n_kv_heads
        d_head = self.embedding.embedding_dim // self.n_heads
        like = self.embedding.weight.new_zeros(n_kv_heads * d_head)
        caches: list[KeyValueCache] = []
        for layer in range(len(self.blocks)):
            window = self.window_of(layer)
            if window is None:
                sizes = (len(tokens), n_kv_heads, self.max_length)
                caches += empty_caches(1, *sizes, like)
            else:
                nothing = like.new_zeros(len(tokens), n_kv_heads, 0, d_head)
                caches.append(WindowCache(nothing, nothing, window))
        padding = tokens.new_zeros(len(tokens)) if padding is None else padding
        state = ModernState(tuple(caches), padding)
        if tokens.shape[1] > 0:
            self.read(tokens, state, padding)
        return state

    def step(
        self, token: Int[Tensor, "batch"], state: ModernState
    ) -> tuple[Float[Tensor, "batch n_tokens"], ModernState, None]:
        """Read one token of each row, and return the logits of the next."""
        x, _ = self.read(token[:, None], state, state.padding)
        return self.logits(x[:, -1]), state, None


def require_padding(padding: Tensor, tokens: Tensor) -> None:
    """Refuse padding that is not one whole number for each row (or one for all)."""
    if padding.dim() != 1 or len(padding) not in (1, len(tokens)):
        raise ValueError(
            f"padding has shape {shape_of(padding)}, expected one whole number for "
            f"each of the {len(tokens)} rows, as `padding_left` returns."
        )
    if padding.is_floating_point() or padding.dtype == torch.bool or padding.min() < 0:
        raise ValueError(
            f"padding is {padding.tolist()!s:.60}, expected whole numbers from 0."
        )


check_arguments(__name__)
