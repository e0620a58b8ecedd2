"""Labels made by rule are right, balanced, and never in the plain text."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from course_utils.data.grammar.sentence_pairs import corpus
from course_utils.tasks import labels


@pytest.fixture(scope="module")
def sentences():
    return [pair.source for pair in corpus(1500, 5, 4, labels.LONGEST)]


def test_a_verb_agrees_where_the_label_says_so(sentences):
    known = set(sentences)
    found = labels.agreement_examples(sentences)
    for sentence, label in found:
        verbs = [i for i, word in enumerate(sentence) if word in labels.OTHER]
        assert len(verbs) == 1
        (i,) = verbs
        turned = (*sentence[:i], labels.OTHER[sentence[i]], *sentence[i + 1 :])
        assert (sentence in known) == bool(label)
        assert (turned in known) != bool(label) or (turned in known and label)


def test_no_word_alone_gives_agreement_away(sentences):
    found = labels.agreement_examples(sentences)
    shown = Counter((w, label) for s, label in found for w in s if w in labels.OTHER)
    assert len(set(shown.values())) == 1
    assert len(shown) == 4


def test_an_animal_is_named_where_the_label_says_so(sentences):
    found = labels.animal_examples(sentences)
    assert sum(label for _, label in found) * 2 == len(found)
    assert all(bool(labels.ANIMALS & set(s)) == bool(label) for s, label in found)


def test_the_parts_and_the_text_have_no_sentence_in_common():
    task = labels.labelled_task("animals", 0, n_text=500, n_labelled=5000)
    parts = [{s for s, _ in part} for part in (task.train, task.validation, task.test)]
    assert len(set.union(*parts)) == sum(map(len, parts))
    assert not set(task.text) & set.union(*parts)
    few = task.few(5, seed=1)
    assert Counter(label for _, label in few) == {0: 5, 1: 5}
    assert few == task.few(5, seed=1) != task.few(5, seed=2)
    with pytest.raises(ValueError, match="expected one of"):
        labels.labelled_task("colours")


def test_tf_idf_counts_runs_and_forgets_what_it_has_not_seen():
    train, other = [("a", "b", "a"), ("b", "c")], [("a", "d")]
    table, (row,) = labels.tf_idf_tables(train, [other], 2)
    assert labels.ngrams(("a", "b", "a"), 2) == [
        ("a",),
        ("b",),
        ("a",),
        ("a", "b"),
        ("b", "a"),
    ]
    assert table.shape == (2, 6)  # a, b, a b, b a, c, b c
    torch.testing.assert_close(table.norm(dim=1), torch.ones(2))
    assert (row > 0).sum() == 1  # of "a d" only "a" is known
    assert table[0, 0] > 2 * table[0, 1]  # twice, and in fewer sentences


def test_logistic_regression_is_at_its_optimum():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 3, generator=generator)
    truth = (x[:, 0] + 0.5 * torch.randn(40, generator=generator) > 0).long()
    weight, bias = labels.logistic_regression(x, truth, 2.0)
    weight.requires_grad_()
    bias.requires_grad_()
    loss = torch.nn.functional.cross_entropy(x @ weight + bias, truth, reduction="sum")
    (loss + weight.square().sum() / 4).backward()
    assert max(weight.grad.abs().max(), bias.grad.abs().max()) < 0.01
    strong, _ = labels.logistic_regression(x, truth, 0.01)
    assert strong.norm() < weight.norm()
