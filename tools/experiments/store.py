"""Keep what was measured inside the package, with all that it depends on."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import json
import platform
from pathlib import Path
from typing import Any

from tools.experiments.comparison import TOLERANCE, differences
from tools.experiments.script import Point, load, same_point
from tools.notebooks.io import ROOT, write_text


def store_of(path: Path, root: Path = ROOT) -> Path:
    """Where the result of a script is stored: inside the package."""
    return root / "course_utils" / "experiments" / f"{path.stem}.json"


def stored(path: Path, root: Path = ROOT) -> dict[str, Any]:
    """What is stored for the script; no points if nothing is."""
    with contextlib.suppress(FileNotFoundError):
        return dict(json.loads(store_of(path, root).read_text(encoding="utf-8")))
    return {"settings": {}, "points": [], "fingerprint": [], "measured": {}}


def missing(path: Path, root: Path = ROOT) -> list[Point]:
    """The points of the script that have no stored measurement."""
    have = stored(path, root)["points"]
    wanted = load(path).points(load(path).SETTINGS)
    return [p for p in wanted if not any(same_point(p, done) for done in have)]


def stale(path: Path, now: list[Point], root: Path = ROOT) -> list[str]:
    """How a smoke run differs from the stored one, the fingerprint."""
    tolerance = getattr(load(path), "TOLERANCE", TOLERANCE)
    return differences(stored(path, root)["fingerprint"], now, tolerance)


def processor() -> str:
    """The processor's name, as well as the system knows it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def circumstances() -> dict[str, Any]:
    """When and on what the points are measured."""
    names = ("torch", "numpy")
    versions = {name: importlib.metadata.version(name) for name in names}
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "versions": {"python": platform.python_version(), **versions},
    }


def dumps(result: dict[str, Any]) -> str:
    """The text of a stored result: one line a point, so that a diff can be read."""
    parts = []
    for key, value in result.items():
        text = json.dumps(value)
        if isinstance(value, list) and value:
            text = (
                "[\n" + ",\n".join(f"  {json.dumps(point)}" for point in value) + "\n ]"
            )
        parts.append(f' "{key}": {text}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def save(path: Path, root: Path, result: dict[str, Any]) -> None:
    """Write the result with its points in the script's order."""
    module = load(path)
    order = module.points(module.SETTINGS)
    have = result["points"]
    points = [d for p in order for d in have if same_point(p, d)]
    file = store_of(path, root)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, dumps(result | {"settings": module.SETTINGS, "points": points}))
