"""The command behind `make doubt`."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tools.doubts.results import is_current, page, result_of, store
from tools.doubts.trial import (
    REFUTED,
    Doubt,
    DoubtError,
    all_doubts,
    attempt,
    needs_mending,
)
from tools.notebooks.io import ROOT, rewrite


def chosen(doubts: list[Doubt], options: argparse.Namespace, root: Path) -> list[Doubt]:
    """The doubts to try: all that have no current result, or as the options say."""
    if options.again:
        return doubts
    versions = not options.changed
    return [doubt for doubt in doubts if not is_current(doubt, root, versions)]


def try_all(doubts: list[Doubt], root: Path, jobs: int) -> None:
    """Try them, several at a time; each is stored when it is done."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(attempt, doubt, root): doubt for doubt in doubts}
        try:
            for count, done in enumerate(as_completed(waiting), 1):
                doubt, outcome = waiting[done], done.result()
                store(doubt, outcome, root)
                print(
                    f"  {count} of {len(doubts)}: {outcome['verdict']:<16} "
                    f"{outcome['seconds']:6.1f} s   {doubt}",
                    flush=True,
                )
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def table(doubts: list[Doubt], root: Path) -> str:
    """Claim, doubt and where it failed, a block each: made for a terminal."""
    blocks = []
    for doubt in doubts:
        result = result_of(doubt, root)
        where = f"{result['verdict']}: {result['where']}" if result else "not tried"
        blocks.append(
            f"{doubt.chapter[:2]}  claim  {doubt.claim}\n"
            f"    doubt  {doubt.name}\n"
            f"    {where}"
        )
    return "\n".join(blocks)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.doubts")
    parser.add_argument("chapters", nargs="*", metavar="NN")
    parser.add_argument("--list", action="store_true", help="one line each")
    parser.add_argument(
        "--changed", action="store_true", help="where the course changed"
    )
    parser.add_argument("--again", action="store_true", help="also what is current")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    try:
        doubts = all_doubts(root, options.chapters)
        if options.list:
            print("\n".join(f"{doubt}  ({doubt.claim})" for doubt in doubts))
            return 0
        if wrong := [text for doubt in doubts if (text := needs_mending(doubt, root))]:
            raise DoubtError("\n".join(wrong))
        to_try = chosen(doubts, options, root)
        print(f"doubts: {len(doubts)}, to be tried: {len(to_try)}", flush=True)
        try_all(to_try, root, options.jobs)
    except DoubtError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; what was tried is stored", file=sys.stderr)
        return 130
    rewrite(*page(root))
    print(table(doubts, root))
    defects = [d for d in doubts if result_of(d, root).get("verdict") != REFUTED]
    print(
        f"{len(doubts) - len(defects)} claims refuted as they should be, "
        f"{len(defects)} defects"
    )
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
