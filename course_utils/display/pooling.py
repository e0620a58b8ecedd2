"""A document as one weighted average of word vectors: weights with no question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.display.svg import path
from course_utils.display.trace import trace

CELL = 17.0


def weighted_average(
    model: Callable[[Tensor], Tensor],
    tokens: Tensor,
    words: Sequence[str],
    classes: Sequence[str],
) -> Diagram:
    """Draw words, vectors, static weights, their sum and a class (chapter 01).

        diagrams.show(weighted_average(model, tokens, words, classes), alt="…")

    `model` looks up a score and a vector for each of `tokens`, takes a softmax of the
    scores, multiplies the weights with the vectors, and the sum with a read-out. What
    is drawn are the tensors of that forward pass; the largest logit names the class.
    """
    record = trace(model, tokens)
    weights, vectors = record["softmax"].output, record["matmul"].inputs[1]
    scores = record["softmax"].inputs[0]
    context, logits = record["matmul"].output, record["matmul:2"].output
    n, d_word = vectors.shape
    n_classes = len(logits)
    require_toy(n=(n, 5), d=(d_word, 6), n_classes=(n_classes, 4))
    for name, given, wanted in (("words", words, n), ("classes", classes, n_classes)):
        if len(given) != wanted:
            raise ValueError(
                f"{name} holds {len(given)} names for {wanted} of them; give one each."
            )
    sizes = {"n": n, "d": d_word, "n_classes": n_classes}
    chosen, high = int(logits.argmax()), CELL * n

    def named(d: Drawing, x: float, y: float) -> None:
        """The words, one below the other, as high as a column of cells."""
        for i, word in enumerate(words):
            d.text(x, y - high / 2 + CELL * (i + 0.5), word, anchor="end")

    def column(d: Drawing, x: float, y: float, values: Tensor, name: str) -> None:
        is_weight = values is weights
        d.tensor(x, y, values[:, None], "weights", name, CELL, ramp=is_weight)

    def answer(d: Drawing, x: float, y: float) -> None:
        for i, name in enumerate(classes):
            row = y + CELL * (i - (n_classes - 1) / 2)
            fill = "ink" if i == chosen else "muted"
            d.text(x, row, name, anchor="start", fill=fill, bold=i == chosen)

    def barred(d: Drawing, x: float, end: float, y: float) -> None:
        """A question that does not reach the weights at `x`."""
        d.box(end + 40, y, 80, 28, "a question", learned=False)
        d.arrow((end, y), (x + 12, y), head=False)
        cross = path("M", x - 5, y - 5, "l", 10, 10, "m", 0, -10, "l", -10, 10)
        d.line(cross, "red", 2.4)

    def wide() -> Drawing:
        d, upper, lower = Drawing(736, 326, sizes), 92, 244
        middle = (upper + lower) / 2
        named(d, 88, middle)
        for y, text, end in ((upper, "a score\nfor each word", 264), (lower, "", 246)):
            d.arrow((94, middle), (110, middle), (110, y), (132, y))
            d.box(180, y, 94, 44, text or "a vector\nfor each word")
            d.arrow((227, y), (end, y))
        column(d, 280, upper, scores, "$s$")
        d.arrow((295, upper), (330, upper))
        d.box(366, upper, 70, 30, "softmax", learned=False)
        d.arrow((401, upper), (432, upper))
        column(d, 448, upper, weights, "$a$")
        d.arrow((448, upper + high / 2 + 26), (448, lower - 17), role="weights")
        barred(d, 476, 566, upper)
        d.text(502, upper + 40, "the same weights,", anchor="start")
        d.text(502, upper + 56, "whatever is asked", anchor="start")
        left = 252 + CELL * d_word / 2
        d.tensor(left, lower, vectors, "grey", "$X$", CELL)
        d.arrow((left + CELL * d_word / 2 + 6, lower), (418, lower))
        d.box(448, lower, 58, 32, "$Σ a_t x_t$", learned=False, size=15)
        d.arrow((478, lower), (494, lower))
        across = 498 + CELL * d_word / 2
        d.tensor(across, lower, context[None], "values", "$c$", CELL)
        right = across + CELL * d_word / 2
        d.arrow((right + 4, lower), (right + 20, lower))
        d.box(right + 41, lower, 40, 32, "$W$", size=15)
        d.arrow((right + 62, lower), (right + 76, lower))
        answer(d, right + 80, lower)
        return d

    def narrow() -> Drawing:
        d, left, right = Drawing(340, 536, sizes), 92, 246
        named(d, 200, 12 + high / 2)
        for x, text in ((left, "a score\nfor each word"), (right, "")):
            d.arrow((170, high + 18), (170, high + 28), (x, high + 28), (x, high + 44))
            d.box(x, high + 67, 100, 44, text or "a vector\nfor each word")
            d.arrow((x, high + 90), (x, high + 112))
        y = high + 116 + high / 2
        d.tensor(left, y, scores[:, None], "weights", "", CELL)
        d.text(left - 24, y, "$s$", 16)
        d.tensor(right, y, vectors, "grey", "", CELL)
        d.text(right - CELL * d_word / 2 - 14, y, "$X$", 16)
        below = y + high / 2 + 24
        d.arrow((left, below), (left, below + 18))
        d.box(left, below + 33, 70, 28, "softmax", learned=False)
        d.arrow((left, below + 48), (left, below + 64))
        y = below + 68 + high / 2
        d.tensor(left, y, weights[:, None], "weights", "", CELL, ramp=True)
        d.text(left - 24, y, "$a$", 16)
        d.arrow((left + 14, y), (right - 30, y), role="weights")
        d.arrow((right, below), (right, y - 18))
        d.box(right, y, 58, 32, "$Σ a_t x_t$", learned=False, size=15)
        d.arrow((right, y + 17), (right, y + 46))
        d.tensor(right, y + 58, context[None], "values", "", CELL)
        d.text(right - CELL * d_word / 2 - 14, y + 58, "$c$", 16)
        note = "the same weights,\nwhatever is asked"
        d.text(left, y + high / 2 + 44, note)
        d.arrow((right, y + 86), (right, y + 106))
        d.box(right, y + 122, 40, 30, "$W$", size=15)
        d.arrow((right - 20, y + 122), (right - 50, y + 122))
        answer(d, right - 118, y + 122)
        return d

    return Diagram(wide(), narrow())
