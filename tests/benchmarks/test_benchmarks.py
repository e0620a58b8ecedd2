"""The benchmarks' logic: statistics, comparison, table, page, and equal designs.

Nothing here is timed: what `make bench` says of a machine is no test of the code.
"""

from __future__ import annotations

import html
import importlib.util
import os
import re
from dataclasses import replace
from subprocess import Popen

import pytest
import torch

from benchmarks import (
    area_growth,
    area_loss,
    area_translation,
    counting,
    recipes,
    run,
    threads,
    timing,
)
from benchmarks.area_attention import works as attention_works
from benchmarks.area_course import first_visit
from benchmarks.area_generation import works as generation_works
from benchmarks.area_gpt import SIZES, operations
from benchmarks.baseline_attention import PEERS, same_weights
from benchmarks.baseline_gpt import ConcatenatingCache, PlainGPT
from benchmarks.baseline_gpt import same_weights as same_gpt
from benchmarks.figure import FONT, WIDTH, across, drawn, figure
from benchmarks.memory import peak_bytes
from benchmarks.page import BEGIN, END, PAGE, filled, verdict
from benchmarks.results import (
    AREAS,
    Row,
    load,
    made,
    markdown,
    merged,
    missed,
    save,
    slower,
    table,
)
from benchmarks.tasks import Plan
from benchmarks.timing import Ratio, interleaved, ratio_of, summary
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.transformer import GPT
from course_utils.tasks.counting import bits as counted_bits
from course_utils.tasks.counting import counted_pydoc

ROW = Row("gpt", "step", "small", 0.9, 0.04, 1.0, "a peer")

# ------------------------------------------------------------------------ statistics


def test_the_ratio_is_the_median_of_the_rounds_not_of_the_times():
    """A slow spell doubles both times of a round; its ratio stays."""
    theirs = [1.0, 2.0, 4.0, 8.0, 1.0]
    ours = [0.5 * t for t in theirs[:4]] + [9.0]
    assert ratio_of(ours, theirs) == Ratio(0.5, 0.5, 0.5)


