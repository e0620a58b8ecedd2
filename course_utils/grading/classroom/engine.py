"""Compute the results of submissions: side by side here, or on a Dask cluster.

One function, `grade_text`, does all the work on one submission, wherever it runs; what
it needs and what it gives are plain values. Who ran out of time among others is tried
once more, alone, before it costs a point.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

import course_utils
from course_utils.grading.classroom import gradebook
from course_utils.grading.classroom.extra_tests import questions_of
from course_utils.grading.classroom.submission_grader import examine, judge_all
from course_utils.grading.classroom.submissions import (
    Notebook,
    Submission,
    read_notebook,
)
from course_utils.grading.sandbox.absent import PARSING
from course_utils.grading.sandbox.replayer import replayer
from course_utils.grading.sandbox.sandbox import Isolation, Limits, sandbox_problem

PACKAGE = Path(course_utils.__file__).parent
JUDGING = PARSING  # the reference draws random numbers of the whole process, and parses
DEFAULTS = Limits()
# what in this folder decides a grade or a flag
DECIDING = ("programs.py", "submission_grader.py", "submissions.py")
WAITING = 3  # submissions that wait for each worker
CONNECTING = 20  # seconds for a scheduler to answer


@dataclass(frozen=True)
class Settings:
    """All that a grade depends on beside the submission."""

    secret: str
    limits: Limits = DEFAULTS
    isolation: Isolation = "bubblewrap"
    extra: tuple[tuple[str, str], ...] = ()  # names and texts of the extra tests

    def run_of(self, chapter: str) -> str:
        """Name the settings by a fingerprint; other questions are another run."""
        limits = f"{self.limits.seconds:g} s, {self.limits.memory} bytes"
        more = [text for pair in self.extra for text in pair]
        known = [self.secret, limits, self.isolation, sources_digest(chapter)]
        return gradebook.digest(*known, torch.__version__, *more)

    def key_of(self, chapter: str, content: str) -> str:
        """The key of a result: settings, exercise, and what was handed in."""
        return gradebook.digest(self.run_of(chapter), chapter, content)


@lru_cache
def sources_digest(chapter: str) -> str:
    """Identify the code that decides a chapter's grades."""
    pieces = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).parts
        elsewhere = place[0] == "display" or place[:2] == ("grading", "classroom")
        other = any(re.match(rf"ch(?!{chapter})\d\d_", name) for name in place)
        decides = path.name in DECIDING
        if decides or not (elsewhere or other):
            pieces += ["/".join(place), path.read_text(encoding="utf-8")]
    return gradebook.digest(*pieces)


@contextmanager
def judging() -> Iterator[None]:
    """Judge one at a time, on one thread: on small matrices others only wait."""
    with JUDGING:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def grade_text(
    notebook: Notebook, chapter: str, settings: Settings, alone: bool = False
) -> gradebook.Row:
    """Grade one submission; the row says `again` if it ran out of time."""
    limits = settings.limits.alone() if alone else settings.limits
    asked = questions_of(chapter, settings.extra)
    found = examine(notebook, asked, settings.secret, limits, settings.isolation)
    if found.timed_out and not alone:
        return {"again": True}
    by = replayer(settings.limits, settings.isolation)
    with judging():
        results, more = judge_all(notebook, asked, settings.secret, found, by)
    key = settings.key_of(chapter, notebook.digest)
    flags = [*notebook.flags, *found.flags, *more]
    return gradebook.result_row(key, results, flags, found.notes)


# ------------------------------------------------------------------------------ engines

Task = tuple[int, Submission]
Done = Iterator[tuple[int, gradebook.Row]]


def in_turn(
    tasks: Iterable[Task],
    submit: Callable[[Submission, bool], Any],
    next_done: Callable[[dict[Any, Task]], tuple[Any, gradebook.Row]],
    most: int,
) -> Done:
    """Keep some tasks running; then try those that ran out of time, one at a time."""
    running: dict[Any, Task] = {}
    again: list[Task] = []
    waiting = iter(tasks)
    while True:
        for task in waiting:
            running[submit(task[1], False)] = task
            if len(running) >= most:
                break
        if not running:
            break
        future, row = next_done(running)
        task = running.pop(future)
        if "again" in row:
            again.append(task)
        else:
            yield task[0], row
    for task in again:
        _, row = next_done({submit(task[1], True): task})
        yield task[0], row


