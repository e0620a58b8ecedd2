"""Whatever is written, the check says where it left the path, and never misleads."""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest
import torch
from einops import rearrange

from course_utils.grading import checks, contrast, guard
from course_utils.grading.answer_runner import Failure
from course_utils.grading.checks import check, grade_answer, progress_text
from course_utils.grading.comparison import fitted, relation
from course_utils.grading.contrast import simpler
from course_utils.grading.diagnosis import judge
from course_utils.grading.mutants import mutants
from course_utils.grading.program import MAX_BYTES, MAX_STEPS, Program
from course_utils.grading.questions import EXERCISES, chapter_questions, find_question
from course_utils.grading.scoring import ask, expectations
from course_utils.grading.sentences import explain_failure


@pytest.fixture(autouse=True)
def _own_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def attention(queries, keys, values):
    scores = queries @ keys.mT / math.sqrt(keys.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ values, weights


# ----------------------------------------------------------------- where it goes wrong


def scale_of_two_sizes(queries, keys, values):
    s = queries @ keys.mT
    s = s / (keys.shape[-1] * values.shape[-1]) ** 0.5
    a = torch.softmax(s, dim=-1)
    return a @ values, a


def tanh_of_the_values(queries, keys, values):
    context, weights = attention(queries, keys, values)
    return torch.tanh(context), weights


def sigmoid_for_tanh(decoder_state, encoder_states, w, u, v):
    q, k = decoder_state @ w, encoder_states @ u
    return torch.sigmoid(q[:, None] + k) @ v


def wrong_gate(x, state, weight_x, weight_state, bias_x, bias_state):
    _, z_x, n_x = (x @ weight_x.T + bias_x).chunk(3, -1)
    _, z_h, _ = (state @ weight_state.T + bias_state).chunk(3, -1)
    z = torch.sigmoid(z_x + z_h)
    n_h = (z * z * state) @ weight_state.chunk(3)[2].T + bias_state.chunk(3)[2]
    return (1 - z) * torch.tanh(n_x + n_h) + z * state


def head_count_for_the_scale(x, w_qkv, w_o, n_heads):
    b, t, _ = x.shape
    q, k, v = (x @ w_qkv).chunk(3, -1)
    q, k, v = (y.view(b, t, n_heads, -1).transpose(1, 2) for y in (q, k, v))
    a = (q @ k.mT / n_heads).softmax(-1)
    return (a @ v).transpose(1, 2).reshape(b, t, -1) @ w_o, a


def whole_numbers(counts):
    df = (counts > 0).sum(dim=0)
    idf = torch.log(len(counts) // df.clamp(min=1)) * (df > 0)
    return idf, counts * idf


def another_base(positions, d_model):
    speed = 1 / 1000 ** (2 * torch.arange(d_model // 2) / d_model)
    a = positions[:, None] * speed
    return torch.stack([a.sin(), a.cos()], -1).flatten(1)


def one_entry_off(table, query_positions, key_positions):
    m = table.shape[1] // 2
    return table[:, (query_positions[:, None] - key_positions).clamp(-m, m) + m - 1]


def masked_last(states, source):
    return (states * (source != 0)[..., None])[:, -1]


def doubled_angle(step, steps, lr, warmup, least):
    if step < warmup:
        return lr * (step + 1) / warmup
    t = (step - warmup) / (steps - 1 - warmup)
    return least + (lr - least) * (2 + math.cos(math.pi * t)) / 2


def one_gap_a_token(mix, x, order):
    there, back = torch.tanh(mix @ x[order]), torch.tanh(mix @ x)[order]
    return (there - back).abs().amax(dim=-1)


def either_condition(n_queries, n_keys, window):
    q = torch.arange(n_keys - n_queries, n_keys)[:, None]
    k = torch.arange(n_keys)
    return (k <= q) | (k > q - window)


def sink_as_it_is(scores, mask, sink):
    powers = np.exp(np.where(mask, scores, -np.inf))
    return powers / (sink + powers.sum(-1, keepdims=True))


def values_from_the_end(x, n_heads, n_groups):
    width = x.shape[-1] // (n_heads + 2 * n_groups)
    q = x[..., : n_heads * width].unflatten(-1, (n_heads, -1)).transpose(1, 2)
    k = x[..., n_heads * width : (n_heads + n_groups) * width]
    v = x[..., -n_heads * width :][..., : n_groups * width]
    k, v = (y.unflatten(-1, (n_groups, -1)).transpose(1, 2) for y in (k, v))
    return q, *(y.repeat_interleave(n_heads // n_groups, 1) for y in (k, v))


def merged_in_turn(x, w_qkv, w_o, n_heads):
    q, k, v = (
        rearrange(y, "b t (h d) -> b h t d", h=n_heads)
        for y in (x @ w_qkv).chunk(3, -1)
    )
    w = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
    merged = rearrange(w @ v, "b h t d -> b t (d h)")
    return merged @ w_o, w


def gates_as_they_are(x, state, weight_x, weight_state, bias_x, bias_state):
    d = state.shape[1]
    r, z, n = (x @ weight_x.T + bias_x).split(d, dim=1)
    r_h, z_h = (state @ weight_state[: 2 * d].T + bias_state[: 2 * d]).split(d, dim=1)
    r, z = r + r_h, z + z_h
    n_h = (r * state) @ weight_state[2 * d :].T + bias_state[2 * d :]
    return (1 - z) * torch.tanh(n + n_h) + z * state


def sigmoid_in_steps(x, state, weight_x, weight_state, bias_x, bias_state):
    d = state.shape[1]
    r, z, n = (x @ weight_x.T + bias_x).split(d, dim=1)
    r_h, z_h = (state @ weight_state[: 2 * d].T + bias_state[: 2 * d]).split(d, dim=1)
    r, z = (1 / (2 + (-gate).exp()) for gate in (r + r_h, z + z_h))
    n_h = (r * state) @ weight_state[2 * d :].T + bias_state[2 * d :]
    return (1 - z) * torch.tanh(n + n_h) + z * state


def the_wrong_one_returned(x):
    first = torch.softmax(x @ x.mT, dim=-1)
    others = first * (1 - torch.eye(x.shape[-2]))
    others = others / others.sum(-1, keepdim=True)
    return others @ x, first


def distances_added_up(weights):
    links = weights.argmax(1)
    gap = links[:, None] - links[None]
    return links, torch.triu(gap.clamp(min=0), 1).sum().item()


def scores_over_their_sum(queries, keys, values, score, w):
    e = (queries @ w if score == "general" else queries) @ keys.mT
    e = e / keys.shape[-1] ** 0.5 if score == "scaled dot" else e
    weights = e / e.sum(-1, keepdim=True)
    return weights @ values, weights


def alike_for_all(x):
    n = x.shape[-2]
    weights = ((1 - torch.eye(n)) / (n - 1)).expand(*x.shape[:-1], n)
    return weights @ x, weights


def softmax_over_the_channels(features, query):
    weights = torch.softmax(features * query[..., None, None], dim=1)
    return (weights * features).sum((2, 3)), weights.sum(1)


def in_a_loop(k, d_model):
    blocks = []
    for a in k * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model):
        cos, sin = a.cos(), a.sin()
        blocks.append(torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])]))
    return torch.block_diag(*blocks).roll(1, 0)


LOCATED = [
    (
        "06.1",
        scale_of_two_sizes,
        r"`s` \(line \d+, `s = queries @ keys.mT`\) is still as in the solution; "
        r"the right `scores` never appears: "
        r"look from line \d+, `s = s / \(keys",
    ),
    ("06.1", tanh_of_the_values, "the right `context` is there .* but then changed"),
    (
        "03.1",
        sigmoid_for_tanh,
        r"`q\[:, None\] \+ k` \(in line \d+\) .*: look at the rest of that line",
    ),
    ("03.1", sigmoid_for_tanh, "what the solution gives if `sigmoid` stands where"),
    ("02.1", wrong_gate, r"look from line \d+, `n_h = \(z \* z \* state\)"),
    (
        "10.3",
        head_count_for_the_scale,
        r"`q @ k.mT` \(in line \d+\) is still as in the solution.*of that line",
    ),
    ("01.2", whole_numbers, r"if a division gives whole numbers \(`//`\)"),
    ("08.1", another_base, "if 1000.0 stands where another number belongs"),
    (
        "08.5",
        one_entry_off,
        r"`\(query_.*\).clamp\(-m, m\) \+ m` \(in line \d+\) is .* rest of that line",
    ),
    ("02.2", masked_last, r"^`\(source != 0\)\[..., None\]` \(in .* rest of that line"),
    ("12.5", doubled_angle, "if 2.* stands where another number belongs"),
    (
        "12.3",
        lambda d_model, d_hidden: (d_model**2 + 7, 3 * d_hidden),
        r"`encoder` is \d+, expected \d+ with d_model=\d+",
    ),
    ("05.3", lambda length, n_others: 0.9 - length / 7, "`weight` is .*, expected"),
    ("06.5", lambda: (8, 7, 5), "`.*` is not the right number"),
    ("07.3", one_gap_a_token, r"`gap` has shape \(4,\), expected a single number"),
    (
        "08.4",
        lambda table, n, first: (
            table[torch.arange(first, first + n) % len(table)],
            max(0, n - len(table[first:])),
        ),
        "^right: `missing`; in `rows` it is as if: after the last row",
    ),
    ("09.1", either_condition, "to fulfil both"),
    ("09.4", sink_as_it_is, "^in “weights” it is as if: the sink is added"),
    ("10.1", values_from_the_end, "^(?!.*a step is missing)"),
    ("10.3", merged_in_turn, r"^(?!.*runs first)"),
    ("08.2", in_a_loop, "^(?!.*rest of that line)"),
    (
        "02.1",
        gates_as_they_are,
        "in the solution the next step is a `sigmoid`, in yours",
    ),
    ("02.1", sigmoid_in_steps, "^(?!.*the next step is)"),
    (
        "05.1",
        the_wrong_one_returned,
        r"the right `weights` is there \(line \d+, `others = others .*not what is ret",
    ),
    ("03.4", distances_added_up, "look from the rest of that line on"),
    ("04.1", scores_over_their_sum, "some of `weights` are negative"),
    ("05.1", alike_for_all, "in `weights` all that is not zero in a row is the same"),
    ("04.7", softmax_over_the_channels, "over y and x together they sum to"),
    ("11.8", lambda: ("Maria", 0.3506451 * math.log(10), "b"), "logarithm has another"),
]


@pytest.mark.parametrize(("identifier", "answer", "sentence"), LOCATED)
def test_a_hint_says_where_an_answer_leaves_the_path(identifier, answer, sentence):
    hint = grade_answer(identifier, answer).hint
    assert re.search(sentence, hint), hint
    assert "the numbers are not" not in hint


def test_a_detour_is_not_called_a_mistake():
    """Powers divided by their sum are right until the sum runs the wrong way."""

    def answer(queries, keys, values):
        scores = queries @ keys.mT / math.sqrt(keys.shape[-1])
        powers = torch.exp(scores)
        weights = 2 * powers / powers.sum(-1, keepdim=True)
        return weights @ values, weights

    hint = grade_answer("06.1", answer).hint
    assert "powers = torch.exp(scores)` is where" not in hint
    assert "the right `weights`" in hint or "look from" in hint


def test_one_wrong_output_is_told_from_the_other():
    def answer(queries, keys, values):
        scores = queries @ keys.mT / math.sqrt(keys.shape[-1])
        weights = torch.softmax(scores, dim=-1)
        return scores @ values, weights

    result = grade_answer("06.1", answer)
    assert (result.misconception, result.points) == ("leaves", 1)
    assert "`scores` (line" in result.hint
    assert "`return scores @ values, weights`" in result.hint
    records = [ask(find_question("06.1"), answer, case) for case in cases_of("06.1")]
    untraced = judge(find_question("06.1"), "public", records)
    assert untraced.misconception == "as no_softmax"
    assert untraced.hint.startswith("right: `weights`; in `context` it is as if: ")


def cases_of(identifier):
    return expectations(find_question(identifier), "public")[0]


def test_a_right_value_with_a_changed_argument_is_told_just_that():
    def answer(x, w, order, alpha):
        found = grade_answer_reference("11.3", x, w, order, alpha)
        x += 1
        return found

    result = grade_answer("11.3", answer, learners=False)
    assert result.misconception == "mutated"
    assert "the result is right, but `around` changes its argument `x`" in result.hint


def grade_answer_reference(identifier, *args):
    return find_question(identifier).reference(*args).clone()


def test_right_weights_keep_their_point_beside_a_misshapen_context():
    def answer(queries, keys, values):
        context, weights = attention(queries, keys, values)
        return context.mT, weights

    result = grade_answer("06.1", answer)
    assert ("weights", 1, 1) in result.parts
    assert "`context` has shape" in result.hint


def test_outputs_in_another_order_are_told_just_that():
    reference = find_question("14.3").reference
    result = grade_answer("14.3", lambda *x: reference(*x)[::-1], learners=False)
    assert "the results are right, in the wrong order" in result.hint


def test_a_number_given_twice_is_not_called_an_exchange():
    def answer(d_model, d_hidden):
        encoder, _ = find_question("12.3").reference(d_model, d_hidden)
        return encoder, encoder

    assert "wrong place" not in grade_answer("12.3", answer, learners=False).hint


def test_an_experiment_that_trains_in_the_check_is_told_to_return_its_number():
    failure = Failure("time")
    assert "never trains" in explain_failure(failure, find_question("09.8"))
    assert "never trains" not in explain_failure(failure, find_question("06.1"))


def test_a_record_is_bounded():
    with Program() as program:
        x = torch.zeros(300, 300)
        for _ in range(2 * MAX_STEPS):
            x = x + 1
    assert len(program.steps) <= MAX_STEPS
    assert sum(step.value.nbytes for step in program.steps) < MAX_BYTES + x.numel() * 8


def test_nearly_every_question_with_arguments_has_mutants():
    made = [q for c in EXERCISES for q in chapter_questions(c) if q.arguments]
    with_mutants = [q for q in made if next(iter(mutants(q)), None)]
    assert len(with_mutants) > 0.9 * len(made)


def test_relations_between_numbers_are_named():
    right = np.array([[1.0, 2.0], [3.0, 5.0]])
    assert relation(-right, right) == "has the wrong sign"
    assert relation(2 * right, right) == "is 2 times what it should be"
    assert relation(np.array(3.0), np.array(2.9)) == ""
    assert relation(right + 1, right) == "is off by 1 everywhere"
    assert relation(right[::-1], right) == "is right, but reversed along axis 0"
    assert relation(right.T, right) == "holds the right numbers in wrong places"
    assert relation(right**2 + 1, right) == ""


def test_a_list_of_sentences_of_unequal_length_stops_no_hint():
    """Nothing about the arguments may end a check in a traceback."""
    for question in [q for name in EXERCISES for q in chapter_questions(name)]:
        cases, _ = expectations(question, "public")
        assert all(
            all_args for case in cases for _, all_args in simpler(question, case.args)
        )
    hint = grade_answer("02.5", lambda h, r, lengths, buckets: [0.5, 0.123]).hint
    assert "`shares` holds 2 entries, expected 3." in hint


def last_two_exchanged(x, weight, d_k):
    y = x @ weight.T
    q, v, k = y.split([d_k, d_k, weight.shape[0] - 2 * d_k], dim=-1)
    return q, v, 2 * k


def test_what_one_call_makes_at_once_is_no_loop():
    hint = grade_answer("06.2", last_two_exchanged).hint
    assert "not every later time" not in hint, hint


def test_the_largest_of_a_few_may_stay_where_it_is():
    """Other queries, the same best key: that is no proof that they are not used."""

    def answer(queries, keys, values):
        scores = queries @ keys.mT
        best = torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1])
        return 0.9 * best @ values, 0.9 * best

    assert "does not depend" not in grade_answer("06.1", answer).hint


