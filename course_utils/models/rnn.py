"""Recurrent networks: the models before attention, and the first that had it.

The translation models share one interface with the transformer, so that training,
decoding and the figures are written once: `forward(source, target_in)` returns
`(logits, weights or None)` for a whole batch; `start(source)` and `step(token, state)`
produce one token at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import masked_softmax
from course_utils.shapes import (
    Bool,
    Float,
    Int,
    require_additive,
    require_real,
    require_source,
)


def gru_step(
    x: Float[Tensor, "batch d_in"],
    state: Float[Tensor, "batch d_hidden"],
    weight_x: Float[Tensor, "3*d_hidden d_in"],
    weight_state: Float[Tensor, "3*d_hidden d_hidden"],
    bias_x: Float[Tensor, "3*d_hidden"],
    bias_state: Float[Tensor, "3*d_hidden"],
) -> Float[Tensor, "batch d_hidden"]:
    """Take one step of a gated recurrent unit: keep some of the state, renew the rest.

    $r = sigmoid(W_r x + U_r h)$, $z = sigmoid(W_z x + U_z h)$, $n = tanh(W_n x + r *
    U_n h)$, $h' = (1 - z) * n + z * h$; each with its biases, stacked in the order $r$,
    $z$, $n$ as in `nn.GRUCell`. Taught in chapter 02.
    """
    reset_x, update_x, new_x = (x @ weight_x.T + bias_x).chunk(3, dim=-1)
    reset_h, update_h, new_h = (state @ weight_state.T + bias_state).chunk(3, dim=-1)
    reset = torch.sigmoid(reset_x + reset_h)
    update = torch.sigmoid(update_x + update_h)
    new = torch.tanh(new_x + reset * new_h)
    return (1 - update) * new + update * state


def additive_scores(
    queries: Float[Tensor, "batch query d_score"],
    keys: Float[Tensor, "batch key d_score"],
    v: Float[Tensor, "d_score"],
) -> Float[Tensor, "batch query key"]:
    """Score every query against every key by a small network (Bahdanau).

    $s_tj = tanh(h_dec_{t-1} W + h_j U) . v_score$, given the projected `queries` $h_dec
    W$ and `keys` $h U$. Taught in chapter 03.
    """
    require_additive(queries, keys, v)
    return torch.tanh(queries[:, :, None] + keys[:, None]) @ v


def flip_real(
    x: Float[Tensor, "batch token d"], lengths: Int[Tensor, "batch"]
) -> Float[Tensor, "batch token d"]:
    """Reverse each sequence and leave its padding at the end; twice gives x again."""
    require_real(x, lengths)
    positions = torch.arange(x.shape[1], device=x.device)
    source = (lengths[:, None] - 1 - positions) % x.shape[1]
    return x.gather(1, source[:, :, None].expand_as(x))


class GRUEncoder(nn.Module):
    """Read a sentence in both directions: $h_j = [forward_j; backward_j]$.

    The backward reader starts at the last real token, and the summary is taken where
    each reader ends, so that padding changes nothing. Taught in chapters 02 and 03.
    """

    def __init__(self, n_tokens: int, d_embedding: int, d_hidden: int, pad: int = 0):
        super().__init__()
        self.pad = pad
        self.embedding = nn.Embedding(n_tokens, d_embedding, padding_idx=pad)
        self.forwards = nn.GRU(d_embedding, d_hidden, batch_first=True)
        self.backwards = nn.GRU(d_embedding, d_hidden, batch_first=True)

    def forward(
        self, source: Int[Tensor, "batch source"]
    ) -> tuple[
        Float[Tensor, "batch source two_d_hidden"],
        Float[Tensor, "batch two_d_hidden"],
        Bool[Tensor, "batch source"],
    ]:
        """Return the states h_j, the summary [forward_last; backward_first], the mask.

        The mask is True at real tokens. Padding must stand at the end.
        """
        require_source(source, self.pad)
        mask = source != self.pad
        lengths = mask.sum(dim=1).clamp(min=1)
        x = self.embedding(source)
        forward, _ = self.forwards(x)
        backward, _ = self.backwards(flip_real(x, lengths))
        rows = torch.arange(len(source), device=source.device)
        summary = torch.cat(
            [forward[rows, lengths - 1], backward[rows, lengths - 1]], dim=-1
        )
        states = torch.cat([forward, flip_real(backward, lengths)], dim=-1)
        return states, summary, mask


class Readout(nn.Module):
    """Turn decoder state, context and last token into logits of the next token."""

    def __init__(self, d_state: int, d_context: int, d_embedding: int, n_tokens: int):
        super().__init__()
        self.hidden = nn.Linear(d_state + d_context + d_embedding, d_embedding)
        self.output = nn.Linear(d_embedding, n_tokens)

    def forward(self, state: Tensor, context: Tensor, token: Tensor) -> Tensor:
        """Return logits for any leading axes: a step's batch, or all steps at once."""
        joined = torch.cat([state, context, token], dim=-1)
        return self.output(torch.tanh(self.hidden(joined)))


