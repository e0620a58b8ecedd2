"""What a question is: its inputs, its right answer, its typical wrong ones.

A question never sees the learner's code. Its parts draw inputs from a seed as plain
values, the reference says what should come of them, and each `Mistake` is a plausible
wrong answer with the one line that names the misconception behind it. The modules
listed in `CHAPTERS` hold the questions, each in a tuple `QUESTIONS`.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Args = tuple[Any, ...]
CHAPTERS = {
    "01": ("term_weights", "cosine_search", "token_weights"),
    "02": ("recurrent_translation", "fixed_vectors"),
    "03": ("additive_attention", "alignment"),
    "04": ("one_operator", "which_score", "hard_choices", "images_as_keys"),
    "05": ("basic_self_attention", "symmetric_wishes"),
    "06": ("queries_keys_values", "scores_and_scale"),
    "07": ("permutation_equivariance", "order_and_symmetry"),
    "08": ("position_encodings", "distance_and_order"),
    "09": ("masks", "masked_weights", "finding_leaks"),
    "10": ("several_heads", "cost_of_heads", "limits_of_one_head"),
    "11": ("norm_and_residual", "stream_and_depth"),
    "12": ("decoder_block", "training_and_search", "library_layer"),
    "13": ("next_tokens", "cutting_off", "key_value_cache", "clean_splits"),
    "14": ("patches_and_gates", "asking_an_image"),
    "15": ("cost_counts", "running_sums", "whole_gpt"),
}
# The exercise notebook of each chapter, as students hand it in.
EXERCISES = {
    name[:2]: name
    for name in (
        "01_static_weights",
        "02_seq2seq_bottleneck",
        "03_bahdanau_attention",
        "04_attention_family",
        "05_basic_self_attention",
        "06_queries_keys_values",
        "07_permutation_equivariance",
        "08_positional_encodings",
        "09_masking",
        "10_multi_head",
        "11_transformer_block",
        "12_transformer",
        "13_decoder_only",
        "14_vision_and_cross_attention",
        "15_cost_and_scaling",
    )
    if name[:2] in CHAPTERS
}


@dataclass(frozen=True)
class Mistake:
    """A plausible wrong answer, and the line that names the misconception behind it.

    It is recognised when the learner's values equal those of `wrong` in every case, or
    when `sign(args, value)` holds in every case that gave a value.
    """

    id: str
    hint: str
    wrong: Callable[..., Any]
    sign: Callable[[Args, Any], bool] | None = None


@dataclass(frozen=True)
class Output:
    """One thing an answer returns: its name and the names of its last axes.

    `axes=None` is a number or a text; `free` leaves the sizes to the learner.
    """

    name: str
    axes: str | None = None
    free: bool = False


@dataclass(frozen=True)
class Part:
    """A share of a question's points, earned when all its cases are right.

    `view` picks what of the result counts here; `accepts` judges results of which many
    are right; `steady` asks for as many executed lines in every case; `alone` is said
    when nothing but this part fails.
    """

    name: str
    points: int
    cases: Callable[[np.random.Generator], list[Args]]
    view: Callable[[Any], Any] = lambda value: value
    accepts: Callable[[Args, Any], bool] | None = None
    steady: bool = False
    alone: str = ""


@dataclass(frozen=True)
class Case:
    """One call: the arguments, the part it counts for (None: only a probe)."""

    args: Args
    part: Part | None
    probe: str = ""  # the argument that was changed against the first case


@dataclass(frozen=True, eq=False)
class Question:
    """A graded question: what is called, with which inputs, and what is right."""

    id: str
    title: str
    answer: str
    arguments: tuple[str, ...]
    outputs: tuple[Output, ...]
    reference: Callable[..., Any]
    parts: tuple[Part, ...]
    mistakes: tuple[Mistake, ...]
    next_step: str
    primitives: bool = False
    tolerance: float = 1e-4
    packaged: tuple[str, ...] = ()  # what is the answer already, in this package

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)

    @property
    def watched(self) -> bool:
        """Whether it matters how the answer comes by its result."""
        steady = any(part.steady for part in self.parts)
        return self.primitives or steady or bool(self.packaged)

    def cases(self, seed: int | str) -> list[Case]:
        """Draw the inputs of a seed: every part's cases, then the probes.

        A probe repeats the first case with one argument changed, to see whether the
        result depends on it.
        """
        cases = [
            Case(args, part)
            for part in self.parts
            for args in part.cases(generator(seed, self.id, part.name))
        ]
        first = cases[0].args
        rng = generator(seed, self.id, "probes")
        for i, name in enumerate(self.arguments):
            if isinstance(first[i], np.ndarray) and first[i].dtype == np.float32:
                noise = rng.standard_normal(first[i].shape, dtype=np.float32)
                args = (*first[:i], first[i] + noise, *first[i + 1 :])
                cases.append(Case(args, None, name))
        return cases


def generator(seed: int | str, *names: str) -> np.random.Generator:
    """Make the random generator that belongs to a seed and a name, and to no other."""
    text = "/".join(map(str, (seed, *names)))
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def chapter_questions(chapter: str) -> tuple[Question, ...]:
    """Return the questions of a chapter, in order: `chapter_questions("06")`."""
    if chapter not in CHAPTERS:
        raise ValueError(
            f"there are no questions for chapter {chapter!r}, expected one of "
            f"{', '.join(CHAPTERS)}; use the two digits that begin the notebook's name."
        )
    modules = [importlib.import_module(f"{__name__}.{m}") for m in CHAPTERS[chapter]]
    return tuple(question for module in modules for question in module.QUESTIONS)


def find_question(identifier: str) -> Question:
    """Return a question by its id: `find_question("06.2")`."""
    questions = chapter_questions(str(identifier).partition(".")[0])
    for question in questions:
        if question.id == identifier:
            return question
    raise ValueError(
        f"there is no question {identifier!r}, expected one of "
        f"{', '.join(question.id for question in questions)}."
    )