def test_a_dictionary_with_the_names_of_the_results_will_do():
    def answer(weights):
        links = weights.argmax(-1)
        later = torch.ones(len(links), len(links)).triu(1) > 0
        crossed = (links[:, None] > links) & later
        return {"crossings": crossed.sum(), "links": links}

    assert grade_answer("03.4", answer).points == 3


def test_a_table_of_every_pair_in_the_batch_is_named():
    def answer(decoder_state, encoder_states, w, u, v):
        asked, offered = decoder_state @ w, encoder_states @ u
        return torch.tanh(asked[:, None, None] + offered) @ v

    assert "each batch meets every batch" in grade_answer("03.1", answer).hint


def test_a_number_at_which_all_weights_are_equal_is_no_contrast():
    """With a sharpness of 0 any comparison is right: that tells nothing."""

    def answer(x, sharpness):
        unit = torch.tanh(x) / x.norm(dim=-1, keepdim=True)
        weights = torch.softmax(sharpness * unit @ unit.mT, -1)
        return weights @ x, weights

    assert "right when" not in grade_answer("05.2", answer).hint


def test_where_the_solution_is_not_a_number_nothing_is_right(capfd):
    def answer(n, loss, floor, larger):
        slope, start = np.polyfit(np.log(n), np.log(loss - floor) + 0.1 * n, 1)
        return -slope, floor + np.exp(start + slope * np.log(larger))

    assert "right when" not in grade_answer("19.4", answer).hint
    assert capfd.readouterr().out == ""  # NumPy's library complains of NaN by itself


