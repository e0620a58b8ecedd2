"""Decoding: from a model's scores for the next token to a whole sequence.

Every model of the course has `start(source)` and `step(token, state)`, so greedy
decoding, beam search and sampling are written once, for recurrent networks and
transformers alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import KeyValueCache
from course_utils.shapes import Bool, Float, Int, shape_of


@runtime_checkable
class Stepwise(Protocol):
    """What a model needs to be decoded, one token at a time."""

    def start(self, source: Any, /) -> Any:
        """Read the source, or the beginning of a text, and return a state."""

    def step(self, token: Any, state: Any, /) -> tuple[Tensor, Any, Tensor | None]:
        """Read one token: the next one's logits, the new state, weights or None."""


class Decoded(NamedTuple):
    """Tokens without the first `bos`, padded after `eos`; weights if there are any."""

    tokens: Int[Tensor, "batch target"]
    weights: Float[Tensor, "batch target source"] | None


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Switch dropout and gradients off for a while, and put things back after.

    Tensors made inside cannot be trained on: make what is returned outside.
    """
    training = isinstance(model, nn.Module) and model.training
    try:
        if training:
            model.eval()
        with torch.inference_mode():
            yield
    finally:
        if training:
            model.train()


def select_rows(state: Any, rows: Int[Tensor, "row"]) -> Any:
    """Pick rows of the batch from any model's state, repeated if asked twice."""
    if isinstance(state, Tensor):
        return state[rows]
    if isinstance(state, KeyValueCache):
        return state.select(rows)
    parts = [select_rows(part, rows) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def require_lengths(source: Tensor, max_length: int) -> None:
    """Refuse a source without a batch axis, and a length of nothing."""
    if source.dim() < 2:
        raise ValueError(
            f"source has shape {shape_of(source)}, expected a batch axis first; one "
            "sentence alone is `source[None]`."
        )
    if max_length < 1:
        raise ValueError(f"max_length = {max_length}, expected at least 1.")


def greedy(
    model: Stepwise,
    source: Tensor,
    max_length: int,
    bos: int,
    eos: int,
    pad: int = 0,
) -> Decoded:
    """Take the most probable token at every step, until every row has ended.

    $y_t = argmax_y p(y | y_1, …, y_{t-1}, source)$. Used in chapter 12.
    """
    require_lengths(source, max_length)
    with evaluating(model):
        state = model.start(source)
        token = torch.full((len(source),), bos, device=source.device)
        ended = torch.zeros_like(token, dtype=torch.bool)
        tokens: list[Tensor] = []
        all_weights: list[Tensor | None] = []
        while len(tokens) < max_length and not ended.all():
            logits, state, weights = model.step(token, state)
            token = logits.argmax(dim=-1).masked_fill(ended, pad)
            ended = ended | (token == eos)
            tokens.append(token)
            all_weights.append(weights)
    kept = [w for w in all_weights if w is not None]
    return Decoded(torch.stack(tokens, 1), torch.stack(kept, 1) if kept else None)


class Beams(NamedTuple):
    """The best sequence of each row and its (length-penalised) log-probability.

    Where several were asked for, an axis of beams follows the batch's, best first.
    """

    tokens: Int[Tensor, "batch *beam target"]
    scores: Float[Tensor, "batch *beam"]


def extend_beams(
    log_p: Float[Tensor, "batch beam"],
    lengths: Float[Tensor, "batch beam"],
    ended: Bool[Tensor, "batch beam"],
    logits: Float[Tensor, "row token"],
    pad: int = 0,
    length_penalty: float = 0.0,
) -> tuple[
    Int[Tensor, "batch beam"],
    Int[Tensor, "batch beam"],
    Float[Tensor, "batch beam"],
    Float[Tensor, "batch beam"],
]:
    """Let every beam go on with every token, and keep as many as there were, the best.

    Returns for each of them the beam it continues, its new token, its log-probability
    and its length. Taught in chapter 12.
    """
    batch, n_beams = log_p.shape
    gain = torch.log_softmax(logits.float(), dim=-1).view(batch, n_beams, -1)
    n_tokens = gain.shape[-1]
    # A beam that has ended goes on with padding alone, at no cost.
    is_pad = torch.arange(n_tokens, device=logits.device) == pad
    gain = torch.where(ended[:, :, None], is_pad.float().log(), gain)
    total = (log_p[:, :, None] + gain).flatten(1)
    lengths = lengths + (~ended).float()
    scale = lengths.repeat_interleave(n_tokens, dim=1) ** length_penalty
    best = (total / scale).topk(n_beams, dim=-1).indices
    parent, token = best // n_tokens, best % n_tokens
    return parent, token, total.gather(1, best), lengths.gather(1, parent)


def beam_search(
    model: Stepwise,
    source: Tensor,
    max_length: int,
    bos: int,
    eos: int,
    pad: int = 0,
    n_beams: int = 4,
    length_penalty: float = 0.0,
    n_best: int = 1,
) -> Beams:
    """Keep the `n_beams` best beginnings at every step; return the `n_best` best ends.

    $score(y) = log p(y | source) / length(y)^length_penalty$: 0 prefers short
    sequences, 1 averages over tokens. One beam is greedy decoding. Taught in chapter
    12.
    """
    require_beams(source, max_length, n_beams, n_best)
    rows = torch.arange(len(source), device=source.device)[:, None]
    with evaluating(model):
        state = select_rows(model.start(source), rows.expand(-1, n_beams).flatten())
        tokens = torch.full((len(source), n_beams, 1), bos, device=source.device)
        lengths = torch.zeros(len(source), n_beams, device=source.device)
        ended, log_p = lengths > 0, lengths.clone()
        log_p[:, 1:] = -torch.inf  # all beams begin alike: only the first may count
        while tokens.shape[-1] <= max_length and not ended.all():
            logits, state, _ = model.step(tokens[:, :, -1].flatten(), state)
            parent, token, log_p, lengths = extend_beams(
                log_p, lengths, ended, logits, pad, length_penalty
            )
            ended = ended.gather(1, parent) | (token == eos)
            tokens = torch.cat([tokens[rows, parent], token[:, :, None]], dim=-1)
            state = select_rows(state, (rows * n_beams + parent).flatten())
    scores, order = (log_p / lengths**length_penalty).topk(n_best, dim=-1)
    tokens = tokens[rows, order, 1:]
    return Beams(tokens.squeeze(1), scores.squeeze(1))


def require_beams(
    source: Tensor, max_length: int, n_beams: int, n_best: int = 1
) -> None:
    """Refuse a source without a batch axis, a length of nothing, and no beam."""
    require_lengths(source, max_length)
    if n_beams < 1:
        raise ValueError(f"n_beams = {n_beams}, expected at least 1.")
    if not 1 <= n_best <= n_beams:
        raise ValueError(
            f"n_best = {n_best}, expected 1 to n_beams = {n_beams}: no more come back "
            "than are kept."
        )


# ------------------------------------------------------------------------- sampling


def keep_top_k(
    logits: Float[Tensor, "*batch token"], k: int
) -> Float[Tensor, "*batch token"]:
    """Leave the k most probable tokens, and set the others to -inf.

    Tokens as probable as the k-th stay too. Taught in chapter 13.
    """
    if k < 1:
        raise ValueError(f"top_k = {k}, expected at least 1; None keeps every token.")
    kth = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < kth, -torch.inf)


