"""The specimens are the specification: each is worth what its question's file says.

`pytest -k 10.3` runs everything about question 10.3.
"""

from __future__ import annotations

import inspect
import math
import re
import time
from pathlib import Path

import numpy as np
import pytest

from course_utils.grading.answer_runner import Record
from course_utils.grading.checks import PUBLIC_SEED, grade_answer, variant
from course_utils.grading.diagnosis import find_sign, judge
from course_utils.grading.questions import EXERCISES, find_question, load_files
from course_utils.grading.scoring import expectations, part_is_right
from tools.notebooks.io import read

ROOT = Path(__file__).parents[2]

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")
FILES = {file.QUESTION.id: file for name in EXERCISES for file in load_files(name)}
LEAST_MISTAKES, LEAST_RIGHT, LEAST_WRONG = 4, 1, 3
GENERAL = {"loop", "mutated", "library", "order"}  # recognised in every question
LISTS_THE_WORDS = "not_all_or_other_words"  # its hint names all possible answers

every_question = pytest.mark.parametrize(
    "question", [file.QUESTION for file in FILES.values()], ids=list(FILES)
)


def specimens(table):
    """The rows of a table in all files, each named after its question."""
    return [
        pytest.param(identifier, *row, id=f"{identifier}-{row[0]}-{number}")
        for identifier, file in FILES.items()
        for number, row in enumerate(table(file))
    ]


def right_answers(file):
    reference = ("reference", file.QUESTION.reference)
    return [reference] + [("right", answer) for answer in getattr(file, "RIGHT", [])]


def wrong_answers(file):
    """Those of other hands, and the code by which a mistake is recognised."""
    mistakes = [(mistake.id, mistake.wrong) for mistake in file.QUESTION.mistakes]
    return getattr(file, "WRONG", []) + mistakes


def partly_right_answers(file):
    return getattr(file, "PARTIAL", [])


# ----------------------------------------------------------------- a file and its name


@pytest.mark.parametrize("chapter", EXERCISES)
def test_files_are_numbered_in_order_and_named_after_the_answer(chapter):
    files = load_files(chapter)
    expected = [
        (f"{chapter}.{number}", f"q{number}_{file.QUESTION.answer}")
        for number, file in enumerate(files, start=1)
    ]
    found = [(file.QUESTION.id, file.__name__.rsplit(".")[-1]) for file in files]
    assert found == expected, "number the files q1_, q2_, … and their ids alike"
    assert len(found) >= 4


@pytest.mark.parametrize("chapter", EXERCISES)
def test_a_folder_holds_nothing_but_questions(chapter):
    folder = Path(load_files(chapter)[0].__file__).parent
    others = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    others -= {Path(file.__file__).name for file in load_files(chapter)}
    assert not others, "call a question's file q<number>_<its function>.py"


@every_question
def test_a_question_has_specimens(question):
    file = FILES[question.id]
    right, wrong = getattr(file, "RIGHT", []), getattr(file, "WRONG", [])
    say = f"add answers as others would write them to {Path(file.__file__).name}"
    assert len(right) >= LEAST_RIGHT, f"{say}: RIGHT = [answer, …]"
    assert len(wrong) >= LEAST_WRONG, f"{say}: WRONG = [(mistake id, answer), …]"
    known = {mistake.id for mistake in question.mistakes} | GENERAL
    assert {name for name, _ in wrong} <= known, "WRONG names an unknown mistake"
    assert all(0 <= n < question.points for n, _ in getattr(file, "PARTIAL", []))


@every_question
def test_every_question_knows_four_mistakes_and_says_each_in_one_line(question):
    hints = [mistake.hint for mistake in question.mistakes]
    assert len(hints) >= LEAST_MISTAKES, "add mistakes that learners are likely to make"
    assert len(hints) == len(set(hints))
    assert len({mistake.id for mistake in question.mistakes}) == len(hints)
    for hint in hints:
        assert "\n" not in hint
        assert 30 < len(hint) < 200


def gives_away(hint, secret):
    """Whether a hint holds a word or a piece of code, and not inside a longer word."""
    before = r"(?<![\w./])" if secret[0].isalnum() else ""
    after = r"(?![\w/]|\.\d)" if secret[-1].isalnum() else ""
    return bool(re.search(before + re.escape(secret) + after, hint))


def test_a_hint_gives_away_whole_words_alone():
    assert gives_away("there are 8: four of each", "8")
    assert gives_away("take x[:, :-1]", "[:, :-1]")
    assert not gives_away("1/8 of 18, or 8.5, or 0.8", "8")


@every_question
def test_no_hint_gives_the_answer_away(question):
    for mistake in question.mistakes:
        for secret in getattr(FILES[question.id], "NOT_IN_HINTS", ()):
            if mistake.id != LISTS_THE_WORDS:
                assert not gives_away(mistake.hint, secret), mistake.hint


@every_question
def test_the_inputs_belong_to_the_seed(question):
    def drawn(seed):
        return [case.args for case in question.cases(seed)]

    np.testing.assert_equal(drawn(3), drawn(3))
    if question.arguments:
        with pytest.raises(AssertionError):
            np.testing.assert_equal(drawn(3), drawn(4))


@every_question
def test_the_reference_earns_every_point(question):
    result = judge(question, PUBLIC_SEED, expectations(question, PUBLIC_SEED)[1])
    assert (result.points, result.hint) == (question.points, "")


# ----------------------------------------------------------------------- the specimens


@pytest.mark.slow
@pytest.mark.parametrize(("identifier", "_", "answer"), specimens(right_answers))
def test_a_right_answer_earns_every_point(identifier, _, answer):
    for seed in SEEDS:
        result = grade_answer(identifier, answer, seed, learners=False)
        assert (result.points, result.hint) == (result.max_points, "")