class FixedState(NamedTuple):
    """What `Seq2Seq` carries from one step to the next."""

    context: Float[Tensor, "batch two_d_hidden"]
    decoder_state: Float[Tensor, "batch d_hidden"]


class Seq2Seq(nn.Module):
    """Translate through one vector: the context is all the decoder knows of the source.

    $c = [forward_last; backward_first]$, $h_dec_0 = tanh(c W)$, $h_dec_t =
    GRU([y_{t-1}; c], h_dec_{t-1})$; $c$ is fed at every step. Taught in chapter 02.
    """

    def __init__(
        self,
        n_source: int,
        n_target: int,
        d_embedding: int = 64,
        d_hidden: int = 64,
        pad: int = 0,
    ):
        super().__init__()
        self.encoder = GRUEncoder(n_source, d_embedding, d_hidden, pad)
        self.first_state = nn.Linear(2 * d_hidden, d_hidden)
        self.embedding = nn.Embedding(n_target, d_embedding, padding_idx=pad)
        self.decoder = nn.GRU(d_embedding + 2 * d_hidden, d_hidden, batch_first=True)
        self.readout = Readout(d_hidden, 2 * d_hidden, d_embedding, n_target)

    def start(self, source: Int[Tensor, "batch source"]) -> FixedState:
        """Read the source into the context and the decoder's first state."""
        _, context, _ = self.encoder(source)
        return FixedState(context, torch.tanh(self.first_state(context)))

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target_in: Int[Tensor, "batch target"],
    ) -> tuple[Float[Tensor, "batch target n_target"], None]:
        """Return the logits of every next token, teacher-forced; no weights."""
        context, first = self.start(source)
        tokens = self.embedding(target_in)
        contexts = context[:, None].expand(-1, target_in.shape[1], -1)
        states, _ = self.decoder(torch.cat([tokens, contexts], dim=-1), first[None])
        return self.readout(states, contexts, tokens), None

    def step(
        self, token: Int[Tensor, "batch"], state: FixedState
    ) -> tuple[Float[Tensor, "batch n_target"], FixedState, None]:
        """Read one target token, and return the logits of the next."""
        context, decoder_state = state
        embedded = self.embedding(token)
        x = torch.cat([embedded, context], dim=-1)
        _, last = self.decoder(x[:, None], decoder_state[None])
        logits = self.readout(last[0], context, embedded)
        return logits, FixedState(context, last[0]), None


class AttentionState(NamedTuple):
    """What `Seq2SeqAttention` carries from one step to the next."""

    encoder_states: Float[Tensor, "batch source two_d_hidden"]
    keys: Float[Tensor, "batch source d_score"]
    mask: Bool[Tensor, "batch 1 source"]
    decoder_state: Float[Tensor, "batch d_hidden"]