def test_a_batch_is_taken_apart_into_all_its_rows():
    """The first row alone has no padding, and is right by that."""

    def answer(logits, tokens, n_source):
        wanted = tokens[:, n_source + 1 :].clone()
        wanted[wanted == 0] = 3
        losses = torch.nn.functional.cross_entropy(
            logits[:, n_source:-1].mT, wanted, reduction="none"
        )
        return losses.mean() + 0.1 * (tokens == 0).sum()

    assert "one row" not in grade_answer("13.2", answer).hint


def rectified(x, w, order, alpha):
    def norm(y):
        return torch.nn.functional.layer_norm(y, y.shape[-1:])

    if order == "pre":
        return x + alpha * torch.relu(norm(x) @ w)
    return norm(alpha * x + torch.tanh(x @ w))


def squared_decay(decay, added, first, starts):
    states = []
    for t in range(len(added)):
        kept = decay[t] * first if starts[t] else decay[t] ** 2 * states[-1]
        states.append(kept + added[t])
    return torch.stack(states)


@pytest.mark.parametrize(
    ("identifier", "answer"),
    [("11.3", rectified), ("15.5", squared_decay)],
)
def test_an_argument_that_is_handed_through_is_no_contrast(
    identifier, answer, monkeypatch
):
    """With `alpha` 0 the stream stays as it was; with `starts` True nothing recurs."""
    question = find_question(identifier)
    assert "right when" not in grade_answer(identifier, answer).hint
    said = conditions_of(question, answer)
    monkeypatch.setattr(contrast, "hands_through", lambda value, args: False)
    assert set(conditions_of(question, answer)) > set(said)


