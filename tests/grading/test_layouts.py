"""Whose a notebook is: every layout that courses have, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from course_utils.grading.classroom.layouts import find_submissions

NAME, NEXT = "06_queries_keys_values", "07_permutation_equivariance"


def lay_out(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("{}" if path.endswith(".ipynb") else "")
    return folder


def found(folder: Path, *more: object) -> list[tuple[str, str]]:
    return [(s.student, s.chapter) for s in find_submissions(folder, *more)]


LAYOUTS = {
    "student first, as nbgrader collects": (
        f"ada/{NAME}/{NAME}.ipynb",
        f"ada/{NEXT}/{NEXT}.ipynb",
        f"bob/{NAME}/{NAME}.ipynb",
    ),
    "student first, no folder for the exercise": (
        f"ada/{NAME}.ipynb",
        f"ada/{NEXT}.ipynb",
        "bob/mine-06.ipynb",
    ),
    "exercise first": (
        f"{NAME}/ada/{NAME}.ipynb",
        f"{NAME}/bob/{NAME}.ipynb",
        f"{NEXT}/ada/{NEXT}.ipynb",
    ),
    "exercise first, files named after students": (
        f"{NAME}/ada.ipynb",
        f"{NAME}/bob_{NAME}.ipynb",
        "07/ada.ipynb",
    ),
    "exercise first, folders by number": (
        "hw06/ada/work.ipynb",
        "hw06/bob/work.ipynb",
        "hw07/ada/work.ipynb",
    ),
    "flat": (f"ada_{NAME}.ipynb", f"{NAME}_bob.ipynb", "ada-07.ipynb"),
    "Canvas": (
        f"ada_1_11_{NAME}.ipynb",
        f"bob_LATE_2_12_{NAME}-1.ipynb",
        f"ada_1_13_{NEXT}-2.ipynb",
    ),
    "Moodle, with folders": (
        f"ada_1_assignsubmission_file_/{NAME}.ipynb",
        "bob_2_assignsubmission_file_/work on 06.ipynb",
        f"ada_1_assignsubmission_file/{NEXT}.ipynb",
    ),
    "Moodle, without": (
        f"ada_1_assignsubmission_file_{NAME}.ipynb",
        f"bob_2_assignsubmission_file_{NAME}.ipynb",
        f"ada_1_assignsubmission_file_{NEXT}.ipynb",
    ),
    "one exercise a folder, each as Moodle gives it": (
        f"{NAME}/ada_1_assignsubmission_file_/work.ipynb",
        f"{NAME}/bob_2_assignsubmission_file_/work.ipynb",
        f"{NEXT}/ada_1_assignsubmission_file_/work.ipynb",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_names_the_same_students_and_exercises(layout, tmp_path):
    lay_out(tmp_path, *LAYOUTS[layout])
    expected = [("ada", "06"), ("ada", "07"), ("bob", "06")]
    assert sorted(found(tmp_path)) == expected


def test_numbers_of_canvas_and_moodle_tell_students_of_one_name_apart(tmp_path):
    lay_out(tmp_path, f"leeann_1_5_{NAME}.ipynb", f"leeann_2_6_{NAME}.ipynb")
    one, two = find_submissions(tmp_path)
    assert [(s.student, s.number) for s in (one, two)] == [
        ("leeann", "1"),
        ("leeann", "2"),
    ]
    assert not one.flags


def test_of_several_versions_the_last_is_graded_and_canvas_lateness_is_flagged(
    tmp_path,
):
    lay_out(
        tmp_path,
        f"ada_1_11_{NAME}.ipynb",
        f"ada_1_14_{NAME}-2.ipynb",
        f"ada_LATE_1_15_{NAME}-10.ipynb",
    )
    (one,) = find_submissions(tmp_path)
    assert one.path.stem.endswith("-10")
    assert one.flags[0].startswith("3 notebooks, graded ada_LATE")
    assert one.flags[1] == "Canvas calls it late"


REFUSED = {
    "names no exercise": (f"ada/{NAME}.ipynb", "bob/work.ipynb"),
    "is an archive: unpack it": (f"ada/{NAME}.ipynb", "bob/work.zip"),
    "holds no notebook": (f"ada/{NAME}.ipynb", "bob/readme.txt"),
    "names no student": (f"{NAME}/{NAME}.ipynb", f"{NAME}/ada.ipynb"),
    "names the exercises 06 and 07": (f"{NAME}/ada/{NEXT}.ipynb",),
    "beside others": (f"{NAME}/ada/{NAME}.ipynb", f"bob/{NAME}.ipynb"),
    "the folder of a whole course": ("source/x.ipynb", f"submitted/ada/{NAME}.ipynb"),
    "if these are students": (f"group/ada/{NAME}.ipynb", f"group/bob/{NAME}.ipynb"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_understood_is_refused_with_a_sentence(reason, tmp_path):
    lay_out(tmp_path, *REFUSED[reason])
    with pytest.raises(ValueError, match=reason):
        find_submissions(tmp_path)


def test_a_link_in_place_of_a_students_folder_is_refused_not_passed_over(tmp_path):
    lay_out(tmp_path, f"in/bob/{NAME}.ipynb", f"elsewhere/ada/{NAME}.ipynb")
    (tmp_path / "in" / "ada").symlink_to(tmp_path / "elsewhere" / "ada")
    with pytest.raises(ValueError, match="ada is a link to a folder"):
        find_submissions(tmp_path / "in")


def test_who_insists_gets_a_flagged_row_for_what_is_not_understood(tmp_path):
    lay_out(tmp_path, f"ada/{NAME}.ipynb", "bob/work.ipynb", "carl/work.zip")
    found = find_submissions(tmp_path, skip_unknown=True)
    assert [s.flags for s in found] == [
        (),
        ("not understood: work.ipynb names no exercise",),
        ("not understood: work.zip is an archive: unpack it",),
    ]


def test_what_lies_beside_a_submission_stops_nobody_and_is_named(tmp_path):
    lay_out(
        tmp_path,
        f"ada/{NAME}.ipynb",
        "ada/notes.ipynb",
        "ada/old/figures.zip",
        "ada/.ipynb_checkpoints/x.ipynb",
        f"ada/__MACOSX/._{NAME}.ipynb",
    )
    (one,) = find_submissions(tmp_path)
    assert one.flags == ("not graded: notes.ipynb", "not graded: figures.zip")


def test_an_empty_folder_of_an_exercise_is_named(tmp_path):
    lay_out(tmp_path, f"ada/{NAME}/{NAME}.ipynb", f"ada/{NEXT}/readme.txt")
    (one,) = find_submissions(tmp_path)
    assert one.flags == (f"not graded: {NEXT}",)
    lay_out(tmp_path / "b", f"{NAME}/ada/{NAME}.ipynb", f"{NAME}/bob/readme.txt")
    with pytest.raises(ValueError, match="bob holds no notebook"):
        find_submissions(tmp_path / "b")


@pytest.mark.parametrize(
    "said",
    [
        "2026-11-20 22:30:00.948203 UTC",
        "2026-11-20T22:30:00.948203+00:00\n",
        "2026-11-20 22:30:00.948203",
        "2026-11-20 23:30:00.948203+01:00",
    ],
)
def test_the_time_of_a_submission_is_read_as_nbgrader_writes_it(said, tmp_path):
    lay_out(tmp_path, f"ada/{NAME}/{NAME}.ipynb")
    (tmp_path / "ada" / NAME / "timestamp.txt").write_text(said)
    (one,) = find_submissions(tmp_path)
    assert one.time == datetime(2026, 11, 20, 22, 30, 0, 948203, UTC)


def test_a_time_that_a_student_can_hand_in_is_not_believed(tmp_path):
    moodle = f"ada_1_assignsubmission_file_/{NAME}.ipynb"
    lay_out(tmp_path, moodle, f"bob_{NAME}.ipynb")
    for folder in (tmp_path, (tmp_path / moodle).parent):
        (folder / "timestamp.txt").write_text("2020-01-01 00:00:00 UTC")
    assert [one.time for one in find_submissions(tmp_path)] == [None, None]


@pytest.mark.parametrize("said", ["", "yesterday", "9" * 2000, "0001-01-01+23:59"])
def test_a_time_that_is_none_is_flagged(said, tmp_path):
    lay_out(tmp_path, f"ada/{NAME}/{NAME}.ipynb")
    (tmp_path / "ada" / NAME / "timestamp.txt").write_text(said)
    (one,) = find_submissions(tmp_path)
    assert one.time is None
    assert one.flags == ("timestamp.txt is no time",)
