"""Exercises are made from solutions, run when blank, and never give an answer away."""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools.notebooks import exercises
from tools.notebooks.exercises import SolutionError, check, cut, exercise_of, generate
from tools.notebooks.io import ROOT, dumps, parse, read
from tools.notebooks.normalise import canonical

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
SOLUTION = f"""
# %% [markdown]
# # Exercises: doubling

# %%
def double(x):
    {BEGIN}
    twice_as_much = x + x
    return twice_as_much
    {END}

# %% [markdown] tags=["solution"]
# Adding a number to itself doubles it.

# %%
{BEGIN}
eight, sixteen = double(4), double(8)
{END}

# %% tags=["solutions-only"]
assert (eight, sixteen) == (8, 16)

# %% tags=["exercises-only"]
print("your turn")
"""


def notebook(text: str) -> NotebookNode:
    return jupytext.reads(text, "py:percent")


def sources(nb: NotebookNode) -> list[str]:
    return [cell.source for cell in nb.cells]


def run(nb: NotebookNode) -> dict:
    """Run all code cells, as a learner would with a fresh exercise."""
    names: dict = {}
    for cell in nb.cells:
        if cell.cell_type == "code":
            exec(compile(parse(cell.source), cell.id, "exec"), names)
    return names


# ----------------------------------------------------------------- the course itself


def test_every_exercise_is_what_its_solution_makes_it():
    found = check()
    assert not found, "\n".join(found)


# ------------------------------------------------------------------ what is generated


def test_answers_become_stubs_at_their_indentation():
    title, function, names, turn = sources(exercise_of(notebook(SOLUTION)))
    assert title == "# Exercises: doubling"
    assert function == (
        "def double(x):\n"
        "    # YOUR CODE HERE\n"
        '    raise NotImplementedError("write your answer here")'
    )
    assert names == "eight = ...  # your answer\nsixteen = ...  # your answer"
    assert turn == 'print("your turn")'


def test_a_blank_exercise_runs_and_raises_only_once_called():
    names = run(exercise_of(notebook(SOLUTION)))
    assert names["eight"] is ...
    with pytest.raises(NotImplementedError, match="write your answer here"):
        names["double"](2)


def test_the_solution_runs_as_it_stands():
    assert run(notebook(SOLUTION))["eight"] == 8


def test_given_code_around_an_answer_stays():
    source = f"class A:\n    def f(self, x):\n        y = 1\n        {BEGIN}\n"
    source += f"        y = x * 2 + 12345\n        {END}\n        return y"
    exercise, secrets = cut(source)
    assert secrets == ["        y = x * 2 + 12345"]
    assert exercise.startswith(
        "class A:\n    def f(self, x):\n        y = 1\n        #"
    )
    assert exercise.endswith("\n        return y")


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("a = b = 1", ["a", "b"]),
        ("a: int = 1", ["a"]),
        ("(a, *b), c = x", ["a", "b", "c"]),
        ("total = 0\nfor i in range(3):\n    total = total + i", ["total"]),
        ("with open('f') as f:\n    text = f.read()", ["text"]),
        ("a = 1\nrow[0] = a\nthing.field = 2", ["a"]),
        ("a = {\n    'x': 1,\n}", ["a"]),
    ],
)
def test_outside_functions_every_name_assigned_is_left_to_fill_in(answer, names):
    exercise, _ = cut(f"{BEGIN}\n{answer}\n{END}")
    assert exercise == "\n".join(f"{name} = ...  # your answer" for name in names)


def test_an_answer_in_a_block_outside_functions_keeps_the_block():
    exercise, _ = cut(f"with quiet():\n    {BEGIN}\n    a = 1\n    {END}")
    assert exercise == "with quiet():\n    a = ...  # your answer"


def test_magics_do_not_disturb_the_cut():
    exercise, _ = cut(f"%pip list\n{BEGIN}\na = 12345\n{END}\n!ls")
    assert exercise == "%pip list\na = ...  # your answer\n!ls"


def test_outputs_and_their_tests_stay_with_the_solution():
    shown = [new_output("stream", name="stdout", text="the answer is 42\n")]
    tagged = {"tags": ["nbval-check-output", "hide-input"]}
    nb = new_notebook(
        cells=[
            new_code_cell(f"{BEGIN}\na = 42\n{END}"),
            new_code_cell("print(a)", outputs=shown, metadata=tagged),
        ]
    )
    exercise = exercise_of(nb)
    assert "42" not in dumps(exercise)
    assert exercise.cells[1].metadata == {"tags": ["hide-input"]}


# ----------------------------------------------------------------- what is refused


def function(*lines: str) -> str:
    return "def f(x):\n" + "\n".join(lines)


