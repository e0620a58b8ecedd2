"""An instructor's week: late, fixed and withdrawn work, corrections, exports."""

from __future__ import annotations

import csv
import json
import shutil
from concurrent.futures import wait
from pathlib import Path

import pytest
import torch

from course_utils.grading.classroom import cli, engine, gradebook
from course_utils.grading.classroom.cli import main
from course_utils.grading.classroom.exports import for_moodle
from course_utils.grading.classroom.roster import Roster
from course_utils.grading.classroom.submission_grader import Examined
from course_utils.grading.classroom.submissions import Notebook
from course_utils.grading.questions import chapter_questions
from course_utils.grading.scoring import Result

NAME, NEXT = "06_queries_keys_values", "07_permutation_equivariance"


def questions(chapter: str, extra: object = ()) -> tuple:
    """Seven questions of an exercise: those of chapter 06 have 21 points."""
    return chapter_questions(chapter)[:7]


class Week:
    """A folder of submissions that is graded again and again.

    The first number in a notebook is the points it gets, question by question: what is
    tested here is what becomes of points. `asked` lists what was really graded.
    """

    def __init__(self, folder: Path, capsys) -> None:
        self.folder, self.capsys = folder, capsys
        self.out = folder / "grades.csv"
        self.asked: list[str] = []
        (folder / "in").mkdir()

    def hand_in(self, student: str, points: int, name: str = NAME, time: str = ""):
        path = self.folder / "in" / student / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        cell = {"cell_type": "code", "source": f"{points} # {student}"}
        path.write_text(json.dumps({"cells": [cell]}))
        if time:
            path.with_name("timestamp.txt").write_text(time)
        return path

    def graded_text(self, notebook, chapter, settings, alone=False):
        left, who = notebook.cells[0].split(" # ")
        self.asked.append(who)
        results = []
        for question in questions(chapter):
            points = min(int(left), question.points)
            left = int(left) - points
            lost = points < question.points
            hint = ("no_scale", "the scores are not scaled.") if lost else ("", "")
            parts = (("all", points, question.points),)
            results.append(Result(question.id, points, question.points, parts, *hint))
        key = settings.key_of(chapter, notebook.digest)
        return gradebook.result_row(key, results, [])

    def write(self, name: str, *lines: str) -> str:
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    def grade(self, *options: str, code: int = 0) -> str:
        """Run the command; returns what it said. Who was graded is in `asked`."""
        self.asked.clear()
        out = ["--out", str(self.out), "--seed", "s", "--unsafe", "--quiet"]
        assert main(["grade", str(self.folder / "in"), *out, *options]) == code
        said = self.capsys.readouterr()
        return said.err if code else said.out

    def table(self, kind: str = "") -> list[dict[str, str]]:
        path = self.out.with_name(f"grades{kind}.csv")
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def final(self) -> dict[str, str]:
        return {row["student"]: row["final"] for row in self.table()}

    def pages(self) -> dict[str, str]:
        folder = self.folder / "grades_reports"
        return {p.name: p.read_text("utf-8") for p in sorted(folder.glob("*.html"))}


@pytest.fixture
def week(tmp_path, capsys, monkeypatch):
    made = Week(tmp_path, capsys)
    monkeypatch.setattr(engine, "grade_text", made.graded_text)
    monkeypatch.setattr(cli, "questions_of", questions)
    return made


# ------------------------------------------------------------------ only what changed


def test_only_what_changed_is_graded_again(week):
    for i in range(6):
        week.hand_in(f"s{i}", 10 + i)
    week.grade()
    assert sorted(week.asked) == [f"s{i}" for i in range(6)]
    assert "6 of 6 are graded already" in week.grade()
    assert week.asked == []
    week.hand_in("s3", 21)
    week.hand_in("late", 5)
    week.grade()
    assert sorted(week.asked) == ["late", "s3"]
    assert week.final()["s3"] == "21"
    week.grade("--seed", "another")
    assert len(week.asked) == 7
    week.grade("--time-limit", "9")
    assert len(week.asked) == 7
    week.grade("--time-limit", "10.0")
    assert week.asked == []


