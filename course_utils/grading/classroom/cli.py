"""Grade a folder of submissions: untrusted code in a sandbox, the judgement outside.

    python -m course_utils.grading grade DIR --out grades.csv --seed SECRET
    python -m course_utils.grading merge PART.json … --out grades.csv
    python -m course_utils.grading gradescope 06 --out autograder.zip --seed SECRET

The grade is a function of the submission and the seed alone. `COURSE_GRADING_SEED` in
the environment stands in for --seed.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from course_utils.grading import questions as question_files
from course_utils.grading.classroom import gradebook
from course_utils.grading.classroom.submission_grader import examine, judge_all
from course_utils.grading.classroom.submissions import (
    Submission,
    find_submissions,
    read_notebook,
)
from course_utils.grading.editions import current_id
from course_utils.grading.questions import EXERCISES, chapter_questions
from course_utils.grading.questions.model import Question
from course_utils.grading.sandbox.sandbox import (
    Isolation,
    Limits,
    SandboxError,
    sandbox_problem,
)


def extra_parts(folder: Path | None) -> dict[str, tuple[Any, ...]]:
    """Load the instructor's own parts: each .py file there holds a dictionary PARTS."""
    parts: dict[str, tuple[Any, ...]] = {}
    for path in sorted(folder.glob("*.py")) if folder else ():
        spec = importlib.util.spec_from_file_location(f"extra_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ValueError(f"{path} cannot be loaded as Python.")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, more in module.PARTS.items():
            name = current_id(name, print)
            parts[name] = (*parts.get(name, ()), *more)
    if folder and not parts:
        raise ValueError(
            f"{folder} holds no extra tests, expected .py files with a dictionary "
            "PARTS from question to parts."
        )
    return parts


def all_questions(extra: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Question, ...]]:
    """Return the questions of every chapter, the instructor's parts added."""
    return {
        chapter: tuple(
            dataclasses.replace(q, parts=(*q.parts, *extra.get(q.id, ())))
            for q in chapter_questions(chapter)
        )
        for chapter in EXERCISES
    }


def source_digest(extra: Path | None) -> str:
    """Identify the questions: another version of them is another run."""
    files = sorted(Path(question_files.__file__).parent.rglob("*.py"))
    files += sorted(extra.glob("*.py")) if extra else []
    return gradebook.digest(*(path.read_text(encoding="utf-8") for path in files))


def grade_one(
    submission: Submission,
    questions: dict[str, tuple[Question, ...]],
    secret: str,
    limits: Limits,
    isolation: Isolation,
) -> tuple[Any, ...]:
    """Run one submission; what it takes to judge it is returned."""
    notebook = read_notebook(submission.path)
    changed = ["changed while it was graded"] * (notebook.digest != submission.digest)
    asked = questions.get(submission.chapter, ())
    records, flags = (
        examine(notebook, asked, secret, limits, isolation) if asked else ({}, [])
    )
    return submission, notebook, asked, records, [*changed, *notebook.flags, *flags]


