"""The operator of attention as a machine with a slot, and the scores that fit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.display.trace import trace
from course_utils.models.scores import (
    AdditiveScore,
    GeneralScore,
    LocationScore,
    attend,
    dot_scores,
    scaled_dot_scores,
)

Score = Callable[[Tensor, Tensor], Tensor]
FORMULAS = {
    "location": "$w_i · q + b_i$",
    "dot": "$q · k_i$",
    "scaled dot": "$q · k_i / √d_k$",
    "general": "$q W k_i^T$",
    "additive": "$tanh(qW + k_i U + b) · v$",
}


def five_plugs() -> tuple[Tensor, Tensor, Tensor, dict[str, Score]]:
    """Toy queries, keys and values, and the five scores of chapter 04 for them.

    Other random numbers stay as they are. Used in chapter 04.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        queries, keys = 2 * torch.randn(2, 3, 4), 2 * torch.randn(2, 5, 4)
        plugs: dict[str, Score] = {
            "location": LocationScore(d_query=4, n_places=5),
            "dot": dot_scores,
            "scaled dot": scaled_dot_scores,
            "general": GeneralScore(4, 4),
            "additive": AdditiveScore(4, 4, d_score=7),
        }
        return queries, keys, torch.randn(2, 5, 6), plugs


def score_slot(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    scores: Mapping[str, Score],
    plugged: str = "scaled dot",
) -> Diagram:
    """Draw `attend` with a slot for the score, and the scores as plugs (chapter 04).

        diagrams.show(score_slot(queries, keys, values, {"dot": dot_scores}), alt="…")

    The score that is `plugged` runs; what is drawn is its forward pass. Beside each
    plug stands how many numbers it learns, and a plug that learns has a solid frame.
    """
    batch, m, d_k = queries.shape
    n, d_v = values.shape[1:]
    require_toy(m=(m, 4), n=(n, 6), d_k=(d_k, 6), d_v=(d_v, 7))
    if unknown := set(scores) - set(FORMULAS):
        raise ValueError(
            f"no formula for {', '.join(sorted(unknown))}; the picture knows "
            f"{', '.join(FORMULAS)}."
        )
    sizes = {"batch": batch, "m": m, "n": n, "d_k": d_k, "d_v": d_v}
    score = scores[plugged]
    record = trace(lambda q, k, v: attend(q, k, v, score), queries, keys, values)
    with torch.no_grad():
        table, weights = score(queries, keys)[0], record["softmax"].output[0]
        context = attend(queries, keys, values, score)[0][0]
    learned = {
        name: sum(p.numel() for p in s.parameters()) if isinstance(s, nn.Module) else 0
        for name, s in scores.items()
    }

    def plugs(d: Drawing, left: float, top: float) -> None:
        d.text(left + 85, top - 12, "five plugs", fill="muted")
        for i, (name, count) in enumerate(learned.items()):
            y = top + 20 + 46 * i
            role = "ink" if name == plugged else "muted"
            fill = 0.2 if name == plugged else 0.06
            d.box(left + 85, y, 170, 40, "", role, bool(count), fill)
            d.text(left + 85, y - 8, name, 13, bold=name == plugged)
            d.text(left + 85, y + 10, FORMULAS[name], 12)
            d.text(left + 178, y, f"{count}", 13, "start", "muted")
        d.text(left + 178, top - 12, "learned", 12, "start", "muted")

    def machine(d: Drawing, left: float, top: float) -> None:
        """Q and K into the slot, the softmax, and the average of V."""
        middle = left + 95
        d.tensor(left + 45, top + 36, queries[0], "queries", "$Q$")
        d.tensor(left + 145, top + 36, keys[0], "keys", "$K$")
        d.arrow((left + 45, top + 82), (left + 45, top + 122), role="queries")
        d.arrow((left + 145, top + 82), (left + 145, top + 122), role="keys")
        d.box(middle, top + 146, 170, 46, "", "ink", False, 0.05, thick=2.4)
        said = f"score: {plugged}"
        d.box(middle, top + 146, 146, 30, said, "ink", learned[plugged] > 0, 0.2)
        d.arrow((middle, top + 169), (middle, top + 186))
        d.tensor(middle, top + 204, table, "weights", "", 10)
        d.text(middle - 44, top + 204, "$S$", 16)
        d.arrow((middle, top + 242), (middle, top + 258))
        d.box(middle, top + 272, 70, 26, "softmax", learned=False)
        d.arrow((middle, top + 285), (middle, top + 302))
        d.tensor(middle, top + 322, weights, "weights", "", 10, ramp=True)
        d.text(middle - 44, top + 322, "$A$", 16)
        d.arrow((middle + 28, top + 322), (left + 202, top + 322), role="weights")
        d.tensor(left + 225, top + 206, values[0], "values", "$V$")
        d.arrow((left + 225, top + 250), (left + 225, top + 306), role="values")
        d.box(left + 225, top + 322, 44, 30, "$AV$", learned=False, size=15)
        d.arrow((left + 225, top + 337), (left + 225, top + 354), role="values")
        d.tensor(left + 225, top + 376, context, "values")
        d.text(left + 178, top + 376, "$C$", 16)

    wide = Drawing(560, 430, sizes)
    machine(wide, 10, 14)
    plugs(wide, 310, 102)
    wide.arrow((308, 160), (196, 160), role="ink")
    narrow = Drawing(330, 700, sizes)
    machine(narrow, 30, 14)
    plugs(narrow, 50, 450)
    return Diagram(wide, narrow)
