"""The learner's side of the exercises: `check` an answer, look at your `progress`.

`check("06.1", attention)` runs an answer on inputs of a public seed and says at once
how many points it earns and, when it is wrong, which misconception it looks like.
"""

from __future__ import annotations

import html
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from course_utils.grading.answer_runner import Failure, Record
from course_utils.grading.contrast import right_when, sentence
from course_utils.grading.diagnosis import find_departure, judge, wrong_outputs
from course_utils.grading.editions import current_id
from course_utils.grading.guard import (
    SECONDS,
    Heard,
    InterruptedCheck,
    TimeUpError,
    memory_limit,
    time_limit,
)
from course_utils.grading.questions import EXERCISES, chapter_questions, find_question
from course_utils.grading.questions.experiment import PLACEHOLDERS, index_of
from course_utils.grading.questions.model import Case, Question
from course_utils.grading.scoring import Result, ask, expectations, fit, trace

PUBLIC_SEED = "public"
PROGRESS_FILE = ".course_progress.json"
UNNAMED = (
    "mutant",
    "independent",
    "values",
    "slip",
    "not_finite",
)  # what a look at the way may explain better
DONE, PARTLY, MISSING = "#1a7f37", "#9a6700", "#cf222e"  # each 4.5:1 on white


def run_cases(
    question: Question,
    answer: Any,
    cases: list[Case],
    ask_one: Callable[..., Record],
    heard: Heard,
) -> list[Record]:
    """Call an answer with every case, for so long and no longer."""
    records: list[Record] = []
    try:
        with memory_limit(), time_limit(SECONDS):
            for number, case in enumerate(cases):
                if number and not question.arguments:  # the same call again
                    records.append(records[0])
                    continue
                with heard.call(first=not number):
                    record = ask_one(question, answer, case)
                records.append(record)
    except TimeUpError:
        late = Record(failure=Failure("time"))
        records += [late] * (len(cases) - len(records))
    return records


def grade_answer(
    identifier: str,
    answer: Any,
    seed: int | str = PUBLIC_SEED,
    learners: bool = True,
    heard: Heard | None = None,
) -> Result:
    """Run an answer on a seed's inputs and judge what came of it.

    A learner's answer may not be the package's own. One whose fault has no name yet is
    run again, to see what it computes on the way; what is said of that must hold for
    other inputs as well. `heard` takes what the answer prints.
    """
    question = find_question(identifier)

    def run_watched(question: Question, answer: Any, case: Case) -> Record:
        return ask(question, answer, case, learners)

    cases, _ = expectations(question, seed)
    records = run_cases(question, answer, cases, run_watched, heard or Heard())
    can_trace = callable(answer) and bool(question.arguments)
    result = judge(question, seed, records, mutate=not can_trace)
    if result.misconception == "loop":  # or it filled a cache: see the next time
        records = run_cases(question, answer, cases, run_watched, Heard())
        result = judge(question, seed, records, mutate=not can_trace)
    kind = result.misconception
    if not (can_trace and (kind in UNNAMED or kind.startswith("as "))):
        return result
    said, simple = set(), []
    for inputs in (seed, f"{seed}, again"):
        cases, right = expectations(question, inputs)
        traced = run_cases(question, answer, cases, trace, Heard())
        said.add(find_departure(question, inputs, traced))
        simple.append(conditions(question, answer, cases, right, traced))
        if inputs == seed:
            programs = [record.program for record in traced]
    records = [replace(old, program=new) for old, new in zip(records, programs)]
    result = judge(question, seed, records, said.pop() if len(said) == 1 else "")
    both = [words for words in simple[0] if words in simple[1]]
    if result.misconception in ("values", "leaves") and "solution gives" not in (
        result.hint
    ):
        hint = f"{result.hint} {sentence(both)}".strip()
        return replace(result, hint=hint)
    return result


def conditions(
    question: Question,
    answer: Any,
    cases: list[Case],
    right: list[Record],
    records: list[Record],
) -> list[str]:
    """When a wrong answer is right: see `contrast`; nothing if time runs out."""
    fits = [fit(question, *pair) for pair in zip(records, right)]
    wrong = [x.case for x in wrong_outputs(question, cases, right, fits)]
    wrong = [number for number in wrong if cases[number].part]
    try:
        with memory_limit(), time_limit(SECONDS), Heard().call(first=False):
            return right_when(question, answer, cases, wrong, ask_plainly)
    except TimeUpError:
        return []


