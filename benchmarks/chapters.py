"""How long every notebook of the site takes, beside the seconds recorded earlier.

    python -m benchmarks.chapters          compare with benchmarks/chapters.json
    python -m benchmarks.chapters --save   record the seconds of this machine

The seconds come from the executed notebooks of the last `make book`.
"""

from __future__ import annotations

import argparse
import json
import sys

from tools.execute import KEPT
from tools.files import ROOT, read, write_text

EXECUTED = ROOT / "_build" / "executed"
RECORD = ROOT / "benchmarks" / "chapters.json"


def measured() -> dict[str, dict[str, float]]:
    """The seconds of each executed notebook and of its slowest cell."""
    seconds = {}
    for path in sorted(EXECUTED.rglob("*.ipynb")):
        kept = read(path).metadata[KEPT]
        seconds[path.relative_to(EXECUTED).as_posix()] = {
            "seconds": kept["seconds"],
            "slowest cell": max(kept["cell_seconds"], default=0.0),
        }
    return seconds


def table(now: dict[str, dict[str, float]], before: dict[str, dict[str, float]]) -> str:
    """One line for each notebook: seconds, slowest cell, ratio to the record."""
    lines = [f"{'notebook':<44} {'seconds':>8} {'slowest cell':>13} {'ratio':>6}"]
    for name, values in now.items():
        seconds, slowest = values["seconds"], values["slowest cell"]
        known = before.get(name, {}).get("seconds")
        ratio = f"{seconds / known:.2f}" if known else "new"
        lines.append(f"{name:<44} {seconds:>8.1f} {slowest:>13.1f} {ratio:>6}")
    total = sum(values["seconds"] for values in now.values())
    return "\n".join([*lines, f"{'sum, one at a time':<44} {total:>8.1f}"])


def main() -> int:
    """Print the table, or record it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chapters")
    parser.add_argument("--save", action="store_true", help="record these seconds")
    save = parser.parse_args().save
    now = measured()
    if not now:
        print("no notebook was executed yet; run: make book", file=sys.stderr)
        return 1
    before = json.loads(RECORD.read_text("utf-8")) if RECORD.is_file() else {}
    print(table(now, before))
    if save:
        write_text(RECORD, json.dumps(now, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
