"""Greedy, beam and sampling: against brute force, and by their properties."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils.evaluation.decoding import (
    beam_search,
    generate,
    greedy,
    keep_top_k,
    keep_top_p,
    sample,
)
from course_utils.models.rnn import GRULanguageModel, Seq2Seq, Seq2SeqAttention
from course_utils.models.transformer import GPT, Transformer

PAD, BOS, EOS = 0, 1, 2
SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0], [5, 5, 2, 0, 0]])


def translators() -> dict[str, nn.Module]:
    """Return random models, the recurrent ones sharpened so that choices differ."""
    torch.manual_seed(0)
    fixed, attention = Seq2Seq(11, 6, 5, 6), Seq2SeqAttention(11, 6, 5, 6)
    with torch.no_grad():
        for parameter in (*fixed.parameters(), *attention.parameters()):
            parameter *= 3
    transformer = Transformer(11, 6, 8, 2, 10, max_length=12)
    return {"fixed": fixed, "attention": attention, "transformer": transformer}


NAMES = pytest.mark.parametrize("name", list(translators()))


class Table:
    """A language model given as a function of the tokens so far: rows of logits."""

    def __init__(self, n_tokens: int, max_length: int, seed: int):
        self.n_tokens, self.max_length, self.seed = n_tokens, max_length, seed

    def logits(self, tokens: tuple[int, ...]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((self.seed, *tokens)) % 2**31)
        return 2 * torch.randn(self.n_tokens, generator=generator)

    def start(self, source: torch.Tensor) -> torch.Tensor:
        return source[:, :0]

    def step(self, token, state):
        state = torch.cat([state, token[:, None]], dim=1)
        rows = [self.logits(tuple(row)) for row in state.tolist()]
        return torch.stack(rows), state, None

    def score(self, sequence: tuple[int, ...], penalty: float) -> float:
        """Return log p / length^penalty of a sequence without its padding."""
        so_far, total = (BOS,), 0.0
        for token in sequence:
            total += torch.log_softmax(self.logits(so_far), -1)[token].item()
            so_far = (*so_far, token)
        return total / len(sequence) ** penalty

    def sequences(self):
        """Yield every sequence: those that end, and those cut off at max_length."""
        others = [t for t in range(self.n_tokens) if t != EOS]
        for n in range(self.max_length):
            for body in itertools.product(others, repeat=n):
                yield (*body, EOS)
        yield from itertools.product(others, repeat=self.max_length)


def unpadded(row: torch.Tensor) -> tuple[int, ...]:
    tokens = row.tolist()
    return tuple(tokens[: tokens.index(EOS) + 1] if EOS in tokens else tokens)


# ------------------------------------------------------------------- greedy and beam


@NAMES
def test_greedy_takes_the_argmax_of_the_teacher_forced_pass(name):
    model = translators()[name].eval()
    tokens, _ = greedy(model, SOURCE, 7, BOS, EOS)
    target_in = torch.cat([torch.full((3, 1), BOS), tokens[:, :-1]], dim=1)
    expected = model(SOURCE, target_in)[0].argmax(-1)
    for row, wanted in zip(tokens, expected):
        length = len(unpadded(row))
        assert row[:length].tolist() == wanted[:length].tolist()
        assert (row[length:] == PAD).all()


def test_greedy_returns_the_weights_of_every_step():
    model = translators()["attention"].eval()
    tokens, weights = greedy(model, SOURCE, 7, BOS, EOS)
    target_in = torch.cat([torch.full((3, 1), BOS), tokens[:, :-1]], dim=1)
    expected = model(SOURCE, target_in)[1]
    torch.testing.assert_close(weights, expected, rtol=1e-4, atol=1e-5)
    assert greedy(translators()["fixed"], SOURCE, 2, BOS, EOS).weights is None


def test_greedy_stops_when_every_row_has_ended():
    class Ends(Table):
        def logits(self, tokens):
            return torch.eye(self.n_tokens)[EOS if len(tokens) == 3 else 3]

    tokens, _ = greedy(Ends(5, 9, 0), SOURCE, 9, BOS, EOS)
    assert tokens.tolist() == [[3, 3, EOS]] * 3


@NAMES
def test_one_beam_is_greedy(name):
    model = translators()[name]
    expected, _ = greedy(model, SOURCE, 7, BOS, EOS)
    for penalty in (0.0, 1.0):
        tokens, _ = beam_search(
            model, SOURCE, 7, BOS, EOS, n_beams=1, length_penalty=penalty
        )
        assert torch.equal(tokens, expected)


@pytest.mark.parametrize("penalty", [0.0, 0.7, 1.5])
@pytest.mark.parametrize("seed", range(4))
def test_wide_beams_find_the_best_sequence_of_all(seed, penalty):
    model = Table(n_tokens=4, max_length=3, seed=seed)
    scores = {s: model.score(s, penalty) for s in model.sequences()}
    best = max(scores, key=scores.__getitem__)
    tokens, score = beam_search(
        model, SOURCE[:2], 3, BOS, EOS, n_beams=64, length_penalty=penalty
    )
    assert unpadded(tokens[0]) == unpadded(tokens[1]) == best
    assert score[0].item() == pytest.approx(scores[best], abs=1e-5)


def test_several_beams_are_the_best_sequences_of_all_in_their_order():
    model = Table(n_tokens=4, max_length=3, seed=0)
    scores = {s: model.score(s, 0.7) for s in model.sequences()}
    best = sorted(scores, key=scores.__getitem__, reverse=True)[:5]
    how = {"n_beams": 64, "length_penalty": 0.7}
    tokens, found = beam_search(model, SOURCE[:2], 3, BOS, EOS, **how, n_best=5)
    for row in range(2):
        assert [unpadded(beam) for beam in tokens[row]] == best
        assert found[row].tolist() == pytest.approx([scores[s] for s in best], abs=1e-5)
    one = beam_search(model, SOURCE[:2], 3, BOS, EOS, **how)
    assert torch.equal(one.tokens, tokens[:, 0])
    assert torch.equal(one.scores, found[:, 0])


def test_the_length_penalty_makes_sequences_longer():
    lengths = []
    for penalty in (0.0, 2.0):
        tokens = [
            beam_search(
                Table(4, 4, seed), SOURCE[:1], 4, BOS, EOS, 0, 64, penalty
            ).tokens
            for seed in range(10)
        ]
        lengths.append(sum(len(unpadded(t[0])) for t in tokens))
    assert lengths[0] < lengths[1]


@NAMES
def test_a_beams_score_is_the_models_log_probability(name):
    model = translators()[name].eval()
    tokens, scores = beam_search(model, SOURCE, 6, BOS, EOS, n_beams=3)
    target_in = torch.cat([torch.full((3, 1), BOS), tokens[:, :-1]], dim=1)
    log_p = torch.log_softmax(model(SOURCE, target_in)[0], -1)
    for row in range(3):
        sequence = unpadded(tokens[row])
        total = sum(log_p[row, t, token] for t, token in enumerate(sequence))
        torch.testing.assert_close(scores[row], total, rtol=1e-4, atol=1e-4)


@NAMES
def test_more_beams_score_no_worse_than_greedy_here(name):
    model = translators()[name]
    one = beam_search(model, SOURCE, 6, BOS, EOS, n_beams=1).scores
    many = beam_search(model, SOURCE, 6, BOS, EOS, n_beams=40).scores
    assert (many >= one - 1e-4).all()
    assert (many > one + 1e-4).any()


@NAMES
def test_rows_are_decoded_independently_of_their_batch(name):
    model = translators()[name]
    together, _ = beam_search(model, SOURCE, 6, BOS, EOS, n_beams=3)
    alone, _ = beam_search(model, SOURCE[1:2, :3], 6, BOS, EOS, n_beams=3)
    assert unpadded(together[1]) == unpadded(alone[0])


def test_decoding_restores_training_mode_and_switches_dropout_off():
    torch.manual_seed(0)
    model = Transformer(11, 6, 8, 2, 10, dropout=0.9, max_length=12).train()
    tokens = [greedy(model, SOURCE, 6, BOS, EOS).tokens for _ in range(2)]
    assert torch.equal(*tokens)
    assert model.training
    greedy(model.eval(), SOURCE, 6, BOS, EOS)
    assert not model.training


def test_decoding_that_fails_restores_training_mode():
    model = translators()["transformer"].train()
    with pytest.raises(ValueError, match=r"built for 12"):
        greedy(model, SOURCE.repeat(1, 3), 6, BOS, EOS)
    assert model.training


@NAMES
def test_what_was_decoded_can_be_trained_on(name):
    model = translators()[name]
    assert not beam_search(model, SOURCE, 5, BOS, EOS).scores.is_inference()
    for tokens in (
        greedy(model, SOURCE, 5, BOS, EOS).tokens,
        beam_search(model, SOURCE, 5, BOS, EOS).tokens,
    ):
        model(SOURCE, tokens)[0].sum().backward()


def test_what_was_generated_can_be_trained_on():
    model = language_models()[1]
    model(generate(model, torch.tensor([[3, 1]]), 4))[0].sum().backward()
    assert any(p.grad is not None and p.grad.any() for p in model.parameters())


def test_bad_requests_are_refused():
    model = translators()["fixed"]
    with pytest.raises(ValueError, match=r"source has shape \(5,\).*source\[None\]"):
        greedy(model, SOURCE[0], 5, BOS, EOS)
    with pytest.raises(ValueError, match="max_length = 0, expected at least 1"):
        beam_search(model, SOURCE, 0, BOS, EOS)
    with pytest.raises(ValueError, match="n_beams = 0, expected at least 1"):
        beam_search(model, SOURCE, 5, BOS, EOS, n_beams=0)
    with pytest.raises(ValueError, match="n_best = 5, expected 1 to n_beams = 4"):
        beam_search(model, SOURCE, 5, BOS, EOS, n_best=5)


# ------------------------------------------------------------------------- sampling


@st.composite
def rows_of_logits(draw):
    n_rows, n_tokens = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    return 3 * torch.randn(n_rows, n_tokens, generator=generator)


@settings(max_examples=80, deadline=None)
@given(rows_of_logits(), st.integers(1, 12))
def test_top_k_keeps_exactly_the_k_best(logits, k):
    kept = keep_top_k(logits, k)
    alive = kept > -torch.inf
    assert torch.equal(kept[alive], logits[alive])
    assert (alive.sum(-1) == min(k, logits.shape[-1])).all()
    for row, mask in zip(logits, alive):
        if not mask.all():
            assert row[mask].min() > row[~mask].max()


@settings(max_examples=80, deadline=None)
@given(rows_of_logits(), st.floats(0.01, 0.99))
def test_top_p_keeps_the_fewest_tokens_that_reach_p(logits, p):
    kept = keep_top_p(logits, p)
    alive = kept > -torch.inf
    assert torch.equal(kept[alive], logits[alive])
    for row, mask in zip(logits, alive):
        probabilities = torch.softmax(row, -1)
        chosen = probabilities[mask]
        assert chosen.sum() >= p - 1e-5
        assert chosen.sum() - chosen.min() < p + 1e-5
        if not mask.all():
            assert row[mask].min() >= row[~mask].max()


def test_filters_that_keep_everything_change_nothing():
    logits = torch.randn(2, 7)
    assert torch.equal(keep_top_p(logits, 1.0), logits)
    assert torch.equal(keep_top_k(logits, 100), logits)


def test_top_p_of_one_keeps_tokens_whose_share_rounds_away():
    """In float32 the sum of the others reaches 1 before the last token is counted."""
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(50, 1000, generator=generator)
    probabilities = torch.softmax(logits, dim=-1).sort(descending=True).values
    assert ((probabilities.cumsum(-1) - probabilities) >= 1).any()
    assert torch.equal(keep_top_p(logits, 1.0), logits)
    assert torch.equal(keep_top_p(logits, 1), logits)


def test_ties_at_the_kth_place_all_stay():
    kept = keep_top_k(torch.tensor([[1.0, 2.0, 2.0, 3.0]]), 2)
    assert (kept > -torch.inf).tolist() == [[False, True, True, True]]


def test_filters_change_no_argument():
    logits = torch.randn(2, 7)
    before = logits.clone()
    sample(logits, 0.5, 3, 0.8)
    assert torch.equal(logits, before)


def test_sampling_follows_the_tempered_probabilities():
    logits = torch.tensor([1.0, 0.0, -1.0])
    for temperature in (0.5, 1.0, 2.0):
        generator = torch.Generator().manual_seed(0)
        drawn = sample(logits.expand(40_000, 3), temperature, generator=generator)
        shares = torch.bincount(drawn, minlength=3) / 40_000
        expected = torch.softmax(logits / temperature, -1)
        torch.testing.assert_close(shares, expected, rtol=0, atol=0.015)


@pytest.mark.parametrize("temperature", [0, 0.0, 1e-320, 1e-45, 1e-30, 1e-10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_temperature_near_zero_is_greedy(temperature, dtype):
    rows = [
        torch.randperm(9, generator=torch.Generator().manual_seed(s)) for s in range(50)
    ]
    logits = 100 * torch.stack(rows).to(dtype)
    assert torch.equal(sample(logits, temperature), logits.argmax(-1))
    assert torch.equal(sample(logits, temperature, 3, 0.9), logits.argmax(-1))
    model = GPT(11, 12, 8, 2)
    prompt = torch.tensor([[1, 2], [3, 4]])
    greedily = generate(model, prompt, 4, top_k=1)
    assert torch.equal(generate(model, prompt, 4, temperature), greedily)


def test_top_k_of_one_is_the_argmax():
    logits = torch.randn(50, 9, generator=torch.Generator().manual_seed(0))
    assert torch.equal(sample(logits, 3.0, top_k=1), logits.argmax(-1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temperature": -1.0}, r"temperature = -1\.0, expected 0"),
        ({"temperature": float("nan")}, "temperature = nan"),
        ({"top_k": 0}, "top_k = 0, expected at least 1"),
        ({"top_p": 0.0}, r"top_p = 0\.0, expected above 0"),
        ({"top_p": 1.5}, r"top_p = 1\.5"),
    ],
)
def test_bad_sampling_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        sample(torch.zeros(1, 4), **options)


# ------------------------------------------------------------------------- generate


def language_models() -> list[nn.Module]:
    torch.manual_seed(0)
    kinds = ("learned", "rotary", "none")
    return [
        GRULanguageModel(11, 5, 6),
        *(GPT(11, 16, 12, 3, 2, positions=kind) for kind in kinds),
    ]


@pytest.mark.parametrize("model", language_models())
@pytest.mark.parametrize("n_prompt", [1, 4])
def test_cached_generation_equals_uncached(model, n_prompt):
    prompt = torch.tensor([[3, 1, 4, 1], [2, 7, 1, 8]])[:, :n_prompt]
    made = [
        generate(
            model,
            prompt,
            12,
            temperature=0.8,
            top_k=5,
            top_p=0.9,
            generator=torch.Generator().manual_seed(3),
            use_cache=use_cache,
        )
        for use_cache in (True, False)
    ]
    assert torch.equal(*made)
    assert made[0].shape == (2, n_prompt + 12)
    assert torch.equal(made[0][:, :n_prompt], prompt)


def test_generation_repeats_with_its_generator_and_varies_without():
    model, prompt = language_models()[1], torch.tensor([[3, 1]])
    draws = [
        generate(model, prompt, 12, generator=torch.Generator().manual_seed(s))
        for s in (0, 0, 1)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_generation_beyond_the_models_length_is_refused():
    model = language_models()[1]
    with pytest.raises(ValueError, match=r"17 tokens.*larger max_length"):
        generate(model, torch.tensor([[3, 1]]), 16)
    assert generate(model, torch.tensor([[3, 1]]), 15).shape == (1, 17)


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match=r"prompt is empty.* begin with a word"):
        generate(language_models()[0], torch.zeros(1, 0, dtype=torch.long), 3)


def test_a_prompt_without_a_batch_axis_is_refused():
    with pytest.raises(ValueError, match=r"prompt has shape \(2,\), expected \(batch"):
        generate(language_models()[0], torch.zeros(2, dtype=torch.long), 3)
