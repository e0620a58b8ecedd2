"""A class made by a script: every layout, every kind of notebook, every row known.

What each notebook earns follows from how it was put together, not from grading it.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from course_utils.grading.questions import EXERCISES, chapter_questions
from tools.notebooks.io import read

ROOT = Path(__file__).parents[2]
FIRST = "Ada Bela Cleo Dora Emil Fritz Gino Hana Ines Jana Kurt Lena Mila Nora Otto"
LAST = (
    "Abel Bohr Cantor Dirac Euler Fermat Gauss Hardy Ito Jacobi Klein Lagrange Markov "
    "Noether Ohm Pascal Quine Riemann Sobolev Turing"
)
LAYOUTS = ("student", "nbgrader", "exercise", "flat", "canvas", "moodle")
TIMED = ("student", "nbgrader", "exercise")  # they have a timestamp.txt
NEEDS = {"06.3": "06.1"}  # a solution that calls another one
SOLUTION = re.compile(r"( *)### BEGIN SOLUTION\n.*?### END SOLUTION", re.DOTALL)
TIMES = ("2026-11-20 20:00:00 UTC", "2026-11-21 08:00:00 UTC")  # in time, and late
STYLE = "%matplotlib inline\n!ls\ndisplay(1)\nfor number in range(3): print(number)"
IN_NUMPY = """
import numpy
def attention(queries, keys, values):
    scores = queries.numpy() @ keys.mT.numpy() / queries.shape[-1] ** 0.5
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    weights = torch.from_numpy(weights / weights.sum(-1, keepdims=True))
    return weights @ values, weights
"""
ENDLESS = "def softmax_jacobian(scores):\n    while True: pass"
EXITS = "import os\ndef split_fused(x, weight, d_k):\n    os._exit(0)"
# kind: (cells before the answers, cells after them, a flag, answers that it spoils)
KINDS: dict[str, tuple[list[str], list[str], str, tuple[str, ...]]] = {
    "plain": ([], [], "", ()),
    "styled": ([STYLE], [], "", ()),
    "killed": (["import os\nos.kill(os.getpid(), 9)"], [], "ends the program", ()),
    "numpy": ([], [IN_NUMPY], "06.1 how it works was not seen", ()),
    "exits": ([], [EXITS], "06.2 ends the program", ("06.2",)),
    "endless": ([], [ENDLESS], "06.4 never ends", ("06.4",)),
    "torn": ([], [], "not read: not a notebook", ()),
    "utf-16": ([], [], "encoded as utf-16", ()),
}


@dataclass(frozen=True)
class Handed:
    """One notebook that was handed in."""

    chapter: str
    right: tuple[str, ...]  # the questions that are answered, all of them rightly
    kind: str = "plain"
    late: bool = False

    def points(self) -> dict[str, int]:
        """What each question earns, by construction."""
        kept = set(self.right)
        if self.kind == "numpy":
            kept.add("06.1")
        kept -= set(KINDS[self.kind][3])
        kept = {name for name in kept if NEEDS.get(name, name) in kept}
        torn = self.kind == "torn"
        return {
            q.id: q.points if q.id in kept and not torn else 0
            for q in chapter_questions(self.chapter)
        }

    def content(self, number: str) -> bytes:
        """The notebook's file, unlike everybody else's."""
        before, after, *_ = KINDS[self.kind]
        notebook = read(ROOT / "solutions" / f"{EXERCISES[self.chapter]}.ipynb")
        answers = {q.answer: q.id for q in chapter_questions(self.chapter)}
        sources = [f"number = {number!r}", *before]
        checks = []
        for cell in notebook.cells:
            text = cell.source
            defined = set(re.findall(r"^def (\w+)", text, re.MULTILINE)) & set(answers)
            if not {answers[name] for name in defined} <= set(self.right):
                text = SOLUTION.sub(r"\1raise NotImplementedError", text)
            if cell.cell_type == "code":
                (checks if text.startswith("check(") else sources).append(text)
        cells = [
            {"cell_type": "code", "source": x, "metadata": {}, "outputs": []}
            for x in (*sources, *after, *checks)
        ]
        text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4})
        if self.kind == "torn":
            return text[: len(text) // 2].encode()
        return text.encode("utf-16" if self.kind == "utf-16" else "utf-8")


@dataclass(frozen=True)
class Student:
    """A person of the roster, and what came of them."""

    number: str
    name: str
    layout: str
    work: tuple[Handed, ...] = ()

    def path(self, chapter: str) -> Path:
        """Where the notebook of an exercise lies, in this student's layout."""
        exercise, (first, last) = EXERCISES[chapter], self.name.split()
        name = f"{exercise}.ipynb"
        return (
            Path(self.layout)
            / {
                "student": Path(self.name, name),
                "nbgrader": Path(f"{first} {last}", exercise, name),
                "exercise": Path(exercise, f"{last}, {first}", name),
                "flat": Path(f"{first}_{last}_{exercise}.ipynb"),
                "canvas": Path(f"{last}{first}_{self.number}_77_{exercise}-1.ipynb"),
                "moodle": Path(
                    f"{self.name}_{self.number}_assignsubmission_file_", name
                ),
            }[self.layout]
        )

    def hand_in(self, root: Path) -> None:
        """Write the files; a student's folder has one timestamp for all in it."""
        for handed in self.work:
            path = root / self.path(handed.chapter)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(handed.content(self.number))
            if self.layout in TIMED:
                time = TIMES[handed.late]
                path.with_name("timestamp.txt").write_text(time)


