"""An honest notebook gets from the grader what its own `check` said, in any style."""

from __future__ import annotations

import json
import os
from pathlib import Path

import nbformat
import pytest
from answer_styles import POINTS, UNSEEN
from answer_styles import STYLES as ANSWERS
from nbclient import NotebookClient

from course_utils.grading.classroom.submission_grader import examine, judge_all
from course_utils.grading.classroom.submissions import Notebook
from course_utils.grading.questions import chapter_questions
from course_utils.grading.sandbox.replayer import replayer
from course_utils.grading.sandbox.sandbox import Limits
from tools.notebooks.io import read

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
QUESTIONS = chapter_questions("06")[:7]  # 21 points

# Cells as people write them before their answers, each fit for any notebook.
STYLES = {
    "display": "display({'a': 1})",
    "display of IPython": (
        "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))"
    ),
    "the shell": "get_ipython().run_line_magic('matplotlib', 'inline')",
    "the shell, imported": (
        "from IPython import get_ipython\n"
        "get_ipython().run_line_magic('config', 'Completer.use_jedi = False')"
    ),
    "await": (
        "import asyncio\nawait asyncio.sleep(0.01)\n"
        "waited = await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2))\n"
        "assert waited == [1, 2]"
    ),
    "await a thread": (
        "import asyncio\nassert await asyncio.to_thread(lambda: 3) == 3"
    ),
    "a command": "!echo hello\n!pip --version",
    "what a command said": "files = !ls\nfor f in files: print(f)\nlen(files)",
    "a magic of one line": "%time made = 3\nassert made == 3\n%who",
    "options of a magic": "%timeit -n 1 -r 1 sum(range(10))",
    "a magic over Python": "%%time\nby_magic = 4",
    "captured": "%%capture output\nprint('x')\ncaptured = 5",
    "what magics bound": "assert (by_magic, captured) == (4, 5)",
    "another language": "%%bash\necho hello",
    "help": "?len\nlen?",
    "the last value": "3 + 4",
    "and the one before": "assert _ == 7 and Out[len(In) - 2] == 7",
    "and the cell before": "assert '7' in _i and _i == In[-2]",
    "names of one's own": "In, Out, __ = 1, 2, 3\n8",
    "are nobody else's": "assert (In, Out, __) == (1, 2, 3)",
    "a class with its dictionary": (
        "class Settings:\n    def __init__(self, **given):\n"
        "        self.__dict__.update(given)\n"
        "    def read(self, name):\n        return getattr(self, name)\n"
        "assert Settings(a=1).read('a') == 1"
    ),
    "vars": "import argparse\nvars(argparse.Namespace(x=1))",
    "words in a comment": "# model.eval (no dropout), exec (later), __globals__",
    "an open pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(2)\nassert pool.submit(len, 'ab').result() == 2"
    ),
    "progress bars": (
        "from tqdm.auto import tqdm\nfor _ in tqdm(range(3)): pass\n"
        "from tqdm.notebook import tqdm as bar\nfor _ in bar(range(3)): pass"
    ),
    "a figure": (
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
        "plt.style.use('ggplot')"
    ),
    "a graded cell of nbgrader": (
        "from course_utils.grading.checks import grade_answer\n"
        "grade_answer('06.5', lambda: (8, 32, 4)).points"
    ),
    "a command by subprocess": (
        "import subprocess\nassert subprocess.run(['ls']).returncode == 0\n"
        "subprocess.check_output(['ls']).decode()"
    ),
    "a file of one's own": "%%writefile of_my_own.py\nmine = 6",
    "a file that is run": "%run of_my_own.py\nassert mine == 6",
    "a late future": "import math\nfrom __future__ import annotations",
    "and what it allows": "def later(x: NotThere): return x",
    "an assertion that fails": "assert False, 'not yet'",
}
DEPENDS = {"what magics bound": ("a magic over Python", "captured")}
DEPENDS["and the one before"] = ("the last value",)
DEPENDS["and the cell before"] = ("the last value", "and the one before")
DEPENDS["are nobody else's"] = ("names of one's own",)
DEPENDS["a file that is run"] = ("a file of one's own",)
DEPENDS["and what it allows"] = ("a late future",)


