"""Sentences with labels made by rule: one task for words, one for structure.

Both use the English side of the course's grammar. `animals`: does the sentence name an
animal? One of a few words decides. `agreement`: does every verb agree with its subject?
Each sentence has one *was* or *were*; in half of them it was replaced by the other, and
no word by itself says in which half.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.data.corpus import Vocabulary
from course_utils.data.grammar.sentence_pairs import corpus, source_words
from course_utils.data.sequences import pad_batch
from course_utils.doors import check_arguments
from course_utils.models.bert import BERT, mask_tokens, masked_loss
from course_utils.runtime import base_seed
from course_utils.runtime import seed as seed_everything
from course_utils.shapes import Float, Int
from course_utils.training.loop import train

Sentence = tuple[str, ...]
MASK = "<mask>"
ANIMALS = frozenset({"dog", "cat", "bird", "horse", "mouse"})
ANIMALS |= {"dogs", "cats", "birds", "horses", "mice"}
LONGEST = 16  # tokens of a sentence, the full stop among them
TASKS = ("agreement", "animals")


OTHER = {"was": "were", "were": "was"}


def vocabulary() -> Vocabulary:
    """Return the words of the grammar, and the blank: the same for all seeds.

    Used in chapter 18.
    """
    return Vocabulary([[*source_words(), MASK]])


def encode(
    sentences: Sequence[Sentence], words: Vocabulary
) -> Int[Tensor, "sentence token"]:
    """Return ids, <bos> … <eos>, padded to the same length whatever the sentences.

    Used in chapter 18.
    """
    ids = pad_batch([words.encode(s, bos=True, eos=True) for s in sentences])
    return F.pad(ids, (0, LONGEST + 2 - ids.shape[1]))


def tensors(
    examples: Sequence[tuple[Sentence, int]], words: Vocabulary
) -> tuple[Int[Tensor, "sentence token"], Int[Tensor, "sentence"]]:
    """Return ids and labels of some examples. Used in chapter 18."""
    sentences, labels = zip(*examples)
    return encode(sentences, words), torch.tensor(labels)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Sentences in three parts, and plain text that holds none of them."""

    text: tuple[Sentence, ...]
    train: tuple[tuple[Sentence, int], ...]
    validation: tuple[tuple[Sentence, int], ...]
    test: tuple[tuple[Sentence, int], ...]

    def few(self, n: int, seed: int = 0) -> list[tuple[Sentence, int]]:
        """Draw `n` training sentences of each class."""
        chooser = random.Random(f"{base_seed()} {seed}")
        chosen = []
        for label in (0, 1):
            chosen += chooser.sample([x for x in self.train if x[1] == label], n)
        return chosen


def agreement_examples(sentences: Sequence[Sentence]) -> list[tuple[Sentence, int]]:
    """Keep the sentences with one was or were, and put a wrong one into every other.

    Label 1: the verb agrees. Each class has as many *was* as *were*. Data of chapter
    18.
    """
    subjects: dict[str, list[tuple[Sentence, int]]] = {"was": [], "were": []}
    for sentence in sentences:
        verbs = [i for i, word in enumerate(sentence) if word in OTHER]
        if len(verbs) == 1:
            subjects[sentence[verbs[0]]].append((sentence, verbs[0]))
    n = min(map(len, subjects.values())) // 2 * 2
    found = []
    for verb, those in subjects.items():
        for k, (sentence, i) in enumerate(those[:n]):
            shown = OTHER[verb] if k % 2 else verb
            found.append(((*sentence[:i], shown, *sentence[i + 1 :]), 1 - k % 2))
    return found


def animal_examples(sentences: Sequence[Sentence]) -> list[tuple[Sentence, int]]:
    """Label 1: an animal is named. As many of either class. Data of chapter 18."""
    found: dict[int, list[tuple[Sentence, int]]] = {0: [], 1: []}
    for sentence in sentences:
        label = int(not ANIMALS.isdisjoint(sentence))
        found[label].append((sentence, label))
    n = min(map(len, found.values()))
    return found[0][:n] + found[1][:n]