def test_a_renamed_student_costs_nothing_and_a_withdrawn_one_leaves_no_trace(week):
    week.hand_in("ada", 11)
    week.hand_in("bob", 12)
    week.grade()
    (week.folder / "in" / "ada").rename(week.folder / "in" / "ada lovelace")
    shutil.rmtree(week.folder / "in" / "bob")
    week.grade()
    assert week.final() == {"ada lovelace": "11"}
    assert week.asked == []
    for page in week.pages().values():
        assert "12 of 21" not in page
    assert len(week.pages()) == 2


def test_a_report_never_shows_an_old_grade(week):
    week.hand_in("ada", 11)
    week.grade()
    (before,) = [name for name in week.pages() if name.startswith("ada")]
    (week.folder / "grades_reports" / "mine.html").write_text("my own notes")
    week.hand_in("ada", 19)
    week.grade()
    pages = week.pages()
    assert set(pages) == {before, "index.html", "mine.html"}
    assert "19 of 21" in pages[before]
    assert "11 of 21" not in "".join(pages.values())


def test_students_whose_names_look_the_same_have_a_page_each(week):
    week.hand_in("ann\u200b", 3)
    week.hand_in("ann\u200c", 4)
    week.grade()
    assert len(week.pages()) == 3


def test_an_interrupted_run_leaves_the_last_whole_one_and_goes_on(week, monkeypatch):
    week.hand_in("a", 11)
    week.grade()
    week.hand_in("b", 12)
    week.hand_in("c", 13)
    usual = week.graded_text

    def interrupted(notebook, *more):
        if "# c" in notebook.cells[0]:
            raise KeyboardInterrupt
        return usual(notebook, *more)

    monkeypatch.setattr(engine, "grade_text", interrupted)
    said = week.grade("--jobs", "1", code=130)
    assert "those of the last whole run" in said
    assert week.final() == {"a": "11"}
    monkeypatch.setattr(engine, "grade_text", usual)
    week.grade()
    assert week.asked == ["c"]
    assert week.final() == {"a": "11", "b": "12", "c": "13"}


def test_what_is_done_is_kept_before_an_interrupt_is_raised(week, monkeypatch):
    week.hand_in("a", 11)
    week.hand_in("b", 12)
    usual = week.graded_text

    def interrupted(notebook, *more):
        if "# b" in notebook.cells[0]:
            raise KeyboardInterrupt
        return usual(notebook, *more)

    def late(running, return_when):
        done, _ = wait(running)  # both, and the interrupted one first
        return sorted(done, key=lambda x: x.exception() is None), set()

    monkeypatch.setattr(engine, "grade_text", interrupted)
    monkeypatch.setattr(engine, "wait", late)
    week.grade("--jobs", "1", code=130)
    monkeypatch.setattr(engine, "wait", wait)
    monkeypatch.setattr(engine, "grade_text", usual)
    week.grade()
    assert week.asked == ["b"]


def test_who_ran_out_of_time_is_tried_again_alone_before_it_costs_a_point(
    week, monkeypatch
):
    for i in range(4):
        week.hand_in(f"s{i}", 10 + i)
    order = []
    usual = week.graded_text

    def slow(notebook, chapter, settings, alone=False):
        who = notebook.cells[0].split(" # ")[1]
        order.append((who, alone))
        if who == "s1" and not alone:
            return {"again": True}
        return usual(notebook, chapter, settings, alone)

    monkeypatch.setattr(engine, "grade_text", slow)
    week.grade("--jobs", "2")
    assert week.final() == {f"s{i}": str(10 + i) for i in range(4)}
    assert order[-1] == ("s1", True)
    assert len(order) == 5


# --------------------------------------------------------------------- class and roster

ROSTER = ("id,name,email", "1,Ada Lovelace,ada@x.org", "2,Bob Ross,b.r@x.org", "3,Zoë,")