class AdditiveAttention(nn.Module):
    """Let a decoder's state look at the source: Bahdanau's score with its weights.

    $a_t = softmax(tanh(h_dec_{t-1} W + h_j U) . v_score)$, $c_t = sum_j a_tj h_j$. The
    keys $h U$ are the same at every step: make them once, with
    `attention.key(encoder_states)`. Taught in chapter 03.
    """

    def __init__(self, d_query: int, d_key: int, d_score: int):
        super().__init__()
        self.query = nn.Linear(d_query, d_score)
        self.key = nn.Linear(d_key, d_score, bias=False)
        self.v = nn.Parameter(torch.empty(d_score).uniform_(-1, 1) / d_score**0.5)

    def forward(
        self,
        decoder_state: Float[Tensor, "batch d_query"],
        encoder_states: Float[Tensor, "batch source d_key"],
        keys: Float[Tensor, "batch source d_score"],
        mask: Bool[Tensor, "batch 1 source"],
    ) -> tuple[Float[Tensor, "batch d_key"], Float[Tensor, "batch source"]]:
        """Return the context and the weights of one step."""
        queries = self.query(decoder_state)[:, None]
        weights = masked_softmax(additive_scores(queries, keys, self.v), mask)
        context = weights @ encoder_states
        return context.squeeze(1), weights.squeeze(1)


class FirstState(nn.Module):
    """Choose the decoder's first state from the two ends of the encoder's readers.

    "zeros", "last" (where the forward reader ended) or "projection" (tanh of a learned
    map of both ends). Taught in chapter 03.
    """

    def __init__(self, d_hidden: int, kind: str = "projection"):
        super().__init__()
        if kind not in ("zeros", "last", "projection"):
            raise ValueError(
                f"first_state is {kind!r}, expected 'zeros', 'last' or 'projection'."
            )
        self.kind = kind
        if kind == "projection":
            self.projection = nn.Linear(2 * d_hidden, d_hidden)

    def forward(
        self, summary: Float[Tensor, "batch two_d_hidden"]
    ) -> Float[Tensor, "batch d_hidden"]:
        """Return h_dec_0, given [forward_last; backward_first]."""
        if self.kind == "projection":
            return torch.tanh(self.projection(summary))
        last = summary.chunk(2, dim=-1)[0]
        return last if self.kind == "last" else torch.zeros_like(last)


class AttentionDecoder(nn.Module):
    """Write a translation word by word, looking at the source before each.

    $c_t$ from `AdditiveAttention` with $h_dec_{t-1}$, $h_dec_t = GRU([y_{t-1}; c_t],
    h_dec_{t-1})$, and the next word from $h_dec_t$, $c_t$ and $y_{t-1}$. Taught in
    chapter 03.
    """

    def __init__(self, n_target: int, d_embedding: int, d_hidden: int, pad: int = 0):
        super().__init__()
        self.embedding = nn.Embedding(n_target, d_embedding, padding_idx=pad)
        self.attention = AdditiveAttention(d_hidden, 2 * d_hidden, d_hidden)
        self.cell = nn.GRUCell(d_embedding + 2 * d_hidden, d_hidden)
        self.readout = Readout(d_hidden, 2 * d_hidden, d_embedding, n_target)

    def look(
        self, token: Float[Tensor, "batch d_embedding"], state: AttentionState
    ) -> tuple[Tensor, Tensor, AttentionState]:
        """Attend with the old state, then make the new: context, weights, new state."""
        encoder_states, keys, mask, decoder_state = state
        context, weights = self.attention(decoder_state, encoder_states, keys, mask)
        decoder_state = self.cell(torch.cat([token, context], -1), decoder_state)
        return context, weights, state._replace(decoder_state=decoder_state)

    def step(
        self, token: Int[Tensor, "batch"], state: AttentionState
    ) -> tuple[
        Float[Tensor, "batch n_target"], AttentionState, Float[Tensor, "batch source"]
    ]:
        """Read one target token; return the next one's logits and where it looked."""
        embedded = self.embedding(token)
        context, weights, state = self.look(embedded, state)
        return self.readout(state.decoder_state, context, embedded), state, weights


