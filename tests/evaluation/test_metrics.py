"""Metrics: by hand on small cases, and clear words for empty input."""

from __future__ import annotations

import math

import pytest
import torch

from course_utils.evaluation.metrics import (
    Bucket,
    alignment_accuracy,
    alignment_error_rate,
    bits_per_character,
    bleu,
    by_length,
    exact_match,
    strongest_links,
    token_accuracy,
)

SAID = ["le chat noir dort ici", "il ne mange pas le pain", "oui"]
WANTED = ["le chat noir dort ici", "il ne mange jamais le pain", "non"]


def test_bleu_of_a_perfect_translation_is_100():
    assert bleu(WANTED, WANTED) == pytest.approx(100)


def test_bleu_by_hand():
    """One sentence of six words with one wrong: 5/6, 3/5, 1/4 and 0 (smoothed to 1/6).

    sacrebleu smooths a precision of 0 by halving: 1 / (2 * 3 four-grams).
    """
    expected = 100 * (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** 0.25
    assert bleu([SAID[1]], [WANTED[1]]) == pytest.approx(expected, abs=0.01)


def test_bleu_punishes_translations_that_are_too_short():
    short = ["le chat noir dort"]
    assert bleu(short, [WANTED[0]]) == pytest.approx(100 * math.exp(1 - 5 / 4))


def test_bleu_takes_tokens_as_they_are():
    """Nothing is split off a token: "là." is not "là ."."""
    score = bleu([["l'", "eau", "est", "là", "."]], ["l' eau est là ."])
    assert score == pytest.approx(100)
    assert bleu(["l' eau est là."], ["l' eau est là ."]) < 70


def test_exact_match_counts_whole_sentences():
    assert exact_match(SAID, WANTED) == pytest.approx(1 / 3)
    assert exact_match([["a", "b"]], ["a b"]) == 1


def test_token_accuracy_counts_places():
    assert token_accuracy(SAID, WANTED) == pytest.approx((5 + 5 + 0) / 12)
    assert token_accuracy(["b c"], ["a b c"]) == 0


def test_by_length_scores_each_bucket_by_itself():
    report = by_length(exact_match, SAID, WANTED, [5, 6, 1], [(1, 4), (5, 5), (6, 9)])
    assert report == [Bucket(1, 4, 1, 0.0), Bucket(5, 5, 1, 1.0), Bucket(6, 9, 1, 0.0)]


def test_by_length_leaves_empty_buckets_out_and_includes_both_ends():
    report = by_length(exact_match, SAID, WANTED, [5, 6, 1], [(2, 4), (5, 6)])
    assert report == [Bucket(5, 6, 2, 0.5)]
    with pytest.raises(ValueError, match=r"no sentence falls into.*from 1 to 6"):
        by_length(exact_match, SAID, WANTED, [5, 6, 1], [(7, 9)])


def test_alignment_error_rate_by_hand():
    sure, possible = [{(0, 0), (1, 2)}], [{(0, 0), (1, 2), (2, 1)}]
    predicted = [{(0, 0), (2, 1), (3, 3)}]
    # |A & S| = 1, |A & P| = 2, |A| = 3, |S| = 2
    assert alignment_error_rate(sure, possible, predicted) == pytest.approx(1 - 3 / 5)
    assert alignment_error_rate(sure, possible, sure) == 0
    assert alignment_error_rate(sure, [set()], sure) == 0  # sure links are possible


def test_alignment_error_rate_is_over_the_whole_corpus():
    sure = [{(0, 0)}, {(0, 0), (1, 1), (2, 2)}]
    predicted = [{(1, 1)}, {(0, 0), (1, 1), (2, 2)}]
    assert alignment_error_rate(sure, sure, predicted) == pytest.approx(1 - 6 / 8)


def test_alignment_accuracy_is_the_share_of_right_links():
    gold = [{(0, 0), (1, 1)}, {(0, 0)}]
    assert alignment_accuracy(gold, [{(0, 0), (2, 1)}, {(0, 0)}]) == pytest.approx(
        2 / 3
    )


def test_strongest_links_take_the_argmax_of_each_target_word():
    weights = torch.tensor([[0.1, 0.9, 0.0], [0.6, 0.3, 0.1]])
    assert strongest_links(weights) == {(1, 0), (0, 1)}


def test_bits_per_character_of_a_uniform_guess():
    """256 tokens of two characters each cost 8 bits a token, 4 a character."""
    assert bits_per_character(math.log(256), 10, 20) == pytest.approx(4)


@pytest.mark.parametrize("metric", [bleu, exact_match, token_accuracy])
@pytest.mark.parametrize(
    ("said", "wanted"), [([], []), (["a"], []), (["a"], ["a"] * 2)]
)
def test_sentences_that_do_not_pair_up_are_refused(metric, said, wanted):
    with pytest.raises(ValueError, match="expected equally many and at least one"):
        metric(said, wanted)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: token_accuracy([""], [""]), "hold no token"),
        (lambda: by_length(bleu, ["a"], ["a"], [], [(1, 2)]), "hypotheses and lengths"),
        (lambda: alignment_error_rate([], [], []), "sure and predicted"),
        (lambda: alignment_error_rate([set()], [], [set()]), "possible and predicted"),
        (lambda: alignment_error_rate([set()], [set()], [set()]), "nothing to compare"),
        (lambda: alignment_accuracy([{(0, 0)}], [set()]), "no link was predicted"),
        (lambda: alignment_accuracy([], []), "gold and predicted"),
        (lambda: strongest_links(torch.zeros(2, 3, 4)), r"shape \(2, 3, 4\)"),
        (lambda: strongest_links(torch.zeros(2, 0)), r"shape \(2, 0\)"),
        (lambda: bits_per_character(1.0, 0, 5), "0 tokens and 5 characters"),
    ],
)
def test_input_with_nothing_to_measure_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