def test_the_spread_is_the_distance_of_the_quartiles():
    found = summary([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found == Ratio(3.0, 2.0, 4.0)
    assert found.spread == 2.0
    assert summary([7.0]).spread == 0.0


def test_times_of_different_rounds_are_not_compared():
    with pytest.raises(ValueError, match="same round"):
        ratio_of([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="at least one"):
        summary([])
    with pytest.raises(ValueError, match="1 or more"):
        interleaved({}, 0)


def test_designs_take_turns_and_the_order_turns_round(monkeypatch):
    calls: list[str] = []
    monkeypatch.setattr(timing, "repeats_for", lambda work, least: 2)
    works = {name: (lambda name=name: calls.append(name)) for name in "abc"}
    times = interleaved(works, rounds=3)
    assert "".join(calls) == "aabbcc" + "ccbbaa" + "aabbcc"
    assert {name: len(found) for name, found in times.items()} == dict.fromkeys(
        "abc", 3
    )


def test_short_work_is_repeated_and_long_work_is_not(monkeypatch):
    for once, repeats in ((0.001, 20), (5.0, 1)):
        monkeypatch.setattr(timing, "seconds", lambda work, once=once: once)
        assert timing.repeats_for(lambda: None, least=0.02) == repeats


def test_the_peak_is_what_is_held_at_once():
    def work() -> torch.Tensor:
        first = torch.ones(1000, 1000)
        second = first + 1
        del first
        return (second * 2).sum()

    peak = peak_bytes(work)
    assert 8_000_000 <= peak < 9_000_000


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_the_exponent_of_a_power_is_found(p):
    lengths = (64, 128, 256)
    assert area_growth.exponent(lengths, [3.0 * n**p for n in lengths]) == (
        pytest.approx(p)
    )


@pytest.mark.parametrize("costs", [[1.0], [1.0, 0.0], []])
def test_an_exponent_needs_two_costs_above_zero(costs):
    with pytest.raises(ValueError, match="costs above 0"):
        area_growth.exponent((2, 4), costs)


def test_growth_has_a_row_for_time_and_memory_and_one_as_usual():
    plan = Plan(rounds=1, least=0.0)
    stored = area_growth.rows(area_growth.STORED, (16, 32), plan)
    assert [row.target for row in stored] == [2.15, None, 2.15]
    assert area_growth.ANEW in stored[1].name
    fused = area_growth.rows("attention, one fused kernel", (16, 32), plan)
    assert [row.target for row in fused] == [2.15, 1.15]


# -------------------------------------------------------------- rows, table, comparison


def test_rows_are_kept_as_they_are(tmp_path):
    rows = [replace(ROW, note="näive − ≤"), replace(ROW, area="attention", target=None)]
    save(rows, tmp_path / "results.json")
    assert load(tmp_path / "results.json") == rows[::-1]  # in the order of the areas
    assert load(tmp_path / "nothing.json") == []


def test_a_row_holds_what_the_file_promises(tmp_path):
    for row in load():
        assert {"name", "size", "ratio", "spread", "target", "baseline"} <= set(
            vars(row)
        )
    keys = [row.key for row in load()]
    assert len(set(keys)) == len(keys)


def test_an_area_measured_again_replaces_its_rows_and_no_others():
    old = [ROW, replace(ROW, area="loss")]
    new = [replace(ROW, size="large")]
    assert merged(old, new) == [replace(ROW, area="loss"), replace(ROW, size="large")]


@pytest.mark.parametrize(
    ("ratio", "spread", "named"),
    [(0.95, 0.04, False), (1.01, 0.04, True), (0.5, 0.0, False), (1.01, 0.5, False)],
)
def test_slower_is_what_both_spreads_do_not_explain(ratio, spread, named):
    found = slower([ROW], [replace(ROW, ratio=ratio, spread=spread)])
    assert bool(found) is named
    assert all("0.9 became" in line for line in found)


def test_a_row_with_no_earlier_one_is_not_slower():
    assert slower([], [replace(ROW, ratio=99.0)]) == []
    assert slower([ROW], [replace(ROW, ratio=99.0, baseline="another")]) == []


def test_a_row_over_its_target_is_named():
    over = replace(ROW, ratio=1.2, note="the reason")
    assert missed([ROW, replace(ROW, target=None, ratio=9.0)]) == []
    (line,) = missed([ROW, over])
    assert "1.2, target 1 (the reason)" in line
    assert "1 of the 2 rows" in verdict([ROW, over])
    assert "Over it: step, small, against a peer" in verdict([ROW, over])


def test_a_negative_target_is_met_from_below():
    row = replace(ROW, ratio=-0.3, target=-0.25)
    assert row.met
    assert not replace(row, ratio=-0.2).met


def test_the_table_has_a_line_for_each_row_and_its_verdict():
    text = table([ROW, replace(ROW, size="large", ratio=1.5)])
    lines = text.splitlines()
    assert lines[0] == AREAS["gpt"]
    said = "step,small,a,peer,0.90,±,0.020,≤,1.00,yes"
    assert ",".join(lines[2].split()) == said
    assert lines[3].endswith("no")


def test_the_markdown_has_a_line_for_each_design_and_a_column_for_each_size():
    rows = [ROW, replace(ROW, size="large"), replace(ROW, baseline="another")]
    lines = markdown([*rows, replace(ROW, area="loss", note="Why.")]).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert [line.count("|") for line in table] == [4] * 4 + [3] * 3
    assert table[0] == "| what (target) | small | large |"
    assert table[3].startswith("| step, against another (")
    assert table[3].endswith("|  |")  # not measured at that size
    assert table[6].startswith("| step, small, against a peer (")
    assert "Why." in lines


def test_the_markdown_shows_what_is_over_its_target():
    rows = [ROW, replace(ROW, size="large", ratio=1.2, target=None)]
    rows += [replace(row, baseline="b") for row in rows]
    space = "\N{NO-BREAK SPACE}"
    found = f"0.90{space}±{space}0.020"
    over = [replace(row, target=1.0) for row in rows]
    line = markdown(over).splitlines()[6]
    assert f"(≤{space}1.00) | {found} | **1.20{space}±{space}0.020** |" in line
    assert f"(≤{space}1.00 /{space}–) |" in markdown(rows).splitlines()[6]


def test_ratios_are_rounded_to_what_they_can_tell():
    row = made("gpt", "step", "s", Ratio(0.123456, 0.1, 0.2349), None, "peer")
    assert (row.ratio, row.spread) == (0.1235, 0.135)


def test_an_unknown_area_is_refused():
    with pytest.raises(ValueError, match="expected one of attention"):
        replace(ROW, area="gtp")


# --------------------------------------------------------------------- figure and page


def test_the_figure_draws_the_largest_size_of_each_comparison():
    rows = [ROW, replace(ROW, size="large"), replace(ROW, target=None, name="other")]
    assert drawn([*rows, replace(ROW, unit="nats", name="loss")]) == [rows[1]]
    svg = figure(rows)
    assert svg.count("<circle") == 1
    assert "\n\n" not in svg
    assert 'role="img" aria-label="1 comparisons' in svg
    with pytest.raises(ValueError, match="make bench"):
        figure([])


def test_the_words_of_the_figure_can_be_read_on_a_phone():
    on_a_phone = 342 / WIDTH * FONT
    assert on_a_phone > 11
    words = re.findall(r">([^<]+)</text>", html.unescape(figure(load())))
    assert len(words) > 10
    assert max(map(len, words)) * 0.62 * FONT < WIDTH  # a wide font still fits


def test_the_axis_is_logarithmic_and_cut_off():
    assert across(0.2) - across(0.02) == pytest.approx(across(1) - across(0.1), abs=0.2)
    assert across(0.0001) == across(0.01)
    assert across(9) == across(2)


def test_the_page_is_made_from_the_results():
    rows, page = load(), PAGE.read_text("utf-8")
    assert rows, "benchmarks/results.json is missing: make bench"
    assert page == filled(page, rows), "the page is stale: make bench"


def test_only_what_stands_between_the_marks_is_written():
    page = f"before {BEGIN} old {END} after"
    new = filled(page, [ROW])
    assert new.startswith("before ")
    assert new.endswith(" after")
    assert " old " not in new
    assert filled(new, [ROW]) == new
    with pytest.raises(ValueError, match="expected one"):
        filled("no marks", [ROW])


# ------------------------------------------------------------------------ the command


def test_a_quick_run_writes_nothing_and_a_full_one_all(monkeypatch, tmp_path, capsys):
    kept: list[object] = []
    over = replace(ROW, ratio=1.2)
    monkeypatch.setattr(run, "measure", lambda areas, plan: [over])
    monkeypatch.setattr(run, "load", lambda: [ROW])
    monkeypatch.setattr(run, "save", kept.append)
    monkeypatch.setattr(run, "write_page", kept.append)
    threads = torch.get_num_threads()
    try:
        assert run.main(["--quick"]) == 0
        assert kept == []
        assert run.main(["--only", "gpt"]) == 1
    finally:
        torch.set_num_threads(threads)
    assert kept == [[over], [ROW]]
    said = capsys.readouterr().out
    assert "Slower than the spread explains: 1" in said
    assert "Over target: 1" in said


def test_an_area_is_measured_in_a_process_of_its_own(monkeypatch):
    def measure(areas: list[str], plan: Plan) -> list[Row]:
        return [replace(ROW, name=f"{areas[0]} by {os.getpid()}")]

    monkeypatch.setattr(run, "measure", measure)
    one, other = (run.apart("gpt", Plan())[0].name for _ in range(2))
    assert len({one, other, f"gpt by {os.getpid()}"}) == 3


def test_an_area_that_fails_is_named(monkeypatch):
    monkeypatch.setattr(run, "measure", lambda areas, plan: 1 / 0)
    with pytest.raises(SystemExit, match="gpt was not measured"):
        run.apart("gpt", Plan())


def test_each_area_has_tasks_and_a_quick_run_has_fewer():
    assert list(run.TASKS) == list(AREAS)

    def cost(plan: Plan) -> float:
        return sum(task.seconds for make in run.TASKS.values() for task in make(plan))

    assert cost(Plan(quick=True, rounds=5)) < 150 < cost(Plan())


def test_tasks_run_in_turn_and_tell_how_far_they_are(monkeypatch):
    seen: list[tuple[int, str]] = []
    monkeypatch.setattr(
        run.Progress, "update", lambda self, done, note: seen.append((done, note))
    )

    def work(plan: Plan) -> list[Row]:
        plan.advance(0.5)
        return [ROW]

    tasks = [run.Task("one", 10.0, work), run.Task("two", 20.0, work)]
    monkeypatch.setattr(run, "TASKS", {"gpt": lambda plan: tasks})
    assert run.measure(["gpt"], Plan()) == [ROW, ROW]
    assert seen == [(0, "one"), (5, "one"), (10, "two"), (20, "two")]


def test_rounds_below_one_are_refused(capsys):
    with pytest.raises(SystemExit):
        run.options(["--rounds", "0"])
    assert "1 or more" in capsys.readouterr().err


# ------------------------------------------------- the designs compute the same numbers


@pytest.mark.parametrize("design", PEERS.values(), ids=lambda d: d.__name__)
def test_each_attention_computes_our_numbers(design):
    torch.manual_seed(0)
    ours = MultiHeadAttention(12, 3)
    x = torch.randn(2, 5, 12, requires_grad=True)
    y = torch.randn(2, 5, 12)
    peer = same_weights(ours, design(12, 3))
    found, expected = peer(x), ours(x, causal=True)[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    (got,) = torch.autograd.grad((found * y).sum(), x)
    (wanted,) = torch.autograd.grad((expected * y).sum(), x)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)


def test_an_attention_that_is_no_peer_is_refused():
    with pytest.raises(ValueError, match="none of the peers"):
        same_weights(MultiHeadAttention(4, 2), torch.nn.Linear(4, 4))


def count(model: torch.nn.Module, ending: str = "") -> int:
    named = model.named_parameters()
    return sum(p.numel() for name, p in named if name.endswith(ending))


def small_models() -> tuple[GPT, PlainGPT]:
    torch.manual_seed(0)
    ours = GPT(11, 9, d_model=12, n_heads=3, n_layers=2)
    return ours, same_gpt(ours, PlainGPT(11, 9, 12, 3, 2))


@pytest.mark.parametrize("bias", [False, True])
def test_nanogpts_design_computes_our_logits(bias):
    ours, _ = small_models()
    plain = same_gpt(ours, PlainGPT(11, 9, 12, 3, 2, bias=bias))
    extra = 1 - bias  # the biases of ours
    assert count(ours) - count(plain) == extra * count(ours, "bias")
    tokens = torch.randint(11, (2, 7))
    expected = ours(tokens)[0]
    torch.testing.assert_close(plain(tokens), expected, rtol=1e-4, atol=1e-5)
    last = plain.next_logits(tokens)
    torch.testing.assert_close(last, expected[:, -1], rtol=1e-4, atol=1e-5)


def test_nanogpts_design_has_no_place_for_biases():
    ours, plain = small_models()
    torch.nn.init.ones_(ours.norm.bias)
    with pytest.raises(ValueError, match="biases other than 0"):
        same_gpt(ours, plain)


def test_a_concatenating_cache_changes_nothing():
    ours, plain = small_models()
    tokens = torch.randint(11, (2, 7))
    caches = [ConcatenatingCache() for _ in range(2)]
    assert caches[0].length == 0
    plain(tokens[:, :4], caches)
    assert caches[0].length == 4
    steps = [plain(tokens[:, i : i + 1], caches) for i in range(4, 7)]
    expected = ours(tokens)[0][:, 4:]
    torch.testing.assert_close(torch.cat(steps, 1), expected, rtol=1e-4, atol=1e-5)


def test_every_way_to_generate_a_token_gives_the_same_logits():
    found = {name: work() for name, work in generation_works(5, texts=2).items()}
    again = {name: work() for name, work in generation_works(5, texts=2).items()}
    assert set(found) == {"ours", "concatenated", "plain", "none"}
    for name, logits in found.items():
        torch.testing.assert_close(logits, found["ours"], rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(logits, again[name])


def test_pytorchs_transformer_computes_our_logits():
    size = area_translation.Size(12, 3, 20, 2, (15, 17), 1.0)
    models = area_translation.transformers(size)
    source, target = area_translation.batch((15, 17))
    ours, library = (m(source, target)[0] for m in models.values())
    assert (source == 0).any()
    torch.testing.assert_close(library, ours, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("design", area_translation.BAHDANAU)
def test_each_bahdanau_computes_our_logits_and_weights(design):
    models = area_translation.recurrent(6, (15, 17))
    source, target = area_translation.batch((15, 17))
    for found, expected in zip(
        models[design](source, target), models["ours"](source, target)
    ):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


def test_each_layer_of_the_growth_runs_forward_and_backward():
    for name in area_growth.LAYERS:
        work = area_growth.works(name, (3, 4))
        assert list(work) == ["3", "4"]
        work["3"]()
    written = importlib.util.find_spec("course_utils.models.recurrences") is not None
    assert ("state space" in area_growth.LAYERS) is written


def test_every_attention_of_the_benchmark_takes_a_step():
    works = attention_works(2)
    assert len(works) == 5  # ours and four other designs
    for work in works.values():
        work()  # raises where a design can't take its step


def test_the_floor_counts_each_product_once():
    small = SIZES[0]._replace(layers=1, width=2, length=4, batch=1)
    tokens, matrices, pairs = 4, 12 * 4 + 107 * 2, 2 * 4 // 2
    assert operations(small) == 6 * tokens * matrices + 12 * tokens * pairs


# -------------------------------------------------------------------------- the recipes


def test_both_recipes_learn_for_the_same_time_and_see_only_the_training_text():
    ids = torch.randint(4, 12, (400,), generator=torch.Generator().manual_seed(0))
    runners = {
        "ours": recipes.ours(12, 0, batch=2),
        "published": recipes.published(12, 0),
    }
    before = {name: recipes.score(r, ids) for name, r in runners.items()}
    shares = list(recipes.race(runners, ids, seconds=0.6, seed=0))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    for name, runner in runners.items():
        assert runner.steps >= 1
        assert recipes.score(runner, ids) != before[name]


def test_the_schedules_rise_and_fall_with_the_time():
    for rate, last in ((recipes.cosine, 0.1), (recipes.linear, 0.0)):
        assert rate(0.0) < 0.1
        assert max(rate(i / 100) for i in range(101)) == pytest.approx(1.0, abs=0.01)
        assert rate(1.0) == pytest.approx(last)
        assert rate(2.0) == pytest.approx(last)


def test_the_three_parts_of_the_text_are_apart():
    n_tokens, split = recipes.texts()
    ids = recipes.encoded(split)
    assert set(ids) == {"train", "validation", "test"}
    assert max(int(part.max()) for part in ids.values()) < n_tokens
    assert min(len(part) for part in ids.values()) > 10_000


def test_only_a_full_run_reads_the_test_text(monkeypatch):
    asked: list[str] = []
    found = {"as published": [0.0], "its rate tuned": [0.0], "steps": [900]}
    monkeypatch.setattr(area_loss, "best_rate", lambda seconds, plan: 2e-3)
    monkeypatch.setattr(
        area_loss, "differences", lambda s, seeds, part, *_: asked.append(part) or found
    )
    for quick in (True, False):
        published, tuned = area_loss.rows(60.0, (1,), Plan(quick=quick))
        assert (published.target is None) is quick
        assert tuned.target is None
        assert asked[-1] in published.name
        assert "2000 steps, of which 900 fit here" in tuned.note
    assert asked == ["validation", "test"]


@pytest.mark.slow
@pytest.mark.parametrize("cache", [True, False])
def test_a_network_that_weighs_counts_starts_as_the_last_of_them(cache, monkeypatch):
    monkeypatch.setattr(counting, "ORDER", 3)
    start = counting.trained(0.0, 0, cache)
    ids, log_p = counting.experts("validation", cache)
    assert log_p.shape[1] == 1 + cache
    with torch.no_grad():
        logits = start(ids[None, :64], log_p[None, :64])
    torch.testing.assert_close(logits[0].softmax(-1), log_p[:64, -1].softmax(-1))
    alone = counted_pydoc(3)["validation"]
    expected = counted_bits(alone[0], alone[1][int(cache)])
    assert counting.bits(start, "validation", cache) == pytest.approx(
        expected, abs=0.01
    )


# -------------------------------------------------------------------------- the course


def test_a_first_visit_weighs_the_page_and_what_it_names_once(tmp_path):
    page = tmp_path / "book" / "page.html"
    page.parent.mkdir()
    page.write_text("x")
    alone = first_visit(page)
    (tmp_path / "style.css").write_bytes(bytes(range(256)) * 4)
    link = '<link href="../style.css?v=1"><script src="../none.js"></script>'
    page.write_text("x" + link)
    once = first_visit(page)
    page.write_text("x" + link + link)
    assert once > alone + 200
    assert first_visit(page) < once + 100


def test_a_machine_is_busy_for_as_long_as_asked(monkeypatch):
    started = []

    def start(command):
        started.append(Popen(command))
        return started[-1]

    monkeypatch.setattr(threads.subprocess, "Popen", start)
    with threads.busy_machine() as count:
        assert len(started) == count == 2 * os.cpu_count()
        assert all(process.poll() is None for process in started)
    assert all(process.poll() is not None for process in started)
