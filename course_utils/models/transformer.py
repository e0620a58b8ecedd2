"""The transformer: an encoder and a decoder that translate, and GPT, a decoder alone.

Both have the interface of the recurrent models: `forward` for a whole batch, `start`
and `step` to produce one token at a time, so that decoding is written once.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import (
    KeyValueCache,
    MultiHeadAttention,
    padding_mask,
)
from course_utils.models.blocks import (
    CrossMaps,
    Decoder,
    Encoder,
    EncoderBlock,
    SelfMaps,
    stack_layers,
)
from course_utils.models.positions import (
    LearnedPositions,
    rotate,
    rotations,
    sinusoidal,
)
from course_utils.shapes import Bool, Float, Int, shape_of


def require_tokens(tokens: Tensor, name: str) -> None:
    """Refuse anything but `(batch, token)` ids, naming what came."""
    if tokens.dim() != 2 or tokens.is_floating_point():
        raise ValueError(
            f"{name} has shape {shape_of(tokens)} and dtype {tokens.dtype}, expected "
            "whole numbers of shape (batch, token); one sequence alone is `x[None]`."
        )


def empty_caches(
    n_layers: int, batch: int, n_heads: int, max_length: int, like: Tensor
) -> tuple[KeyValueCache, ...]:
    """Set aside memory for the keys and values of every layer."""
    shape = (batch, n_heads, max_length, like.shape[-1] // n_heads)
    return tuple(
        KeyValueCache(like.new_zeros(shape), like.new_zeros(shape))
        for _ in range(n_layers)
    )


def xavier(model: nn.Module) -> None:
    """Start every matrix at Xavier's scale, and queries, keys, values each for itself.

    $W ~ U(-a, a)$, $a = sqrt(6 / (rows + columns))$; biases 0. Taught in chapter 12.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            for matrix in module.qkv.weight.detach().chunk(3):
                nn.init.xavier_uniform_(matrix)


def restore_positions(model: Transformer, _: object) -> None:
    """Compute the positions after weights were loaded: no state dict holds them.

    A model made on the device `meta` has none until then.
    """
    weight = model.target_embedding.weight
    table = sinusoidal(model.max_length, weight.shape[1], weight.device)
    model.positions = table.to(model.positions.dtype)


class Maps(NamedTuple):
    """The weights of the three attentions of a `Transformer`."""

    encoder: SelfMaps
    decoder: SelfMaps
    cross: CrossMaps


class TransformerState(NamedTuple):
    """What `Transformer` carries from one step to the next."""

    memories: tuple[tuple[Tensor, ...], ...]
    memory_mask: Bool[Tensor, "batch 1 source"]
    caches: tuple[KeyValueCache, ...]


