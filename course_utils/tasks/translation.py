"""The translation task that chapters 02, 03 and 12 share, so that results compare.

One record of settings, one way to train, to translate and to score by length. Whatever
translates (`forward(source, target_in)`, `start`, `step`, as in `rnn` and
`transformer`) is trained on the same sentences and drawn on the same axes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.data.corpus import BOS, EOS, PAD, Vocabulary
from course_utils.data.grammar.sentence_pairs import (
    Pair,
    source_words,
    split,
    target_words,
)
from course_utils.data.sequences import translation_batch, translation_batches
from course_utils.doors import check_arguments
from course_utils.evaluation.decoding import greedy
from course_utils.evaluation.metrics import Bucket, Sentence, by_length
from course_utils.runtime import base_seed
from course_utils.shapes import Float, Int, shape_of
from course_utils.training.history import History
from course_utils.training.loop import Evaluation, train


@dataclass(frozen=True)
class Settings:
    """What all translation models of the course have in common.

    Lengths count the English tokens, the final stop among them. The last buckets are
    longer than any training sentence.
    """

    n_train: int = 12_000
    n_test: int = 630
    train_lengths: tuple[int, int] = (4, 16)
    test_lengths: tuple[int, int] = (4, 24)
    buckets: tuple[tuple[int, int], ...] = (
        (4, 6),
        (7, 9),
        (10, 12),
        (13, 16),
        (17, 20),
        (21, 24),
    )
    batch_size: int = 64
    lr: float = 1e-2
    max_target: int = 48


@dataclass(frozen=True)
class Recipe:
    """How one model is built and how long it is trained."""

    steps: int
    d_embedding: int
    d_hidden: int
    lr: float = Settings.lr


SHARED = Settings()
FIXED_VECTOR = Recipe(steps=1600, d_embedding=48, d_hidden=72)
WITH_ATTENTION = Recipe(steps=800, d_embedding=48, d_hidden=64)
TRANSFORMER = Recipe(steps=800, d_embedding=64, d_hidden=128, lr=6e-3)


@dataclass(frozen=True, eq=False)
class Task:
    """One seed's sentences, with the vocabularies that are the same for all seeds."""

    train: tuple[Pair, ...]
    test: tuple[Pair, ...]
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    settings: Settings
    seed: int

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of both vocabularies: `Seq2Seq(*task.sizes, …)`."""
        return len(self.source_vocabulary), len(self.target_vocabulary)


def translation_task(seed: int = 0, settings: Settings = SHARED) -> Task:
    """Make the sentences of one repetition: its own training and test set.

    As with `runtime.seed`, another `COURSE_SEED` gives other ones.
    Used in chapters 02, 03 and 12.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(
            f"translation_task got seed = {seed!r}, expected a whole number 0, 1, 2, …"
        )
    return _task(seed, base_seed() + 1000 * seed, settings)


@lru_cache(maxsize=4)
def _task(seed: int, number: int, settings: Settings) -> Task:
    pairs, test = split(
        settings.n_train,
        settings.n_test,
        number,
        settings.train_lengths,
        settings.test_lengths,
    )
    vocabularies = Vocabulary([source_words()]), Vocabulary([target_words()])
    return Task(tuple(pairs), tuple(test), *vocabularies, settings, seed)


def translation_loss(
    model: nn.Module,
    source: Int[Tensor, "batch source"],
    target: Int[Tensor, "batch target"],
) -> Float[Tensor, ""]:
    """Ask for every token of the target, given the true tokens before it.

    The mean over real tokens of $-log p(y_t | y_1, …, y_{t-1}, source)$: teacher
    forcing. Taught in chapter 02.
    """
    require_target(target)
    logits, _ = model(source, target[:, :-1])
    return F.cross_entropy(
        logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD
    )


def train_translator(
    model: nn.Module,
    task: Task,
    steps: int,
    evaluate: Evaluation | None = None,
    lr: float | None = None,
) -> History:
    """Train a model on a task in the way all translation models share.

    The learning rate is that of the settings, where no other is given.
    Used in chapters 02, 03 and 12.
    """
    settings = task.settings
    batch = translation_batches(
        task.train,
        task.source_vocabulary,
        task.target_vocabulary,
        settings.batch_size,
        task.seed,
    )
    return train(
        model,
        batch,
        translation_loss,
        steps=steps,
        lr=settings.lr if lr is None else lr,
        seed=task.seed,
        evaluate=evaluate,
    )


def translate(model: nn.Module, pairs: Sequence[Pair], task: Task) -> list[list[str]]:
    """Translate the sources of some pairs, each word the most probable one.

    Used in chapters 02, 03 and 12.
    """
    if not pairs:
        raise ValueError(
            "translate got no pair, expected at least one; take some of `task.test`."
        )
    source, _ = translation_batch(pairs, task.source_vocabulary, task.target_vocabulary)
    device = next(model.parameters()).device
    tokens = greedy(
        model,  # type: ignore[arg-type]
        source.to(device),
        task.settings.max_target,
        BOS,
        EOS,
        PAD,
    ).tokens
    return [task.target_vocabulary.decode(row) for row in tokens.tolist()]


def typed(text: str, vocabulary: Vocabulary) -> list[str]:
    """Split what somebody typed into words, all of which the vocabulary must know.

    Used in chapters 03 and 12.
    """
    words = re.findall(r"\w+|'s\b|[^\w\s]", text.replace("’", "'"))
    known = ", ".join([word for word in vocabulary.tokens[4:] if word.isalpha()][::16])
    if not words:
        raise ValueError(f"nothing was typed; write words such as {known}.")
    words = [word if word in vocabulary else word.lower() for word in words]
    strange = [word for word in words if word not in vocabulary]
    if strange:
        raise ValueError(
            f"the model has never read {', '.join(strange)}; it knows "
            f"{len(vocabulary) - 4} words, such as {known}."
        )
    return words


def score_by_length(
    metric: Callable[[Sequence[Sentence], Sequence[Sentence]], float],
    hypotheses: Sequence[Sentence],
    task: Task,
) -> list[Bucket]:
    """Score the translations of `task.test` in each range of source lengths.

    Used in chapters 03 and 12.
    """
    return by_length(
        metric,
        hypotheses,
        [pair.target for pair in task.test],
        [len(pair.source) for pair in task.test],
        task.settings.buckets,
    )


def require_target(target: Tensor) -> None:
    """Refuse targets that hold no token to be predicted after the first."""
    if target.dim() != 2 or target.shape[1] < 2:
        raise ValueError(
            f"target has shape {shape_of(target)}, expected (batch, target): <bos> and "
            "at least one token to predict after it; see `translation_batch`."
        )


check_arguments(__name__)