def ask_plainly(question: Question, answer: Any, case: Case) -> Record:
    """Run an answer on one case, its value written as the solution writes its own."""
    expected = ask(question, question.reference, case)
    return fit(question, ask(question, answer, case), expected)


def check(identifier: str, answer: Any) -> None:
    """Say how many points an answer earns and, if it is wrong, which mistake it holds.

    The result is kept in `.course_progress.json` beside the notebook, for `progress`.
    """
    identifier, heard = current_id(identifier, print), Heard()
    try:
        result = grade_answer(identifier, answer, heard=heard)
    except KeyboardInterrupt:
        raise InterruptedCheck(find_question(identifier).answer) from None
    show(as_text(result), as_html(result))
    heard.show()
    remember(result)


def variant(identifier: str, name: str) -> dict[str, Any]:
    """The setting of an experiment that belongs to a learner's name."""
    question = find_question(current_id(identifier, print))
    if not question.variants:
        raise ValueError(
            f"question {question.id} is no experiment and has no variants; call "
            "`variant` with the number of the question that tells you to."
        )
    if name.strip().casefold() in PLACEHOLDERS:
        raise ValueError("`variant` needs your name: it draws the setting by it.")
    return dict(question.variants[index_of(name, len(question.variants))])


# -------------------------------------------------------------------------- showing


def show(text: str, markup: str) -> None:
    """Show HTML in a notebook, with its text beside it; print the text elsewhere."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        from IPython.display import display

        display({"text/html": markup, "text/plain": text}, raw=True)
    else:
        print(text)


def count(points: int, most: int) -> str:
    """Say points in words: "2 of 4 points"."""
    return f"{points} of {most} point{'s' if most != 1 else ''}"


def headline(result: Result) -> str:
    """Put a result in one line: mark, question, points."""
    mark = "✓" if result.points == result.max_points else "○"
    mark = "✗" if result.answered and not result.points else mark
    title = find_question(result.question).title
    return (
        f"{mark} {result.question} {title}: {count(result.points, result.max_points)}"
    )


def details(result: Result) -> list[str]:
    """Say what is right and what is missing, then the hint."""
    if not result.answered or result.points == result.max_points:
        return [result.hint] if result.hint else []
    right = [name for name, earned, _ in result.parts if earned]
    lines = [f"already right: {', '.join(right)}"] if right else []
    return [*lines, result.hint]


def as_text(result: Result) -> str:
    """Write a result for a terminal."""
    return "\n".join([headline(result), *(f"  {line}" for line in details(result))])


def marked_up(text: str) -> str:
    """Escape a text for HTML; what stands in backticks becomes code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def colour(points: int, most: int) -> str:
    """The colour of a score: done, partly done, missing."""
    return DONE if points == most else PARTLY if points else MISSING


def as_html(result: Result) -> str:
    """Write a result for a notebook, in the page's own colours, light or dark."""
    edge = colour(result.points, result.max_points) if result.answered else "#6e7781"
    lines = "".join(f"<br>{marked_up(line)}" for line in details(result))
    return (
        f'<div role="status" style="border-left: 4px solid {edge}; '
        f'padding: 0.2em 0.8em; line-height: 1.5">'
        f"<strong>{marked_up(headline(result))}</strong>{lines}</div>"
    )


# ------------------------------------------------------------------------- progress


