"""The translation task of chapters 02, 03 and 12: one setup, honest and repeatable."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
import torch

from course_utils.data.corpus import BOS, EOS, PAD
from course_utils.data.grammar.sentence_pairs import source_words, target_words
from course_utils.evaluation.metrics import exact_match
from course_utils.models.rnn import Seq2Seq, Seq2SeqAttention
from course_utils.tasks.translation import (
    FIXED_VECTOR,
    SHARED,
    WITH_ATTENTION,
    Settings,
    score_by_length,
    train_translator,
    translate,
    translation_loss,
    translation_task,
    typed,
)

SMALL = Settings(n_train=90, n_test=63, train_lengths=(4, 8), test_lengths=(4, 10))


def parameters(model):
    return sum(p.numel() for p in model.parameters())


def test_the_shared_settings_can_not_be_changed_by_a_chapter():
    with pytest.raises(FrozenInstanceError):
        SHARED.lr = 1.0


def test_the_fixed_vector_gets_more_steps_and_more_parameters():
    sizes = translation_task(0, SMALL).sizes
    fixed = Seq2Seq(*sizes, FIXED_VECTOR.d_embedding, FIXED_VECTOR.d_hidden)
    attending = Seq2SeqAttention(
        *sizes, WITH_ATTENTION.d_embedding, WITH_ATTENTION.d_hidden
    )
    assert parameters(fixed) > parameters(attending)
    assert FIXED_VECTOR.steps > WITH_ATTENTION.steps


def test_buckets_cover_every_test_length_once_and_split_at_the_training_length():
    covered = [n for low, high in SHARED.buckets for n in range(low, high + 1)]
    low, high = SHARED.test_lengths
    assert covered == list(range(low, high + 1))
    assert SHARED.train_lengths[1] in [high for _, high in SHARED.buckets]
    assert SHARED.test_lengths[1] > SHARED.train_lengths[1]


def test_training_and_test_sentences_do_not_meet():
    task = translation_task(0, SMALL)
    assert not {p.source for p in task.train} & {p.source for p in task.test}
    assert {len(p.source) for p in task.train} == set(range(4, 9))
    assert {len(p.source) for p in task.test} == set(range(4, 11))


def test_seeds_have_their_own_sentences_and_one_vocabulary(monkeypatch):
    one, two = translation_task(0, SMALL), translation_task(1, SMALL)
    assert one.train != two.train
    assert one.test != two.test
    assert one.source_vocabulary.tokens == two.source_vocabulary.tokens
    assert one.sizes == (4 + len(source_words()), 4 + len(target_words()))
    monkeypatch.setenv("COURSE_SEED", "5")
    assert translation_task(0, SMALL).train != one.train
    monkeypatch.delenv("COURSE_SEED")
    assert translation_task(0, SMALL).train == one.train


def test_no_translation_is_cut_short_by_the_longest_allowed():
    task = translation_task(0, Settings(n_train=13, n_test=630))
    assert max(len(p.target) for p in task.test) < SHARED.max_target


class Uniform(torch.nn.Module):
    """Every token equally probable; remembers what it was given to read."""

    def forward(self, source, target_in):
        self.read = target_in
        return torch.zeros(*target_in.shape, 8, requires_grad=True), None


def test_the_loss_reads_up_to_the_last_token_and_leaves_padding_out():
    model = Uniform()
    target = torch.tensor([[BOS, 5, 6, EOS], [BOS, 7, EOS, PAD]])
    loss = translation_loss(model, torch.ones(2, 3).long(), target)
    assert torch.allclose(loss, torch.tensor(8.0).log())
    assert model.read.tolist() == [[BOS, 5, 6], [BOS, 7, EOS]]


class Sharp(torch.nn.Module):
    """Surely right, except that it is surely wrong where the answer is padding."""

    def __init__(self, target):
        super().__init__()
        self.answer = target[:, 1:]

    def forward(self, source, target_in):
        said = torch.where(self.answer == PAD, 3, self.answer)
        return 50.0 * torch.nn.functional.one_hot(said, 8).float(), None


def test_what_is_said_at_padding_costs_nothing():
    target = torch.tensor([[BOS, 5, 6, EOS], [BOS, 7, EOS, PAD]])
    assert translation_loss(Sharp(target), target, target) < 1e-6


def test_a_model_is_trained_and_translates_every_test_sentence():
    task = translation_task(0, SMALL)
    torch.manual_seed(0)
    model = Seq2Seq(*task.sizes, 8, 8)
    history = train_translator(model, task, steps=30)
    losses = history.columns["loss"]
    assert losses[-1] < losses[0] - 0.5
    said = translate(model, task.test, task)
    assert len(said) == len(task.test)
    assert {word for s in said for word in s} <= set(task.target_vocabulary.tokens)
    report = score_by_length(exact_match, said, task)
    assert [(b.low, b.high) for b in report] == [(4, 6), (7, 9), (10, 12)]
    assert sum(b.n_sentences for b in report) == 63


def test_the_references_score_one_in_every_bucket():
    task = translation_task(0, SMALL)
    report = score_by_length(exact_match, [p.target for p in task.test], task)
    assert [b.score for b in report] == [1, 1, 1]


def test_clear_errors():
    task = translation_task(0, SMALL)
    model = Seq2Seq(*task.sizes, 8, 8)
    for seed in (-1, 1.5, True):
        with pytest.raises(ValueError, match=r"whole number 0, 1, 2"):
            translation_task(seed, SMALL)
    with pytest.raises(ValueError, match=r"got no pair, expected at least one"):
        translate(model, [], task)
    with pytest.raises(ValueError, match=r"shape \(2, 1\), expected \(batch, target\)"):
        translation_loss(model, torch.ones(2, 3).long(), torch.ones(2, 1).long())
    with pytest.raises(ValueError, match=r"number 1 and 63"):
        score_by_length(exact_match, [["le"]], task)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The girl's cat sleeps.", "the girl 's cat sleeps ."),
        ("the girls’ cat sleeps .", "the girls ' cat sleeps ."),
        ("the man 's dog , but", "the man 's dog , but"),
    ],
)
def test_what_is_typed_parts_the_owner_from_its_apostrophe(text, words):
    vocabulary = translation_task(0, SMALL).source_vocabulary
    assert typed(text, vocabulary) == words.split()


def test_a_word_that_is_not_known_is_named():
    vocabulary = translation_task(0, SMALL).source_vocabulary
    with pytest.raises(ValueError, match="never read zebra"):
        typed("the zebra's cat", vocabulary)
