"""Speculative decoding: the text is the model's, and every pass is accounted for."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from course_utils.evaluation.decoding import generate
from course_utils.evaluation.speculative import (
    accept_drafts,
    expected_tokens,
    rest_of,
    speculate,
)
from course_utils.models.transformer import GPT

P = torch.tensor([0.40, 0.25, 0.20, 0.10, 0.05])
Q = torch.tensor([0.10, 0.30, 0.15, 0.15, 0.30])


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sharp_gpt(n_tokens: int, positions: str = "learned") -> GPT:
    torch.manual_seed(0)
    model = GPT(n_tokens, 12, d_model=8, n_heads=2, positions=positions).eval()
    with torch.no_grad():
        model.head.weight.mul_(6)
    return model


def test_the_rest_is_what_the_draft_offers_too_rarely():
    rest = rest_of(P, Q)
    torch.testing.assert_close(rest.sum(), torch.tensor(1.0))
    assert torch.equal(rest > 0, P > Q)
    accepted = torch.minimum(P, Q)
    torch.testing.assert_close(accepted + (1 - accepted.sum()) * rest, P)
    assert torch.equal(rest_of(P, P), P)  # nothing is left, nothing is rejected


def test_one_verified_token_has_the_models_distribution():
    generator, n = drawn(), 20_000
    drafted = torch.multinomial(Q, n, True, generator=generator)
    p = torch.stack([P, P])
    first = [accept_drafts(p, Q[None], d, generator)[0] for d in drafted[:, None]]
    share = torch.stack(first).bincount(minlength=5) / n
    assert (share - P).abs().sum() / 2 < 0.015  # noise is about 0.006


def test_an_equal_draft_is_accepted_whole_and_an_impossible_one_never():
    drafted = torch.tensor([0, 1, 2])
    assert len(accept_drafts(P.expand(4, 5), P.expand(3, 5), drafted, drawn())) == 4
    never = torch.tensor([0.0, 0.5, 0.5, 0, 0])
    written = accept_drafts(never.expand(4, 5), Q.expand(3, 5), drafted, drawn())
    assert len(written) == 1
    assert written[0] in (1, 2)


def test_texts_have_the_probabilities_of_the_chain_rule():
    model, generator, n = sharp_gpt(3), drawn(), 2000
    texts = torch.tensor([(0, *rest) for rest in product(range(3), repeat=3)])
    with torch.no_grad():
        log_p = torch.log_softmax(model(texts[:, :-1])[0], dim=-1)
    exact = log_p.gather(-1, texts[:, 1:, None]).sum(dim=(1, 2)).exp()
    counted = torch.zeros(3, 3, 3)
    stubborn = torch.tensor([0.6, 0.3, 0.1])
    for _ in range(n):
        run = speculate(model, lambda text: stubborn, texts[0, :1], 3, 2, generator)
        counted[tuple(run.tokens[1:])] += 1
    distance = (counted.flatten() / n - exact).abs().sum() / 2
    assert distance < 0.07  # noise is about 0.04


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_rejected_tokens_leave_no_trace_in_the_cache(positions):
    """A model that is sure writes the same text, however bad the draft."""
    model = sharp_gpt(7, positions)
    with torch.no_grad():
        model.head.weight.mul_(100)  # all mass on one token
    prompt = torch.tensor([1, 2])
    alone = generate(model, prompt[None], 10, temperature=0)[0]
    flat = torch.full((7,), 1 / 7)
    run = speculate(model, lambda text: flat, prompt, 10, 3, drawn())
    assert torch.equal(run.tokens, alone)


def test_rounds_add_up_to_the_text():
    model, flat = sharp_gpt(7), torch.full((7,), 1 / 7)
    for n_drafted in (1, 3, 20):
        run = speculate(
            model, lambda text: flat, torch.tensor([1]), 11, n_drafted, drawn()
        )
        written = [token for made in run.rounds for token in made.written]
        assert run.tokens.tolist() == [1, *written]
        assert len(written) == 11
        for made in run.rounds:
            assert made.written[: made.accepted] == made.drafted[: made.accepted]


def test_the_expected_number_of_tokens_is_the_geometric_sum():
    assert expected_tokens(0, 4) == 1
    assert expected_tokens(1, 4) == 5
    assert expected_tokens(0.5, 2) == 1.75


def test_what_does_not_fit_is_refused_in_words():
    with pytest.raises(ValueError, match="expected 3 and 2 rows"):
        accept_drafts(P.expand(2, 5), Q.expand(2, 5), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="expected at most 13"):
        speculate(sharp_gpt(5), lambda text: P, torch.tensor([1]), 13)
    with pytest.raises(ValueError, match="expected a share"):
        expected_tokens(1.5, 2)
