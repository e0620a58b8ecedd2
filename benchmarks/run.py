"""`make bench`: measure, print the table, compare with the last run, draw, keep.

    python -m benchmarks.run                  all areas; some twenty minutes
    python -m benchmarks.run --quick          small sizes and few rounds: two minutes
    python -m benchmarks.run --only gpt loss  these areas; the others stay as they are

A full run writes `benchmarks/results.json`, the figure and the book's page; a quick one
writes nothing. The exit code is 1 where a row of a full run is over its target.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # nothing of the profiler's own

import torch

from benchmarks import (
    area_attention,
    area_course,
    area_generation,
    area_gpt,
    area_growth,
    area_loss,
    area_translation,
)
from benchmarks.page import write_page
from benchmarks.results import AREAS, Row, load, merged, missed, save, slower, table
from benchmarks.tasks import Plan, Task
from course_utils.training.progress import Progress

TASKS: dict[str, Callable[[Plan], list[Task]]] = {
    "attention": area_attention.tasks,
    "gpt": area_gpt.tasks,
    "loss": area_loss.tasks,
    "translation": area_translation.transformer_tasks,
    "generation": area_generation.tasks,
    "bahdanau": area_translation.recurrent_tasks,
    "course": area_course.tasks,
    "growth": area_growth.tasks,
}


def measure(areas: list[str], plan: Plan) -> list[Row]:
    """Run the tasks of some areas one after the other, with a bar."""
    tasks = [task for area in areas for task in TASKS[area](plan)]
    whole = max(1, round(sum(task.seconds for task in tasks)))
    rows: list[Row] = []
    before = 0.0
    with Progress(whole) as bar:
        for task in tasks:

            def advance(share: float, task: Task = task, start: float = before) -> None:
                bar.update(int(start + share * task.seconds), task.label)

            plan.advance = advance
            advance(0.0)
            rows += task.run(plan)
            before += task.seconds
        bar.close()
    return rows


def apart(area: str, plan: Plan) -> list[Row]:
    """Measure an area in a process of its own, where the system can fork one.

    What a process has allocated and let go before decides what memory costs it later:
    after the areas before it, one token with a cache took twice the ratio it has alone.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        return measure([area], plan)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=lambda: there.send(measure([area], plan)))
    child.start()
    there.close()
    try:
        rows: list[Row] = here.recv()
    except EOFError:
        raise SystemExit(f"{area} was not measured; above stands why.") from None
    finally:
        child.join()
    return rows


def report(rows: list[Row], before: list[Row]) -> None:
    """Print the table, then what became slower and what is over its target."""
    print(table(rows))
    for title, found in (
        ("Slower than the spread explains", slower(before, rows)),
        ("Over target", missed(rows)),
    ):
        print(f"\n{title}: {'nothing' if not found else len(found)}")
        for line in found:
            print(f"  {line}")


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run")
    parser.add_argument(
        "--quick", action="store_true", help="two minutes, writes nothing"
    )
    parser.add_argument("--only", nargs="+", choices=list(AREAS), metavar="AREA")
    parser.add_argument("--rounds", type=int, help="rounds of each comparison")
    parser.add_argument("--no-save", action="store_true", help="write nothing")
    given = parser.parse_args(arguments)
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds takes a whole number, 1 or more")
    return given


def main(arguments: list[str] | None = None) -> int:
    """Measure what was asked for."""
    given = options(arguments)
    torch.set_num_threads(1)
    plan = Plan(given.quick, given.rounds or (5 if given.quick else 15))
    rows = [row for area in given.only or AREAS for row in apart(area, plan)]
    before = load()
    report(rows, before)
    if given.quick or given.no_save:
        return 0
    save(merged(before, rows))
    write_page(load())
    return 1 if missed(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
