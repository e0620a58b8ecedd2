"""The path of one prediction through two layers of heads, drawn from their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.models.attention_only import AttentionBlock, AttentionOnly

CELL, LEFT = 19.0, 82.0


def blocks_of(model: AttentionOnly) -> list[AttentionBlock]:
    """The layers of a model."""
    return [cast(AttentionBlock, block) for block in model.blocks]


def circuit_path(
    model: AttentionOnly, tokens: Tensor, words: Sequence[str], query: int
) -> Diagram:
    """Draw how the token at `query` comes to its prediction (chapter 17).

    The top row of cells is the last layer's head at `query`. The row below is the first
    layer's head at the position that the last one looks at most. A model with one head
    a layer, and one row of tokens.
    """
    n = tokens.shape[1]
    require_toy(n=(n, 13))
    heads = [block.attention.n_heads for block in blocks_of(model)]
    if heads != [1, 1]:
        raise ValueError(
            f"the layers have {heads} heads, expected 2 layers of one head each."
        )
    if not 0 <= query < n or len(words) != n:
        raise ValueError(
            f"query is {query} and there are {len(words)} words, expected a position "
            f"below {n} and a word for each."
        )
    with torch.no_grad():
        logits, weights = model(tokens, need_weights=True)
    last = weights[1, 0, 0, query]  # type: ignore[index]
    found = int(last.argmax())
    first = weights[0, 0, 0, found]  # type: ignore[index]
    chance, named = logits[0, query].softmax(dim=-1).max(dim=-1)
    said = words[tokens[0].tolist().index(int(named))] if named in tokens else "?"
    d = Drawing(LEFT + CELL * 13 + 12, 272)

    def centre(i: int) -> float:
        return LEFT + CELL * (i + 0.5)

    def cells(top: float, row: Tensor, name: str) -> None:
        d.text(LEFT - 8, top + CELL / 2, name, 12, "end")
        d.weights(LEFT, top, CELL, [row.tolist()])
        d.box(LEFT + CELL * n / 2, top + CELL / 2, CELL * n, CELL, fill=0, thick=1)

    for i, word in enumerate(words):
        role = {query: "queries", found: "values", int(first.argmax()): "keys"}
        d.box(centre(i), 250, CELL - 2, 24, role=role.get(i, "grey"), thick=1)
        d.text(centre(i), 250, word, 13, bold=i in role)
    d.text(LEFT - 8, 250, "tokens", 12, "end")
    cells(178, first, f"1: at “{words[found]}”")
    cells(92, last, f"2: at “{words[query]}”")
    source = int(first.argmax())
    d.arrow((centre(source), 237), (centre(source), 199), role="keys")
    d.arrow((centre(source), 177), (centre(source), 148), (centre(found), 148))
    d.arrow((centre(found), 148), (centre(found), 113), role="keys")
    d.text(centre(source) - 7, 162, f"“before me: {words[source]}”", 12, "end")
    d.arrow((centre(query), 237), (centre(query), 113), role="queries")
    d.arrow(
        (centre(found), 91), (centre(found), 56), (centre(query), 56), role="values"
    )
    d.arrow((centre(query), 56), (centre(query), 34), role="values")
    d.text(centre(query), 20, f"{said}  {chance:.2f}", 14, bold=True)
    return Diagram(d)