@lru_cache(maxsize=4)
def labelled_task(
    name: str, seed: int = 0, n_text: int = 12_000, n_labelled: int = 20_000
) -> Labelled:
    """Make the sentences of one repetition of the task "agreement" or "animals".

    1,200 to train on, 400 to choose settings by, 1,000 to test. Used in chapter 18.
    """
    if name not in TASKS:
        raise ValueError(f"name is {name!r}, expected one of {TASKS}.")
    number = base_seed() + 1000 * seed
    held = [p.source for p in corpus(n_labelled, 2 * number + 1, 4, LONGEST)]
    text = [p.source for p in corpus(n_text, 2 * number, 4, LONGEST, exclude=held)]
    make = agreement_examples if name == "agreement" else animal_examples
    examples = make(held)
    random.Random(number).shuffle(examples)
    parts = examples[:1200], examples[1200:1600], examples[1600:2600]
    return Labelled(tuple(text), *map(tuple, parts))


@lru_cache(maxsize=2)
def pretrained(seed: int = 0, steps: int = 1500, lr: float = 3e-3) -> BERT:
    """Train a BERT of width 64 to fill blanks in the plain text of one repetition.

    Kept, so that many runs can start from the same weights: copy it before you change
    it. Data of chapter 18.
    """
    words = vocabulary()
    text = encode(labelled_task("agreement", seed).text, words)
    seed_everything(seed)
    model = BERT(len(words), LONGEST + 2, d_model=64)

    def batch(step: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(text), (64,), generator=generator)
        return mask_tokens(text[rows], words.ids[MASK], len(words), generator)

    how = {"lr": lr, "seed": seed, "device": "cpu"}
    train(model, batch, masked_loss, steps=steps, progress=False, **how)  # type: ignore[arg-type]
    return model


# ------------------------------------------------------------------ counting as a rival


def ngrams(sentence: Sentence, longest: int) -> list[Sentence]:
    """Return all runs of 1 to `longest` words."""
    n = len(sentence)
    return [
        sentence[i : i + k] for k in range(1, longest + 1) for i in range(n - k + 1)
    ]


def tf_idf_tables(
    train: Sequence[Sentence], others: Sequence[Sequence[Sentence]], longest: int = 1
) -> list[Float[Tensor, "sentence term"]]:
    """Turn sentences into rows of length 1 of tf-idf, for terms seen in training.

    $tf log((1 + n) / (1 + df)) + tf$, $df$ from the training sentences alone, terms of
    1 to `longest` words. Returns the rows of `train`, then those of each of `others`.
    Data of chapter 18.
    """
    df = Counter(term for s in train for term in dict.fromkeys(ngrams(s, longest)))
    column = {term: j for j, term in enumerate(df)}
    idf = torch.log((1 + len(train)) / (1 + torch.tensor(list(df.values())))) + 1
    tables = []
    for sentences in (train, *others):
        table = torch.zeros(len(sentences), len(column))
        for row, sentence in enumerate(sentences):
            for term, count in Counter(ngrams(sentence, longest)).items():
                if term in column:
                    table[row, column[term]] = count * idf[column[term]]
        tables.append(table / table.norm(dim=1, keepdim=True).clamp(min=1e-9))
    return tables


def logistic_regression(
    x: Float[Tensor, "sentence term"], labels: Int[Tensor, "sentence"], strength: float
) -> tuple[Float[Tensor, "term 2"], Float[Tensor, "2"]]:
    """Fit the weights and biases that minimise the summed loss plus a penalty.

    $sum_i -log p(y_i | x_i) + |W|^2 / (2 strength)$, to convergence: the problem is
    convex. Data of chapter 18.
    """
    weight = torch.zeros(x.shape[1], 2, requires_grad=True)
    bias = torch.zeros(2, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weight, bias], max_iter=200, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(x @ weight + bias, labels, reduction="sum")
        total = loss + weight.square().sum() / (2 * strength)
        total.backward()
        return total

    optimiser.step(closure)
    return weight.detach(), bias.detach()


check_arguments(__name__)
