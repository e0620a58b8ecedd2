"""Recurrent networks: a loop and its steps; a translator with one vector between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.display.svg import path
from course_utils.display.trace import trace
from course_utils.models.rnn import Seq2Seq

CELL = 9.0


def unrolled(rnn: nn.RNN, x: Tensor, words: Sequence[str]) -> Diagram:
    """Draw a recurrent network as a loop, and the same weights step by step (ch. 02).

        diagrams.show(unrolled(nn.RNN(4, 6), x, words), alt="…")

    `x` is (token, d_in), one row for each of `words`; the states are those of a forward
    pass, drawn cell by cell.
    """
    n, d_in = x.shape
    d_hidden = rnn.hidden_size
    require_toy(n=(n, 4), d_in=(d_in, 5), d_hidden=(d_hidden, 6))
    _require_words("words", words, n)
    states = trace(rnn, x)["squeeze"].output
    sizes = {"d_input": d_in, "d_hidden": d_hidden}

    def step(d: Drawing, at: float, y: float, t: str, vector: Tensor) -> None:
        """One step at `at`: the input below, the box, the state above."""
        d.tensor(at, y + 92, vector[:, None], "grey", cell=CELL, label=False)
        d.text(at + 18, y + 92, f"$x_{t}$", 15)
        d.arrow((at, y + 92 - CELL * d_in / 2 - 3), (at, y + 19))
        d.text(at + 14, y + 40, "$W$", 14, fill="muted")
        d.box(at, y, 52, 36, "tanh")

    def state(d: Drawing, at: float, y: float, t: str, vector: Tensor) -> None:
        d.arrow((at, y - 19), (at, y - 36))
        top = y - 39 - CELL * d_hidden / 2
        d.tensor(at, top, vector[:, None], "keys", cell=CELL, label=False)
        d.text(at + 18, top, f"$h_{t}$", 15)

    def steps(d: Drawing, left: float, gap: float, y: float) -> None:
        d.arrow((left - gap + 22, y), (left - 27, y))
        d.text(left - gap + 10, y, "$h_0$", 15)
        for t in range(n):
            at = left + gap * t
            step(d, at, y, str(t + 1), x[t])
            state(d, at, y, str(t + 1), states[t])
            d.text(at, y + 128, words[t])
            d.arrow((at + 26, y), (at + gap - 27, y))
            d.text(at + gap / 2, y - 12, "$U$", 14, fill="muted")

    def folded(d: Drawing, at: float, y: float) -> None:
        step(d, at, y, "t", x[0])
        state(d, at, y, "t", states[0])
        loop = (at + 26, y), (at + 50, y), (at + 50, y - 28), (at - 50, y - 28)
        d.arrow(*loop, (at - 50, y), (at - 27, y))
        d.text(at + 62, y - 14, "$U$", 14, fill="muted")
        shape = f"$x$: {d.names(x[0])}, $h$: {d.names(states[0])}"
        d.text(at, y + 128, shape, fill="muted")

    def wide() -> Drawing:
        d = Drawing(736, 268, sizes)
        folded(d, 92, 118)
        d.text(202, 118, "=", 20)
        steps(d, 320, 104, 118)
        return d

    def narrow() -> Drawing:
        d = Drawing(340, 552, sizes)
        folded(d, 170, 118)
        d.text(170, 276, "the same, step by step", fill="muted")
        steps(d, 78, 72, 404)
        return d

    return Diagram(wide(), narrow())


def encoder_decoder(
    model: Seq2Seq,
    source: Tensor,
    target_in: Tensor,
    words: Sequence[str],
    said: Sequence[str],
) -> Diagram:
    """Draw a translator whose decoder gets one vector of the source (chapter 02).

    `source` and `target_in` are rows of ids, of which the first is drawn; `words` names
    the tokens of the source, `said` those that the decoder reads and then the last one
    that it writes.
    """
    record = trace(model, source, target_in)
    context = record["encoder"].outputs[1][0]
    states = record["encoder"].outputs[0][0]
    decoder_states, logits = record["decoder"].outputs[0][0], record["readout"].output
    n_source, n_target = source.shape[1], target_in.shape[1]
    d_hidden = model.encoder.forwards.hidden_size
    require_toy(n_source=(n_source, 4), n_target=(n_target, 4), d_hidden=(d_hidden, 6))
    _require_words("words", words, n_source)
    _require_words("said", said, n_target + 1)
    sizes = {"batch": len(source), "n_source": n_source, "n_target": n_target}
    sizes |= {"d_hidden": d_hidden, "2 d_hidden": 2 * d_hidden}
    sizes |= {"n_vocab": logits.shape[-1]}

    def encoder(d: Drawing, left: float, gap: float, y: float, end: float) -> None:
        """Two readers above the words, whose last states go right to `end`."""
        for i, word in enumerate(words):
            at = left + gap * i
            d.text(at, y + 104, word)
            d.arrow((at, y + 94), (at, y + 76))
            d.arrow((at + 15, y + 94), (at + 15, y + 16))
            for row, way in ((y + 60, 1), (y, -1)):
                d.box(at, row, 38, 30, "GRU", size=12, opaque=True)
                if 0 <= i + way < n_source:
                    d.arrow((at + 20 * way, row), (at + (gap - 20) * way, row))
        last = left + gap * (n_source - 1)
        d.arrow((last + 20, y + 60), (end, y + 60), role="values", thick=2.4)
        over = (left, y - 16), (left, y - 34), (end, y - 34)
        d.arrow(*over, role="values", thick=2.4)

    def decoder(d: Drawing, left: float, gap: float, y: float) -> None:
        for t in range(n_target):
            at = left + gap * t
            d.text(at, y + 104, said[t])
            d.arrow((at, y + 94), (at, y + 16))
            d.box(at, y, 42, 30, "GRU", size=12, opaque=True)
            d.arrow((at, y - 16), (at, y - 48))
            d.text(at, y - 58, said[t + 1], bold=True)
            if t + 1 < n_target:
                d.arrow((at + 22, y), (at + gap - 22, y))

    def fed(d: Drawing, left: float, gap: float, y: float, start: float) -> None:
        """The context, which every step of the decoder reads, along a rail."""
        rail, last = y + 60, left + gap * (n_target - 1) - 13
        role: dict[str, Any] = {"role": "values", "thick": 2.4}
        d.arrow((start, rail), (last, rail), (last, y + 16), **role)
        for t in range(n_target - 1):
            at = left + gap * t - 13
            d.arrow((at, rail), (at, y + 16), **role)

    def wide() -> Drawing:
        d, y = Drawing(736, 268, sizes), 112
        d.text(118, 18, "encoder", bold=True)
        d.text(576, 18, "decoder", bold=True)
        encoder(d, 40, 66, y, 324)
        d.tensor(336, y + 13, context[:, None], "values", "$c$", CELL, label=False)
        d.shape(336, y + 13 + CELL * d_hidden + 14, context)
        d.text(336, 240, "all that the decoder gets", fill="muted")
        d.arrow((346, y), (440, y), role="values", thick=2.4)
        fed(d, 462, 96, y, 346)
        decoder(d, 462, 96, y)
        d.text(118, 252, f"states {d.names(states)}", fill="muted")
        d.text(576, 252, f"states {d.names(decoder_states)}", fill="muted")
        return d

    def narrow() -> Drawing:
        d = Drawing(340, 560, sizes)
        d.text(150, 14, "encoder", bold=True)
        encoder(d, 30, 72, 84, 306)
        d.line(path("M", 306, 50, "v", 94), "values", 2.4)
        d.arrow(
            (306, 144),
            (306, 250),
            (170 + CELL * d_hidden + 6, 250),
            role="values",
            thick=2.4,
        )
        d.tensor(170, 250, context[None], "values", "", CELL, label=False)
        d.text(170, 228, "$c$", 16)
        d.text(84, 272, d.names(context), fill="muted")
        d.text(236, 276, "all that the\ndecoder gets", fill="muted")
        d.text(170, 318, "decoder", bold=True)
        d.arrow(
            (170 - CELL * d_hidden - 3, 250),
            (16, 250),
            (16, 480),
            (40, 480),
            head=False,
            role="values",
            thick=2.4,
        )
        d.arrow((16, 420), (54, 420), role="values", thick=2.4)
        fed(d, 76, 92, 420, 40)
        decoder(d, 76, 92, 420)
        return d

    return Diagram(wide(), narrow())


def _require_words(name: str, words: Sequence[str], wanted: int) -> None:
    if len(words) != wanted:
        raise ValueError(
            f"{name} holds {len(words)} words for {wanted} of them; give one each."
        )