def conditions_of(question, answer):
    cases, right = expectations(question, checks.PUBLIC_SEED)
    records = [ask(question, answer, case) for case in cases]
    return checks.conditions(question, answer, cases, right, records)


# --------------------------------------------------- honest answers, written otherwise


def in_double(queries, keys, values):
    return attention(queries.double(), keys.double(), values.double())


def by_einsum(queries, keys, values):
    scores = torch.einsum("...qd,...kd->...qk", queries, keys) / keys.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    return torch.einsum("...qk,...kv->...qv", weights, values), weights


def in_numpy(queries, keys, values):
    return tuple(x.numpy() for x in attention(queries, keys, values))


def smoothed(logits, right, epsilon):
    log_p = torch.log_softmax(logits, -1)
    chosen = log_p[torch.arange(len(right)), right]
    share = epsilon / logits.shape[-1]
    wanted = torch.tensor([1 - epsilon + share] + [share] * (logits.shape[-1] - 1))
    loss = -((1 - epsilon) * chosen + epsilon * log_p.mean(-1)).mean()
    return loss + torch.special.xlogy(wanted, wanted).sum()


def follows(wants):
    def circle(i):
        seen = []
        while i not in seen:
            seen.append(i)
            i = int(wants[i])
        return frozenset(seen[seen.index(i) :])

    found = {circle(i) for i in range(len(wants))}
    return torch.tensor(len(wants) - sum(len(ring) > 2 for ring in found))