class Seq2SeqAttention(nn.Module):
    """Translate with Bahdanau's attention: look at the source again for every word.

    A `GRUEncoder` reads, `FirstState` begins, an `AttentionDecoder` writes. Only
    what needs $h_dec_{t-1}$ is in the loop; all steps are read out at once. Taught in
    chapter 03.
    """

    def __init__(
        self,
        n_source: int,
        n_target: int,
        d_embedding: int = 64,
        d_hidden: int = 64,
        first_state: str = "projection",
    ):
        super().__init__()
        self.encoder = GRUEncoder(n_source, d_embedding, d_hidden)
        self.first_state = FirstState(d_hidden, first_state)
        self.decoder = AttentionDecoder(n_target, d_embedding, d_hidden)

    def start(self, source: Int[Tensor, "batch source"]) -> AttentionState:
        """Read the source once: its states, their keys, and the first state."""
        states, summary, mask = self.encoder(source)
        keys = self.decoder.attention.key(states)
        return AttentionState(states, keys, mask[:, None], self.first_state(summary))

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target_in: Int[Tensor, "batch target"],
    ) -> tuple[
        Float[Tensor, "batch target n_target"], Float[Tensor, "batch target source"]
    ]:
        """Return the logits of every next token, teacher-forced, and the weights."""
        state, tokens = self.start(source), self.decoder.embedding(target_in)
        steps = []
        for token in tokens.unbind(1):
            context, weights, state = self.decoder.look(token, state)
            steps.append((state.decoder_state, context, weights))
        states, contexts, weights = (torch.stack(part, 1) for part in zip(*steps))
        return self.decoder.readout(states, contexts, tokens), weights

    def step(
        self, token: Int[Tensor, "batch"], state: AttentionState
    ) -> tuple[
        Float[Tensor, "batch n_target"], AttentionState, Float[Tensor, "batch source"]
    ]:
        """Read one target token; return the next one's logits and where it looked."""
        return self.decoder.step(token, state)


class GRULanguageModel(nn.Module):
    """Predict the next token from a state that has read all before it.

    $h_t = GRU(x_t, h_{t-1})$, $logits_t = h_t W$. Used in chapter 15.
    """

    def __init__(
        self, n_tokens: int, d_embedding: int, d_hidden: int, n_layers: int = 1
    ):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embedding)
        self.gru = nn.GRU(d_embedding, d_hidden, n_layers, batch_first=True)
        self.output = nn.Linear(d_hidden, n_tokens)

    def forward(
        self, tokens: Int[Tensor, "batch token"]
    ) -> tuple[Float[Tensor, "batch token n_tokens"], None]:
        """Return the logits of every next token; there are no weights."""
        states, _ = self.gru(self.embedding(tokens))
        return self.output(states), None

    def start(
        self, tokens: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch layer d_hidden"]:
        """Read a beginning (it may be empty), and return the state it leaves."""
        if tokens.shape[1] == 0:
            weight = self.output.weight
            layers, d_hidden = self.gru.num_layers, self.gru.hidden_size
            return weight.new_zeros(len(tokens), layers, d_hidden)
        _, state = self.gru(self.embedding(tokens))
        return state.transpose(0, 1)

    def step(
        self, token: Int[Tensor, "batch"], state: Float[Tensor, "batch layer d_hidden"]
    ) -> tuple[
        Float[Tensor, "batch n_tokens"], Float[Tensor, "batch layer d_hidden"], None
    ]:
        """Read one token, and return the logits of the next."""
        x = self.embedding(token)[:, None]
        states, last = self.gru(x, state.transpose(0, 1).contiguous())
        return self.output(states[:, -1]), last.transpose(0, 1), None


check_arguments(__name__)