def keep_top_p(
    logits: Float[Tensor, "*batch token"], p: float
) -> Float[Tensor, "*batch token"]:
    """Leave the fewest tokens whose probabilities reach $p$, and set others to -inf.

    A token stays if those more probable than it sum to less than $p$, so that at least
    one does. Taught in chapter 13.
    """
    if not 0 < p <= 1:
        raise ValueError(
            f"top_p = {p}, expected above 0 and up to 1; 1 keeps all tokens."
        )
    if p == 1:
        return logits  # a rounded sum may reach 1 before the last token
    probabilities, order = torch.softmax(logits, dim=-1).sort(descending=True, dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities
    dropped = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= p)
    return logits.masked_fill(dropped, -torch.inf)


def sample(
    logits: Float[Tensor, "batch token"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "batch"]:
    """Draw a token from $p = softmax(logits / temperature)$, the unlikely ones cut off.

    A temperature below 1 sharpens, above 1 flattens; at 0 it is the most probable
    token. Taught in chapter 13.
    """
    if not temperature >= 0:
        raise ValueError(
            f"temperature = {temperature}, expected 0 (always the most probable token) "
            "or above."
        )
    if temperature < 1e-30:
        return logits.argmax(dim=-1)
    # The largest becomes 0: divided by a tiny temperature it would be infinite.
    logits = (logits - logits.amax(dim=-1, keepdim=True)) / temperature
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    probabilities = torch.softmax(logits, dim=-1)
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)


def generate(
    model: Any,
    prompt: Int[Tensor, "batch prompt"],
    n_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    use_cache: bool = True,
) -> Int[Tensor, "batch all_tokens"]:
    """Continue a prompt by sampling `n_tokens` more, and return the whole.

    With `use_cache=False` every step reads the text from the start: the same tokens,
    more slowly. Taught in chapter 13.
    """
    require_prompt(prompt)
    with evaluating(model):
        tokens, state = prompt, model.start(prompt[:, :-1]) if use_cache else None
        for _ in range(n_tokens):
            if use_cache:
                logits, state, _ = model.step(tokens[:, -1], state)
            else:
                logits = model(tokens)[0][:, -1]
            token = sample(logits, temperature, top_k, top_p, generator)
            tokens = torch.cat([tokens, token[:, None]], dim=1)
    return tokens.clone()


def require_prompt(prompt: Tensor) -> None:
    """Refuse a prompt without a batch axis, and one without a token."""
    if prompt.dim() != 2:
        raise ValueError(
            f"prompt has shape {shape_of(prompt)}, expected (batch, token)."
        )
    if prompt.shape[1] == 0:
        raise ValueError(
            "the prompt is empty, and a model needs something to go on from; begin "
            "with a word or two (at least one token)."
        )


check_arguments(__name__)