HONEST = [
    ("06.1", in_double),
    ("06.1", by_einsum),
    ("06.1", in_numpy),
    ("06.1", lambda *given: list(attention(*given))),
    ("12.4", smoothed),
    ("12.4", lambda *given: smoothed(*given).item()),
    ("05.5", follows),
    ("03.6", lambda: (Fraction(4, 5), Fraction(2, 9))),
    ("07.1", lambda to: (torch.eye(len(to))[to.argsort()], to.argsort().tolist())),
    ("07.5", lambda: (torch.eye(4), [1, 0, 2, 3])),
    ("07.5", lambda: (np.eye(4), np.array([1, 0, 2, 3]))),
    ("05.4", lambda: [[0.7, 0.7], [0.1, 0.1], [0.9, 0.0]]),
    ("02.4", lambda w, s: gradients(w, s).tolist()),
    (
        "15.1",
        lambda n, d, w, share, m: torch.tensor(
            [4 * n * d * (d + d // share + w), 6 * n * m * (d + m)]
        ),
    ),
    ("11.7", lambda: torch.tensor(find_question("11.7").reference())),
    (
        "07.4",
        lambda: {
            n: f" {w.upper()}" for n, w in find_question("07.4").reference().items()
        },
    ),
    ("09.5", lambda: OrderedDict(find_question("09.5").reference())),
    ("07.6", lambda: {"causal": 16, "alone": 1, "positions": 120}),
]


def gradients(weight, states):
    factors = weight * (1 - states[1:] ** 2)
    return torch.cat([factors.flip(0).cumprod(0).flip(0), torch.ones(1)])


@pytest.mark.parametrize(("identifier", "answer"), HONEST)
def test_an_honest_style_keeps_its_points(identifier, answer):
    result = grade_answer(identifier, answer, learners=False)
    assert (result.points, result.hint) == (result.max_points, "")


def test_what_means_something_else_is_not_made_to_fit():
    assert fitted([1, "a"], np.ones(2)) == [1, "a"]
    assert fitted([[1], [2, 3]], np.ones(2)) == [[1], [2, 3]]
    assert fitted(np.ones(3), [1, 2]).shape == (3,)


# --------------------------------------------------------------------- wrong witnesses

WITNESSES = [
    ("05.4", lambda: torch.tensor([[1e30, 0.0], [1e30, 1e29], [3e30, 3e30]])),
    (
        "07.5",
        lambda: (torch.tensor([[1e17], [1], [0], [0]]), torch.tensor([3, 0, 1, 2])),
    ),
    ("10.7", lambda: (torch.zeros(2, 0, 2), 2, torch.ones(2, 0, 0).bool())),
    ("11.4", lambda: (torch.zeros(0, 4), torch.ones(1, 4))),
    ("02.6", lambda: (["a"] + ["the"] * 30, ["the"] * 31)),
]


@pytest.mark.parametrize(("identifier", "answer"), WITNESSES)
def test_a_witness_by_rounding_or_emptiness_is_none(identifier, answer):
    assert grade_answer(identifier, answer, learners=False).points == 0


@pytest.mark.parametrize("kind", ["float", "int"])
def test_numbers_are_no_masks_where_truth_is_asked_for(kind):
    def answer(lengths, n_source, n_target):
        own, cross = find_question("12.2").reference(lengths, n_source, n_target)
        return getattr(own, kind)(), cross

    result = grade_answer("12.2", answer, learners=False)
    assert result.points == 2
    assert "`own` holds numbers, expected True and False" in result.hint


# ------------------------------------------------------------- a check that stays calm


def endless(queries, keys, values):
    while True:
        queries = queries + 0


def stubborn(queries, keys, values):
    while True:
        try:
            time.sleep(0.001)
        except BaseException:
            raise


@pytest.mark.parametrize("answer", [endless, stubborn])
def test_an_answer_that_never_ends_is_stopped_and_told_so(answer, monkeypatch):
    monkeypatch.setattr(checks, "SECONDS", 0.4)
    result = grade_answer("06.1", answer)
    assert (result.misconception, result.points) == ("time", 0)
    assert "did not finish in time" in result.hint
    time.sleep(0.7)  # nothing is raised afterwards


def test_what_was_right_before_the_time_was_up_keeps_its_points(monkeypatch):
    monkeypatch.setattr(checks, "SECONDS", 0.4)

    def answer(queries, keys, values):
        while queries.dim() > 2:
            pass
        return attention(queries, keys, values)

    result = grade_answer("06.1", answer)
    assert (result.misconception, result.points) == ("time", 2)


def test_an_interrupt_shows_three_lines():
    def stopped(queries, keys, values):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        check("06.1", stopped)
    assert len(caught.value._render_traceback_()) == 3
    assert caught.value.__suppress_context__


def test_what_an_answer_prints_is_shown_once_below_the_verdict(capsys):
    def answer(queries, keys, values):
        print("so far so good", queries.shape)
        return attention(queries, keys, values)

    check("06.1", answer)
    said = capsys.readouterr().out
    assert said.count("so far so good") == 1
    assert said.index("4 of 4 points") < said.index("so far so good")


def test_what_an_answer_prints_is_capped(capsys):
    check("06.1", lambda *given: print("x" * 10**6) or attention(*given))
    assert len(capsys.readouterr().out) < 2 * guard.MAX_PRINTED


def test_an_answer_may_not_ask_the_keyboard():
    before = input
    result = grade_answer("06.1", lambda *given: input("number of heads? "))
    assert "everything an answer needs comes as its arguments" in result.hint
    assert input is before


def test_figures_of_later_calls_are_closed():
    import matplotlib.pyplot as plt

    plt.close("all")
    grade_answer("06.1", lambda *given: plt.figure() and attention(*given))
    assert len(plt.get_fignums()) == 1
    plt.close("all")


def test_progress_says_how_to_begin_to_go_on_and_what_comes_after():
    rows = [("06.1", "Attention", 0, 4)]
    said = progress_text("06", rows)
    assert "next: 06.1 Attention (easy, 8 minutes): write the body" in said
    assert "About 8 minutes are left in this chapter." in said
    rows = [("06.1", "Attention", 3, 4)]
    assert "its check says what is missing" in progress_text("06", rows)
    rows = [("06.1", "Attention", 4, 4)]
    assert "Next: chapter 07." in progress_text("06", rows)


def test_too_few_results_are_counted():
    hint = grade_answer("10.8", lambda: ("Ada", 0.2)).hint
    assert hint == "`measured` returned 2 results, expected (name, number, reason)."


def test_a_number_made_of_an_experiments_own_is_told_so():
    number = find_question("19.5").reference()[1]
    for changed, words in (
        (-number, "wrong sign"),
        (1 / number, "upside down"),
        (number - 1, "off by one"),
        (number / 5, "whole factor"),
        (round(number, 1), "digits cut off"),
        (2 * number + 0.3, "another number"),
    ):
        assert words in grade_answer("19.5", lambda x=changed: ("Ada", x, "b")).hint
