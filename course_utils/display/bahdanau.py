"""Bahdanau's model at work: one panel for each word that it writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_utils import runtime
from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.display.svg import colour, path
from course_utils.models.rnn import Seq2SeqAttention
from course_utils.tasks import synthetic
from course_utils.tasks.translation import translation_loss
from course_utils.training.loop import train

WIDE, HIGH = 240.0, 362.0  # a panel
OLD, NEW = 46.0, 150.0  # the middle of the decoder's two states
BAR = 48.0  # the height of a weight of one
VISIBLE = 0.05  # a smaller weight has a bar, but neither number nor line
STATE, CONTEXT, TOP, NODE, ROWS = 58.0, 112.0, 210.0, 226.0, (262.0, 288.0)


def attention_steps(
    model: Seq2SeqAttention,
    source: Tensor,
    source_words: Sequence[str],
    target: Tensor,
    target_words: Sequence[str],
    steps: Sequence[int] = (1, 2, 3),
) -> Diagram:
    """Draw some steps of a translation, from a forward pass of the model (chapter 03).

        diagrams.show(attention_steps(model, source, [*"bad", "end"], target,
                      [*"dab"], steps=(1, 2, 3)), alt="…", caption="…")

    `source` and `target` are the ids of one sentence, (1, source) and (1, target), the
    target with the start token in front and the end token behind. The bars and the
    thickness of the green lines are the weights. Where the model would write another
    word than the target's, the picture says so.
    """
    n = source.shape[1]
    require_toy(n=(n, 6))
    if len(source_words) != n or len(target_words) < max(steps):
        raise ValueError(
            f"{len(source_words)} source words for {n} tokens and {len(target_words)} "
            f"target words for step {max(steps)}; give one word for each."
        )
    panels = list(forward(model, source, target))
    followed = target[0, 1:].tolist()
    d_hidden = panels[0].decoder_state.shape[-1]
    sizes = {"n": n, "d_hidden": d_hidden, "2d_hidden": 2 * d_hidden}

    def draw(columns: int) -> Drawing:
        rows = -(-len(steps) // columns)
        d = Drawing(WIDE * columns + 8, (HIGH + 8) * rows, sizes)
        for i, t in enumerate(steps):
            left, top = 4 + WIDE * (i % columns), (HIGH + 8) * (i // columns)
            if i % columns:
                d.line(path("M", left - 2, top + 8, "v", HIGH - 16), "grid", 1)
            elif i:
                d.line(path("M", 30, top - 4, "h", WIDE * columns - 60), "grid", 1)
            panel, read = panels[t - 1], ("start", *target_words)[t - 1]
            word = target_words[t - 1]
            written = word if panel.token == followed[t - 1] else f"not {word}"
            _encoder(d, left, top, panel.states, source_words)
            _attention(d, left, top, panel.weights, panel.context, t)
            _decoder(d, left, top, panel.decoder_state, t, read, written)
        return d

    return Diagram(draw(len(steps)), draw(1))


def trained_reverser(steps: int = 200) -> Seq2SeqAttention:
    """Train a small model, for some seconds, to write two to five letters backwards.

    Other random numbers stay as they are. Used in chapter 03.
    """

    def batch(step: int, own: torch.Generator) -> Any:
        length = int(torch.randint(2, 6, (1,), generator=own))
        return synthetic.reverse(48, own, length, n_letters=10)

    with torch.random.fork_rng(devices=[]):
        runtime.seed(0)
        model = Seq2SeqAttention(14, 14, d_embedding=16, d_hidden=32)
        how = {"lr": 1e-2, "seed": 0, "device": "cpu", "progress": False}
        train(model, batch, translation_loss, steps=steps, **how)  # type: ignore
    return model


class Panel(NamedTuple):
    """What one step of the decoder computed."""

    states: Tensor  # (source, 2 * d_hidden)
    weights: Tensor  # (source,)
    context: Tensor  # (2 * d_hidden,)
    decoder_state: Tensor  # (d_hidden,)
    token: int  # the most probable one


def forward(model: Seq2SeqAttention, source: Tensor, target: Tensor) -> Iterator[Panel]:
    """Run the decoder over the target, and keep what each step computed."""
    with torch.no_grad():
        state, decoder = model.start(source), model.decoder
        for token in decoder.embedding(target).unbind(1):
            context, weights, state = decoder.look(token, state)
            logits = decoder.readout(state.decoder_state, context, token)
            yield Panel(
                state.encoder_states[0],
                weights[0],
                context[0],
                state.decoder_state[0],
                int(logits.argmax()),
            )


def _columns(left: float, n: int) -> list[float]:
    step = min(48.0, (WIDE - 44) / n)
    return [left + WIDE / 2 + 8 + step * (j - (n - 1) / 2) for j in range(n)]


def _encoder(
    d: Drawing, left: float, top: float, states: Tensor, words: Sequence[str]
) -> None:
    """Two rows of states, read in opposite directions, and the words below them."""
    columns = _columns(left, len(words))
    for row, y in enumerate(ROWS):
        for a, b in pairwise(columns):
            start, end = (a + 10, b - 10) if row == 0 else (b - 10, a + 10)
            d.arrow((start, top + y), (end, top + y), thick=1.2)
    crowded = max(map(len, words)) * 7 > columns[1] - columns[0]
    for j, (x, word) in enumerate(zip(columns, words)):
        for y in ROWS:
            d.box(x, top + y, 20, 20, role="grey", fill=0.5, thick=1)
        d.text(x, top + (326 if crowded and j % 2 else 312), word, 12)
    d.text(
        left + WIDE / 2 + 8, top + 346, f"states {d.names(states)}", 12, fill="muted"
    )


def _attention(
    d: Drawing, left: float, top: float, weights: Tensor, context: Tensor, t: int
) -> None:
    """The old state asks every position; the bars are what the softmax gives."""
    columns, node = _columns(left, len(weights)), top + NODE
    down = (left + OLD - 30, top + STATE), (left + OLD - 30, node)
    d.arrow(*down, (columns[-1] + 6, node), role="queries", head=False)
    d.text(left + OLD - 40, top + 190, "scores", 12, fill="muted", upright=True)
    for x, weight in zip(columns, weights.tolist()):
        d.arrow((x, top + ROWS[0] - 11), (x, node + 6), role="keys", thick=1.4)
        d.add("circle", cx=x, cy=node, r=4.5, fill=colour("queries"))
        high = max(1.5, BAR * weight)
        roof = top + TOP - high
        bar = {"x": x - 9, "y": roof, "width": 18, "height": high}
        d.add("rect", **bar, fill=colour("weights"))
        if weight >= VISIBLE:
            d.text(x, roof - 8, f"{weight:.2f}".lstrip("0"), 12)
            way = (x, roof - 16), (left + NEW, top + CONTEXT + 13)
            d.arrow(*way, role="values", thick=0.6 + 5 * weight, head=False)
    at = left + NEW, top + CONTEXT
    d.box(*at, 52, 26, f"$c_{t}$", "values", False, size=15, opaque=True)
    d.text(at[0] + 31, at[1], d.names(context), 12, "start", "muted")


def _decoder(
    d: Drawing,
    left: float,
    top: float,
    state: Tensor,
    t: int,
    read: str,
    written: str,
) -> None:
    """The step from one state to the next, which reads the last word."""
    y, old, new = top + STATE, left + OLD, left + NEW
    for x, number in ((old, t - 1), (new, t)):
        d.box(x, y, 60, 28, f"$h^dec$$_{number}$", size=15, opaque=True)
    d.text(old, y - 24, d.names(state), 12, fill="muted")
    d.arrow((old + 30, y), (new - 30, y))
    d.arrow((new, top + CONTEXT - 13), (new, y + 14), role="values")
    d.arrow((new + 58, y), (new + 30, y))
    d.text(new + 60, y - 12, read, 12, fill="muted")
    d.arrow((new, y - 14), (new, top + 26))
    d.text(new, top + 14, written, 15, bold=True)
