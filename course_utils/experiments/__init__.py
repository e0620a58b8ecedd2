"""Results of long experiments, measured once and stored beside this file.

A page has a minute; a sweep of learning rates has not. Such a sweep is a script in
`book/experiments`, and `make experiments` stores every point that it measures here, so
that a page can draw the whole curve wherever the package is installed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent
Point = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """What was measured, with which settings, when and on what."""

    name: str
    settings: dict[str, Any]
    points: list[Point]
    measured: dict[str, Any]

    def select(self, **where: Any) -> list[Point]:
        """The points with these values: `select(scaled=True, lr=1e-3)`."""
        chosen = [
            point
            for point in self.points
            if all(point.get(key) == value for key, value in where.items())
        ]
        if not chosen:
            wanted = ", ".join(f"{key}={value!r}" for key, value in where.items())
            raise ValueError(
                f"no point of {self.name} has {wanted or 'been measured'}; a point "
                f"looks like {self.points[0] if self.points else {}}."
            )
        return chosen

    def lines(self, x: str, y: str, **where: Any) -> tuple[list[Any], NDArray[Any]]:
        """The values of `x` and an array (seed, x) of `y`, as `plot_lines` takes them.

        `where` has to leave one point for each seed and each `x`.
        """
        chosen = self.select(**where)
        if missing := {x, y, "seed"} - chosen[0].keys():
            raise ValueError(
                f"{self.name} has no {' and no '.join(sorted(missing))}; its points "
                f"have {', '.join(chosen[0])}."
            )
        table = {(point["seed"], point[x]): point[y] for point in chosen}
        seeds, across = (sorted({p[key] for p in chosen}) for key in ("seed", x))
        if len(chosen) != len(table) or len(table) != len(seeds) * len(across):
            raise ValueError(
                f"{self.name}: {len(chosen)} points for {len(seeds)} seeds and "
                f"{len(across)} values of {x}, expected one for each pair; choose "
                "among the others by name, as in lines(x, y, scaled=True)."
            )
        rows = [[table[seed, value] for value in across] for seed in seeds]
        return across, np.array(rows)

    def provenance(self) -> str:
        """When, on what and with which seeds it was measured, in one sentence."""
        seeds = sorted({point["seed"] for point in self.points})
        versions = self.measured["versions"]
        minutes = round(sum(point["seconds"] for point in self.points) / 60)
        return (
            f"{len(self.points)} runs with seeds {', '.join(map(str, seeds))}, "
            f"measured on {self.measured['date']} with PyTorch {versions['torch']} on "
            f"{self.measured['processor']}: {max(minutes, 1)} processor minutes."
        )


def load(name: str, folder: Path = FOLDER) -> Experiment:
    """The stored result of `book/experiments/<name>.py`."""
    path = folder / f"{name}.json"
    if not path.is_file():
        stored = ", ".join(sorted(p.stem for p in folder.glob("*.json"))) or "none"
        raise ValueError(
            f"there is no stored experiment {name!r} (stored: {stored}); check the "
            f"name, or measure it in a clone of the course: make experiments "
            f"ARGS={name[:2]}"
        )
    stored = json.loads(path.read_text(encoding="utf-8"))
    return Experiment(name, stored["settings"], stored["points"], stored["measured"])


def at_best_rate(
    points: list[Point], rate: str = "lr", by: str = "validation"
) -> list[Point]:
    """The runs of one contestant at its own best rate: the highest mean of `by`.

    Comparing models at one common learning rate compares their luck with it. So each
    chooses its own, on data that are not reported.
    """
    if not points:
        raise ValueError("at_best_rate got no points; select some of one contestant.")
    groups: dict[Any, list[Point]] = {}
    for point in points:
        groups.setdefault(point[rate], []).append(point)
    return max(groups.values(), key=lambda runs: np.mean([run[by] for run in runs]))


def best_tests(points: list[Point], **where: Any) -> list[float]:
    """The test results of one contestant at its own best rate, one for each seed.

    `where` names it: `best_tests(points, model="GRU", steps=300)`.
    """
    chosen = [p for p in points if all(p.get(k) == v for k, v in where.items())]
    return [float(point["test"]) for point in at_best_rate(chosen)]
