"""Weights that travel: what 8 bits keep, that nothing is lost on the way, surgery."""

from __future__ import annotations

import json

import pytest
import torch

from course_utils.display.quantised_export import (
    as_text,
    dequantise,
    javascript,
    pack,
    quantise,
    unpack,
)
from course_utils.evaluation.ablation import (
    Head,
    ablate,
    attention_of,
    heads_of,
    mean_contexts,
)
from course_utils.models.transformer import GPT, Transformer, sizes_of

SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 5, 4, 2]])
TARGET = torch.tensor([[1, 3, 4, 5], [1, 6, 7, 3]])


def model(seed: int = 0) -> Transformer:
    """Sizes that all differ, every parameter away from where it starts."""
    torch.manual_seed(seed)
    made = Transformer(11, 13, 12, 3, 10, n_layers=2, max_length=20)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return made.eval()


# ------------------------------------------------------------------------ eight bits


def test_rounding_moves_no_weight_by_more_than_half_a_step():
    matrix = torch.randn(7, 5) * torch.logspace(-3, 3, 7)[:, None]
    whole, scales = quantise(matrix)
    assert whole.dtype == torch.int8
    assert (whole.abs().amax(dim=1) == 127).all()
    off = (dequantise(whole, scales) - matrix).abs()
    assert (off <= 0.5001 * scales[:, None]).all()


def test_a_row_of_zeros_stays_zeros():
    whole, scales = quantise(torch.zeros(2, 3))
    assert torch.equal(dequantise(whole, scales), torch.zeros(2, 3))


def test_rounding_twice_is_rounding_once():
    once = unpack(pack(model()))
    assert as_text(pack(once)) == as_text(pack(model()))


def test_the_same_model_gives_the_same_text():
    assert as_text(pack(model())) == as_text(pack(model()))
    assert as_text(pack(model())) != as_text(pack(model(1)))


def test_what_is_unpacked_is_the_model_but_for_the_rounding():
    made = model()
    travelled = unpack(json.loads(as_text(pack(made))))
    assert sizes_of(travelled) == sizes_of(made)
    for name, value in made.state_dict().items():
        found = travelled.state_dict()[name]
        step = value.abs().max() / 127 if value.dim() == 2 else 0
        assert (found - value).abs().max() <= 0.51 * step, name
    with torch.no_grad():
        exact, rounded = made(SOURCE, TARGET)[0], travelled(SOURCE, TARGET)[0]
    assert 0 < (exact - rounded).abs().max() < 0.1 * exact.abs().max()


