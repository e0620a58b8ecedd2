"""Long experiments: every stored point is of the script as it stands."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from course_utils.experiments import at_best_rate, best_tests
from course_utils.experiments import load as load_stored
from tests.twins import bare, definitions
from tools.experiments.__main__ import main
from tools.experiments.comparison import differences, outside_spread
from tools.experiments.script import ExperimentError, load, scripts, smoke
from tools.experiments.store import missing, stale, store_of, stored
from tools.notebooks.io import ROOT, parse, read

SCRIPT = '''
"""Is a larger rate faster?"""
SETTINGS = {"rates": [1, 2], "seeds": [0, 1]}
SMOKE = {"rates": [1, 2], "seeds": [0]}


def points(settings):
    rates, seeds = settings["rates"], settings["seeds"]
    return [{"rate": rate, "seed": seed} for rate in rates for seed in seeds]


def run(point):
    return {"speed": 10.0 * point["rate"] + point["seed"], "curve": [0.5, 1.0]}


def check(points):
    slow, fast = ([p["speed"] for p in points if p["rate"] == r] for r in (1, 2))
    assert min(fast) > max(slow)
'''


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A project with one experiment of four points, which takes no time."""
    path = tmp_path / "book" / "experiments" / "06_rates.py"
    path.parent.mkdir(parents=True)
    path.write_text(SCRIPT)
    return path


def run(script: Path, *arguments: str) -> int:
    """The command, in the script's own project and in this process."""
    return main(["--jobs", "0", *arguments], root=script.parents[2])


def changes(script: Path) -> list[str]:
    """How the smoke run differs from the stored one."""
    return stale(script, smoke(script, jobs=0), script.parents[2])


# -------------------------------------------------------------------- the machinery


def test_every_point_is_stored_with_its_circumstances(script: Path) -> None:
    root = script.parents[2]
    assert run(script, "--jobs", "2") == 0
    result = stored(script, root)
    assert [(p["rate"], p["seed"], p["speed"]) for p in result["points"]] == [
        (1, 0, 10.0),
        (1, 1, 11.0),
        (2, 0, 20.0),
        (2, 1, 21.0),
    ]
    assert result["settings"] == {"rates": [1, 2], "seeds": [0, 1]}
    assert result["measured"].keys() == {"date", "processor", "versions"}
    assert [p["speed"] for p in result["fingerprint"]] == [10.0, 20.0]


