"""Cells that the site leaves out: no build runs them, so they are tried here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from nbformat import NotebookNode

from course_utils.data.bpe import BytePairEncoder
from course_utils.data.corpus import BOS, EOS, PAD
from course_utils.models.rnn import Seq2SeqAttention
from course_utils.models.transformer import GPT, Transformer
from course_utils.tasks.translation import Settings, train_translator, translation_task
from tools.notebooks.dependencies import code_cells
from tools.notebooks.io import all_notebooks, parse, read, tags

Import = ast.Import | ast.ImportFrom
Definition = ast.FunctionDef | ast.ClassDef


def left_out() -> list[Any]:
    """Each cell that no page shows, with its chapter and the cells around it.

    The one that installs the course is left out too; the simulated Colab runs it.
    """
    return [
        pytest.param(path.stem[:2], cells[:n], cell, cells[n + 1 :], id=cell.id)
        for path in all_notebooks()
        for cells in [code_cells(read(path))]
        for n, cell in enumerate(cells)
        if "remove-cell" in tags(cell) and "colab" not in tags(cell)
    ]


EACH = pytest.mark.parametrize(("chapter", "before", "cell", "after"), left_out())


def statements(cells: Iterable[NotebookNode]) -> list[ast.stmt]:
    """What stands at the top of these cells."""
    return [statement for cell in cells for statement in parse(cell.source).body]


# ---------------------------------------------------------------- they may be missing


def names_bound(statement: ast.stmt) -> dict[str, str]:
    """The names that a statement binds, each with what it imports, if it does."""
    match statement:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            module = getattr(statement, "module", "")
            return {a.asname or a.name: f"{module}.{a.name}" for a in names}
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name: ""}
    nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return {node.id: "" for node in nodes if isinstance(node.ctx, ast.Store)}


def names_bound_by(cells: Iterable[NotebookNode]) -> set[tuple[str, str]]:
    """All of them for these cells."""
    return {pair for each in statements(cells) for pair in names_bound(each).items()}


@EACH
def test_no_shown_cell_needs_one_that_is_left_out(
    chapter: str,
    before: list[NotebookNode],
    cell: NotebookNode,
    after: list[NotebookNode],
) -> None:
    imported_before = {(name, what) for name, what in names_bound_by(before) if what}
    own = {name for name, _ in names_bound_by([cell]) - imported_before}
    shown = [each for each in after if "remove-cell" not in tags(each)]
    used = {
        node.id
        for statement in statements(shown)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    assert not own & used, (
        f"chapter {chapter}: {', '.join(sorted(own & used))} of the cell {cell.id} is "
        "used by a later one; the build does not run that cell: use another name."
    )


# ---------------------------------------------------------------- they work


def translator(kind: Callable[..., torch.nn.Module]) -> dict[str, Any]:
    """The task of chapters 03 and 12 with few sentences, and a model of them."""
    task = translation_task(0, Settings(n_train=64, n_test=21))
    model = kind(*task.sizes)
    train_translator(model, task, steps=30)
    words = task.source_vocabulary, task.target_vocabulary
    names = {"task": task, "runs": [{"task": task, "model": model}], "finished": model}
    names |= {"sources": words[0], "targets": words[1]}
    return {**names, "PAD": PAD, "BOS": BOS, "EOS": EOS}


def language_model() -> dict[str, Any]:
    """A byte-pair encoder and a model that was not trained."""
    encoder = BytePairEncoder.train("The expression is evaluated.", n_pieces=260)
    names: dict[str, Any] = {"encoder": encoder, "big_encoder": encoder}
    model = GPT(len(encoder), 64, d_model=16)
    return {**names, "model": model, "finished": model}


TINY: dict[str, Callable[[], dict[str, Any]]] = {
    "03": lambda: translator(Seq2SeqAttention),
    "12": lambda: translator(Transformer),
    "13": language_model,
}
TYPED = {"03": "the cat sleeps .", "12": "the cat sleeps .", "13": "The value is"}


@pytest.mark.slow
@EACH
def test_a_cell_that_is_left_out_answers_what_is_typed(
    chapter: str,
    before: list[NotebookNode],
    cell: NotebookNode,
    after: list[NotebookNode],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer() -> str:
        """What was printed since, without what clears a line of a terminal."""
        return capsys.readouterr().out.replace("\x1b[2K\r", "").strip()

    torch.manual_seed(0)
    names: dict[str, Any] = {}
    for statement in statements(before):  # what the page trains comes below, smaller
        constant = (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Constant)
            and all(isinstance(target, ast.Name) for target in statement.targets)
        )
        if constant or isinstance(statement, Import | Definition):
            exec(ast.unparse(statement), names)
    names |= TINY[chapter]()
    *work, last = statements([cell])
    exec(ast.unparse(ast.Module(work, [])), names)
    box, *menus, _ = eval(ast.unparse(last), names).children
    assert answer(), "the first example got no answer"
    box.value = TYPED[chapter]
    assert answer(), "what was typed got no answer"
    for menu in menus:
        menu.index = 1
        assert answer(), f"{menu.description} got no answer"


def test_every_left_out_cell_is_tried() -> None:
    assert {parameter.values[0] for parameter in left_out()} == {*TINY, *TYPED}
