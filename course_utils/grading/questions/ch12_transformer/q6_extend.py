"""`extend`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.evaluation.decoding import extend_beams
from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def extend(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return chosen(log_p[:, None] + gain, len(log_p))


def chosen(total: Tensor, n_beams: int) -> tuple[Tensor, Tensor, Tensor]:
    best = total.flatten().topk(n_beams)
    n_words = total.shape[1]
    return best.indices // n_words, best.indices % n_words, best.values


def each_its_own(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    best = (log_p[:, None] + gain).max(dim=-1)
    return torch.arange(len(log_p)), best.indices, best.values


def each_its_own_sorted(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    _, word, total = each_its_own(log_p, gain)
    total, parent = total.sort(descending=True)
    return parent, word[parent], total


def best_beam_only(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent = log_p.argmax()
    best = (log_p[parent] + gain[parent]).topk(len(log_p))
    return parent.expand(len(log_p)), best.indices, best.values


def parent_forgotten(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    _, word, total = extend(log_p, gain)
    return torch.arange(len(log_p)), word, total


def divided_by_beams(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    best = (log_p[:, None] + gain).flatten().topk(len(log_p))
    n = len(log_p)
    return best.indices // n, best.indices % n, best.values


def worst_first(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, total = extend(log_p, gain)
    return parent.flip(0), word.flip(0), total.flip(0)


def exchanged(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, total = extend(log_p, gain)
    return word, parent, total


def flat_places(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, total = extend(log_p, gain)
    return parent, parent * gain.shape[1] + word, total


def as_probabilities(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, total = extend(log_p, gain)
    return parent, word, total.exp()


def gains_kept(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, _ = extend(log_p, gain)
    return parent, word, gain[parent, word]


def draw_beams(rng: np.random.Generator) -> list[Args]:
    """Draw beams of which one has the two best ways on, and one is given up."""
    drawn: list[Args] = []
    for n_beams in (3, 4):
        word = sizes(rng, 1, least=n_beams + 2)[0]
        log_p = -np.linspace(0.5, 2.0, n_beams) - 0.1 * rng.random(n_beams)
        gain = torch.log_softmax(torch.tensor(normal(rng, n_beams, word)), -1).numpy()
        order = rng.permutation(n_beams)
        leader = int(np.argmax(log_p[order]))
        best, share = rng.permutation(word)[:2], 1 + rng.random(word)
        share[best] = 0
        share *= 0.1 / share.sum()
        share[best] = 0.5, 0.4
        gain[leader] = np.log(share)
        drawn.append((log_p[order].astype(np.float32), gain.astype(np.float32)))
    return drawn


def chosen_worst(total: Tensor, n_beams: int) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, values = chosen(-total, n_beams)
    return parent, word, -values


QUESTION = Question(
    id="12.6",
    title="One step of beam search",
    answer="extend",
    arguments=("log_p", "gain"),
    outputs=(
        Output("parent", "beam"),
        Output("word", "beam"),
        Output("log_p", "beam"),
    ),
    reference=extend,
    difficulty="medium",
    minutes=10,
    next_step="every beam with every word makes one table; take the best of all of it.",
    parts=(
        Part("which beams go on", 2, draw_beams, view=lambda value: value[0]),
        Part("with which words", 1, draw_beams, view=lambda value: value[1]),
        Part("and how probable", 1, draw_beams, view=lambda value: value[2]),
    ),
    mistakes=(
        Mistake(
            "each_its_own_sorted",
            "every beam is continued with its own best word, and then they are "
            "sorted: none is ever given up; the best of all continuations stay, "
            "wherever they come from",
            each_its_own_sorted,
        ),
        Mistake(
            "each_its_own",
            "every beam is continued with its own best word: then none is ever given "
            "up; the best of all continuations stay, wherever they come from",
            each_its_own,
        ),
        Mistake(
            "best_beam_only",
            "only the best beam goes on: continuations of the others may be better "
            "than its third",
            best_beam_only,
        ),
        Mistake(
            "past_forgotten",
            "what a beam has cost so far is not added: the new words are compared "
            "without their beginnings",
            lambda log_p, gain: chosen(gain, len(log_p)),
        ),
        Mistake(
            "gains_kept",
            "the log-probability returned is that of the last word alone; it is the "
            "sum over the whole beginning",
            gains_kept,
        ),
        Mistake(
            "parent_forgotten",
            "the parents are just 0, 1, 2, …: the place in the flat table, divided by "
            "the number of words, says which beam goes on",
            parent_forgotten,
        ),
        Mistake(
            "divided_by_beams",
            "the place in the flat table is divided by the number of beams; a row of "
            "it is as long as there are words",
            divided_by_beams,
        ),
        Mistake(
            "worst_first",
            "the right continuations, but the best of them has to come first",
            worst_first,
        ),
        Mistake(
            "exchanged",
            "beam and word have changed places: the place in the flat table, divided "
            "by the number of words, is the beam; the remainder is the word",
            exchanged,
        ),
        Mistake(
            "flat_places",
            "the places in the flat table are returned as words: the remainder after "
            "division by the number of words is the word",
            flat_places,
        ),
        Mistake(
            "as_probabilities",
            "probabilities are returned in place of their logarithms, which the next "
            "step will have to add to",
            as_probabilities,
        ),
        Mistake(
            "worst_kept",
            "the least probable continuations are kept: log-probabilities are "
            "negative, and the largest is the best",
            lambda log_p, gain: chosen_worst(log_p[:, None] + gain, len(log_p)),
        ),
        Mistake(
            "multiplied",
            "log-probabilities are multiplied: probabilities multiply, their "
            "logarithms add",
            lambda log_p, gain: chosen(log_p[:, None] * gain, len(log_p)),
        ),
    ),
    packaged=("extend_beams",),
)


# ----------------------------------------------------------------------- specimens


def all_ways(log_p, gain):
    """Every continuation, sorted in Python: (log p, beam, word), best first."""
    ways = [
        (float(log_p[i]) + float(gain[i, v]), i, v)
        for i in range(len(log_p))
        for v in range(gain.shape[1])
    ]
    return sorted(ways, reverse=True)


def as_tensors(ways):
    totals, parents, words = zip(*ways)
    return torch.tensor(parents), torch.tensor(words), torch.tensor(totals)


def best_ways(log_p, gain):
    return as_tensors(all_ways(log_p, gain)[: len(log_p)])


def with_ways(change):
    """The right continuations, returned in another form."""

    def answer(log_p, gain):
        return change(*best_ways(log_p, gain), gain.shape[1])

    return answer


def by_the_package(log_p, gain):
    ended = torch.zeros(1, len(log_p), dtype=torch.bool)
    none = torch.zeros(1, len(log_p))
    parent, word, total, _ = extend_beams(log_p[None], none, ended, gain, pad=0)
    return parent[0], word[0], total[0]


def one_for_each(log_p, gain):
    ways = all_ways(log_p, gain)
    return as_tensors(
        [next(w for w in ways if w[1] == beam) for beam in range(len(log_p))]
    )


def of_the_leader(log_p, gain):
    leader = max(range(len(log_p)), key=lambda i: float(log_p[i]))
    ways = [way for way in all_ways(log_p, gain) if way[1] == leader]
    return as_tensors(ways[: len(log_p)])


RIGHT = [best_ways, by_the_package]
WRONG = [
    (
        "worst_first",
        lambda log_p, gain: as_tensors(all_ways(log_p, gain)[: len(log_p)][::-1]),
    ),
    ("exchanged", with_ways(lambda i, v, p, n: (v, i, p))),
    ("flat_places", with_ways(lambda i, v, p, n: (i, i * n + v, p))),
    ("as_probabilities", with_ways(lambda i, v, p, n: (i, v, p.exp()))),
    ("each_its_own", one_for_each),
    ("best_beam_only", of_the_leader),
    ("past_forgotten", lambda log_p, gain: best_ways(0 * log_p, gain)),
    (
        "worst_kept",
        lambda log_p, gain: as_tensors(all_ways(log_p, gain)[::-1][: len(log_p)]),
    ),
]