class Transformer(nn.Module):
    """Translate with attention alone: an encoder, a decoder, and positions.

    $x = sqrt(d_model) E[token] + PE[t]$ in, the target embedding again as the output
    layer. Used in chapter 12.
    """

    def __init__(
        self,
        n_source: int,
        n_target: int,
        d_model: int = 64,
        n_heads: int = 4,
        d_hidden: int = 128,
        n_layers: int = 2,
        norm: str = "pre",
        dropout: float = 0.0,
        max_length: int = 256,
        pad: int = 0,
    ):
        super().__init__()
        self.pad, self.n_heads, self.max_length = pad, n_heads, max_length
        self.source_embedding = nn.Embedding(n_source, d_model)
        self.target_embedding = nn.Embedding(n_target, d_model)
        self.encoder = Encoder(n_layers, d_model, n_heads, d_hidden, norm, dropout)
        self.decoder = Decoder(n_layers, d_model, n_heads, d_hidden, norm, dropout)
        self.dropout = nn.Dropout(dropout)
        self.positions: Tensor
        self.register_buffer("positions", sinusoidal(max_length, d_model), False)
        self.register_load_state_dict_post_hook(restore_positions)
        xavier(self)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=d_model**-0.5)

    def embed(
        self,
        tokens: Int[Tensor, "batch token"],
        embedding: nn.Embedding,
        first: int = 0,
    ) -> Float[Tensor, "batch token d_model"]:
        """Return scaled embeddings plus positions, counted from `first`."""
        n_tokens = first + tokens.shape[1]
        if n_tokens > self.max_length:
            raise ValueError(
                f"{n_tokens} tokens, but the positions were built for "
                f"{self.max_length}; shorten the sentence or build the model with a "
                "larger max_length."
            )
        scale = math.sqrt(embedding.embedding_dim)
        return self.dropout(scale * embedding(tokens) + self.positions[first:n_tokens])

    def encode(
        self, source: Int[Tensor, "batch source"], need_weights: bool = False
    ) -> tuple[
        Float[Tensor, "batch source d_model"],
        Bool[Tensor, "batch 1 source"],
        SelfMaps,
    ]:
        """Return the memory, the mask of its real tokens, and weights if asked for."""
        require_tokens(source, "source")
        mask = padding_mask(source, self.pad)
        x = self.embed(source, self.source_embedding)
        memory, weights = self.encoder(x, mask, need_weights)
        return memory, mask, weights

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target_in: Int[Tensor, "batch target"],
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch target n_target"], Maps | None]:
        """Return the logits of every next token, teacher-forced, and the three maps.

        Padding at the end of the target needs no mask: no real token comes after it.
        """
        require_tokens(target_in, "target_in")
        memory, mask, seen = self.encode(source, need_weights)
        x = self.embed(target_in, self.target_embedding)
        x, own, cross = self.decoder(x, memory, mask, need_weights)
        logits = x @ self.target_embedding.weight.T
        return logits, Maps(seen, own, cross) if need_weights else None

    def start(self, source: Int[Tensor, "batch source"]) -> TransformerState:
        """Read the source once, and make each decoder layer's keys and values of it."""
        memory, mask, _ = self.encode(source)
        memories = self.decoder.project_memory(memory)
        caches = empty_caches(
            len(memories), len(source), self.n_heads, self.max_length, memory
        )
        return TransformerState(memories, mask, caches)

    def step(
        self, token: Int[Tensor, "batch"], state: TransformerState
    ) -> tuple[Float[Tensor, "batch n_target"], TransformerState, None]:
        """Read one target token, and return the logits of the next."""
        x = self.embed(
            token[:, None], self.target_embedding, first=state.caches[0].length
        )
        x = self.decoder.step(x, *state)
        return x[:, -1] @ self.target_embedding.weight.T, state, None