@dataclass
class MadeClass:
    """A class with its files, its decisions, and the table that must come of it."""

    root: Path
    students: dict[str, Student] = field(default_factory=dict)
    corrections: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def write(self) -> Path:
        """Write the roster, the corrections and the class file; returns the last."""
        people = sorted(self.students.values(), key=lambda x: x.number)
        roster = ["id,name", *(f"{x.number},{x.name}" for x in people)]
        given = ["student,exercise,question,points,reason"]
        for (number, chapter, question), points in self.corrections.items():
            given.append(f"{number},{chapter},{question},{points},seen in person")
        about = [
            'roster = "roster.csv"\ncorrections = "corrections.csv"\n[due]',
            *(f"{x} = 2026-11-20T23:59:00+01:00" for x in ("06", "07")),
            "[late]\ngrace = 15\nper_day = 10\nmost = 50",
        ]
        for name, lines in (
            ("roster.csv", roster),
            ("corrections.csv", given),
            ("class.toml", about),
        ):
            (self.root / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
        return self.root / "class.toml"

    def change(self, number: str, *work: Handed) -> None:
        """Let somebody hand in something else, or withdraw everything."""
        old = self.students[number]
        for handed in old.work:
            path = self.root / "in" / old.path(handed.chapter)
            path.unlink()
            if old.layout not in ("flat", "canvas"):
                path.with_name("timestamp.txt").unlink(missing_ok=True)
                path.parent.rmdir()
        self.students[number] = replace(old, work=work)
        self.students[number].hand_in(self.root / "in")

    def expected(self) -> dict[tuple[str, str], dict[str, str]]:
        """Every row of the table, by student and exercise."""
        rows = {}
        for student in self.students.values():
            for chapter in ("06", "07"):
                handed = {x.chapter: x for x in student.work}.get(chapter)
                rows[student.number, EXERCISES[chapter]] = self.row(
                    student, chapter, handed
                )
        return rows

    def row(
        self, student: Student, chapter: str, handed: Handed | None
    ) -> dict[str, str]:
        most = sum(q.points for q in chapter_questions(chapter))
        points = dict(handed.points()) if handed else {}
        score = sum(points.values())
        late = 0.1 * most if handed and handed.late else 0.0
        added = 0.0
        for (number, where, question), given in self.corrections.items():
            if (number, where) != (student.number, chapter):
                continue
            if question == "late":
                late = given
            else:
                added += given - points.get(question, 0)
                if question:
                    points[question] = int(given)
        numbers = {
            "score": score,
            "max_score": most,
            "late": late,
            "correction": added,
            "final": max(score + added - late, 0),
            **points,
        }
        said = {name: f"{round(value, 2):g}" for name, value in numbers.items()}
        return {"student": student.name, "id": student.number, **said}

    def flag(self, number: str, chapter: str) -> str:
        """A flag that the row must have."""
        for handed in self.students[number].work:
            if handed.chapter == chapter:
                return KINDS[handed.kind][2]
        return "nothing handed in"


def make_class(root: Path, count: int, seed: int = 23) -> MadeClass:
    """Make a class of so many: one in twelve hands in nothing, one in eight is late."""
    draw = random.Random(seed)
    names = [f"{a} {b}" for a in FIRST.split() for b in LAST.split()]
    draw.shuffle(names)
    assert count <= len(names)
    made = MadeClass(root)
    kinds = ["plain", "styled", "killed", "numpy", "plain", "exits", "torn", "utf-16"]
    for i in range(count):
        work = []
        layout = LAYOUTS[i % 6]
        late = layout in TIMED and i % 8 == 0
        if i % 12 != 11:
            kind = "endless" if i % 50 == 9 else kinds[i // 6 % len(kinds)]
            work.append(Handed("06", solved("06", draw), kind, late))
            if i % 3 == 0 and layout != "student":
                work.append(Handed("07", solved("07", draw)))
        number = str(1000 + i)
        made.students[number] = Student(number, names[i], layout, tuple(work))
        made.students[number].hand_in(root / "in")
    return made


def solved(chapter: str, draw: random.Random) -> tuple[str, ...]:
    """Choose who answers what: a few nothing, some all, most of them a part."""
    asked = [q.id for q in chapter_questions(chapter)]
    share = draw.choice((0.0, 0.5, 0.7, 0.9, 1.0))
    return tuple(name for name in asked if draw.random() < share)