def graded_rows(
    submissions: list[tuple[str, Submission]],
    questions: dict[str, tuple[Question, ...]],
    secret: str,
    limits: Limits,
    jobs: int,
    isolation: Isolation,
) -> Iterator[gradebook.Row]:
    """Yield the rows as they are ready: workers run side by side, judged here."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = {
            pool.submit(
                grade_one, submission, questions, secret, limits, isolation
            ): key
            for key, submission in submissions
        }
        try:
            for future in as_completed(futures):
                submission, notebook, asked, records, flags = future.result()
                results, more = judge_all(notebook, asked, secret, records)
                yield gradebook.row_of(
                    submission, futures[future], results, [*flags, *more]
                )
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def grade(options: argparse.Namespace) -> None:
    """Grade a folder, or one shard of it; an interrupted run goes on where it was."""
    from tqdm import tqdm

    secret = seed_of(options)
    problem = None if options.unsafe else sandbox_problem()
    if problem:
        raise ValueError(problem)
    shard = gradebook.read_shard(options.shard)
    limits = Limits(seconds=options.time_limit, memory=options.memory << 20)
    questions = all_questions(extra_parts(options.extra_tests))
    settings = [secret, str(limits), source_digest(options.extra_tests)]
    run = gradebook.digest(*settings, str(options.unsafe))
    submissions = find_submissions(options.folder, options.exercise)
    keyed = []
    for submission in submissions:
        name = os.fsencode(submission.path.relative_to(options.folder)).hex()
        content = read_notebook(submission.path).digest
        key = gradebook.digest(run, name, content)
        keyed.append((key, dataclasses.replace(submission, digest=content)))
    if not keyed:
        raise ValueError(
            f"there is no notebook (.ipynb) in {options.folder}; give the folder that "
            "holds the submissions."
        )
    mine = keyed[shard[0] - 1 :: shard[1]]
    journal = options.out.with_name(f"{options.out.name}.journal")
    earlier = gradebook.read_journal(journal)
    rows = [earlier[key] for key, _ in mine if key in earlier]
    todo = [(key, submission) for key, submission in mine if key not in earlier]
    if rows:
        print(f"going on after an interruption: {len(rows)} of {len(mine)} are graded")
    isolation: Isolation = "none" if options.unsafe else "bubblewrap"
    ready = graded_rows(todo, questions, secret, limits, options.jobs, isolation)
    for row in tqdm(ready, total=len(todo), unit="submission", disable=options.quiet):
        gradebook.append_row(journal, row)
        rows.append(row)
    book = {
        "run": run,
        "shard": list(shard),
        "submissions": len(keyed),
        "listing": gradebook.digest(*(key for key, _ in keyed)),
        "rows": rows,
    }
    finish(options.out, book)
    journal.unlink(missing_ok=True)


def finish(out: Path, book: gradebook.Book) -> None:
    """Write table, JSON and reports, and say where they are."""
    from course_utils.grading.classroom.reports import write_reports

    gradebook.write_book(out, book)
    folder = write_reports(out, book["rows"])
    rows = book["rows"]
    flagged = sum(bool(row["flags"]) for row in rows)
    print(
        f"{len(rows)} submissions graded, {flagged} flagged: {out}, "
        f"{out.with_suffix('.json')}, {folder}/index.html"
    )


def merge(options: argparse.Namespace) -> None:
    """Join the .json files of all shards into one table."""
    books = [(str(path), gradebook.read_book(path)) for path in options.parts]
    finish(options.out, gradebook.merged(books))


def seed_of(options: argparse.Namespace) -> str:
    """The secret of the hidden inputs, from the option or the environment."""
    secret = options.seed or os.environ.get("COURSE_GRADING_SEED", "")
    if not secret:
        raise ValueError(
            "no seed: give --seed (or set COURSE_GRADING_SEED) to any text that "
            "students cannot guess, and keep it; the same text gives the same grades."
        )
    return secret


def gradescope(options: argparse.Namespace) -> None:
    """Write the zip that Gradescope takes as an autograder."""
    from course_utils.grading.classroom.gradescope import write_bundle

    write_bundle(options.chapter, options.out, seed_of(options))
    print(f"{options.out}: upload it as the autograder of the assignment")


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    assert __doc__
    main = argparse.ArgumentParser(
        prog="python -m course_utils.grading",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = main.add_subparsers(required=True)
    one = commands.add_parser("grade", help="grade a folder of submissions")
    one.add_argument("folder", type=Path)
    one.add_argument("--out", type=Path, default=Path("grades.csv"))
    one.add_argument("--seed", help="secret text that decides the hidden inputs")
    one.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    one.add_argument("--shard", default="1/1", help="grade only share i of n: 2/8")
    one.add_argument("--extra-tests", type=Path, help="folder with your own parts")
    one.add_argument("--exercise", default="", choices=["", *EXERCISES])
    one.add_argument(
        "--time-limit", type=float, default=10, help="seconds per question"
    )
    one.add_argument(
        "--memory", type=int, default=4096, help="megabytes per submission"
    )
    one.add_argument(
        "--unsafe", action="store_true", help="no sandbox: trusted code only"
    )
    one.add_argument("--quiet", action="store_true", help="no progress bar")
    one.set_defaults(run=grade)
    two = commands.add_parser("merge", help="join the .json files of all shards")
    two.add_argument("parts", type=Path, nargs="+")
    two.add_argument("--out", type=Path, default=Path("grades.csv"))
    two.set_defaults(run=merge)
    three = commands.add_parser("gradescope", help="make a Gradescope autograder")
    three.add_argument("chapter", choices=list(EXERCISES))
    three.add_argument("--out", type=Path, default=Path("autograder.zip"))
    three.add_argument("--seed", help="secret text that decides the hidden inputs")
    three.set_defaults(run=gradescope)
    return main


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, OSError, SandboxError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0