@pytest.mark.slow
@pytest.mark.parametrize(("identifier", "name", "answer"), specimens(wrong_answers))
def test_a_wrong_answer_loses_points_and_gets_its_hint(identifier, name, answer):
    hints = {mistake.id: mistake.hint for mistake in find_question(identifier).mistakes}
    for seed in SEEDS:
        result = grade_answer(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.hint == hints.get(name, result.hint)
        assert result.points < result.max_points


@pytest.mark.slow
@pytest.mark.parametrize(
    ("identifier", "points", "answer"), specimens(partly_right_answers)
)
def test_a_partly_right_answer_keeps_the_points_of_its_parts(
    identifier, points, answer
):
    for seed in SEEDS:
        result = grade_answer(identifier, answer, seed, learners=False)
        assert result.points == points


# ------------------------------------------------------------------------- the lookups


def test_every_chapter_with_questions_has_its_exercise_notebook():
    folder = Path(__file__).parents[2] / "exercises"
    assert sorted(EXERCISES.values()) == sorted(p.stem for p in folder.glob("*.ipynb"))


def test_an_unknown_question_is_refused_by_name():
    with pytest.raises(ValueError, match=r"no question '06.99', expected one of 06.1"):
        find_question("06.99")
    with pytest.raises(ValueError, match="no questions for chapter '99'"):
        find_question("99.1")


# ---------------------------------------------------------------- whatever is handed in


def changed(value, change):
    if isinstance(value, list | dict):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        made = {name: changed(x, change) for name, x in pairs}
        return made if isinstance(value, dict) else list(made.values())
    return change(value)


def filled(number, dtype=np.float32):
    return lambda value: np.full(np.shape(value), number, dtype)


STRANGE = {
    "booleans": filled(True, bool),
    "small whole numbers": filled(255, np.uint8),
    "the smallest whole numbers": filled(-(2**63), np.int64),
    "numbers near the largest": filled(1e308, np.float64),
    "zeros": filled(0),
    "no rows": lambda value: np.zeros((0, *np.shape(value)[1:]), np.float32),
    "one entry": lambda value: np.ones((1,) * np.ndim(value), np.float32),
    "infinity": lambda value: math.inf,
    "a large number": lambda value: 2**63 - 1,
    "text": lambda value: "`<b>",
    "nothing": lambda value: None,
    "lists": lambda value: [[["a", None, {}]], 3],
}


@pytest.mark.slow
@every_question
def test_no_value_stops_the_judge(question):
    cases, right = expectations(question, PUBLIC_SEED)
    for change in STRANGE.values():
        records = [Record(changed(record.value, change)) for record in right]
        for part in question.parts:
            part_is_right(question, part, cases, right, records)
        find_sign(question, cases, records)
    for value in (None, "x", [], {}, [[]] * 3):
        records = [Record(value)] * len(right)
        assert judge(question, PUBLIC_SEED, records).points < question.points


def test_the_judge_wants_one_record_per_case():
    question = find_question("06.1")
    _, right = expectations(question, 0)
    with pytest.raises(ValueError, match="cases, got 1 records"):
        judge(question, 0, right[:1])


# ------------------------------------------------------------------------ experiments

EXPERIMENTS = {name: file for name, file in FILES.items() if file.QUESTION.variants}


def without_types(function):
    """The code of a function as the exercise shows it."""
    _, body = inspect.getsource(function).split(":\n", 1)
    arguments = ", ".join(inspect.signature(function).parameters)
    return f"def {function.__name__}({arguments}):\n{body}".strip()


@pytest.mark.parametrize("identifier", EXPERIMENTS)
def test_an_experiment_hands_out_the_code_that_made_its_numbers(identifier):
    shown = ROOT / "solutions" / f"{EXERCISES[identifier[:2]]}.ipynb"
    cells = [cell.source for cell in read(shown).cells if cell.cell_type == "code"]
    code = without_types(EXPERIMENTS[identifier].RUN)
    assert any(cell.startswith(code) for cell in cells)


@pytest.mark.parametrize("identifier", EXPERIMENTS)
def test_a_run_gives_the_number_of_the_table(identifier):
    """Of one variant, the quickest to check by hand; a name that draws it gets it."""
    file, setting = EXPERIMENTS[identifier], variant(identifier, "Grace Hopper")
    start = time.perf_counter()
    number = file.RUN(**setting)
    assert time.perf_counter() - start < 60
    result = grade_answer(identifier, lambda: ("grace  hopper", number, "?"))
    assert ("the number", 2, 2) in result.parts


@pytest.mark.parametrize("identifier", EXPERIMENTS)
def test_names_draw_different_variants(identifier):
    drawn = [variant(identifier, f"learner {n}") for n in range(60)]
    count = len(EXPERIMENTS[identifier].QUESTION.variants)
    assert len({str(setting) for setting in drawn}) > count / 2


def test_a_variant_needs_a_name_and_an_experiment():
    with pytest.raises(ValueError, match="needs your name"):
        variant("05.6", " your name")
    with pytest.raises(ValueError, match=r"question 06.1 is no experiment"):
        variant("06.1", "Ada")


def test_every_chapter_but_one_has_an_experiment_and_levels_are_words():
    levels = {name: {q.difficulty for q in chapter} for name, chapter in by_chapter()}
    assert all(found <= {"easy", "medium", "hard"} for found in levels.values())
    assert {"06", *(name[:2] for name in EXPERIMENTS)} == set(EXERCISES)


def by_chapter():
    return [(name, [f.QUESTION for f in load_files(name)]) for name in EXERCISES]