def test_a_roster_names_everyone_and_says_who_handed_in_nothing(week):
    week.write("roster.csv", *ROSTER)
    about = week.write("class.toml", 'roster = "roster.csv"')
    week.hand_in("ada", 11)
    week.hand_in("Ross, Bob", 12)
    week.hand_in("stranger", 13)
    said = week.grade("--class", about)
    rows = {row["student"]: row for row in week.table()}
    assert rows["Ada Lovelace"]["id"] == "1"
    assert rows["Bob Ross"]["final"] == "12"
    assert rows["Zoë"]["flags"] == "nothing handed in"
    assert (rows["Zoë"]["final"], rows["Zoë"]["max_score"]) == ("0", "21")
    assert rows["stranger"]["flags"] == "not on the roster"
    assert "nothing handed in: 1 (Zoë" in said


def test_a_name_that_fits_two_people_fits_nobody(week):
    week.write("roster.csv", "id,name", "1,Ann Lee", "2,Ann Lee")
    about = week.write("class.toml", 'roster = "roster.csv"')
    week.hand_in("ann lee", 11)
    week.hand_in("2", 12)
    week.grade("--class", about)
    flags = {(row["student"], row["id"]): row["flags"] for row in week.table()}
    assert flags == {
        ("ann lee", ""): "not on the roster",
        ("Ann Lee", "2"): "",
        ("Ann Lee", "1"): "nothing handed in",
    }


def test_two_submissions_of_one_person_are_refused_before_anything_is_graded(week):
    week.write("roster.csv", *ROSTER)
    about = week.write("class.toml", 'roster = "roster.csv"')
    week.hand_in("ada", 11)
    week.hand_in("Ada Lovelace", 12)
    assert "are both Ada Lovelace's" in week.grade("--class", about, code=2)
    assert week.asked == []


def test_lateness_costs_what_the_class_file_says(week):
    about = week.write(
        "class.toml",
        "[due]",
        "06 = 2026-11-20T23:59:00+01:00",
        "[late]",
        "grace = 15",
        "per_day = 10",
        "most = 25",
    )
    times = {
        "early": "2026-11-20 22:58:00 UTC",
        "graceful": "2026-11-20 23:13:00 UTC",
        "hour": "2026-11-21 00:00:00 UTC",
        "days": "2026-11-22 12:00:00 UTC",
        "week": "2026-11-28 12:00:00 UTC",
    }
    for student, time in times.items():
        week.hand_in(student, 20, time=time)
    week.hand_in("unknown", 20)
    week.hand_in("poor", 1, time=times["week"])
    week.grade("--class", about)
    assert week.final() == {
        "early": "20",
        "graceful": "20",
        "hour": "17.9",
        "days": "15.8",
        "week": "14.75",
        "unknown": "20",
        "poor": "0",
    }
    rows = {row["student"]: row for row in week.table()}
    assert rows["unknown"]["flags"] == "no timestamp.txt, so lateness is not known"
    assert rows["week"]["score"] == "20"
    page = next(v for k, v in week.pages().items() if k.startswith("hour"))
    assert "17.9 of 21 points</strong> (20 found, -2.1 for 1 hours late)" in page


def test_a_class_without_any_times_is_told_so_once(week):
    about = week.write("class.toml", "[due]", "06 = 2026-11-20T23:59:00+01:00")
    for i in range(3):
        week.hand_in(f"s{i}", 10)
    assert "06: no submission has a timestamp.txt" in week.grade("--class", about)
    assert {row["flags"] for row in week.table()} == {""}


HEAD = "student,exercise,question,points,reason"


