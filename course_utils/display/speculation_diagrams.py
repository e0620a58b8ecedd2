"""Speculative decoding, pass by pass: what was drafted, kept, rejected and added."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from course_utils.display.drawing import Diagram, Drawing
from course_utils.display.svg import path
from course_utils.evaluation.speculative import Round

WIDE, HIGH, GAP = 58.0, 24.0, 38.0
LEFT = 32.0
LEGEND = {"kept": "green", "rejected": "red", "dropped": "grey", "model's": "blue"}


def passes(rounds: Sequence[Round], word: Callable[[int], str]) -> Diagram:
    """Draw rounds as rows: drafted tokens, and the one that the model added.

    `word(token)` is what stands in a box; of a long word the first letters do.
    diagrams.show(passes(run.rounds, word), alt="…", caption="…")
    """
    most = max((len(r.drafted) for r in rounds), default=0)
    if not 1 <= most <= 4 or len(rounds) > 12:
        raise ValueError(
            f"{len(rounds)} rounds with up to {most} drafted tokens, but the picture "
            "has room for 12 rounds of 1 to 4 tokens."
        )
    d = Drawing(round(LEFT + WIDE * (most + 1) + 18), round(GAP * len(rounds) + 48))
    own = LEFT + WIDE * (most + 0.5) + 14
    d.text(LEFT + WIDE * most / 2, 10, "drafted", fill="muted")
    d.text(own, 10, "added", fill="muted")
    for row, made in enumerate(rounds):
        y = 36 + GAP * row
        d.text(12, y, str(row + 1), 13, fill="muted")
        for i, token in enumerate(made.drafted):
            x = LEFT + WIDE * (i + 0.5)
            kind = "kept" if i < made.accepted else "rejected"
            kind = "dropped" if i > made.accepted else kind
            _token(d, x, y, word(token), LEGEND[kind])
            if kind == "rejected":
                d.line(path("M", x - WIDE / 2 + 4, y, "h", WIDE - 8), "red", 1.6)
        last = LEFT + WIDE * len(made.drafted)
        d.arrow((last + 1, y), (own - WIDE / 2 + 3, y), role="muted", thick=1.2)
        _token(d, own, y, word(made.written[-1]), LEGEND["model's"])
    below = 36 + GAP * len(rounds)
    step = (d.width - 8) / len(LEGEND)
    for i, (name, role) in enumerate(LEGEND.items()):
        d.box(14 + step * i, below, 14, 14, role=role, fill=0.45, thick=0)
        d.text(25 + step * i, below, name, 12, "start")
    return Diagram(d)


def _token(d: Drawing, x: float, y: float, text: str, role: str) -> None:
    """One token in its box."""
    short = text if len(text) <= 7 else f"{text[:6]}…"
    d.box(x, y, WIDE - 4, HIGH, short, role=role, fill=0.3, size=12, thick=0)
