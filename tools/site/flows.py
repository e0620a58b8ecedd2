"""The flows through the project, drawn from its imports: a Sphinx extension.

    ```{flow} answer
    ```

draws everything that one entry point imports, directly or through others, room by room,
and an arrow wherever one room imports another. Nothing here says which module that is:
a module that moves, appears or goes changes the picture with the next build.
"""

from __future__ import annotations

import ast
import html
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from course_utils.display.diagrams import diagram_html
from course_utils.display.drawing import Diagram, Drawing
from tools.notebooks.dependencies import as_python, imported, package_of
from tools.notebooks.io import ROOT, read

WIDTH, ROOM = 344, 300  # of the drawing and of a room in it: fits a phone


@dataclass(frozen=True)
class Flow:
    """Where a flow is entered, and the rooms it goes through, the last one first."""

    entries: tuple[str, ...]  # modules, or notebooks of the book
    rooms: tuple[tuple[str, str], ...]  # prefix of its modules, what happens there
    alt: str


def modules_below(root: Path) -> dict[str, Path]:
    """Every module of the package and of the tools, by its dotted name."""
    return {
        ".".join(path.relative_to(root).with_suffix("").parts): path
        for folder in ("course_utils", "tools")
        for path in sorted((root / folder).rglob("*.py"))
        if path.name != "__init__.py"
    }


GRADING = "course_utils.grading"
# What is loaded by name, not imported: the questions, and the extensions of the site.
QUESTIONS = [name for name in modules_below(ROOT) if f"{GRADING}.questions." in name]
EXTENSIONS = [
    name
    for name in yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"][
        "config"
    ]["extensions"]
    if name.startswith("tools.")
]
FLOWS = {
    "corpus": Flow(
        ("book/12_transformer.ipynb",),
        (
            ("book", "the chapter: asks, runs, shows"),
            ("course_utils.display", "figures and interactives"),
            ("course_utils.tasks", "what is to be learned"),
            ("course_utils.evaluation", "decode and measure"),
            ("course_utils.training", "the loop and its history"),
            ("course_utils.models", "the transformer"),
            ("course_utils.data", "sentences, tokens, batches"),
            ("course_utils", "shapes, seeds, devices"),
        ),
        "From corpus to figure: the rooms of the package that chapter 12 imports, the "
        "chapter on top, display, tasks, evaluation, training, models and data below.",
    ),
    "answer": Flow(
        (f"{GRADING}.__main__", f"{GRADING}.sandbox.main", *QUESTIONS),
        (
            ("course_utils.grading.__main__", "the command"),
            ("course_utils.grading.classroom", "find, run and report a class"),
            ("course_utils.grading.sandbox", "run a stranger's notebook"),
            ("course_utils.grading", "judge an answer"),
            ("course_utils.grading.questions", "questions and their mistakes"),
            ("course_utils", "what the questions are about"),
        ),
        "From answer to grade: the command on top, then the classroom, the sandbox, "
        "the judge and the questions, each importing what stands below it.",
    ),
    "page": Flow(
        ("tools.build", *EXTENSIONS),
        (
            ("tools.build", "execute, stage, build"),
            ("tools.site", "pages, figures, mathematics"),
            ("tools.notebooks", "read, run and normalise"),
        ),
        "From notebook to page: the build on top, then the extensions of the site and "
        "what reads and runs the notebooks.",
    ),
}


def import_graph(root: Path, entries: Iterable[str]) -> dict[str, set[str]]:
    """What the entries import, directly or through others; each with its imports."""
    modules = modules_below(root)
    graph: dict[str, set[str]] = {}
    waiting = [*entries]
    while waiting:
        name = waiting.pop()
        if name in graph:
            continue
        if name.endswith(".ipynb"):
            names = imported(ast.parse(as_python(read(root / name))))
        else:
            path = modules[name]
            tree = ast.parse(path.read_text("utf-8"))
            names = imported(tree, package_of(name, path))
        graph[name] = names & modules.keys() - {name}
        waiting += graph[name]
    return graph


