"""Load a script of `book/experiments` and make its runs, each in a process apart."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tools.notebooks.io import ROOT

Point = dict[str, Any]
NEEDED = ("SETTINGS", "SMOKE", "points", "run", "check")
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "COURSE_SEED": "0"}


class ExperimentError(Exception):
    """A script, or a stored result, that is not as it should be."""


def scripts(root: Path = ROOT, chapters: list[str] | None = None) -> list[Path]:
    """The scripts, of these chapters or of all."""
    paths = sorted((root / "book" / "experiments").glob("[0-9]*.py"))
    chosen = [p for p in paths if not chapters or p.stem.startswith(tuple(chapters))]
    if chapters and not chosen:
        raise ExperimentError(
            f"no experiment of chapter {', '.join(chapters)}; there are: "
            f"{', '.join(p.stem for p in paths) or 'none'}"
        )
    return chosen


def load(path: Path) -> SimpleNamespace:
    """What the script defines; one that lacks a part is refused."""
    script = SimpleNamespace(**runpy.run_path(str(path)))
    if missing := [name for name in NEEDED if not hasattr(script, name)]:
        raise ExperimentError(
            f"{path.name} does not define {', '.join(missing)}; see "
            "tools/experiments/__init__.py"
        )
    return script


def set_environment() -> None:
    """One thread and the usual seed, before a process loads PyTorch."""
    os.environ.update(ENVIRONMENT)


def measure(path: Path, point: Point) -> Point:
    """One run: the point, its result and its seconds in one dict."""
    begun = time.process_time()
    result = load(path).run(dict(point))
    seconds = round(time.process_time() - begun, 2)
    if twice := point.keys() & result.keys():
        raise ExperimentError(
            f"{path.name}: {', '.join(sorted(twice))} is in the point and in its "
            "result; give the result another name."
        )
    return {**point, **result, "seconds": seconds}


def measure_all(path: Path, points: list[Point], jobs: int = 1) -> Iterator[Point]:
    """The points as they are done, each on one thread, in processes of their own.

    With no jobs at all they run in this process, where a debugger can follow.
    """
    if not jobs:
        yield from (measure(path, point) for point in points)
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, spawn, set_environment) as pool:
        waiting = [pool.submit(measure, path, point) for point in points]
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def smoke(path: Path, jobs: int = 1) -> list[Point]:
    """The run at tiny size, in order, without its seconds: the fingerprint."""
    points = load(path).points(load(path).SMOKE)
    done = list(measure_all(path, points, jobs))
    for measured in done:
        del measured["seconds"]
    return [next(d for d in done if same_point(p, d)) for p in points]


def same_point(point: Point, measured: Point) -> bool:
    """Whether this is the measurement of that point."""
    return all(key in measured and measured[key] == point[key] for key in point)
