"""Every task's labels by brute force, its chance level, and no way around it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from beartype import beartype
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import jaxtyped

from course_utils.data.corpus import BOS, EOS, Vocabulary
from course_utils.tasks import baselines, synthetic
from course_utils.tasks.synthetic import IGNORE

examples = settings(max_examples=40, deadline=None)
SIZES = st.integers(2, 6)
SEEDS = st.integers(0, 1000)
WORLD = synthetic.slot_world(torch.Generator().manual_seed(0), width=16, n_slots=8)
TASKS: list[Callable[..., Any]] = [
    lambda batch, g: synthetic.reverse(batch, g, 5),
    synthetic.keyword_sentences,
    synthetic.marked_token,
    lambda batch, g: synthetic.slots(batch, g, WORLD, "rotated"),
    synthetic.cycle,
    synthetic.associative_recall,
    synthetic.order_pairs,
    synthetic.last_marked,
    synthetic.previous_token,
    synthetic.two_relations,
    synthetic.sort_tokens,
]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def share(hits: torch.Tensor) -> float:
    return hits.float().mean().item()


def even_shares(labels: torch.Tensor, n: int, slack: float = 0.03) -> bool:
    """Whether each of n labels has about 1/n of all."""
    counts = labels.flatten().bincount(minlength=n) / labels.numel()
    return len(counts) == n and bool((counts - 1 / n).abs().max() < slack)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_a_function_of_its_generator(task: Callable[..., Any]) -> None:
    torch.manual_seed(1)
    first = task(6, generator())
    torch.manual_seed(2)
    again, other = task(6, generator()), task(6, generator(1))
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    assert not all(torch.equal(a, b) for a, b in zip(first, other))


@pytest.mark.parametrize("task", TASKS)
def test_the_next_draw_is_another(task: Callable[..., Any]) -> None:
    g = generator()
    assert not all(torch.equal(a, b) for a, b in zip(task(6, g), task(6, g)))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("batch", [0, -2, 2.0, True])
def test_a_batch_that_is_no_size_is_refused(task: Callable[..., Any], batch) -> None:
    with pytest.raises(ValueError, match=r"batch is .*whole number from 1"):
        task(batch, generator())


@pytest.mark.parametrize(
    "name",
    [
        "reverse",
        "keyword_sentences",
        "marked_token",
        "slot_world",
        "slots",
        "cycle",
        "associative_recall",
        "order_pairs",
        "last_marked",
        "previous_token",
        "two_relations",
        "sort_tokens",
    ],
)
def test_shapes_are_those_of_the_signature(name: str) -> None:
    extra = {"reverse": (5,), "slots": (WORLD,)}.get(name, ())
    checked = jaxtyped(typechecker=beartype)(getattr(synthetic, name))
    arguments = (generator(),) if name == "slot_world" else (4, generator(), *extra)
    checked(*arguments)


# ---------------------------------------------------------- attention beside an RNN


@examples
@given(SIZES, st.integers(1, 9), SEEDS)
def test_reverse_is_the_word_backwards(batch: int, length: int, seed: int) -> None:
    letters = Vocabulary(["abcdefghijklmnopqrstuvwxyz"])
    sources, targets = synthetic.reverse(batch, generator(seed), length)
    assert sources.shape == (batch, length + 1)
    for source, target in zip(sources, targets):
        assert letters.decode(source) == letters.decode(target)[::-1]
        assert len(letters.decode(source)) == length
        assert target[0] == BOS
        assert source[-1] == target[-1] == EOS


def test_a_sentence_has_one_keyword_and_its_class_is_the_label() -> None:
    words, labels, gold = synthetic.keyword_sentences(4000, generator())
    for row, label, place in zip(words[:200].tolist(), labels, gold):
        keywords = [(i, w) for i, w in enumerate(row) if w >= 100]
        assert keywords == [(place, row[place])]
        assert (row[place] - 100) // 5 == label
    assert even_shares(labels, 4)
    assert even_shares(gold, 20)
    assert words.max() == 119
    assert words.min() == 0


# ------------------------------------------------------------ one operator, many scores


def test_the_marked_token_is_the_answer_and_stands_anywhere() -> None:
    values, marks, answers, gold = synthetic.marked_token(4000, generator(), 12, 10)
    assert (marks.sum(1) == 1).all()
    assert torch.equal((values * marks).sum(1), answers)
    assert torch.equal(marks.argmax(1), gold)
    assert even_shares(gold, 12)
    assert even_shares(answers, 10)


@pytest.mark.parametrize("query", ["same", "rotated", "slot"])
def test_each_query_finds_its_slot_by_its_own_rule(query: str) -> None:
    world = synthetic.slot_world(generator())
    queries, keys, values, answers, gold = synthetic.slots(
        2000, generator(1), world, query
    )
    space = {
        "same": keys,
        "rotated": keys @ world.rotation,
        "slot": world.names[:8].expand(2000, -1, -1),
    }
    nearest = {
        name: (queries[:, None] - those).norm(dim=-1).argmin(1)
        for name, those in space.items()
    }
    assert share(nearest.pop(query) == gold) > 0.999
    for wrong_rule in nearest.values():
        assert share(wrong_rule == gold) < 0.25
    assert torch.equal(values[torch.arange(2000), gold], answers)


def test_a_marked_key_is_found_without_the_query_and_not_with_it() -> None:
    world = synthetic.slot_world(generator())
    queries, keys, values, answers, gold = synthetic.slots(
        2000, generator(1), world, "marked"
    )
    assert share((keys @ world.mark).argmax(1) == gold) > 0.99
    by_query = (keys @ queries[:, :, None]).argmax(1)[:, 0]
    assert share(by_query == gold) < 0.25
    assert abs(queries.std() - 0.3) < 0.01
    assert torch.equal(values[torch.arange(2000), gold], answers)


@pytest.mark.parametrize("seed", range(5))
def test_a_rotation_keeps_lengths_and_does_not_lean(seed: int) -> None:
    rotation = synthetic.slot_world(generator(seed)).rotation
    torch.testing.assert_close(
        rotation @ rotation.T, torch.eye(32), atol=1e-5, rtol=1e-5
    )


def test_rotations_have_no_negative_trace_on_average() -> None:
    traces = [
        synthetic.slot_world(generator(s), 8).rotation.trace().item()
        for s in range(300)
    ]
    assert abs(sum(traces) / 300) < 0.25  # without the sign fix: about -2


# ----------------------------------------------------------- self-attention, q, k and v


@examples
@given(st.integers(2, 7), st.integers(0, 7), SEEDS)
def test_a_letter_gets_what_the_next_letter_holds(
    n: int, offset: int, seed: int
) -> None:
    letters, contents, answers, gold = synthetic.cycle(5, generator(seed), n, 8, offset)
    for row in range(5):
        held = dict(zip(letters[row, :n].tolist(), contents[row, :n].tolist()))
        askers = letters[row, n:].tolist()
        assert sorted(held) == askers == list(range(n))
        assert (contents[row, n:] == 8).all()
        wanted = [(a + offset) % n for a in askers]
        assert answers[row].tolist() == [held[letter] for letter in wanted]
        assert letters[row, gold[row]].tolist() == wanted


def test_in_the_cycle_no_position_and_no_content_gives_the_answer_away() -> None:
    _, _, answers, gold = synthetic.cycle(4000, generator(), 3, 8)
    for asker in range(3):
        assert even_shares(gold[:, asker], 3)
        assert even_shares(answers[:, asker], 8)


@pytest.mark.parametrize("n", [3, 4, 6])
def test_symmetric_scores_serve_all_letters_but_one_at_best(n: int) -> None:
    """Random symmetric scores, and the best by construction, against the bound."""
    best = 0
    g = generator()
    for trial in range(300):
        x = torch.randn(n, n, generator=g)
        scores = x + x.T
        if trial == 0:  # link a, a + 1 stronger than the one before, save the last
            ring = torch.arange(n)
            scores = torch.zeros(n, n)
            scores[ring, (ring + 1) % n] = 1.0 + ring
            scores = scores + scores.T
        served = scores.fill_diagonal_(-100).argmax(1) == (torch.arange(n) + 1) % n
        best = max(best, int(served.sum()))
    assert best == n - 1


@examples
@given(st.integers(1, 12), SEEDS)
def test_recall_is_a_dictionary_lookup(n_pairs: int, seed: int) -> None:
    keys, values, answers, gold = synthetic.associative_recall(
        6, generator(seed), n_pairs, 12, 5
    )
    for k, v, answer, place in zip(keys.tolist(), values.tolist(), answers, gold):
        table = dict(zip(k[:-1], v[:-1]))
        assert len(table) == n_pairs
        assert table[k[-1]] == answer
        assert k.index(k[-1]) == place
        assert v[-1] == 5


def test_recall_asks_for_every_place_and_answers_with_every_value() -> None:
    keys, _, answers, gold = synthetic.associative_recall(8000, generator(), 10, 40, 16)
    assert even_shares(gold, 10)
    assert even_shares(answers, 16)
    assert even_shares(keys, 40)


# ------------------------------------------------------------------ order and position


@examples
@given(st.integers(1, 5), st.integers(2, 9), SEEDS)
def test_order_labels_are_right_and_a_swap_turns_them(
    half: int, n_tokens: int, seed: int
) -> None:
    tokens, labels = synthetic.order_pairs(2 * half, generator(seed), n_tokens)
    for row, label in zip(tokens.tolist(), labels):
        assert row.count(0) == row.count(1) == 1
        assert (row.index(0) < row.index(1)) == bool(label)
    swap = {0: 1, 1: 0}
    for row, other in zip(tokens[:half].tolist(), tokens[half:].tolist()):
        assert other == [swap.get(token, token) for token in row]
    assert torch.equal(labels[:half], 1 - labels[half:])


def test_a_bag_of_words_orders_exactly_half() -> None:
    tokens, labels = synthetic.order_pairs(400, generator())
    bags = torch.nn.functional.one_hot(tokens, 26).sum(1).double()
    guess = bags @ torch.randn(26, dtype=torch.double, generator=generator()) > 0.3
    assert share(guess == labels.bool()) == 0.5
    assert 0.4 < share(labels[:200]) < 0.6


@examples
@given(st.integers(1, 30), st.floats(0, 1), SEEDS)
def test_the_last_mark_is_found_by_walking_along(
    n: int, rate: float, seed: int
) -> None:
    symbols, marks, answers, gold = synthetic.last_marked(
        3, generator(seed), n, 5, rate
    )
    for row in range(3):
        for t in range(n):
            if marks[row, t] or t == 0:
                last = t
            assert gold[row, t] == last
            assert answers[row, t] == symbols[row, last]
    assert (marks[:, 0] == 1).all()


def test_marks_fall_at_their_rate() -> None:
    marks = synthetic.last_marked(200, generator(), 500, 4, 0.2)[1]
    assert abs(share(marks[:, 1:]) - 0.2) < 0.01


@examples
@given(st.integers(1, 12), SEEDS)
def test_the_previous_token_is_the_one_before(n: int, seed: int) -> None:
    symbols, before = synthetic.previous_token(3, generator(seed), n)
    for row, answers in zip(symbols.tolist(), before.tolist()):
        assert answers == [IGNORE, *row[:-1]]


# --------------------------------------------------------------- several heads, a block


@examples
@given(st.integers(1, 7), SEEDS)
def test_two_relations_are_the_one_before_and_the_partner(n: int, seed: int) -> None:
    rows = [r.tolist() for r in synthetic.two_relations(4, generator(seed), n)]
    for colours, letters, before, partner, gold in zip(*rows):
        assert Counter(colours) == dict.fromkeys(range(n), 2)
        assert before == [IGNORE, *letters[:-1]]
        for i, colour in enumerate(colours):
            (other,) = (j for j, c in enumerate(colours) if c == colour and j != i)
            assert (gold[i], partner[i]) == (other, letters[other])


@examples
@given(st.integers(1, 9), SEEDS)
def test_sorting_sorts(n: int, seed: int) -> None:
    tokens, answers = synthetic.sort_tokens(4, generator(seed), n)
    assert answers.tolist() == [sorted(row) for row in tokens.tolist()]


# ----------------------------------------------------------------------- chance levels


@pytest.mark.parametrize(("n", "values"), [(1, 7), (4, 1), (3, 2), (4, 3), (5, 2)])
def test_majority_chance_is_that_of_all_sequences(n: int, values: int) -> None:
    every = torch.cartesian_prod(*[torch.arange(values)] * n).view(-1, n)
    counts = torch.nn.functional.one_hot(every, values).sum(1)
    expected = counts.max(1).values.double().mean().item() / n
    assert baselines.majority_chance(n, values) == pytest.approx(expected)


def test_always_guessing_the_majority_gets_the_majority_chance() -> None:
    _, _, values, answers, _ = synthetic.slots(20_000, generator(), WORLD)
    guess = torch.nn.functional.one_hot(values, 10).sum(1).argmax(1)
    assert baselines.majority_chance(8, 10) == pytest.approx(0.3, abs=0.001)
    assert share(guess == answers) == pytest.approx(0.3, abs=0.015)


def test_sorting_by_position_alone_gets_the_sorting_chance() -> None:
    _, answers = synthetic.sort_tokens(20_000, generator())
    guess = answers.mode(dim=0).values
    assert baselines.sorting_chance() == pytest.approx(0.339, abs=0.001)
    assert share(guess == answers) == pytest.approx(0.339, abs=0.01)


@pytest.mark.parametrize(("n", "symbols"), [(1, 4), (2, 3), (3, 3), (4, 2)])
def test_sorting_chance_is_that_of_all_sequences(n: int, symbols: int) -> None:
    every = torch.cartesian_prod(*[torch.arange(symbols)] * n).view(-1, n)
    places = every.sort(1).values
    shares = torch.nn.functional.one_hot(places, symbols).double().mean(0)
    expected = shares.max(1).values.mean().item()
    assert baselines.sorting_chance(n, symbols) == pytest.approx(expected)


# --------------------------------------------------------------------------- bad sizes


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: synthetic.reverse(2, g, 0), "length is 0"),
        (lambda g: synthetic.keyword_sentences(2, g, per_class=0), "per_class is 0"),
        (lambda g: synthetic.marked_token(2, g, n_values=0), "n_values is 0"),
        (lambda g: synthetic.slot_world(g, 0), "width is 0"),
        (
            lambda g: synthetic.slots(2, g, WORLD, n_slots=9),
            r"slot_world\(generator, n_s",
        ),
        (lambda g: synthetic.slots(2, g, WORLD, "other"), "'same', 'rotated', 'slot'"),
        (lambda g: synthetic.cycle(2, g, 0), "n_letters is 0"),
        (lambda g: synthetic.associative_recall(2, g, 41), "only 40 keys"),
        (lambda g: synthetic.order_pairs(3, g), "even batch"),
        (lambda g: synthetic.order_pairs(2, g, 1), "at least 2 tokens"),
        (lambda g: synthetic.last_marked(2, g, rate=1.5), "rate is 1.5"),
        (lambda g: synthetic.previous_token(2, g, n_symbols=-1), "n_symbols is -1"),
        (lambda g: synthetic.two_relations(2, g, 0), "n_colours is 0"),
        (lambda g: synthetic.sort_tokens(2, g, 0), "n_tokens is 0"),
        (lambda g: baselines.majority_chance(0, 3), "n_tokens is 0"),
        (lambda g: baselines.sorting_chance(3, 0), "n_symbols is 0"),
    ],
)
def test_bad_sizes_are_refused_in_a_sentence(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(generator())


def test_drawing_leaves_other_randomness_alone() -> None:
    states = torch.random.get_rng_state(), random.getstate()
    for task in TASKS:
        task(4, generator())
    assert torch.equal(torch.random.get_rng_state(), states[0])
    assert random.getstate() == states[1]
