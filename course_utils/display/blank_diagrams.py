"""A blank read from both sides and from one, and an adapter, drawn from what runs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from course_utils.data.corpus import BOS, Vocabulary
from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.models.bert import BERT, SentenceClassifier
from course_utils.models.lora import LoRALinear, add_lora, trainable
from course_utils.models.transformer import GPT
from course_utils.tasks.labels import MASK

CELL, LEFT = 22.0, 74.0
COLUMN, ROW = 88.0, 36.0


def ways_to_use(body: BERT, rank: int = 4) -> dict[str, BERT | SentenceClassifier]:
    """Make the four models that differ in what learns; `body` stays as it is."""
    require_toy(n_layers=(len(body.blocks), 4))
    ask = copy.deepcopy(body).requires_grad_(False)
    probe, tuned, adapted = (
        SentenceClassifier(copy.deepcopy(body), 2) for _ in range(3)
    )
    for frozen in (probe, adapted):
        frozen.body.requires_grad_(False)
    add_lora(adapted.body.blocks, rank)
    return {"ask": ask, "probe": probe, "fine-tune": tuned, "LoRA": adapted}


def four_ways(models: Mapping[str, BERT | SentenceClassifier]) -> Diagram:
    """Draw what learns in each model (solid) and what stays as it was (dashed).

    An adapter is a small box beside its block. The numbers are counted in the models
    (chapter 18).
    """
    bodies = [m if isinstance(m, BERT) else m.body for m in models.values()]
    high = 40 + ROW * (2 + max(len(body.blocks) for body in bodies))
    d = Drawing(COLUMN * len(models), high + 40)
    for i, (title, model) in enumerate(models.items()):
        body, head, x = bodies[i], model.head, COLUMN * (i + 0.5)
        d.text(x, 14, title, 14, bold=True)
        d.arrow((x, high + 8), (x, 30), head=True)
        rows: list[tuple[str, list[nn.Module]]]
        rows = [("words", [body.embedding, body.positions])]
        rows += [(f"block {k}", [b]) for k, b in enumerate(body.blocks, 1)]
        rows += [("which word?" if model is body else "which class?", [head])]
        for k, (name, modules) in enumerate(rows):
            y = high - ROW * (k + 0.5)
            own = [p for m in modules for p in _without_adapters(m)]
            learned = any(p.requires_grad for p in own)
            d.box(x, y, 78, 25, name, learned=learned, size=12, opaque=True)
            if any(isinstance(m, LoRALinear) for b in modules for m in b.modules()):
                d.box(x + 34, y - 13, 16, 13, "", role="queries", opaque=True)
        d.text(x, high + 24, f"{trainable(model):,}", 13)
    return Diagram(d)


def _without_adapters(module: nn.Module) -> Iterable[nn.Parameter]:
    """The parameters that were there before any adapter."""
    for name, parameter in module.named_parameters():
        if not name.endswith((".up", ".down")):
            yield parameter


def two_readings(
    bert: BERT, gpt: GPT, sentence: Sequence[str], blank: int, words: Vocabulary
) -> Diagram:
    """Draw how both models read a sentence whose word number `blank` is hidden.

    Attention of the last layer, mean over heads, and the likeliest words for the blank:
    from the blank itself in BERT, from the token before it in GPT (chapter 18).
    """
    require_toy(n=(len(sentence), 8))
    if not 0 < blank < len(sentence):
        raise ValueError(
            f"blank is {blank}, expected a word after the first and below "
            f"{len(sentence)}."
        )
    tokens = torch.tensor([[BOS, *words.encode(sentence)]])
    tokens[0, blank + 1] = words.ids[MASK]
    hidden = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)
    panels = [
        _panel("BERT: both sides", bert, tokens, blank + 1, words, None),
        _panel("GPT: the left side", gpt, tokens, blank, words, hidden),
    ]
    width, height = panels[0].width, panels[0].height
    wide, narrow = Drawing(2 * width, height), Drawing(width, 2 * height)
    for drawing, right, down in ((wide, width, 0.0), (narrow, 0.0, height)):
        for i, panel in enumerate(panels):
            shift = f"translate({i * right:g} {i * down:g})"
            drawing.add("g", "".join(panel.parts), transform=shift)
    return Diagram(wide, narrow)


def _panel(
    title: str,
    model: GPT,
    tokens: Tensor,
    row: int,
    words: Vocabulary,
    blocked: Tensor | None,
) -> Drawing:
    """One square of weights with its words, and bars of the likeliest words."""
    with torch.no_grad():
        logits, maps = model(tokens, need_weights=True)
    weights = maps[-1, 0].mean(dim=0)  # type: ignore[index]
    n = tokens.shape[1]
    names = [words.tokens[i] for i in tokens[0].tolist()]
    names = ["___" if name == MASK else name for name in names]
    d = Drawing(LEFT + 8 * CELL + CELL + 14, 88 + 9 * CELL + 96)
    d.text(LEFT + CELL * n / 2, 14, title, 14, bold=True)
    square = (LEFT + CELL * n / 2, 96 + CELL * n / 2)
    style = {"role": "weights", "cell": CELL, "ramp": True, "label": False}
    d.tensor(*square, weights, row=row, blocked=blocked, **style)  # type: ignore[arg-type]
    for i, name in enumerate(names):
        d.text(LEFT - 6, 96 + CELL * (i + 0.5), name, 12, "end", bold=i == row)
        d.text(LEFT + CELL * (i + 0.5), 88, name, 12, "start", upright=True)
    top = logits[0, row].softmax(dim=-1).topk(3)
    for k, (chance, i) in enumerate(zip(top.values.tolist(), top.indices.tolist())):
        y = 96 + CELL * n + 22 + 24 * k
        d.text(LEFT - 6, y, words.tokens[i], 13, "end")
        d.box(LEFT + 65 * chance, y, 130 * chance, 15, role="weights", fill=0.7)
        d.text(LEFT + 130 * chance + 6, y, f"{chance:.2f}", 12, "start", fill="muted")
    return d


def adapter(layer: LoRALinear, x: Tensor) -> Diagram:
    """Draw a layer with its adapter: W, fixed, and beside it D and U (chapter 18)."""
    rank, d_in = layer.down.shape
    d_out = layer.out_features
    require_toy(d_in=(d_in, 12), d_out=(d_out, 12), rank=(rank, 4))
    with torch.no_grad():
        inner, y = x @ layer.down.T, layer(x)
    sizes = {"d_in": d_in, "d_out": d_out, "r": rank, "batch": len(x)}
    d = Drawing(350, 372, sizes)
    left, right = 95.0, 250.0
    d.text(170, 352, "$x$", 16)
    d.shape(222, 352, x)
    d.arrow((158, 348), (left, 348), (left, 262))
    d.arrow((182, 338), (182, 324), (right, 324), (right, 313))
    whole = layer.base.weight
    d.tensor(left, 205, whole, "muted", "$W$, fixed", 10)
    d.tensor(right, 276, layer.down, "queries", "", 10, learned=True)
    d.text(right - 66, 276, "$D$", 16, "end")
    d.arrow((right, 258), (right, 226))
    d.shape(right + 56, 244, inner)
    d.tensor(right, 165, layer.up, "queries", "", 10, learned=True)
    d.text(right - 24, 165, "$U$", 16, "end")
    d.arrow((left, 148), (left, 60), (162, 60))
    d.arrow((right, 122), (right, 60), (178, 60))
    d.text(right + 12, 92, "$× α / r$", 14, "start")
    d.plus(170, 60)
    d.arrow((170, 50), (170, 26), head=True)
    d.text(170, 14, "$y$", 16)
    d.shape(228, 14, y)
    return Diagram(d)