class GPT(nn.Module):
    """Continue a text: the encoder's blocks with a causal mask, and nothing to ask.

    $p(x_{t+1} | x_1, …, x_t) = softmax(E norm(block_L(… block_1(E[x] + PE))))$, all $t$
    in one pass. `positions` is "learned", "rotary" or "none"; `tied` uses the embedding
    $E$ as the output layer too. Used in chapter 13.
    """

    def __init__(
        self,
        n_tokens: int,
        max_length: int,
        d_model: int = 128,
        n_heads: int = 4,
        n_layers: int = 2,
        d_hidden: int | None = None,
        positions: str = "learned",
        tied: bool = True,
        dropout: float = 0.0,
        activation: str = "gelu",
    ):
        super().__init__()
        if positions not in ("learned", "rotary", "none"):
            raise ValueError(
                f"positions is {positions!r}, expected 'learned', 'rotary' or 'none'."
            )
        d_hidden = 4 * d_model if d_hidden is None else d_hidden
        self.n_heads, self.max_length, self.kind = n_heads, max_length, positions
        self.embedding = nn.Embedding(n_tokens, d_model)
        if positions == "learned":
            self.positions = LearnedPositions(max_length, d_model, std=0.1)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, n_heads, d_hidden, "pre", dropout, activation)
            for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_tokens, bias=False)
        self.initialise()
        if tied:
            self.head.weight = self.embedding.weight

    def initialise(self) -> None:
        """Start each matrix at 1/sqrt(its inputs), those that end a residual smaller.

        The usual 0.02 suits d_model = 768 and is too small for short runs of small
        models; 1/sqrt(2 layers) keeps the sum of the residuals near 1.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for module in self.modules():
            if isinstance(module, EncoderBlock):
                for last in (module.attention.output, module.feed_forward.narrow):
                    std = (2 * len(self.blocks) * last.in_features) ** -0.5
                    nn.init.normal_(last.weight, std=std)
        nn.init.normal_(self.embedding.weight, std=0.1)

    def read(
        self,
        tokens: Int[Tensor, "batch token"],
        caches: tuple[KeyValueCache, ...] | None = None,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch token d_model"], SelfMaps]:
        """Return every token's state before the output layer."""
        require_tokens(tokens, "tokens")
        n_tokens, first = tokens.shape[1], caches[0].length if caches else 0
        x, turn = self.embedding(tokens), None
        if self.kind == "learned":
            x = x + self.positions(n_tokens, first)
        elif self.kind == "rotary":
            where = torch.arange(first, first + n_tokens, device=tokens.device)
            turn = partial(
                rotate, rotation=rotations(where, x.shape[-1] // self.n_heads)
            )
        x, all_weights = self.dropout(x), []
        for layer, block in enumerate(self.blocks):
            x, weights = block(
                x,
                causal=True,
                need_weights=need_weights,
                rotate=turn,
                cache=caches[layer] if caches else None,
            )
            all_weights.append(weights)
        return self.norm(x), stack_layers(all_weights)

    def forward(
        self, tokens: Int[Tensor, "batch token"], need_weights: bool = False
    ) -> tuple[Float[Tensor, "batch token n_tokens"], SelfMaps]:
        """Return the logits of every next token, and the weights if asked for."""
        x, weights = self.read(tokens, need_weights=need_weights)
        return self.head(x), weights

    def start(self, tokens: Int[Tensor, "batch token"]) -> tuple[KeyValueCache, ...]:
        """Read a beginning (it may be empty) into the caches of all layers."""
        caches = empty_caches(
            len(self.blocks),
            len(tokens),
            self.n_heads,
            self.max_length,
            self.embedding.weight,
        )
        if tokens.shape[1] > 0:
            self.read(tokens, caches)
        return caches

    def step(
        self, token: Int[Tensor, "batch"], caches: tuple[KeyValueCache, ...]
    ) -> tuple[Float[Tensor, "batch n_tokens"], tuple[KeyValueCache, ...], None]:
        """Read one token, and return the logits of the next."""
        x, _ = self.read(token[:, None], caches)
        return self.head(x[:, -1]), caches, None


def sizes_of(model: Transformer) -> dict[str, int]:
    """Return the sizes a model was built with: `Transformer(**sizes_of(model))`."""
    if not isinstance(model, Transformer) or isinstance(
        model.encoder.norm, nn.Identity
    ):
        raise ValueError(
            f"got {type(model).__name__}, expected a `Transformer` with norm='pre': "
            "the one order of norm and sum that the page computes."
        )
    first = cast(EncoderBlock, model.encoder.blocks[0])
    return {
        "n_source": model.source_embedding.num_embeddings,
        "n_target": model.target_embedding.num_embeddings,
        "d_model": model.source_embedding.embedding_dim,
        "n_heads": model.n_heads,
        "d_hidden": first.feed_forward.wide.out_features,
        "n_layers": len(model.encoder.blocks),
        "max_length": model.max_length,
    }


def gpt_sizes_of(model: GPT) -> dict[str, int | str | bool]:
    """Return the sizes a GPT was built with: `GPT(**gpt_sizes_of(model))`."""
    first = cast(EncoderBlock, model.blocks[0])
    return {
        "n_tokens": model.embedding.num_embeddings,
        "max_length": model.max_length,
        "d_model": model.embedding.embedding_dim,
        "n_heads": model.n_heads,
        "n_layers": len(model.blocks),
        "d_hidden": first.feed_forward.wide.out_features,
        "positions": model.kind,
        "tied": model.head.weight is model.embedding.weight,
    }


check_arguments(__name__)