def test_an_interrupted_experiment_goes_on_where_it_stopped(
    script: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = script.parents[2]
    run(script)
    file = store_of(script, root)
    result = json.loads(file.read_text())
    kept = result["points"][:3]
    kept[0]["seconds"] = 123.0  # proof that it is not measured a second time
    file.write_text(json.dumps(result | {"points": kept}))
    assert missing(script, root) == [{"rate": 2, "seed": 1}]
    capfd.readouterr()
    assert run(script) == 0
    assert "1 of 1" in capfd.readouterr().out
    assert stored(script, root)["points"][0]["seconds"] == 123.0


def test_a_changed_smoke_run_makes_every_point_stale(script: Path) -> None:
    root = script.parents[2]
    run(script)
    assert changes(script) == []
    script.write_text(SCRIPT.replace("10.0 *", "11.0 *"))
    assert "speed is 11.0, stored is 10.0" in changes(script)[0]
    run(script)
    assert stored(script, root)["points"][0]["speed"] == 11.0


def test_text_that_changes_no_number_makes_nothing_stale(script: Path) -> None:
    run(script)
    script.write_text(SCRIPT.replace("faster?", "quicker?") + "\n# a remark\n")
    assert changes(script) == []


def test_a_larger_setting_measures_what_is_new_and_drops_what_is_gone(
    script: Path,
) -> None:
    root = script.parents[2]
    run(script)
    script.write_text(SCRIPT.replace('"seeds": [0, 1]', '"seeds": [1, 2]'))
    assert missing(script, root) == [{"rate": 1, "seed": 2}, {"rate": 2, "seed": 2}]
    run(script)
    assert [p["seed"] for p in stored(script, root)["points"]] == [1, 2, 1, 2]


def test_a_claim_that_the_points_refute_stops_the_command(script: Path) -> None:
    script.write_text(SCRIPT.replace("min(fast) > max(slow)", "min(fast) > 100"))
    with pytest.raises(AssertionError):
        run(script)


def test_verifying_finds_what_left_the_recorded_spread(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(script)
    assert run(script, "--verify") == 0
    script.write_text(SCRIPT.replace("10.0 *", "12.0 *"))
    assert run(script, "--verify", "06") == 1
    assert "speed moved by 2 of 1.01 at rate=1" in capsys.readouterr().out


def test_a_mean_that_moves_within_the_range_of_its_seeds_is_no_change() -> None:
    before = [{"lr": 1, "seed": s, "loss": loss} for s, loss in enumerate([1.0, 2.0])]
    after = [{"lr": 1, "seed": s, "loss": loss} for s, loss in enumerate([2.2, 2.4])]
    assert outside_spread(before, after, ["lr", "seed"]) == []
    after[0]["loss"] = 3.0
    assert len(outside_spread(before, after, ["lr", "seed"])) == 1


def test_rounding_is_no_difference_and_a_missing_number_is_one() -> None:
    one = [{"seed": 0, "loss": 0.123456, "curve": [1.0, 2.0], "bad": float("nan")}]
    near = [{"seed": 0, "loss": 0.123457, "curve": [1.0, 2.0], "bad": float("nan")}]
    assert differences(one, near) == []
    assert len(differences(one, [{**near[0], "curve": [1.0]}])) == 1
    assert len(differences(one, [{"seed": 0, "loss": 0.123456}])) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def check", "def forget", "does not define check"),
        ('"speed": 10.0', '"rate": 10.0', "rate is in the point and in its result"),
    ],
)
def test_a_script_that_does_not_fit_is_refused_in_words(
    script: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(SCRIPT.replace(old, new))
    assert run(script) == 1
    assert message in capsys.readouterr().err


def test_a_chapter_without_experiments_is_refused_by_name(script: Path) -> None:
    with pytest.raises(ExperimentError, match="no experiment of chapter 99"):
        scripts(script.parents[2], ["99"])


# ------------------------------------------------------------------ the stored points


def test_lines_are_ready_to_be_drawn(script: Path) -> None:
    root = script.parents[2]
    run(script)
    result = load_stored("06_rates", store_of(script, root).parent)
    rates, speed = result.lines(x="rate", y="speed")
    assert rates == [1, 2]
    assert speed.tolist() == [[10.0, 20.0], [11.0, 21.0]]
    assert "4 runs with seeds 0, 1" in result.provenance()
    with pytest.raises(ValueError, match="no point of 06_rates has rate=3"):
        result.select(rate=3)
    with pytest.raises(ValueError, match="has no slowness"):
        result.lines(x="rate", y="slowness")
    with pytest.raises(ValueError, match="expected one for each pair"):
        result.lines(x="seconds", y="speed")


def test_the_best_rate_is_chosen_on_validation_data_and_not_on_the_test() -> None:
    runs = [
        {"lr": lr, "seed": seed, "validation": validation, "final": 1 - validation}
        for lr, validation in ((0.1, 0.5), (0.2, 0.9), (0.3, 0.7))
        for seed in (0, 1)
    ]
    assert at_best_rate(runs) == runs[2:4]
    assert at_best_rate(runs, by="final") == runs[:2]
    with pytest.raises(ValueError, match="got no points"):
        at_best_rate([])


def test_an_unknown_experiment_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no stored experiment '99_x'"):
        load_stored("99_x", tmp_path)


# ------------------------------------------------------------------- the real scripts


each_script = pytest.mark.parametrize("path", scripts(), ids=lambda path: path.stem)


@each_script
def test_the_result_is_complete_and_carries_its_claim(path: Path) -> None:
    mend = f"run: make experiments ARGS={path.stem[:2]}"
    assert missing(path) == [], mend
    load(path).check(load_stored(path.stem).points)


@pytest.mark.slow
@each_script
def test_the_smoke_run_gives_the_stored_fingerprint(path: Path) -> None:
    now = smoke(path)
    load(path).check(now)
    mend = f"the stored points are of other code: make experiments ARGS={path.stem[:2]}"
    assert stale(path, now) == [], mend


@each_script
def test_the_page_asserts_what_the_script_asserts(path: Path) -> None:
    (page,) = (ROOT / "book").glob(f"{path.stem[:2]}_*.ipynb")
    cells = [cell for cell in read(page).cells if cell.cell_type == "code"]
    source = "\n".join(cell.source for cell in cells)
    assert f'load("{path.stem}")' in source, (
        f"{page.name} shows no point of {path.stem}"
    )
    script = definitions(ast.parse(path.read_text(encoding="utf-8")))
    (check,) = (bare(node) for node in script if node.name == "check")
    taught = [bare(node) for cell in cells for node in definitions(parse(cell.source))]
    assert check in taught, f"{page.name} has another `check` than {path.name}"


def test_the_tests_of_one_contestant_are_those_at_its_best_rate() -> None:
    runs = [
        {"model": "a", "lr": lr, "seed": seed, "validation": lr, "test": 10 * lr + seed}
        for lr in (0.1, 0.2)
        for seed in (0, 1)
    ]
    other = {"model": "b", "lr": 0.9, "seed": 0, "validation": 1.0, "test": 5.0}
    assert best_tests([*runs, other], model="a") == [2.0, 3.0]