def load_progress(path: Path) -> dict[str, dict[str, int]]:
    """Read what was kept; a file that cannot be read is set aside, not lost."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))["questions"]
        # What was answered under an old id counts unless it was answered again since.
        names = sorted(kept, key=lambda name: current_id(name) == name)
        return {
            current_id(name): {
                "points": int(kept[name]["points"]),
                "answered": kept[name]["answered"],
            }
            for name in names
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        aside = path.with_name(f"{path.name}.unreadable")
        number = 1
        while aside.exists():
            number += 1
            aside = path.with_name(f"{path.name}.unreadable-{number}")
        try:
            path.rename(aside)
        except OSError:
            print(f"{path.name} could not be read ({error}); progress starts anew.")
            return {}
        print(
            f"{path.name} could not be read ({error}); it is kept as {aside.name} and "
            "progress starts anew: run the checks again to fill it."
        )
        return {}


def save_progress(path: Path, questions: dict[str, dict[str, int]]) -> None:
    """Write the file whole or not at all."""
    text = json.dumps({"questions": questions}, indent=1, sort_keys=True) + "\n"
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def remember(result: Result) -> None:
    """Keep the newest result of a question in the working directory."""
    path = Path.cwd() / PROGRESS_FILE
    questions = load_progress(path)
    questions[result.question] = {
        "points": result.points,
        "answered": result.answered,
    }
    try:
        save_progress(path, questions)
    except OSError as error:
        print(f"progress is not kept: {path} cannot be written ({error.strerror}).")


def progress(chapter: str | None = None) -> None:
    """Show what is done, question by question, in one chapter or in all begun."""
    kept = load_progress(Path.cwd() / PROGRESS_FILE)
    begun = {name.partition(".")[0] for name in kept}
    chapters = (
        [chapter] if chapter else sorted(begun & set(EXERCISES)) or list(EXERCISES)
    )
    for number in chapters:
        rows = [
            (
                q.id,
                q.title,
                min(kept.get(q.id, {}).get("points", 0), q.points),
                q.points,
            )
            for q in chapter_questions(number)
        ]
        show(progress_text(number, rows), progress_html(number, rows))


def progress_text(chapter: str, rows: list[tuple[str, str, int, int]]) -> str:
    """Draw the progress of a chapter with characters."""
    earned, most = sum(row[2] for row in rows), sum(row[3] for row in rows)
    lines = [f"Chapter {chapter}: {count(earned, most)}"]
    for name, title, points, full in rows:
        bar = "█" * points + "░" * (full - points)
        lines.append(f"  {name} {bar:<5} {points}/{full} {title}")
    return "\n".join([*lines, f"  {what_next(chapter, rows)}"])


def what_next(chapter: str, rows: list[tuple[str, str, int, int]]) -> str:
    """Say what to do next, the easiest first, and about how long the rest takes."""
    todo = [row for row in rows if row[2] < row[3]]
    if todo:
        minutes = sum(
            minutes_left(name, points, full) for name, _, points, full in todo
        )
        name, title, points, full = min(todo, key=lambda row: effort(row[0]))
        question = find_question(name)
        step = question.next_step
        if points:
            step = f"{count(full - points, full)} left; its check says what is missing."
        time = f"({question.difficulty}, {minutes_left(name, points, full)} minutes)"
        rest = f" About {minutes} minutes are left in this chapter."
        return f"next: {name} {title} {time}: {step}{rest}"
    later = [number for number in EXERCISES if number > chapter]
    return "all done: well worked!" + (f" Next: chapter {later[0]}." if later else "")


def effort(name: str) -> tuple[int, float]:
    """What to sort questions by: easy ones first, then by their numbers."""
    levels = ("easy", "medium", "hard")
    return levels.index(find_question(name).difficulty), float(name[3:])


def minutes_left(name: str, points: int, full: int) -> int:
    """The minutes that a question still takes, by the points that are missing."""
    return math.ceil(find_question(name).minutes * (full - points) / full)


def progress_html(chapter: str, rows: list[tuple[str, str, int, int]]) -> str:
    """Draw the progress of a chapter: a bar for each question, filled as earned."""
    first, *_, last = progress_text(chapter, rows).splitlines()
    frame = "flex:none;width:9rem;height:1rem;border:1px solid;border-radius:3px"
    line = "display:flex;flex-wrap:wrap;gap:0 .6rem;align-items:center;margin:.35rem 0"
    bars = [
        f'<li style="{line}"><span style="width:2.6rem">{name}</span>'
        f'<span aria-hidden="true" style="{frame}"><span style="display:block;'
        f'height:100%;width:{points / full:.0%};background:{colour(points, full)}">'
        f'</span></span><span style="flex:1 1 12rem">{points}/{full} '
        f"{html.escape(title)}</span></li>"
        for name, title, points, full in rows
    ]
    return (
        f'<figure style="margin: 0"><figcaption><strong>{first}</strong></figcaption>'
        f'<ul style="list-style:none;margin:0;padding:0">{"".join(bars)}</ul>'
        f"<p>{html.escape(last.strip())}</p></figure>"
    )