def rows_here(tasks: Iterable[Task], settings: Settings, jobs: int) -> Done:
    """Grade on this machine, some submissions at a time."""
    pool = ThreadPoolExecutor(jobs)

    def submit(submission: Submission, alone: bool) -> Future[gradebook.Row]:
        def work() -> gradebook.Row:
            notebook = read_notebook(submission.path)
            return grade_text(notebook, submission.chapter, settings, alone)

        return pool.submit(work)

    def next_done(running: dict[Any, Task]) -> tuple[Any, gradebook.Row]:
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        future = min(done, key=lambda x: x.exception() is not None)  # keep rows first
        return future, future.result()

    try:
        yield from in_turn(tasks, submit, next_done, WAITING * jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def worker_state(chapter: str, safe: bool) -> tuple[str, str]:
    """Asked of a worker: which code it has, and why it could not grade, if so."""
    problem = (sandbox_problem() or "") if safe else ""
    return sources_digest(chapter), problem


def rows_on_cluster(tasks: Iterable[Task], settings: Settings, address: str) -> Done:
    """Grade on the workers of a Dask scheduler; a lost worker's tasks run elsewhere.

    Notebooks travel as text, so that workers need no common disk. A result is let go as
    soon as it is here, and so cannot come twice.
    """
    try:
        from distributed import Client, KilledWorker
        from distributed import wait as wait_for
    except ImportError as error:
        raise ValueError(
            "--scheduler needs Dask: pip install 'course-utils[cluster]'."
        ) from error
    try:
        client = Client(address, timeout=CONNECTING)
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(f"no scheduler answers at {address}: {error}.") from error
    with client:
        refuse_unfit(client, settings)

        def submit(submission: Submission, alone: bool) -> Any:
            notebook = read_notebook(submission.path)
            arguments = (notebook, submission.chapter, settings, alone)
            return client.submit(grade_text, *arguments, pure=False, retries=3)

        def next_done(running: dict[Any, Task]) -> tuple[Any, gradebook.Row]:
            done, _ = wait_for(list(running), return_when="FIRST_COMPLETED")
            future = next(iter(done))
            try:
                row = future.result()
            except KilledWorker as error:  # four times: something is wrong there
                raise ValueError(
                    "workers die again and again; look into their logs. The same "
                    "command goes on from here."
                ) from error
            future.release()
            return future, row

        workers = max(sum(client.nthreads().values()), 1)
        yield from in_turn(tasks, submit, next_done, WAITING * workers)


def refuse_unfit(client: Any, settings: Settings) -> None:
    """Refuse a cluster whose workers lack the course, this version, or a sandbox."""
    chapter, safe = "06", settings.isolation == "bubblewrap"
    try:
        states = client.run(worker_state, chapter, safe)
    except Exception as error:  # whatever a stranger's installation raises
        raise ValueError(
            f"a worker cannot run the course ({type(error).__name__}: {error}): "
            "install it there, in the same version."
        ) from error
    if not states:
        raise ValueError("the scheduler has no workers; start some, then try again.")
    for worker, (digest, problem) in states.items():
        if problem:
            raise ValueError(f"worker {worker}: {problem}")
        if digest != sources_digest(chapter):
            raise ValueError(
                f"worker {worker} has another version of the course: install this one."
            )


def resumed(
    submissions: list[Submission], kept: dict[str, gradebook.Row], settings: Settings
) -> tuple[dict[int, gradebook.Row], list[Task]]:
    """Tell what is graded already from what is not, by the content of each file."""
    results: dict[int, gradebook.Row] = {}
    tasks: list[Task] = []
    for i, submission in enumerate(submissions):
        notebook = read_notebook(submission.path)
        key = settings.key_of(submission.chapter, notebook.digest)
        if key in kept:
            results[i] = kept[key]
        else:
            tasks.append((i, submission))
    return results, tasks