def test_corrections_have_a_reason_and_survive_every_rerun(week):
    week.write("roster.csv", *ROSTER)
    week.write(
        "corrections.csv",
        HEAD,
        "1,06,06.2,4,the cell was cut off",
        "Bob Ross,06_queries_keys_values,,-2,copied from Ada",
        "bob ross,06,,1.5,a good question in class",
        "1,06,late,0,ill",
        "1,07,,1,not in this folder",
    )
    about = week.write(
        "class.toml",
        'roster = "roster.csv"',
        'corrections = "corrections.csv"',
        "[due]",
        "06 = 2026-11-20T23:59:00+01:00",
        "[late]",
        "per_day = 50",
    )
    week.hand_in("ada", 6, time="2026-11-21 12:00:00 UTC")
    week.hand_in("2", 10)
    for _ in range(2):
        said = week.grade("--class", about)
        assert week.final() == {"Ada Lovelace": "8", "Bob Ross": "9.5", "Zoë": "0"}
    assert "1 corrections are of exercises that are not in" in said
    ada = next(row for row in week.table() if row["id"] == "1")
    assert (ada["score"], ada["correction"], ada["06.2"]) == ("6", "2", "4")
    assert "06.2: 4 instead of 2 (the cell was cut off)" in ada["flags"]
    page = next(v for k, v in week.pages().items() if k.startswith("Ada"))
    assert "Corrected by a person" in page
    assert "4 of 4 (found: 2 of 4)" in page
    week.hand_in("ada", 7, time="2026-11-21 12:00:00 UTC")  # a new version
    week.grade("--class", about)
    assert week.asked == ["ada"]
    assert week.final()["Ada Lovelace"] == "8"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nobody,06,06.1,4,why not", "nobody of that name or id has a row"),
        ("1,06,06.9,4,why not", "the question '06.9', which Ada Lovelace has not"),
        ("1,06,06.1,4,", "line 2: a correction needs a reason"),
        ("1,06,06.1,much,because", "'much' is no number of points"),
        ("1,06,06.1,nan,because", "'nan' is no number of points"),
        ("1,06,06.1,-1,because", "'-1' is no number of points"),
        ("1,99,06.1,1,because", "there is no exercise '99'"),
        ("1,06,06.1,1,a\n1,06,06.1,2,b", "line 3 corrects what line 2 corrects"),
    ],
)
def test_a_correction_that_cannot_be_meant_is_refused_at_once(line, said, week):
    week.write("roster.csv", *ROSTER)
    week.write("corrections.csv", HEAD, line)
    about = week.write(
        "class.toml", 'roster = "roster.csv"', 'corrections = "corrections.csv"'
    )
    week.hand_in("ada", 11)
    assert said in week.grade("--class", about, code=2)
    assert week.asked == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("roster = 3", "'roster' is not understood"),
        ("deadline = 3", "'deadline' is not understood"),
        ("[due", "is not a class file"),
        ("[due]\n06 = 2026-11-20", "expected date, time and zone"),
        ("[due]\n06 = 2026-11-20T10:00:00", "expected date, time and zone"),
        ("[due]\n77 = 2026-11-20T10:00:00Z", "there is no exercise '77'"),
        ("[late]\nper_day = -1", "per_day = -1 is not understood"),
        ("[late]\nper_week = 1", "per_week = 1 is not understood"),
        ('roster = "none.csv"', "No such file"),
        ('roster = "bad.csv"', "has the columns who, what; expected `id`"),
        ('roster = "twice.csv"', "two lines with the id 1"),
        ('roster = "latin.csv"', "is not encoded as UTF-8"),
        ('corrections = "bad.csv"', "needs the columns student, exercise"),
    ],
)
def test_a_class_file_that_is_wrong_is_refused_with_a_sentence(text, said, week):
    week.write("bad.csv", "who,what", "1,2")
    week.write("twice.csv", "id,name", "1,a", "1,b")
    (week.folder / "latin.csv").write_bytes("id,name\n1,Zoë\n".encode("cp1252"))
    week.hand_in("ada", 11)
    about = week.write("class.toml", text)
    assert said in week.grade("--class", about, code=2)
    assert week.asked == []


# ------------------------------------------------------------------------------ exports


def test_totals_add_up_every_exercise_of_a_student(week):
    week.hand_in("ada", 11)
    week.hand_in("ada", 7, NEXT)
    week.hand_in("bob", 12)
    week.grade()
    ada, bob = week.table("_totals")
    assert (ada[NAME], ada[NEXT], ada["total"]) == ("11", "7", "18")
    assert (bob[NAME], bob[NEXT], bob["total"]) == ("12", "", "12")
    most = sum(q.points for c in ("06", "07") for q in questions(c))
    assert {row["max_total"] for row in (ada, bob)} == {str(most)}


