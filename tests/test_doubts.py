"""Doubts: a claim that was made false is refuted at its assertion, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.doubts.__main__ import main
from tools.doubts.results import page, result_of, stored, text_digest
from tools.doubts.trial import (
    ELSEWHERE,
    REFUTED,
    SURVIVED,
    Doubt,
    all_doubts,
    attempt,
    load,
    needs_mending,
)
from tools.notebooks.io import ROOT, dumps

CELLS = [
    "from course_utils.toy import double\n\nvalues = [1, 2, 3]",
    "def check(numbers):\n    assert sum(numbers) == 6\n\n\nassert double(2) == 4",
    "largest = max(\n    values\n)\nassert (\n    largest\n    == 3\n)",
    "check(values)",
    "never = 1 / 0",
]
SCRIPT = """
SMOKE = {"seeds": [0, 1]}


def points(settings):
    return [{"seed": seed} for seed in settings["seeds"]]


def run(point):
    return {"gain": 1.0}


def check(points):
    assert min(point["gain"] for point in points) > 0
"""
DOUBT = {
    "name": "a smaller list",
    "claim": "The largest is three.",
    "old": "[1, 2, 3]",
    "new": "[1, 2, 2]",
    "fails_at": "largest == 3",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one chapter, one module, one experiment and no doubts yet."""
    for folder in ("book/doubts", "book/experiments", "course_utils"):
        (tmp_path / folder).mkdir(parents=True)
    cells = [new_code_cell(s, id=f"cell-{n}") for n, s in enumerate(CELLS, 1)]
    title = new_markdown_cell("# Toys: a list has a largest number")
    (tmp_path / "book/06_toys.ipynb").write_text(
        dumps(new_notebook(cells=[title, *cells[:4]]))
    )
    (tmp_path / "book/07_later.ipynb").write_text(
        dumps(new_notebook(cells=[title, *cells]))
    )
    (tmp_path / "book/experiments/06_gain.py").write_text(SCRIPT)
    (tmp_path / "course_utils/__init__.py").touch()
    (tmp_path / "course_utils/toy.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = ['numpy']\n")
    (tmp_path / "requirements.txt").touch()
    marks = "<!-- doubts:begin -->\n<!-- doubts:end -->\n"
    (tmp_path / "book/doubts.md").write_text(f"# Doubts\n\n{marks}")
    return tmp_path


def doubt(chapter: str = "06_toys", **changes: object) -> Doubt:
    """The doubt above with some of its fields changed."""
    return Doubt(chapter, **(DOUBT | changes))  # type: ignore[arg-type]


def write(root: Path, *doubts: Doubt, chapter: str = "06_toys") -> None:
    """The doubts as the chapter's file."""
    names = ("name", "claim", "old", "new", "fails_at")
    tables = [
        "[[doubt]]\n" + "".join(f"{n} = {getattr(each, n)!r}\n" for n in names)
        for each in doubts
    ]
    (root / f"book/doubts/{chapter}.toml").write_text("\n".join(tables))


# ------------------------------------------------------------------------- verdicts


def test_a_claim_made_false_is_refuted_at_its_assertion(root: Path) -> None:
    result = attempt(doubt(), root)
    assert result["verdict"] == REFUTED
    assert result["where"] == "assert ( largest == 3 )"


def test_a_doubt_that_changes_nothing_survives(root: Path) -> None:
    assert attempt(doubt(new="[2, 1, 3]"), root)["verdict"] == SURVIVED


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"new": "[1, 2, wrong]"}, "cell-1, line 3: NameError"),
        ({"fails_at": "sum(numbers) == 6"}, "cell-3, line 5: AssertionError"),
        ({"new": "[1, 2, 3]; max = 1 / 0"}, "cell-1, line 3: ZeroDivisionError"),
        ({"new": "[1, 2, 3]; import os; os._exit(3)"}, "Crash"),
        ({"new": "[1, 2, '3']"}, "cell-3, line 1: TypeError"),
    ],
)
def test_a_failure_anywhere_else_is_a_defect(
    root: Path, changes: dict[str, str], where: str
) -> None:
    result = attempt(doubt(**changes), root)
    assert result["verdict"] == ELSEWHERE
    assert where in result["where"]


def test_an_error_inside_the_assertion_refutes_nothing(root: Path) -> None:
    result = attempt(doubt(old="largest = max(", new="largest_one = max("), root)
    assert result["verdict"] == ELSEWHERE
    assert "NameError" in result["where"]


def test_an_assertion_in_a_function_fails_where_the_function_is_called(
    root: Path,
) -> None:
    result = attempt(doubt(new="[0, 2, 3]", fails_at="sum(numbers) == 6"), root)
    assert result["verdict"] == REFUTED


def test_what_comes_after_the_assertion_does_not_run(root: Path) -> None:
    assert attempt(doubt("07_later"), root)["verdict"] == REFUTED
    assert attempt(doubt("07_later", new="[2, 1, 3]"), root)["verdict"] == SURVIVED


def test_a_change_of_the_package_is_made_in_a_copy(root: Path) -> None:
    changed = doubt(
        file="course_utils/toy.py",
        old="2 * x",
        new="3 * x",
        fails_at="double(2) == 4",
    )
    assert attempt(changed, root)["verdict"] == REFUTED
    assert "2 * x" in (root / "course_utils/toy.py").read_text()


