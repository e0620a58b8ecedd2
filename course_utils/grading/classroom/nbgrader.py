"""Write an exercise as nbgrader wants its sources: answers and graded cells marked.

From `solutions/06_….ipynb` this makes `source/06_…/06_….ipynb`. nbgrader's own
`generate_assignment` cuts the solutions out, and a cell's points are those of `check`:
its last value is the number that nbgrader takes for partial credit.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from course_utils.grading.classroom.gradebook import write_whole
from course_utils.grading.questions import EXERCISES, find_question

LEFT_OUT = {"solution", "solutions-only"}
CHECK = re.compile(r"check\(\s*[\"'](\d\d\.\d+)[\"']\s*,\s*(\w+)\s*\)", re.MULTILINE)
GRADED = """\
{source}
from course_utils.grading.checks import grade_answer
grade_answer("{question}", {answer}).points"""


def marks(identifier: str, points: int | None = None) -> dict[str, Any]:
    """The metadata of a cell: an answer, or with points a graded one."""
    graded = points is not None
    made: dict[str, Any] = {
        "schema_version": 3,
        "grade_id": identifier,
        "grade": graded,
        "solution": not graded,
        "locked": graded,
        "task": False,
    }
    return {**made, "points": points} if graded else made


def as_source(notebook: dict[str, Any]) -> dict[str, Any]:
    """Mark the cells of a solution; what only a solution holds is left out."""
    cells: list[dict[str, Any]] = []
    for number, cell in enumerate(notebook["cells"]):
        metadata = dict(cell.get("metadata", {}))
        if LEFT_OUT & set(metadata.get("tags", ())):
            continue
        source = "".join(cell["source"])
        found = CHECK.search(source) if cell["cell_type"] == "code" else None
        if found:
            question, answer = found.groups()
            points = find_question(question).points
            name = f"check-{question.replace('.', '-')}"
            metadata["nbgrader"] = marks(name, points)
            source = GRADED.format(source=source, question=question, answer=answer)
        elif "### BEGIN SOLUTION" in source:
            metadata["nbgrader"] = marks(f"answer-{number}")
        cells.append({**cell, "metadata": metadata, "source": source})
    return {**notebook, "cells": cells}


def write_source(solution: Path, out: Path) -> Path:
    """Write one exercise below a course's folder `source`."""
    if solution.stem not in EXERCISES.values() or solution.suffix != ".ipynb":
        raise ValueError(
            f"{solution} is not the solution of an exercise, expected one of "
            f"solutions/{EXERCISES['06']}.ipynb and its like."
        )
    try:
        notebook = json.loads(solution.read_text(encoding="utf-8"))
        made = as_source(notebook)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{solution} is not a notebook: {error}.") from error
    if not any("### BEGIN SOLUTION" in cell["source"] for cell in made["cells"]):
        raise ValueError(f"{solution} is not a solution: give the one in solutions/.")
    path = out / solution.stem / solution.name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    return path
