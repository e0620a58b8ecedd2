"""Lighthouse over the built site, as a desktop and as a phone, beside our marks.

    python -m tools.site.lighthouse [--pages book/intro …] [--runs 3]

Lighthouse is installed by npm into `_build/lighthouse`, once. The site is served as a
public host serves it, compressed. A page is loaded `--runs` times in each form and the
median counts, since the marks for speed vary with what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.notebooks.io import ROOT
from tools.site.browser import LAUNCH, chromium, served

VERSION = "12.8.2"  # the last that runs with Node 18
PAGES = (
    "book/intro",
    "book/06_queries_keys_values",
    "book/08_positional_encodings",
    "book/12_transformer",
)
DESKTOP = {"performance": 95, "accessibility": 100, "best-practices": 95, "seo": 95}
PHONE = DESKTOP | {"performance": 85}
Marks = dict[str, float]


def install(folder: Path) -> Path:
    """Lighthouse's program, installed by npm if it is not there yet."""
    program = folder / "node_modules" / ".bin" / "lighthouse"
    stamp = folder / "version"
    if program.exists() and stamp.exists() and stamp.read_text("utf-8") == VERSION:
        return program
    npm = shutil.which("npm")
    if npm is None:
        raise ValueError(
            "npm is not installed; install Node 18 or newer, and call again."
        )
    folder.mkdir(parents=True, exist_ok=True)
    package = f"lighthouse@{VERSION}"
    options = ["--no-fund", "--no-audit", "--prefix", str(folder)]
    ended = subprocess.run(
        [npm, "install", *options, package], capture_output=True, text=True
    )
    if ended.returncode != 0:
        raise ValueError(f"npm could not install {package}:\n{ended.stderr.strip()}")
    stamp.write_text(VERSION, "utf-8")
    return program


def report(program: Path, address: str, phone: bool) -> dict[str, Any]:
    """Lighthouse's report on one load of one page."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "report.json")
        command = [str(program), address, "--quiet", "--output=json"]
        command += [f"--output-path={out}", f"--only-categories={','.join(DESKTOP)}"]
        command += [f"--chrome-flags=--headless=new {' '.join(LAUNCH)}"]
        command += [] if phone else ["--preset=desktop"]
        environment = os.environ | {"CHROME_PATH": chromium() or ""}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True)
        if not out.exists():
            raise ValueError(f"Lighthouse gave no report on {address}: {ended.stderr}")
        found: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return found


def marks(reports: list[dict[str, Any]]) -> Marks:
    """The median mark of each category, in percent."""
    return {
        name: statistics.median(
            round(100 * (found["categories"][name]["score"] or 0)) for found in reports
        )
        for name in DESKTOP
    }


def below(got: Marks, wanted: dict[str, int]) -> list[str]:
    """The categories whose mark misses what we want."""
    return [name for name, least in wanted.items() if got[name] < least]


def complaints(found: dict[str, Any]) -> list[str]:
    """The audits that cost points, the dearest first."""
    lost = []
    for category in found["categories"].values():
        for reference in category["auditRefs"]:
            score = found["audits"][reference["id"]].get("score")
            if reference["weight"] and score is not None and score < 0.9:
                lost.append((reference["weight"] * (1 - score), reference["id"]))
    return [name for _, name in sorted(lost, reverse=True)]


def line(page: str, form: str, got: Marks, missed: list[str]) -> str:
    """One row of the table."""
    cells = "  ".join(f"{name} {got[name]:.0f}" for name in DESKTOP)
    verdict = f"BELOW: {', '.join(missed)}" if missed else "ok"
    return f"  {page:<30} {form:<8} {cells}  {verdict}"


def run(site: Path, pages: list[str], runs: int) -> bool:
    """Load every page in both forms, print the table, say whether all marks are met."""
    program, met = install(ROOT / "_build" / "lighthouse"), True
    with served(site, compressed=True) as address:
        for page in pages:
            for form, wanted in (("desktop", DESKTOP), ("phone", PHONE)):
                phone, url = form == "phone", f"{address}{page}.html"
                found = [report(program, url, phone) for _ in range(runs)]
                got = marks(found)
                missed = below(got, wanted)
                print(line(page, form, got, missed), flush=True)
                if missed:
                    print("    costs points: " + ", ".join(complaints(found[-1])))
                met = met and not missed
    return met


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tools.site.lighthouse")
    parser.add_argument("--pages", nargs="+", default=list(PAGES))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    site = ROOT / "_build" / "html"
    missing = [p for p in options.pages if not (site / f"{p}.html").is_file()]
    if missing:
        print(f"not built: {', '.join(missing)}; `make book` builds them.")
        return 1
    if chromium() is None:
        print(
            "Lighthouse needs Chromium, and there is none; install it and call again."
        )
        return 1
    try:
        return 0 if run(site, options.pages, max(options.runs, 1)) else 1
    except ValueError as error:
        print(error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
