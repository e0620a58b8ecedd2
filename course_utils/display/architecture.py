"""The whole transformer as a diagram, and as the small map that opens every chapter.

Every box leads to the chapter that teaches it: on the site the pages lie side by side;
in a notebook the link leads nowhere and does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor, nn

from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.display.trace import trace
from course_utils.models.transformer import Transformer

# The page of each chapter, and what it is about in a few words.
CHAPTERS = {
    "01": ("01_static_weights", "fixed weights for words"),
    "02": ("02_seq2seq_bottleneck", "a sentence in one vector"),
    "03": ("03_bahdanau_attention", "attention in a recurrent translator"),
    "04": ("04_attention_family", "one operator, many scores"),
    "05": ("05_basic_self_attention", "self-attention with nothing learned"),
    "06": ("06_queries_keys_values", "queries, keys and values"),
    "07": ("07_permutation_equivariance", "attention sees a set"),
    "08": ("08_positional_encodings", "position encodings"),
    "09": ("09_masking", "masks"),
    "10": ("10_multi_head", "several heads"),
    "11": ("11_transformer_block", "the transformer block"),
    "12": ("12_transformer", "the transformer"),
    "13": ("13_decoder_only", "GPT, a decoder alone"),
    "14": ("14_vision_and_cross_attention", "images and cross-attention"),
    "15": ("15_cost_and_scaling", "what it costs"),
    "16": ("16_todays_block", "today's block"),
    "17": ("17_inside_a_transformer", "a circuit inside a trained model"),
    "18": ("18_pretrain_and_adapt", "learn once, use often"),
    "19": ("19_faster_and_larger", "faster and larger"),
}
LAYERS = ("attention", "cross_attention", "feed_forward")
# Of each attention of the transformer: number, name, and the chapter that teaches it.
ATTENTIONS = {
    "encoder.attention": (1, "self-\nattention", "10"),
    "decoder.attention": (2, "masked\nself-\nattention", "09"),
    "decoder.cross_attention": (3, "cross-\nattention", "06"),
}
Place = Callable[[float], float]  # from the outer edge of a column to x


def _address(chapter: str) -> tuple[str, str]:
    page, topic = CHAPTERS[chapter]
    return f"{page}.html", f"Chapter {chapter}: {topic}"


class _Whole:
    """A transformer in two columns, each with its stream at the outer side."""

    def __init__(self, model: Transformer, source: Tensor, target: Tensor):
        self.model = model
        self.record = trace(model, source, target, need_weights=True)
        n_words, d_model = model.target_embedding.weight.shape
        sizes = {"batch": len(source), "n": source.shape[1], "m": target.shape[1]}
        sizes |= {"d_model": d_model, "n_words": n_words}
        self.drawing = Drawing(340, 600, sizes)
        self.hand_over(self.column("encoder", source, lambda x: x))
        self.predict(self.column("decoder", target, lambda x: 340 - x))
        self.legend()

    def part(
        self,
        chapter: str,
        text: str,
        x: float,
        y: float,
        wide: float,
        high: float,
        **style: Any,
    ) -> None:
        """A box that leads to its chapter."""
        with self.drawing.link(*_address(chapter)):
            self.drawing.box(x, y, wide, high, text, opaque=True, **style)

    def column(self, name: str, tokens: Tensor, place: Place) -> float:
        """Draw encoder or decoder from its tokens up; return where its norm stands."""
        d, stream, middle = self.drawing, place(28), place(82)
        blocks = getattr(self.model, name).blocks
        layers = [layer for layer in LAYERS if hasattr(blocks[0], layer)]
        top = 472 - sum(101 if layer == "feed_forward" else 117 for layer in layers)
        d.box(middle, (top + 500) / 2, 156, 500 - top, thick=1, fill=0.04)
        d.arrow((stream, 550), (stream, top - 8), role="stream", thick=6)
        word = "source" if name == "encoder" else "target"
        d.text(middle, 590, f"{word} tokens, {d.names(tokens[0])}")
        d.arrow((middle, 580), (middle, 570))
        self.part("01", "embedding", middle, 557, 148, 26)
        fixed = "positions" in dict(self.model.named_buffers())
        self.part("08", "positions", place(98), 520, 104, 24, learned=not fixed)
        d.arrow((place(46), 520), (place(37), 520))
        d.plus(stream, 520)
        states = self.record[name].inputs[0][0]
        sides = ("start", "end") if name == "encoder" else ("end", "start")
        d.text(place(40), 488, d.names(states), 12, sides[0], "muted")
        d.text(place(152), 488, f"× {len(blocks)}", 13, sides[1], bold=True)
        y = 468.0
        for layer in layers:
            y = self.sublayer(y, f"{name}.blocks.0.{layer}", place)
        self.part("11", "norm", middle, top - 20, 148, 24)
        return top - 20

    def sublayer(self, y: float, path: str, place: Place) -> float:
        """Draw a norm, a layer and their sum from `y` up; return where to go on."""
        d, stream, x = self.drawing, place(28), place(98)
        d.arrow((stream, y), (x, y), (x, y - 10))
        self.part("11", "norm", x, y - 20, 112, 20, size=12)
        if path.endswith("feed_forward"):
            d.arrow((x, y - 30), (x, y - 44))
            self.part("11", "feed-forward", x, y - 60, 112, 32)
            top = y - 76
        else:
            self.attend(x, y, path)
            top = y - 92
        d.arrow((x, top), (x, top - 11), (place(37), top - 11))
        d.plus(stream, top - 11)
        return top - 25

    def attend(self, x: float, y: float, path: str) -> None:
        """Draw an attention with the weights of its first head, what is masked hatched.

        Queries, keys and values come from the norm below it; in cross-attention the
        norm gives queries alone.
        """
        d, column = self.drawing, path.split(".")[0]
        number, text, chapter = ATTENTIONS[f"{column}.{path.rpartition('.')[2]}"]
        roles = ("queries",) if number == 3 else ("queries", "keys", "values")
        for i, role in enumerate(roles):
            d.arrow((x + 28 * (i - 1), y - 30), (x + 28 * (i - 1), y - 44), role=role)
        weights = self.record[f"{path}.softmax"].output
        blocked = self.record[f"{path}.masked_fill"].inputs[1].expand_as(weights)
        with d.link(*_address(chapter)):
            d.box(x, y - 68, 112, 48, opaque=True, role="ink", fill=0.08)
            d.text(x - 20, y - 68, text, 12)
            style: dict[str, Any] = {"ramp": True, "blocked": blocked[0, 0]}
            at = x + 33, y - 68
            d.tensor(*at, weights[0, 0], "weights", cell=5, label=False, **style)
        d.badge(x + (56 if number == 1 else -56), y - 92, number)

    def hand_over(self, y: float) -> None:
        """Lead the memory from the encoder's norm to the cross-attention."""
        d, to = self.drawing, 468 - 117 - 68
        d.text(82, y - 24, f"memory, {d.names(self.record['encoder'].output[0])}")
        ways = {"keys": (y - 5, 175, to - 8), "values": (y + 5, 168, to + 8)}
        for role, (begin, x, end) in ways.items():
            d.arrow((156, begin), (x, begin), (x, end), (184, end), role=role, bend=4)

    def predict(self, y: float) -> None:
        """Turn the decoder's states into a score for every word."""
        d = self.drawing
        d.arrow((258, y - 12), (258, y - 26))
        self.part("12", "target embedding$^T$", 258, y - 39, 148, 26)
        d.arrow((258, y - 52), (258, y - 64))
        d.text(258, y - 75, f"logits, {d.names(self.record['matmul'].output[0])}")

    def legend(self) -> None:
        """Say what the colours and frames mean."""
        d, x = self.drawing, 12
        for y, name in ((22, "queries"), (42, "keys"), (62, "values")):
            d.arrow((x, y), (x + 26, y), role=name)
            d.text(x + 36, y, name, 12, "start")
        d.line(f"M{x} 83h26", "stream", 6)
        d.text(x + 36, 83, "residual stream", 12, "start")
        for y, name in ((105, "learned"), (127, "fixed")):
            d.box(x + 13, y, 26, 14, learned=name == "learned")
            d.text(x + 36, y, name, 12, "start")
        d.hatch(x + 6, 142, 14)
        d.text(x + 36, 149, "masked", 12, "start")