def test_a_doubt_of_an_experiment_turns_the_sign_of_its_smoke_run(root: Path) -> None:
    changes = {"experiment": "06_gain", "old": "1.0", "fails_at": '["gain"]'}
    assert attempt(doubt(**changes, new="-1.0"), root)["verdict"] == REFUTED
    assert attempt(doubt(**changes, new="2.0"), root)["verdict"] == SURVIVED


# ------------------------------------------------------------ doubts that don't fit


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"old": "values"}, "occurs 3 times in 06_toys"),
        ({"old": "[3, 2, 1]"}, "occurs 0 times"),
        ({"old": "3]\ndef"}, "occurs 0 times"),
        ({"fails_at": "assert"}, "is a piece of 3 assertions"),
        ({"fails_at": "largest == 4"}, "is a piece of 0 assertions"),
        ({"file": "course_utils/toy.py"}, "occurs 0 times in course_utils/toy.py"),
        ({"file": "course_utils/no.py"}, "No such file"),
        ({"experiment": "06_none"}, "there is no book/experiments/06_none.py"),
        ({"chapter": "05_none"}, "there is no book/05_none.ipynb"),
    ],
)
def test_a_doubt_that_does_not_fit_its_chapter_is_an_error(
    root: Path, changes: dict[str, str], message: str
) -> None:
    assert needs_mending(doubt(), root) == ""
    assert message in needs_mending(doubt(**changes), root)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[doubt", "is not a list of"),
        ("x = 1", "is not a list of"),
        ("[[doubt]]\nname = 'a'", "claim, fails_at, new, old is missing or unknown"),
    ],
)
def test_a_file_that_is_no_list_of_doubts_is_refused(
    root: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "book/doubts/06_toys.toml").write_text(text)
    assert main([], root) == 1
    assert message in capsys.readouterr().err


def test_two_doubts_of_one_name_are_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, doubt(), doubt())
    assert main([], root) == 1
    assert "two doubts are called a smaller list" in capsys.readouterr().err


# -------------------------------------------------------------------------- the command


def test_the_command_tries_what_has_no_current_result(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, doubt(), doubt(name="another", new="[0, 1, 2]"))
    assert main(["06"], root) == 0
    assert "to be tried: 2" in capsys.readouterr().out
    assert main([], root) == 0
    assert "to be tried: 0" in capsys.readouterr().out
    write(root, doubt(new="[1, 1, 1]"), doubt(name="another", new="[0, 1, 2]"))
    assert main(["--changed"], root) == 0
    assert "to be tried: 1" in capsys.readouterr().out
    (root / "course_utils/toy.py").write_text("def double(x):\n    return x + x\n")
    assert main(["--changed"], root) == 0
    assert "to be tried: 2" in capsys.readouterr().out


def test_another_version_makes_a_result_old_but_changes_no_chapter(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, doubt())
    main([], root)
    monkeypatch.setattr("platform.python_version", lambda: "4.0")
    capsys.readouterr()
    main(["--changed"], root)
    assert "to be tried: 0" in capsys.readouterr().out
    main([], root)
    assert "to be tried: 1" in capsys.readouterr().out


def test_a_survivor_is_reported_and_fails_the_command(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, doubt(new="[2, 1, 3]"))
    assert main([], root) == 1
    assert main([], root) == 1  # and stays one
    out = capsys.readouterr().out
    assert "survived: nowhere" in out
    assert "1 defect" in out
    assert "**survived**" in page(root)[1]


def test_a_result_goes_with_its_doubt(root: Path) -> None:
    write(root, doubt(), doubt(name="another", new="[0, 1, 2]"))
    main([], root)
    write(root, doubt(new="[0, 0, 0]"))
    main([], root)
    assert stored(root)["06_toys"].keys() == {"a smaller list"}


def test_the_page_shows_claim_doubt_and_assertion(root: Path) -> None:
    write(root, doubt(claim="It is |x| large."))
    main([], root)
    text = (root / "book/doubts.md").read_text()
    assert "## [Toys: a list has a largest number](06_toys.ipynb)" in text
    row = r"| It is \|x\| large. | a smaller list | `assert ( largest == 3 )` |"
    assert row in text


def test_the_list_has_a_line_for_each_doubt(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, doubt())
    assert main(["--list"], root) == 0
    assert capsys.readouterr().out.startswith("06  a smaller list")
    assert main(["09"], root) == 1
    assert "no doubts for chapter 09" in capsys.readouterr().err


# -------------------------------------------------------------------- the course's own


each_doubt = pytest.mark.parametrize("each", all_doubts(), ids=str)


@each_doubt
def test_the_doubt_fits_its_chapter_and_was_tried_as_it_stands(each: Doubt) -> None:
    assert needs_mending(each) == ""
    result = result_of(each)
    mend = f"run: make doubt ARGS={each.chapter[:2]}"
    assert result.get("doubt") == text_digest(each), mend
    assert result["verdict"] == REFUTED, f"{result['where']}; {mend}"


def test_the_page_of_doubts_is_made_from_the_results() -> None:
    path, text = page()
    assert path.read_text(encoding="utf-8") == text, "run: make doubt"


@pytest.mark.slow
@pytest.mark.parametrize("each", [d for d in all_doubts() if d.cheap], ids=str)
def test_a_cheap_doubt_is_refuted(each: Doubt) -> None:
    assert attempt(each)["verdict"] == REFUTED


def test_every_file_of_doubts_belongs_to_a_chapter() -> None:
    for path in (ROOT / "book" / "doubts").glob("*.toml"):
        assert load(path), f"{path.name} has no doubt"
