"""The command behind `make experiments`."""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

from tools.experiments.comparison import outside_spread, shown
from tools.experiments.script import (
    ExperimentError,
    load,
    measure_all,
    scripts,
    smoke,
)
from tools.experiments.store import circumstances, missing, save, stale, stored
from tools.notebooks.io import ROOT


def run(path: Path, root: Path = ROOT, jobs: int = 1) -> None:
    """Measure what is missing or stale, store every point, check the claim."""
    print(f"{path.stem}: smoke run", flush=True)
    now = smoke(path, jobs)
    load(path).check(now)
    result = stored(path, root)
    if changes := stale(path, now, root):
        if result["points"]:
            print(f"  measured anew, for the smoke run changed: {changes[0]}")
        result = {"settings": {}, "measured": {}, "fingerprint": now, "points": []}
        result["measured"] = circumstances()
        save(path, root, result)
    todo = missing(path, root)
    for count, point in enumerate(measure_all(path, todo, jobs), 1):
        result["points"].append(point)
        save(path, root, result)
        print(f"  {count} of {len(todo)}: {shown(point)}", flush=True)
    save(path, root, result)  # drops what the script no longer asks for
    load(path).check(stored(path, root)["points"])
    print(f"  {len(stored(path, root)['points'])} points stored; the claim holds")


def verify(path: Path, root: Path = ROOT, jobs: int = 1) -> list[str]:
    """Measure everything once more; say what left the recorded spread."""
    wanted = load(path).points(load(path).SETTINGS)
    now = []
    for count, point in enumerate(measure_all(path, wanted, jobs), 1):
        now.append(point)
        print(f"  {count} of {len(wanted)}: {shown(point)}", flush=True)
    load(path).check(now)
    return outside_spread(stored(path, root)["points"], now, list(wanted[0]))


def of_this_week(paths: list[Path]) -> list[Path]:
    """One of them, another every week."""
    week = datetime.date.today().toordinal() // 7
    return [paths[week % len(paths)]] if paths else []


def state(path: Path, root: Path = ROOT) -> str:
    """What is stored for a script, in a few words."""
    have = stored(path, root)
    if not have["points"]:
        return "not measured"
    if todo := missing(path, root):
        return f"{len(todo)} points missing"
    return f"{len(have['points'])} points, {have['measured']['date']}"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.experiments")
    parser.add_argument("chapters", nargs="*", metavar="NN")
    parser.add_argument("--list", action="store_true", help="say what is stored")
    parser.add_argument("--verify", action="store_true", help="measure again, compare")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    options = parser.parse_args(arguments)
    try:
        paths = scripts(root, options.chapters)
        if options.list:
            for path in paths:
                print(f"{path.stem:<40} {state(path, root)}")
        elif options.verify:
            chosen = paths if options.chapters else of_this_week(paths)
            found = [
                f"{path.stem}: {what}"
                for path in chosen
                for what in verify(path, root, options.jobs)
            ]
            print("\n".join(found) or "within the recorded spread")
            return 1 if found else 0
        else:
            for path in paths:
                run(path, root, options.jobs)
    except ExperimentError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; what was measured is stored", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