CANVAS = (
    f"Student,ID,SIS User ID,SIS Login ID,Section,{NAME} (77)",
    "    Points Possible,,,,,21.0",
    '"Lovelace, Ada",101,A1,ada,One,',
    '"Ross, Bob",102,B1,bob,One,',
    '"Zoë, Zoë",103,Z1,zoe,One,',
)


def test_canvas_gets_its_own_export_back_with_the_points_filled_in(week):
    week.write("canvas.csv", *CANVAS)
    about = week.write("class.toml", 'roster = "canvas.csv"')
    for name, points in (
        (f"lovelaceada_101_5_{NAME}-1.ipynb", 11),
        (f"rossbob_LATE_102_6_{NAME}.ipynb", 12),
    ):
        path = week.hand_in("x", points)
        path.rename(week.folder / "in" / name)
    for folder in (week.folder / "in" / "x" / NAME, week.folder / "in" / "x"):
        folder.rmdir()
    week.grade("--class", about)
    column = f"{NAME} (77)"
    rows = {row["ID"]: row for row in week.table("_canvas")}
    assert {key: row[column] for key, row in rows.items()} == {
        "": "21",
        "101": "11",
        "102": "12",
        "103": "0",
    }
    assert list(rows["101"])[:5] == CANVAS[0].split(",")[:5]
    assert rows["101"]["Student"] == "Lovelace, Ada"


MOODLE = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,"
    '"Last modified (grade)","Feedback comments"',
    "Participant 101,Ada Lovelace,ada@x.org,Submitted,,100.00,-,",
    'Participant 102,Bob Ross,b@x.org,Submitted,,"100,00",-,',
    "Participant 103,Zoë,z@x.org,No submission,,100.00,-,",
)


def test_moodle_gets_its_worksheet_back_with_grades_and_comments(week):
    week.write("moodle.csv", *MOODLE)
    about = week.write("class.toml", 'roster = "moodle.csv"')
    for name, points in (("Ada Lovelace_101", 21), ("Bob Ross_102", 18)):
        path = week.hand_in(f"{name}_assignsubmission_file_", points)
        path.rename(path.parent.parent / path.name)
        path.parent.rmdir()
    week.grade("--class", about)
    ada, bob, zoe = week.table("_moodle_06")
    assert (ada["Grade"], bob["Grade"], zoe["Grade"]) == ("100", "85.71", "")
    assert ada["Feedback comments"] == "Everything is right."
    assert "the scores are not scaled." in bob["Feedback comments"]
    assert list(ada) == next(csv.reader([MOODLE[0]]))
    assert ada["Last modified (grade)"] == "-"  # as it came


def test_what_a_student_s_code_said_is_no_markup_in_moodle():
    question = {"points": 0, "max_points": 4, "hint": "raised '<img src=x>' & more"}
    row = {"questions": {"06.1": question}, "late": 0, "corrections": [], "flags": []}
    row |= {"id": "1", "final": 0, "max_score": 4}
    columns = ("Identifier", "Full name", "Grade", "Feedback comments")
    line = dict.fromkeys(columns, "") | {"Identifier": "1"}
    roster = Roster("moodle", columns, (line,), (), {})
    _, (*_, comment) = for_moodle(roster, [row])
    assert comment == "06.1: 0 of 4. raised '&lt;img src=x&gt;' &amp; more"


def test_the_judge_takes_one_thread_and_gives_the_others_back(monkeypatch):
    seen, before = [], torch.get_num_threads()
    monkeypatch.setattr(engine, "examine", lambda *_: Examined())
    monkeypatch.setattr(
        engine, "judge_all", lambda *_: seen.append(torch.get_num_threads()) or ([], [])
    )
    torch.set_num_threads(2)
    try:
        engine.grade_text(Notebook(), "06", engine.Settings("secret"))
        assert (seen, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)


def test_all_code_that_decides_a_grade_decides_what_is_graded_again():
    names = {path.name for path in (engine.PACKAGE / "grading/classroom").glob("*.py")}
    assert names >= {*engine.DECIDING, "programs.py"}
    assert "programs.py" in engine.DECIDING