def room_of(module: str, rooms: Iterable[str]) -> str | None:
    """The room with the longest name that the module's name begins with."""
    inside = [r for r in rooms if module == r or module.startswith((f"{r}.", f"{r}/"))]
    return max(inside, key=len, default=None)


def listed(room: str, modules: list[str]) -> list[str]:
    """The modules of a room in lines that fit; where they are many, their number."""
    names = [m.removeprefix(f"{room}.").removesuffix(".ipynb") for m in modules]
    names = [] if names == [room] else names
    return textwrap.wrap(
        ", ".join(names) if len(names) < 30 else f"{len(names)} modules", 44
    )


def flow_drawing(flow: Flow, graph: dict[str, set[str]]) -> Drawing:
    """Draw the rooms below each other, and what each imports of the others."""
    prefixes = [prefix for prefix, _ in flow.rooms]
    inside: dict[str, list[str]] = {prefix: [] for prefix in prefixes}
    for module in sorted(graph):
        if room := room_of(module, prefixes):
            inside[room].append(module)
    lists = {
        prefix: textwrap.wrap(
            ", ".join(
                m.removeprefix(f"{prefix}.").removesuffix(".ipynb") for m in found
            )
            if len(found) < 30
            else f"{len(found)} modules",
            44,
        )
        for prefix, found in inside.items()
    }
    heights = [44 + 15 * len(lists[prefix]) for prefix in prefixes]
    drawn = Drawing(WIDTH, sum(heights) + 26 * (len(prefixes) - 1) + 4)
    top, left, middle = 2.0, (WIDTH - ROOM) / 2, WIDTH / 2
    places: dict[str, tuple[float, float]] = {}
    for (prefix, purpose), height in zip(flow.rooms, heights):
        centre = top + height / 2
        drawn.box(middle, centre, ROOM, height, role="blue")
        drawn.text(left + 10, top + 15, prefix, 13, "start", bold=True)
        drawn.text(left + 10, top + 31, purpose, 12, "start", "muted")
        for i, line in enumerate(lists[prefix]):
            drawn.text(left + 10, top + 47 + 15 * i, line, 12, "start")
        places[prefix] = (top, top + height)
        top += height + 26
    arrows = room_imports(graph, prefixes)
    for i, (upper, lower) in enumerate(sorted(arrows)):
        start, end = places[upper], places[lower]
        if prefixes.index(lower) == prefixes.index(upper) + 1:
            drawn.arrow((middle, start[1]), (middle, end[0]))
        elif not passes_through(upper, lower, arrows):
            side = left - 6 - 5 * (i % 3)
            drawn.arrow(
                (left, start[1] - 8), (side, start[1] - 8), (side, end[0] + 8),
                (left, end[0] + 8),
            )  # fmt: skip
    return drawn


def room_imports(
    graph: dict[str, set[str]], prefixes: list[str]
) -> set[tuple[str, str]]:
    """The pairs of rooms of which the first imports something of the second."""
    pairs = {
        (room_of(module, prefixes), room_of(other, prefixes))
        for module, others in graph.items()
        for other in others
    }
    return {(a, b) for a, b in pairs if a and b and a != b}


def passes_through(upper: str, lower: str, arrows: set[tuple[str, str]]) -> bool:
    """Whether other arrows lead from the upper room to the lower one already."""
    reached, waiting = set(), [b for a, b in arrows if a == upper and b != lower]
    while waiting:
        room = waiting.pop()
        if room not in reached:
            reached.add(room)
            waiting += [b for a, b in arrows if a == room]
    return lower in reached


class FlowDirective(SphinxDirective):
    """One of the project's flows, as a diagram."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Draw the flow from the imports as they are now."""
        flow = FLOWS.get(self.arguments[0])
        if flow is None:
            raise self.error(
                f"there is no flow {self.arguments[0]!r}, expected one of "
                f"{', '.join(FLOWS)}"
            )
        drawn = flow_drawing(flow, import_graph(ROOT, flow.entries))
        page = diagram_html(Diagram(drawn), html.unescape(flow.alt))
        return [nodes.raw("", page, format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("flow", FlowDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