REFUSED = {
    "no end": (f"{BEGIN}\na = 1", "line 1: BEGIN SOLUTION with no END"),
    "no begin": (f"a = 1\n{END}", "line 2: END SOLUTION with no BEGIN"),
    "two begins": (f"{BEGIN}\n{BEGIN}\na = 1\n{END}", "line 2: a second BEGIN"),
    "two ends": (f"{BEGIN}\na = 1\n{END}\n{END}", "line 4: END SOLUTION with no BEGIN"),
    "end indented otherwise": (
        function(f"    {BEGIN}", "    return 1", END),
        "line 4: END SOLUTION is not indented as its BEGIN in line 2",
    ),
    "markers indented less": (
        function(BEGIN, "    return 1", END),
        "line 2: the markers are not indented as the answer",
    ),
    "markers indented more": (
        function(f"        {BEGIN}", "    return 1", f"        {END}"),
        "line 2: the markers are not indented as the answer",
    ),
    "one hash less": (f"## BEGIN SOLUTION\na = 1\n{END}", "line 1: .* looks like a"),
    "both one hash less": ("## BEGIN SOLUTION\na = 1\n## END SOLUTION", "looks like"),
    "one hash": ("# BEGIN SOLUTION\na = 1\n# END SOLUTION", "line 1: .* looks like a"),
    "four": (f"#{BEGIN}\na = 1\n#{END}", "line 1: .* looks like a marker"),
    "plural": (f"{BEGIN}S\na = 1\n{END}S", "line 1: .* looks like a marker"),
    "lower case": (f"{BEGIN.lower()}\na = 1\n{END.lower()}", "line 1: .* looks like"),
    "no space": ("###BEGIN SOLUTION\na = 1\n###END SOLUTION", "line 1: .* looks like"),
    "typo": ("# BEGIN SOLUTOIN\na = 1\n# END SOLUTOIN", "line 1: .* looks like"),
    "after code": (f"a = 1  {BEGIN}", "line 1: .* looks like a marker"),
    "nothing inside": (f"{BEGIN}\n# a comment\n{END}", "line 1: there is no code"),
    "a whole function": (f"{BEGIN}\ndef f():\n    pass\n{END}", "whole definition"),
    "no name": (f"{BEGIN}\nprint(1)\n{END}", "line 1: this solution assigns no name"),
    "in a string": (f'a = """\n{BEGIN}\nb = 1\n{END}\n"""', "there is no code"),
    "in a call": (f"f(\n{BEGIN}\n1,\n{END}\n)", "there is no code"),
    "across a statement": (
        f"{BEGIN}\na = 1\nb = (\n{END}\n2)",
        "line 1: a marker stands inside the statement of line 3",
    ),
    "across a block": (
        f"{BEGIN}\na = 1\nfor i in a:\n    b = 1\n{END}\n    c = 1",
        "line 1: a marker stands inside the statement of line 3",
    ),
    "under a decorator": (
        function("    @cache", f"    {BEGIN}", "    def g(): ...", f"    {END}"),
        r"after cutting\), line 4: invalid syntax",
    ),
    "no Python": (f"{BEGIN}\na = = 1\n{END}", "line 2: invalid syntax"),
    "no Python, no marker": ("BEGIN SOLUTION\na = 1\nEND SOLUTION", "line 1: "),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_doubtful_solution_is_an_error_that_says_where(what):
    source, says = REFUSED[what]
    fine = new_code_cell(f"{BEGIN}\nx = 12345\n{END}")
    nb = new_notebook(cells=[fine, new_code_cell(source)])
    with pytest.raises(SolutionError, match=rf"^06.ipynb: cell 1 \(.*{says}"):
        exercise_of(nb, "06.ipynb")


def test_a_marker_in_prose_is_refused():
    nb = notebook(SOLUTION + f"\n# %% [markdown]\n# {BEGIN}\n# secret\n# {END}\n")
    with pytest.raises(SolutionError, match="a marker in a markdown cell"):
        exercise_of(nb)


def test_a_solution_with_nothing_to_answer_is_refused():
    with pytest.raises(SolutionError, match="nothing to answer"):
        exercise_of(notebook("# %%\na = 1\n"))


@pytest.mark.parametrize("place", ["# %%\n", "# %% [markdown]\n# Hint: "])
def test_an_answer_that_also_stands_elsewhere_is_refused(place):
    leak = f"\n{place}twice_as_much = x + x\n"
    with pytest.raises(SolutionError, match="'twice_as_much = x \\+ x' also stands in"):
        exercise_of(notebook(SOLUTION + leak))


def test_an_explanation_that_also_stands_elsewhere_is_refused():
    leak = "\n# %% [markdown]\n# Adding a number to itself doubles it.\n"
    with pytest.raises(SolutionError, match="gives the answer away"):
        exercise_of(notebook(SOLUTION + leak))


def test_ordinary_comments_are_no_markers():
    text = "# a solution of the equation above is known\na = 1  # begin here"
    assert cut(text) == (text, [])


# ------------------------------------------------------------------- for any notebook

words = st.integers(10_000, 99_999).map(lambda n: f"secret{n}")
answers = st.lists(words, min_size=1, max_size=4)
wraps = st.sampled_from(["", "def f(x):", "class A:\n    def f(self):", "if True:"])


def answered(wrap: str, names: list[str], begin: str = BEGIN, end: str = END) -> str:
    """A cell whose answer assigns `names`, inside `wrap`."""
    depth = "    " * (wrap.count("\n") + 1 if wrap else 0)
    given = [f"{depth}given = 1"]
    lines = [f"{depth}{name} = {name[6:]} + 1" for name in names]
    answer = [depth + begin, *lines, depth + end]
    return "\n".join(([wrap] if wrap else []) + given + answer + given)


@settings(deadline=None)
@given(st.lists(st.tuples(wraps, answers), min_size=1, max_size=4))
def test_no_line_of_any_answer_is_in_the_exercise(cells):
    nb = new_notebook(cells=[new_code_cell(answered(*cell)) for cell in cells])
    text = "\n".join(sources(exercise_of(nb)))
    assert text.count("given = 1") == 2 * len(cells)
    assert "SOLUTION" not in text
    for wrap, names in cells:
        for name in names:
            assert f"{name[6:]} + 1" not in text
            assert not wrap.endswith(":") or wrap == "if True:" or "raise" in text
    run(exercise_of(nb))


@st.composite
def mangled(draw: st.DrawFn) -> tuple[str, str]:
    """Both markers after the same slip of a finger, or only one of them after it."""
    place, letter = draw(st.integers(0, 17)), draw(st.sampled_from("#xX S\t"))
    slip = draw(
        st.sampled_from(
            [
                lambda m: m[: place % len(m)] + m[place % len(m) + 1 :],
                lambda m: m[: place % len(m)] + letter + m[place % len(m) :],
                lambda m: m[: place % len(m)] + letter + m[place % len(m) + 1 :],
                str.lower,
                str.title,
                lambda m: m.replace("SOLUTION", "SOLUTIONS"),
                lambda m: m.replace("### ", "###"),
                lambda m: m.replace("###", "#"),
                lambda m: m[3:],
            ]
        )
    )
    first, second = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    return (slip(BEGIN) if first else BEGIN, slip(END) if second else END)


@settings(deadline=None)
@example("", ["secret10000"], ("### BEGIN SOL#TION", "### END SOLUT#ON"))
@given(wraps, answers, mangled())
def test_a_mangled_marker_never_leaks_an_answer(wrap, names, markers):
    fine = new_code_cell(answered("", ["secret00000"]))
    broken = new_code_cell(answered(wrap, names, *markers))
    try:
        exercise = exercise_of(new_notebook(cells=[fine, broken]))
    except SolutionError:
        return
    text = "\n".join(sources(exercise))
    assert not [name for name in names if f"{name[6:]} + 1" in text]


# ---------------------------------------------------------------------------- files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("exercises", "solutions"):
        (tmp_path / folder).mkdir()
    config = "repository: {url: https://github.com/a/b, branch: main}\n"
    (tmp_path / "_config.yml").write_text(config)
    nbformat.write(notebook(SOLUTION), tmp_path / "solutions" / "01_one.ipynb")
    return tmp_path


def test_check_fails_until_generated_and_again_when_stale(root):
    assert "is missing" in "".join(check(root))
    generate(root)
    assert check(root) == []
    exercise = root / "exercises" / "01_one.ipynb"
    assert dumps(canonical(read(exercise))) == exercise.read_text("utf-8")
    exercise.write_text(exercise.read_text("utf-8").replace("your turn", "go"))
    assert "is stale; change solutions/01_one.ipynb" in "".join(check(root))
    generate(root)
    assert check(root) == []


def test_an_exercise_without_a_solution_is_named(root):
    generate(root)
    (root / "exercises" / "01_one.ipynb").rename(root / "exercises" / "02_two.ipynb")
    assert any("02_two.ipynb has no solutions/" in found for found in check(root))


def test_nothing_is_written_while_one_solution_is_in_doubt(root):
    bad = notebook(f"# %%\n{BEGIN}\na = 1\n")
    nbformat.write(bad, root / "solutions" / "02_two.ipynb")
    with pytest.raises(SolutionError, match=r"02_two\.ipynb: cell 0"):
        generate(root)
    assert list((root / "exercises").iterdir()) == []


def test_the_command_says_what_is_wrong_and_fails(root, monkeypatch, capsys):
    monkeypatch.setattr(exercises, "check", lambda: check(root))
    assert exercises.main(["check"]) == 1
    assert (
        "run `python -m tools.notebooks.exercises generate`" in capsys.readouterr().out
    )
    generate(root)
    assert exercises.main(["check"]) == 0


@pytest.mark.parametrize("path", sorted((ROOT / "exercises").glob("*.ipynb")))
def test_an_exercise_shows_how_far_one_is_in_its_own_chapter(path):
    shown = [c.source for c in read(path).cells if c.source.startswith("progress(")]
    assert shown == [f'progress("{path.name[:2]}")']
