"""Work done under a question's old id still counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from course_utils.checks import check, progress
from course_utils.grading import editions
from course_utils.grading.classroom.extra_tests import extra_parts, read_extra
from course_utils.grading.questions import find_question

OLD, NEW = "06.91", "06.1"


@pytest.fixture(autouse=True)
def renamed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A course in which 06.1 was once 06.91, and an empty folder to work in."""
    monkeypatch.setattr(editions, "RENAMED", {OLD: NEW})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_progress(folder: Path, **points: int) -> None:
    kept = {
        name.replace("_", "."): {"points": p, "answered": True}
        for name, p in points.items()
    }
    text = json.dumps({"questions": {k.removeprefix("q"): v for k, v in kept.items()}})
    (folder / ".course_progress.json").write_text(text, encoding="utf-8")


def is_question(identifier: str) -> bool:
    try:
        return find_question(identifier).id == identifier
    except ValueError:
        return False


def wrong_lines(table: dict[str, str]) -> list[str]:
    """The lines that lead nowhere, or away from a question of today."""
    return [
        f"{old}: {new}"
        for old, new in table.items()
        if is_question(old) or not is_question(new)
    ]


def test_every_line_of_the_table_leads_from_no_question_to_one(monkeypatch):
    monkeypatch.undo()
    assert wrong_lines(editions.RENAMED) == []
    assert wrong_lines({OLD: NEW}) == []
    reused, lost = {"06.2": NEW}, {OLD: "99.1"}
    assert wrong_lines(reused | lost) == ["06.2: 06.1", "06.91: 99.1"]


def test_check_takes_an_old_id_and_says_what_it_is_now(capsys, renamed):
    check(OLD, lambda query, key, value: value)
    printed = capsys.readouterr().out
    assert "Question 06.91 of an earlier edition is 06.1 in this one." in printed
    kept = json.loads((renamed / ".course_progress.json").read_text("utf-8"))
    assert list(kept["questions"]) == [NEW]


def test_check_says_nothing_of_editions_for_an_id_of_today(capsys):
    check(NEW, lambda query, key, value: value)
    assert "edition" not in capsys.readouterr().out


def test_progress_counts_what_was_earned_under_an_old_id(capsys, renamed):
    write_progress(renamed, q06_91=3)
    progress("06")
    assert f"{NEW} ███" in capsys.readouterr().out


def test_an_answer_of_this_edition_replaces_one_of_an_earlier(capsys, renamed):
    write_progress(renamed, q06_1=1, q06_91=3)
    progress("06")
    assert "1/" in capsys.readouterr().out.split(NEW)[1].splitlines()[0]


def test_extra_tests_written_for_an_old_id_are_those_of_the_new(capsys, renamed):
    chapter = "course_utils.grading.questions.ch06_queries_keys_values"
    (renamed / "more.py").write_text(
        f"from {chapter}.q1_attention import draw_qkv\n"
        "from course_utils.grading.questions.model import Part\n"
        "def draw(rng):\n    return [draw_qkv(rng)]\n"
        f"PARTS = {{{OLD!r}: Part('old', 1, draw), {NEW!r}: Part('new', 1, draw)}}\n"
    )
    (parts,) = extra_parts(read_extra(renamed)).values()
    assert [part.name for part in parts] == ["old", "new"]
    assert "is 06.1 in this one" in capsys.readouterr().out