def solution() -> list[str]:
    notebook = read(ROOT / "solutions" / "06_queries_keys_values.ipynb")
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def by_check(cells: list[str], folder: Path) -> dict[str, int]:
    """The points that `check` shows in a real kernel."""
    made = [nbformat.v4.new_code_cell(cell) for cell in cells]
    notebook = nbformat.v4.new_notebook(cells=made)
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=120, allow_errors=True, resources=place)
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    kept = json.loads((folder / ".course_progress.json").read_text())["questions"]
    errors = [
        (cell.source, output.evalue)
        for cell in notebook.cells
        for output in cell.outputs
        if output.output_type == "error" and "not yet" not in output.evalue
    ]
    assert errors == []  # each style is good in Jupyter
    return {question.id: kept[question.id]["points"] for question in QUESTIONS}


def by_grader(cells: list[str]) -> tuple[dict[str, int], list[str]]:
    notebook = Notebook(tuple(cells), digest="\n".join(cells))
    found = examine(notebook, QUESTIONS, "secret", Limits())
    by = replayer(Limits(), "bubblewrap")
    results, more = judge_all(notebook, QUESTIONS, "secret", found, by)
    points = {result.question: result.points for result in results}
    return points, [*found.flags, *more]


def without(cells: list[str], name: str) -> list[str]:
    """Spoil one answer, so that not everything is right."""
    spoiled = [cell.replace("softmax(dim=-1)", "softmax(dim=-2)") for cell in cells]
    assert spoiled != cells, name
    return spoiled


def test_check_and_grader_agree_on_every_style_at_once(tmp_path):
    for i, answers in enumerate((solution(), without(solution(), "06.1"))):
        folder = tmp_path / str(i)
        folder.mkdir()
        cells = [*STYLES.values(), *answers]
        points, flags = by_grader(cells)
        assert [flag for flag in flags if "not yet" not in flag] == []
        assert points == by_check(cells, folder)
        assert (sum(points.values()) == 21) == (i == 0)


@pytest.mark.parametrize("style", STYLES)
def test_a_style_alone_costs_nothing_and_is_no_reason_for_a_flag(style):
    before = [STYLES[name] for name in DEPENDS.get(style, ())]
    points, flags = by_grader([*before, STYLES[style], *solution()])
    assert sum(points.values()) == 21
    if style == "an assertion that fails":
        assert flags == ["cell 1: AssertionError: not yet"]
    else:
        assert flags == []


def test_a_magic_that_is_passed_over_is_said_and_no_flag():
    cells = ("%%bash\nls", "%who", "%matplotlib inline", *solution())
    found = examine(Notebook(cells, digest="x"), QUESTIONS, "secret", Limits())
    assert found.flags == []
    assert found.notes == [
        "cell 1: %%bash is passed over",
        "cell 2: %who is passed over",
    ]


IMPORTS = "import math\n\nimport torch\n\nfrom course_utils.checks import check"
CHECK = """
from pathlib import Path
Path(".course_progress.json").unlink(missing_ok=True)
check("06.1", attention)
kept = "".join(Path(".course_progress.json").read_text().split())
"""


def test_check_gives_a_right_answer_its_points_however_it_is_written(tmp_path):
    sources = [IMPORTS]
    for name, answer in ANSWERS.items():
        sources += [answer, f"{CHECK}print({name!r}, kept, sep='|')"]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    place = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(notebook, timeout=120, resources=place)
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    texts = [  # a line may come in two pieces
        "".join(o.text for o in cell.outputs if o.get("name") == "stdout")
        for cell in notebook.cells
    ]
    lines = [line for text in texts for line in text.splitlines()]
    printed = [line.split("|") for line in lines if "|" in line]
    points = {
        name: json.loads(kept)["questions"]["06.1"]["points"] for name, kept in printed
    }
    assert points == {name: POINTS.get(name, 4) for name in ANSWERS}


@pytest.mark.parametrize("style", ANSWERS)
def test_the_grader_gives_it_the_same(style):
    cells = (IMPORTS, ANSWERS[style], 'check("06.1", attention)')
    notebook, asked = Notebook(cells, digest=style), QUESTIONS[:1]
    found = examine(notebook, asked, "secret", Limits())
    by = replayer(Limits(), "bubblewrap")
    (result,), more = judge_all(notebook, asked, "secret", found, by)
    assert result.points == POINTS.get(style, 4)
    flags = [*found.flags, *more]
    assert bool(flags) == (style in UNSEEN)
    assert all("how it works was not seen" in flag for flag in flags)