@pytest.mark.parametrize("options", [{}, {"positions": "rotary"}, {"tied": False}])
def test_a_gpt_travels_likewise(options):
    torch.manual_seed(0)
    made = GPT(20, 9, 12, 3, dropout=0.1, **options).eval()
    packed = json.loads(as_text(pack(made)))
    travelled = unpack(packed)
    assert (
        travelled.head.weight is travelled.embedding.weight
    ) == made.head.weight.is_set_to(made.embedding.weight)
    names = [tensor["name"] for tensor in packed["tensors"]]
    assert ("head.weight" in names) == (options == {"tied": False})
    tokens = torch.randint(0, 20, (2, 9))
    with torch.no_grad():
        exact, rounded = made(tokens)[0], travelled(tokens)[0]
    assert 0 < (exact - rounded).abs().max() < 0.1 * exact.abs().max()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: quantise(torch.zeros(3)), r"shape \(3,\), expected a matrix"),
        (lambda: quantise(torch.tensor([[torch.nan]])), "did the training diverge"),
        (
            lambda: dequantise(torch.zeros(2, 3), torch.ones(3)),
            "one scale for each row",
        ),
        (lambda: pack(torch.nn.Linear(2, 2)), "Linear, expected a `Transformer`"),
        (lambda: pack(Transformer(5, 5, 8, 2, norm="post")), "norm='pre'"),
        (lambda: unpack({"format": "other"}), "the format is 'other', expected"),
        (lambda: unpack(pack(model()) | {"bytes": "AAAA"}), "3 bytes, expected"),
        (lambda: unpack(pack(model()) | {"bytes": "?"}), "0 bytes, expected"),
        (lambda: javascript("nothing"), "no function 'nothing'"),
        (lambda: ablate(model(), [Head("cross", 2, 0)]), "expected heads from"),
        (lambda: ablate(model(), no_positions=["left"]), "sides from"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_function_of_the_javascript_comes_whole_and_alone():
    found = javascript("softmax")
    assert found.startswith("// exp(s_j)")
    assert found.endswith("}")
    assert found.count("function ") == 1


# --------------------------------------------------------------------------- surgery


def logits(made: Transformer) -> torch.Tensor:
    with torch.no_grad():
        return made(SOURCE, TARGET)[0]


def test_an_operation_that_takes_nothing_out_changes_nothing():
    torch.testing.assert_close(logits(ablate(model())), logits(model()))


def test_operating_leaves_the_model_whole():
    made = model()
    before = logits(made)
    ablate(made, heads_of(made), ["source", "target"], no_scale=True)
    assert torch.equal(logits(made), before)


@pytest.mark.parametrize("head", heads_of(model()), ids=str)
def test_a_head_that_is_off_adds_nothing_to_the_output(head):
    """What its layer puts out does not change with what the head carries."""
    made = ablate(model(), [head])
    before = logits(made)
    assert not torch.allclose(before, logits(model()))
    qkv = attention_of(made, head.kind, head.layer).qkv
    width = 12 // 3
    values = slice(24 + head.head * width, 24 + (head.head + 1) * width)
    with torch.no_grad():
        qkv.weight[values] += 1
    torch.testing.assert_close(logits(made), before)


def test_without_the_scale_scores_are_larger_by_its_inverse():
    made, sharp = model(), ablate(model(), no_scale=True)
    x = torch.randn(1, 4, 12)
    soft = attention_of(made, "encoder", 0)(x, need_weights=True)[1].log()
    hard = attention_of(sharp, "encoder", 0)(x, need_weights=True)[1].log()
    expected = torch.log_softmax(2 * soft, dim=-1)  # sqrt(d_k) = sqrt(4)
    torch.testing.assert_close(hard, expected, atol=1e-4, rtol=1e-4)


def test_without_its_positions_the_order_of_the_source_is_lost():
    swapped = SOURCE[:, [3, 1, 0, 2, 4]]
    with torch.no_grad():
        for made, same in (
            (ablate(model(), no_positions=["source"]), True),
            (ablate(model(), no_positions=["target"]), False),
        ):
            first, second = made(SOURCE, TARGET)[0], made(swapped, TARGET)[0]
            assert torch.allclose(first, second, atol=1e-4) == same


def test_an_operated_model_decodes_as_it_reads():
    made = ablate(model(), [Head("cross", 0, 1)], ["target"], no_scale=True)
    with torch.no_grad():
        state, found = made.start(SOURCE), []
        for token in TARGET.unbind(1):
            scores, state, _ = made.step(token, state)
            found.append(scores)
    torch.testing.assert_close(
        torch.stack(found, dim=1), logits(made), atol=1e-4, rtol=1e-4
    )


def test_a_head_at_its_mean_adds_the_mean_of_what_it_added():
    """The mean over the tokens of what the layer returns stays; the rest is gone."""
    made = model()
    means = mean_contexts(made, [(SOURCE, TARGET)])
    heads = [head for head in heads_of(made) if head[:2] == ("cross", 1)]
    dull = ablate(made, heads, means=means)
    found = []
    for whole in (made, dull):
        layer = attention_of(whole, "cross", 1)
        seen: list[torch.Tensor] = []
        hook = layer.output.register_forward_hook(
            lambda *parts, seen=seen: seen.append(parts[2])
        )
        with torch.no_grad():
            whole(SOURCE, TARGET)
        hook.remove()
        found.append(seen[0].flatten(0, 1))
    usual, flat = found
    torch.testing.assert_close(flat, usual.mean(dim=0).expand_as(flat))
    assert (usual - flat).abs().max() > 1e-3


def test_means_of_no_sentences_are_refused():
    with pytest.raises(ValueError, match="got no sentences"):
        mean_contexts(model(), [])
