"""Peers' designs of translation models, re-created from what they do.

`LibraryTransformer` is a model built on PyTorch's `nn.Transformer`. `StepwiseBahdanau`
and `BroadcastBahdanau` are the designs of two well-known tutorials, which project the
source's states again at every word of the target. All are given our weights.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.baseline_attention import past
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.positions import sinusoidal
from course_utils.models.rnn import Seq2SeqAttention
from course_utils.models.transformer import Transformer


class LibraryTransformer(nn.Module):
    """Embeddings and positions around `nn.Transformer`, the output layer tied."""

    def __init__(
        self,
        n_source: int,
        n_target: int,
        width: int,
        heads: int,
        hidden: int,
        layers: int,
        max_length: int = 256,
        pad: int = 0,
    ):
        super().__init__()
        self.pad, self.scale = pad, math.sqrt(width)
        self.source = nn.Embedding(n_source, width)
        self.target = nn.Embedding(n_target, width)
        with warnings.catch_warnings():  # that pre-norm can't use nested tensors
            warnings.simplefilter("ignore", UserWarning)
            self.stacks = nn.Transformer(
                width,
                heads,
                layers,
                layers,
                hidden,
                dropout=0.0,
                batch_first=True,
                norm_first=True,
            )
        self.places: Tensor
        self.register_buffer("places", sinusoidal(max_length, width), False)

    def forward(self, source: Tensor, target_in: Tensor) -> tuple[Tensor, None]:
        """Return the logits of every next token."""
        n = target_in.shape[1]
        padded = source == self.pad
        x = self.scale * self.source(source) + self.places[: source.shape[1]]
        y = self.scale * self.target(target_in) + self.places[:n]
        later = ~past(n)
        found = self.stacks(
            x,
            y,
            tgt_mask=later,
            tgt_is_causal=True,
            src_key_padding_mask=padded,
            memory_key_padding_mask=padded,
        )
        return found @ self.target.weight.T, None


def _copy(theirs: nn.Module, ours: nn.Module) -> None:
    theirs.load_state_dict(ours.state_dict())


def _copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    theirs.in_proj_weight.copy_(ours.qkv.weight)
    theirs.in_proj_bias.copy_(ours.qkv.bias)
    _copy(theirs.out_proj, ours.output)


@torch.no_grad()
def same_transformer(
    ours: Transformer, library: LibraryTransformer
) -> LibraryTransformer:
    """Copy our weights into the model around `nn.Transformer`."""
    _copy(library.source, ours.source_embedding)
    _copy(library.target, ours.target_embedding)
    stacks = library.stacks
    theirs: Any
    mine: Any  # blocks of a ModuleList, of which only Module is known
    for theirs, mine in zip(stacks.encoder.layers, ours.encoder.blocks):
        _copy_attention(theirs.self_attn, mine.attention)
        _copy(theirs.norm1, mine.around_attention.norm)
        _copy(theirs.norm2, mine.around_feed_forward.norm)
        _copy(theirs.linear1, mine.feed_forward.wide)
        _copy(theirs.linear2, mine.feed_forward.narrow)
    for theirs, mine in zip(stacks.decoder.layers, ours.decoder.blocks):
        _copy_attention(theirs.self_attn, mine.attention)
        _copy_attention(theirs.multihead_attn, mine.cross_attention)
        _copy(theirs.norm1, mine.around_attention.norm)
        _copy(theirs.norm2, mine.around_cross_attention.norm)
        _copy(theirs.norm3, mine.around_feed_forward.norm)
        _copy(theirs.linear1, mine.feed_forward.wide)
        _copy(theirs.linear2, mine.feed_forward.narrow)
    _copy(stacks.encoder.norm, ours.encoder.norm)
    _copy(stacks.decoder.norm, ours.decoder.norm)
    return library


class StepwiseBahdanau(nn.Module):
    """Bahdanau's model with everything in the loop over the target's words.

    At each step the query is repeated beside every source state and both go through one
    matrix (so U h is computed again each time), and the output layer is called for that
    step alone: the design of bentrevett's tutorials.
    """

    readout_at_end = False

    def __init__(self, model: Seq2SeqAttention):
        super().__init__()
        self.encoder, self.first_state = model.encoder, model.first_state
        decoder, attention = model.decoder, model.decoder.attention
        self.embedding, self.readout = decoder.embedding, decoder.readout
        self.score = nn.Linear(
            attention.query.in_features + attention.key.in_features,
            attention.query.out_features,
        )
        self.v = nn.Linear(attention.query.out_features, 1, bias=False)
        cell = decoder.cell
        self.gru = nn.GRU(cell.input_size, cell.hidden_size, batch_first=True)
        with torch.no_grad():
            both = [attention.query.weight, attention.key.weight]
            self.score.weight.copy_(torch.cat(both, dim=1))
            self.score.bias.copy_(attention.query.bias)
            self.v.weight.copy_(attention.v[None])
            for name, p in cell.named_parameters():
                getattr(self.gru, f"{name}_l0").copy_(p)

    def hidden(self, state: Tensor, states: Tensor) -> Tensor:
        """What the tanh is taken of: query and key of every source word, summed."""
        repeated = state[:, None].repeat(1, states.shape[1], 1)
        summed: Tensor = self.score(torch.cat([repeated, states], dim=2))
        return summed

    def forward(self, source: Tensor, target_in: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of every next token, and the weights."""
        states, summary, real = self.encoder(source)
        state = self.first_state(summary)
        steps, all_logits, all_weights = [], [], []
        for i in range(target_in.shape[1]):
            token = self.embedding(target_in[:, i])
            energy = torch.tanh(self.hidden(state, states))
            scores = self.v(energy).squeeze(2).masked_fill(~real, -1e10)
            weights = scores.softmax(dim=1)
            context = torch.bmm(weights[:, None], states)
            x = torch.cat([token[:, None], context], dim=2)
            _, last = self.gru(x, state[None].contiguous())
            state, context = last[0], context[:, 0]
            all_weights.append(weights)
            if self.readout_at_end:
                steps.append((state, context, token))
            else:
                all_logits.append(self.readout(state, context, token))
        if self.readout_at_end:
            logits = self.readout(*(torch.stack(part, 1) for part in zip(*steps)))
        else:
            logits = torch.stack(all_logits, dim=1)
        return logits, torch.stack(all_weights, dim=1)


class BroadcastBahdanau(StepwiseBahdanau):
    """Bahdanau's model as d2l writes it.

    Query and keys are projected at every step and their sum is broadcast, so nothing is
    repeated; the states of all steps go through the output layer at the end.
    """

    readout_at_end = True

    def __init__(self, model: Seq2SeqAttention):
        super().__init__(model)
        del self.score
        attention = model.decoder.attention
        self.query, self.key = attention.query, attention.key

    def hidden(self, state: Tensor, states: Tensor) -> Tensor:
        summed: Tensor = self.query(state)[:, None] + self.key(states)
        return summed
