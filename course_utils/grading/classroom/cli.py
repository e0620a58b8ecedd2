"""Grade a folder of submissions: untrusted code in a sandbox, the judgement outside.

    python -m course_utils.grading grade DIR --out grades.csv --seed SECRET
    python -m course_utils.grading gradescope 06 --out autograder.zip --seed SECRET
    python -m course_utils.grading nbgrader solutions/06_….ipynb --out source

The points are a function of the submission and the seed alone. `COURSE_GRADING_SEED` in
the environment stands in for --seed. Graded once, a submission is graded again only if
it, the questions, the seed or the limits have changed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from course_utils.grading.classroom import engine, gradebook
from course_utils.grading.classroom.class_file import read_class
from course_utils.grading.classroom.extra_tests import questions_of, read_extra
from course_utils.grading.classroom.layouts import find_in_all
from course_utils.grading.questions import EXERCISES
from course_utils.grading.sandbox.sandbox import (
    MEGABYTE,
    Limits,
    SandboxError,
    sandbox_problem,
)
from course_utils.grading.scoring import Result

LEAST_MEMORY = 1024  # megabytes: PyTorch alone wants most of them


def results_file(out: Path) -> Path:
    """Where the results are kept that belong to a table."""
    return out.with_name(f"{out.stem}.results.jsonl")


@contextmanager
def only_one(out: Path) -> Iterator[None]:
    """Refuse a second run into the same files at the same time."""
    import fcntl  # not on Windows, where the sandbox is not either

    with results_file(out).open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ValueError(
                f"another run is writing {out} just now; give this one another --out."
            ) from error
        yield


def grade(options: argparse.Namespace) -> None:
    """Grade what has not been graded yet, and write every table and page anew."""
    settings = settings_of(options)
    about = read_class(options.class_file)
    folders = " ".join(map(str, options.folders))
    if any(options.out.resolve().is_relative_to(x.resolve()) for x in options.folders):
        raise ValueError(
            f"--out is {options.out}, among the submissions: choose another folder."
        )
    refuse_overwriting(options.out, about)
    found = find_in_all(options.folders, options.exercise, options.skip_unknown)
    if not found:
        raise ValueError(
            f"there is no notebook (.ipynb) in {folders}; give the folder that "
            "holds the submissions."
        )
    blank = {c: blank_result(c, settings) for c in {x.chapter for x in found}}
    points = {chapter: row["max_score"] for chapter, row in blank.items()}
    gradebook.make_rows([(x, blank[x.chapter]) for x in found], about, points)
    with only_one(options.out):
        results = graded(found, settings, options)
        pairs = [(submission, results[i]) for i, submission in enumerate(found)]
        rows, others = gradebook.make_rows(pairs, about, points)
        finish(options.out, rows, about)
    for chapter in sorted(gradebook.untimed(rows, about)):
        print(f"{chapter}: no submission has a timestamp.txt; lateness is not counted")
    if others:
        print(f"{others} corrections are of exercises that are not in {folders}")


def refuse_overwriting(out: Path, about: gradebook.Class) -> None:
    """Refuse to write a table over a file that the class was read from."""
    ends = [".csv", ".json", "_totals.csv", "_canvas.csv", ".results.jsonl"]
    ends += [f"_moodle_{chapter}.csv" for chapter in EXERCISES]
    written = {out.with_name(out.stem + end).resolve() for end in ends}
    for path in about.files:
        if path.resolve() in written:
            raise ValueError(
                f"--out is {out}, which would overwrite {path}: rename it."
            )


def blank_result(chapter: str, settings: engine.Settings) -> gradebook.Row:
    """The result of someone who answered nothing: to try the class file before all."""
    questions = questions_of(chapter, settings.extra)
    results = [Result(q.id, 0, q.points, ()) for q in questions]
    return gradebook.result_row("", results, [])


def graded(found: list, settings: engine.Settings, options: argparse.Namespace) -> dict:
    """Return the result of every submission: kept, or computed now and kept."""
    from tqdm import tqdm

    store = results_file(options.out)
    kept, damaged = gradebook.read_results(store)
    if damaged:
        print(f"{store} has {damaged} damaged lines; what they held is graded again")
    results, tasks = engine.resumed(found, kept, settings)
    if results:
        print(f"{len(results)} of {len(found)} are graded already and have not changed")
    if not tasks:
        return results
    if options.scheduler:
        ready = engine.rows_on_cluster(tasks, settings, options.scheduler)
    else:
        problem = None if options.unsafe else sandbox_problem()
        if problem:
            raise ValueError(problem)
        ready = engine.rows_here(tasks, settings, options.jobs)
    bar = tqdm(ready, total=len(tasks), unit="submission", disable=options.quiet)
    for i, row in bar:
        gradebook.append_result(store, row)
        results[i] = row
    return results


def finish(out: Path, rows: list[gradebook.Row], about: gradebook.Class) -> None:
    """Write tables, JSON and reports, and say where they are."""
    from course_utils.grading.classroom.exports import write_tables
    from course_utils.grading.classroom.reports import write_reports

    folder = write_reports(out, rows)
    whole = json.dumps({"rows": rows}, indent=1) + "\n"
    gradebook.write_whole(out.with_suffix(".json"), whole)
    tables = write_tables(out, rows, about.roster)
    handed_in = sum(bool(row["key"]) for row in rows)
    flagged = sum(bool(row["flags"]) for row in rows)
    where = [*map(str, tables), f"{folder}/index.html"]
    print(f"{handed_in} submissions, {flagged} rows flagged: {', '.join(where)}")
    missing = [row["student"] for row in rows if not row["key"]]
    if missing:
        print(f"nothing handed in: {len(missing)} ({', '.join(missing[:5])} …)")


# ------------------------------------------------------------------------------ options


def seed_of(options: argparse.Namespace) -> str:
    """The secret of the hidden inputs, from the option or the environment."""
    secret = options.seed or os.environ.get("COURSE_GRADING_SEED", "")
    if not secret:
        raise ValueError(
            "no seed: give --seed (or set COURSE_GRADING_SEED) to any text that "
            "students cannot guess, and keep it; the same text gives the same grades."
        )
    return str(secret)


def limits_of(options: argparse.Namespace) -> Limits:
    """The limits, or a sentence about such as nothing could be graded with."""
    seconds, memory = options.time_limit, options.memory
    if not (math.isfinite(seconds) and 0.5 <= seconds <= 3600):
        raise ValueError(
            f"--time-limit is {seconds:g}, expected 0.5 to 3600 seconds per question."
        )
    if not LEAST_MEMORY <= memory <= 1 << 20:
        raise ValueError(
            f"--memory is {memory}, expected {LEAST_MEMORY} to {1 << 20} megabytes: "
            "PyTorch alone wants most of the least."
        )
    return Limits(seconds=float(seconds), memory=memory * MEGABYTE)


def settings_of(options: argparse.Namespace) -> engine.Settings:
    """Check the options that decide a grade, before anything is run."""
    if getattr(options, "jobs", 1) < 1:
        raise ValueError(f"--jobs is {options.jobs}, expected 1 or more.")
    if options.out.suffix != ".csv":
        raise ValueError(
            f"--out is {options.out}, expected a name that ends in .csv: the other "
            "files get their names from it."
        )
    if options.out.is_dir():
        raise ValueError(f"--out is {options.out}, a folder: name a file in it.")
    if not options.out.parent.is_dir():
        raise ValueError(f"--out is {options.out}: there is no such folder.")
    return engine.Settings(
        seed_of(options),
        limits_of(options),
        "none" if options.unsafe else "bubblewrap",
        read_extra(options.extra_tests),
    )


def gradescope(options: argparse.Namespace) -> None:
    """Write the zip that Gradescope takes as an autograder."""
    from course_utils.grading.classroom.gradescope import write_bundle

    extra = read_extra(options.extra_tests)
    limits = limits_of(options)
    write_bundle(options.chapter, options.out, seed_of(options), limits, extra)
    print(f"{options.out}: upload it as the autograder of the assignment")


def nbgrader(options: argparse.Namespace) -> None:
    """Write exercises as nbgrader wants its sources."""
    from course_utils.grading.classroom.nbgrader import write_source

    for solution in options.solutions:
        print(write_source(solution, options.out))


def add_limits(command: argparse.ArgumentParser) -> None:
    """Add what `grade` and `gradescope` have in common."""
    command.add_argument("--seed", help="secret text that decides the hidden inputs")
    command.add_argument("--extra-tests", type=Path, help="folder with your own parts")
    command.add_argument(
        "--time-limit", type=float, default=10, help="seconds per question"
    )
    command.add_argument(
        "--memory", type=int, default=4096, help="megabytes per submission"
    )


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
    one.add_argument("folders", type=Path, nargs="+", metavar="folder")
    one.add_argument("--out", type=Path, default=Path("grades.csv"))
    add_limits(one)
    one.add_argument(
        "--class", type=Path, dest="class_file", help="roster, deadlines, corrections"
    )
    one.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    one.add_argument("--scheduler", help="grade on a Dask cluster: tcp://host:8786")
    one.add_argument("--exercise", default="", choices=["", *EXERCISES])
    one.add_argument(
        "--skip-unknown", action="store_true", help="grade the rest of a folder"
    )
    one.add_argument(
        "--unsafe", action="store_true", help="no sandbox: trusted code only"
    )
    one.add_argument("--quiet", action="store_true", help="no progress bar")
    one.set_defaults(run=grade)
    two = commands.add_parser("gradescope", help="make a Gradescope autograder")
    two.add_argument("chapter", choices=list(EXERCISES))
    two.add_argument("--out", type=Path, default=Path("autograder.zip"))
    add_limits(two)
    two.set_defaults(run=gradescope)
    three = commands.add_parser("nbgrader", help="write sources for nbgrader")
    three.add_argument("solutions", type=Path, nargs="+", help="solutions/06_….ipynb")
    three.add_argument("--out", type=Path, default=Path("source"))
    three.set_defaults(run=nbgrader)
    return main


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, OSError, SandboxError) as error:
        said = str(error)
        if isinstance(error, OSError) and error.filename:
            said = f"{error.filename}: {error.strerror}."
        print(f"error: {said}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "interrupted: tables and pages are those of the last whole run; the same "
            "command goes on from here",
            file=sys.stderr,
        )
        return 130
    return 0