def transformer(model: Transformer, source: Tensor, target: Tensor) -> Diagram:
    """Draw the whole encoder-decoder, each box a link (chapter 12).

    Its three attentions are numbered and show the weights of their first head.
    """
    require_toy(n=(source.shape[1], 8), m=(target.shape[1], 8))
    if isinstance(model.encoder.norm, nn.Identity):
        raise ValueError(
            "the model has its norms after the sums, but this picture shows them in "
            'the branches; build it with norm="pre", or draw a block by `block`.'
        )
    return Diagram(_Whole(model, source, target).drawing)


# ------------------------------------------------------------------- the map, in small


class _Map:
    """The transformer in small: what one chapter is about is lit."""

    def __init__(self, chapter: str):
        self.chapter, self.drawing = chapter, Drawing(340, 300)
        self.lit: list[str] = []
        d = self.drawing
        self.part("12", "transformer", 114, 13, 220, 22)
        self.part("13", "GPT", 283, 13, 108, 22)
        for x, top, model in ((58, 68, "12"), (170, 30, "12"), (283, 68, "13")):
            d.arrow((x, 197), (x, 63 if x == 58 else 24), head=False, thick=1.2)
            self.frame(x, (top + 163) / 2, 108, 163 - top, {"11", model}, 0.03)
            self.part("11", "feed-forward", x, top + 16, 102, 22, number=False)
            self.part("11", "block", x, 152, 60, 16, framed=False)
            self.part("08", "positions", x, 178, 102, 22)
        self.several("self-attention", 58, 120, ("04", "05", "06", "07", "10"))
        for x in (170, 283):
            self.part("09", "self-attention\nmasked", x, 120, 102, 40)
        self.several("cross-attention", 170, 78, ("03", "14"))
        self.part("02", "memory", 58, 52, 102, 22)
        d.arrow((109, 52), (114, 52), (114, 78), (120, 78), bend=3, thick=1.2)
        self.part("01", "words", 86, 207, 164, 22)
        self.part("14", "image patches", 255, 207, 164, 22)
        self.part("15", "time and space", 170.5, 234, 333, 22)
        self.part("16", "today's block", 86, 261, 164, 22)
        self.part("17", "inside a model", 255, 261, 164, 22)
        self.part("18", "pre-train, adapt", 86, 288, 164, 22)
        self.part("19", "faster, larger", 255, 288, 164, 22)

    def frame(
        self, x: float, y: float, wide: float, high: float, own: set[str], fill: float
    ) -> None:
        """A box, lit if the chapter is one of its own."""
        style: dict[str, Any] = {"fill": fill, "thick": 1}
        if self.chapter in own:
            style = {"fill": 0.14, "thick": 2, "role": "blue"}
        self.drawing.box(x, y, wide, high, opaque=True, **style)

    def link(self, chapter: str, text: str) -> AbstractContextManager[None]:
        """A link to a chapter; remembers what is lit."""
        if chapter == self.chapter:
            self.lit.append(" ".join(text.split()))
        return self.drawing.link(*_address(chapter), here=chapter == self.chapter)

    def part(
        self,
        chapter: str,
        text: str,
        x: float,
        y: float,
        wide: float,
        high: float,
        framed: bool = True,
        number: bool = True,
    ) -> None:
        """A box of one chapter, whose number follows the words."""
        with self.link(chapter, text):
            if framed:
                self.frame(x, y, wide, high, {chapter}, 0.08)
            self.drawing.text(x, y, text, 12, chapter=chapter if number else "")

    def several(self, text: str, x: float, y: float, chapters: Sequence[str]) -> None:
        """A box of several chapters, their numbers below the words."""
        d = self.drawing
        self.frame(x, y, 102, 40, set(chapters), 0.08)
        d.text(x, y - 8, text, 12)
        for i, chapter in enumerate(chapters):
            at, lit = x + 19 * (i - (len(chapters) - 1) / 2), chapter == self.chapter
            with self.link(chapter, text):
                d.box(at, y + 9, 20, 15, role="blue", fill=float(lit), thick=0)
                fill = "surface" if lit else "blue"
                d.text(at, y + 9, chapter, 12, fill=fill, bold=lit)


def map_of(chapter: str) -> tuple[Drawing, str]:
    """The transformer in small, a chapter's part lit, and a sentence that says so."""
    if chapter not in CHAPTERS:
        raise ValueError(
            f"there is no chapter {chapter!r}; expected one of {', '.join(CHAPTERS)}."
        )
    drawn = _Map(chapter)
    parts = " and ".join(dict.fromkeys(drawn.lit))
    topic = CHAPTERS[chapter][1]
    said = f"Where chapter {chapter} ({topic}) stands in the transformer: {parts}."
    return drawn.drawing, said
