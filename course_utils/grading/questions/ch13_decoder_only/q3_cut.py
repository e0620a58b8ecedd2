"""`cut`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.evaluation.decoding import keep_top_k, keep_top_p
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def cut(logits: Tensor, k: int, share: float, temperature: float) -> Tensor:
    p = of_p(torch.softmax(logits, dim=-1), k, share)
    return p if temperature == 1 else heated(p, temperature)


def of_p(p: Tensor, k: int, share: float) -> Tensor:
    return by_share(by_number(p, k), share)


def heated(p: Tensor, temperature: float) -> Tensor:
    """What a temperature makes of probabilities; zeros stay zeros."""
    powers = p ** (1 / temperature)
    return powers / powers.sum()


def from_logits(change: Any, heat: Any = heated) -> Any:
    """A wrong way to cut that begins with the right probabilities."""

    def wrong(logits: Tensor, k: int, share: float, temperature: float) -> Tensor:
        p = change(torch.softmax(logits, dim=-1), k, share)
        return p if temperature == 1 else heat(p, temperature)

    return wrong


def not_summed(p: Tensor, temperature: float) -> Tensor:
    return p ** (1 / temperature)


def by_number(p: Tensor, k: int) -> Tensor:
    kept = torch.where(p >= p.topk(k).values[-1], p, 0.0)
    return kept / kept.sum()


def by_share(p: Tensor, share: float, extra: int = 0) -> Tensor:
    """Keep the fewest that reach the share, and `extra` more (or fewer)."""
    if share == 1:  # a rounded sum may reach 1 before the last piece
        return p
    ordered, order = p.sort(descending=True)
    before = ordered.cumsum(0) - ordered
    count = max(int((before < share).sum()) + extra, 1)
    kept = torch.zeros_like(p).scatter(0, order[:count], ordered[:count])
    return kept / kept.sum()


def if_cut(change: Any) -> Any:
    """A wrong top-p: of what top-k left, and only where the share cuts anything."""
    return from_logits(
        lambda p, k, share: (
            change(by_number(p, k), share) if share < 1 else by_number(p, k)
        )
    )


def told_by_share(wrong: Any) -> Any:
    """Compare where the share cuts: at 1, rounding decides what a slip does."""

    def fits(args: Args, value: Any) -> bool:
        logits, k, share, temperature = args
        expected = wrong(torch.as_tensor(logits), k, share, temperature).numpy()
        return share == 1 or bool(np.allclose(value, expected, 1e-4, 1e-5))

    return fits


one_too_few = if_cut(lambda p, share: by_share(p, share, extra=-1))


def in_given_order(p: Tensor, share: float) -> Tensor:
    kept = torch.where(p.cumsum(0) - p < share, p, 0.0)
    return kept / kept.sum()


def kept_of_sorted(p: Tensor, share: float) -> tuple[Tensor, Tensor]:
    ordered, order = p.sort(descending=True)
    return ordered.cumsum(0) - ordered < share, order


def sorted_mask(p: Tensor, share: float) -> Tensor:
    kept = torch.where(kept_of_sorted(p, share)[0], p, 0.0)
    return kept / kept.sum().clamp(min=1e-9)


def sorted_again(p: Tensor, share: float) -> Tensor:
    keep, order = kept_of_sorted(p, share)
    kept = torch.where(keep[order], p, 0.0)
    return kept / kept.sum().clamp(min=1e-9)


def in_one_pass(p: Tensor, k: int, share: float) -> Tensor:
    ordered, order = p.sort(descending=True)
    keep = (ordered.cumsum(0) <= share) | (share == 1)
    keep = keep & (torch.arange(len(p)) < k)
    kept = torch.zeros_like(p).scatter(0, order[keep], ordered[keep])
    return kept / kept.sum()


def last_not_divided(p: Tensor, k: int, share: float) -> Tensor:
    kept = by_number(p, k)
    return torch.where(by_share(kept, share) > 0, kept, 0.0)


def soft_again(change: Any, *args: Any) -> Tensor:
    logits, k, share, temperature = args
    p = change(torch.softmax(torch.as_tensor(logits), dim=-1), k, share)
    return torch.where(p > 0, p / temperature, -torch.inf).softmax(-1)


def places_lost(p: Tensor, k: int, share: float) -> Tensor:
    return of_p(p, k, share).sort(descending=True).values


def not_divided(p: Tensor, k: int, share: float) -> Tensor:
    return torch.where(of_p(p, k, share) > 0, p, 0.0)


def least(p: Tensor, k: int) -> Tensor:
    kept = torch.where(p <= p.sort().values[k - 1], p, 0.0)
    return kept / kept.sum()


def threshold(p: Tensor, k: int, share: float) -> Tensor:
    kept = by_number(p, k)
    kept = torch.where(kept >= 1 - share, kept, 0.0)
    return kept / kept.sum().clamp(min=1e-9)


def draw_distributions(k_cut: bool, p_cut: bool, *temperatures: float) -> Any:
    """Draw distributions and knobs for which the usual slips all give other results."""

    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for n, temperature in zip((6, 7, 8), temperatures or (1.0, 1.0, 1.0)):
            ordered = np.array([0.34, 0.24, 0.16, 0.11, 0.07, 0.05, 0.02, 0.01])[:n]
            ordered = ordered * (1 + 0.05 * rng.random(n))
            ordered = np.sort(ordered / ordered.sum())[::-1]
            k = int(rng.integers(4, 6)) if k_cut else n
            left = ordered[:k] / ordered[:k].sum()
            # Three stay of what top-k left. Of the whole it would mostly be four,
            # in one case three as well: else this slip and one too few would cancel.
            limit = left[:2].sum() + 0.02 if n == 7 else left[:3].sum() - 0.02
            share = float(limit) if p_cut else 1.0
            logits = np.log(ordered[rng.permutation(n)]) + rng.random()
            logits = logits.astype(np.float32)
            drawn.append((logits, k, round(share, 4), temperature))
        return drawn

    return cases


QUESTION = Question(
    id="13.3",
    title="Top-k, then top-p, then warmer",
    answer="cut",
    arguments=("logits", "k", "share", "temperature"),
    outputs=(Output("p", "piece"),),
    reference=cut,
    difficulty="medium",
    minutes=12,
    next_step="probabilities first; then find the k-th largest, drop what is below "
    "it, and divide by the sum.",
    parts=(
        Part("top-k alone", 1, draw_distributions(True, False)),
        Part("top-p alone", 1, draw_distributions(False, True)),
        Part("one after the other", 1, draw_distributions(True, True)),
        Part(
            "temperature",
            1,
            draw_distributions(True, True, 2.5, 0.4, 1.7),
            only_failure_hint="right at temperature 1: what is dropped must not depend "
            "on the temperature, and what is left must",
        ),
    ),
    mistakes=(
        Mistake(
            "temperature_first",
            "the temperature acts before the share is counted, as in the chapter's "
            "`sample`: then it changes how many pieces stay; here only what is left "
            "is warmed",
            lambda logits, k, share, temperature: cut(
                logits / temperature, k, share, 1
            ),
        ),
        Mistake(
            "temperature_ignored",
            "the temperature has no effect: dividing probabilities by it changes "
            "nothing once they are divided by their sum; it divides logits",
            lambda logits, k, share, temperature: cut(logits, k, share, 1),
        ),
        Mistake(
            "temperature_inverted",
            "a high temperature makes the distribution sharper here: it should make "
            "it flatter",
            lambda logits, k, share, temperature: cut(
                logits, k, share, 1 / temperature
            ),
        ),
        Mistake(
            "probabilities_heated",
            "a softmax is taken of probabilities: the temperature divides logits; with "
            "probabilities it is a power",
            lambda *args: soft_again(of_p, *args),
            lambda args, value: any(
                np.allclose(value, soft_again(change, *args).numpy(), 1e-4, 1e-5)
                for change in (of_p, last_not_divided)
            ),
        ),
        Mistake(
            "places_lost",
            "the result is sorted: every piece has to keep its own place, or another "
            "one would be written",
            from_logits(places_lost),
        ),
        Mistake(
            "not_divided",
            "what is left does not sum to one: divide it by its sum",
            from_logits(not_divided, not_summed),
        ),
        Mistake(
            "one_too_few",
            "the piece with which the sum reaches the share is dropped: then the sum "
            "never reaches it",
            one_too_few,
            told_by_share(one_too_few),
        ),
        Mistake(
            "one_too_many",
            "one piece too many stays: as soon as the sum has reached the share, the "
            "next one goes",
            if_cut(lambda p, share: by_share(p, share, extra=1)),
        ),
        Mistake(
            "kth_dropped",
            "only k − 1 pieces stay: the k-th largest itself belongs to the k most "
            "probable",
            from_logits(lambda p, k, share: of_p(p, k - 1, share)),
        ),
        Mistake(
            "scores_returned",
            "scores come back, with −∞ for what was dropped: a last softmax turns them "
            "into the distribution that is drawn from",
            lambda logits, k, share, temperature: torch.where(
                cut(logits, k, share, 1) > 0, logits / temperature, -torch.inf
            ),
        ),
        Mistake(
            "last_not_divided",
            "after top-p the rest does not sum to one: divide by the sum again",
            from_logits(last_not_divided, not_summed),
            lambda args, value: args[2] == 1 or abs(float(value.sum()) - 1) > 1e-3,
        ),
        Mistake(
            "not_sorted",
            "the pieces are added up in the order of the vocabulary: begin with the "
            "most probable",
            if_cut(in_given_order),
            told_by_share(if_cut(in_given_order)),
        ),
        Mistake(
            "sorted_mask",
            "what to keep was found among the sorted pieces, and used on the unsorted "
            "ones: bring it back to their places first (`scatter` with the order)",
            if_cut(sorted_mask),
            told_by_share(if_cut(sorted_mask)),
        ),
        Mistake(
            "sorted_again",
            "what to keep is indexed with the order: that sorts it once more, where it "
            "should go back (`scatter`, or `order.argsort()`)",
            if_cut(sorted_again),
            told_by_share(if_cut(sorted_again)),
        ),
        Mistake(
            "k_ignored",
            "k is not used: only the k most probable pieces may stay",
            from_logits(lambda p, k, share: by_share(p, share)),
        ),
        Mistake(
            "share_ignored",
            "the share is not used: after top-k comes top-p",
            from_logits(lambda p, k, share: by_number(p, k)),
        ),
        Mistake(
            "share_first",
            "the share is counted of the whole distribution (top-p before top-k, or no "
            "division between them): it is a share of what top-k left",
            from_logits(lambda p, k, share: by_number(by_share(p, share), k)),
        ),
        Mistake(
            "in_one_pass",
            "two slips: the share is counted of the whole distribution, not of what "
            "top-k left; and the piece with which the sum reaches the share is dropped",
            from_logits(in_one_pass),
            told_by_share(from_logits(in_one_pass)),
        ),
        Mistake(
            "threshold",
            "each piece is compared with a limit by itself: top-p adds up, beginning "
            "with the most probable",
            from_logits(threshold),
        ),
        Mistake(
            "least_kept",
            "the least probable pieces stay: sort in descending order",
            from_logits(lambda p, k, share: by_share(least(p, k), share)),
        ),
        Mistake(
            "zeros_for_scores",
            "the dropped scores become 0, and e to the power of 0 is 1: they are still "
            "drawn; what is dropped has probability 0",
            lambda logits, k, share, temperature: torch.where(
                cut(logits, k, share, 1) > 0, logits / temperature, 0.0
            ).softmax(-1),
        ),
        Mistake(
            "softmax_of_probabilities",
            "a second softmax is taken of probabilities, so that even what was dropped "
            "gets a share: divide by the sum instead",
            from_logits(
                lambda p, k, share: by_share(
                    torch.where(p >= p.topk(k).values[-1], p, 0.0).softmax(-1), share
                )
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def cut_in_python(logits, k, share, extra=0, divide=True):
    p = torch.exp(logits) / torch.exp(logits).sum()
    ranked = sorted(range(len(p)), key=lambda i: -float(p[i]))[:k]
    total = sum(float(p[i]) for i in ranked)
    kept, reached = [], 0.0
    for i in ranked:
        if share < 1 and reached >= share:
            break
        kept.append(i)
        reached += float(p[i]) / total
    if share < 1:
        kept = ranked[: len(kept) + extra]
    total = sum(float(p[i]) for i in kept) if divide else 1.0
    return torch.tensor(
        [float(p[i]) / total if i in kept else 0.0 for i in range(len(p))]
    )


def sorted_in_python(logits, k, share, temperature, **options):
    p = cut_in_python(logits, k, share, **options)
    p = torch.tensor([x ** (1 / temperature) for x in p.tolist()])
    return p / p.sum() if options.get("divide", True) else p


def by_mask(keep_of, divide=(True, True), kth=torch.ge):
    """Cut with masks: keep_of(p, share) says what top-p keeps, place by place."""

    def answer(logits, k, share, temperature):
        p = torch.softmax(logits, dim=0)
        p = p * kth(p, p.sort(descending=True).values[k - 1])
        p = p / p.sum() if divide[0] else p
        p = (p * keep_of(p, share)) ** (1 / temperature)
        return p / p.sum() if divide[1] else p

    return answer


def places_of(p, keep):
    """Bring what holds for the sorted pieces back to their places."""
    return keep(p.sort(descending=True).values)[p.argsort(descending=True).argsort()]


def reaching(p, share):
    return places_of(p, lambda ranked: ranked.cumsum(0) - ranked < share)


def by_the_package(logits, k, share, temperature):
    return torch.softmax(keep_top_p(keep_top_k(logits, k), share) / temperature, dim=-1)


def whole_distribution(logits, k, share, temperature):
    return torch.softmax(keep_top_k(keep_top_p(logits, share), k) / temperature, dim=-1)


def as_in_the_chapter(logits, k, share, temperature):
    cut_off = keep_top_p(keep_top_k(logits / temperature, k), share)
    return torch.softmax(cut_off, dim=-1)


def between(logits, k, share, temperature):
    return torch.softmax(keep_top_p(keep_top_k(logits, k) / temperature, share), dim=-1)


RIGHT = [
    by_mask(lambda p, s: reaching(p, s) | (s == 1)),
    sorted_in_python,
    by_the_package,
]
WRONG = [
    ("temperature_first", as_in_the_chapter),
    ("temperature_first", between),
    ("temperature_ignored", lambda p, k, share, t: by_the_package(p, k, share, 1) / 1),
    ("temperature_inverted", lambda p, k, share, t: by_the_package(p, k, share, 1 / t)),
    (
        "places_lost",
        lambda *args: by_the_package(*args).sort(descending=True).values,
    ),
    ("not_divided", partial(sorted_in_python, divide=False)),
    ("one_too_few", partial(sorted_in_python, extra=-1)),
    ("one_too_many", partial(sorted_in_python, extra=1)),
    ("k_ignored", lambda p, k, share, t: by_the_package(p, len(p), share, t)),
    ("share_ignored", lambda p, k, share, t: by_the_package(p, k, 1.0, t)),
    ("share_first", whole_distribution),
    ("kth_dropped", by_mask(reaching, kth=torch.gt)),
    ("share_first", by_mask(reaching, divide=(False, True))),
    ("last_not_divided", by_mask(reaching, divide=(True, False))),
    (
        "one_too_few",
        by_mask(lambda p, s: places_of(p, lambda ranked: ranked.cumsum(0) < s)),
    ),
    (
        "one_too_few",
        by_mask(lambda p, s: places_of(p, lambda ranked: ranked.cumsum(0) <= s)),
    ),
    (
        "in_one_pass",
        by_mask(
            lambda p, s: places_of(p, lambda ranked: ranked.cumsum(0) <= s) | (s == 1),
            divide=(False, True),
        ),
    ),
    ("not_sorted", by_mask(lambda p, s: p.cumsum(0) - p < s)),
    ("sorted_mask", by_mask(lambda p, s: reaching(p.sort(descending=True).values, s))),
    (
        "sorted_again",
        by_mask(
            lambda p, s: reaching(p.sort(descending=True).values, s)[
                p.argsort(descending=True)
            ]
        ),
    ),
    (
        "scores_returned",
        lambda logits, k, share, t: keep_top_p(keep_top_k(logits, k), share) / t,
    ),
]
