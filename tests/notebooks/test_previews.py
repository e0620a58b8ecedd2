"""A chapter shows pictures where nothing runs, and none of them is an old one."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import jupytext
import numpy as np
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from course_utils.display.figures import figure_html
from tools import previews
from tools.notebooks.dependencies import inputs
from tools.notebooks.io import ROOT, dumps, read, tags
from tools.notebooks.normalise import canonical
from tools.notebooks.previews import (
    KEY,
    LARGEST,
    TAG,
    chosen,
    code_cells,
    drawn_from,
    png,
    preview_findings,
    stale,
    stored,
)

CHAPTER = """
# %%
import torch
x = 1

# %%
diagrams.show(diagrams.block(layer, x), alt="…")

# %%
plots.show(ax, alt="…")

# %% tags=["nbval-check-output"]
plots.show(text, alt="…")

# %%
diagrams.show(diagrams.heads(layer, x), alt="…")

# %%
plots.show(second, alt="…")

# %%
plots.show(last, alt="…")

# %% tags=["remove-cell"]
plots.show(live, alt="…")
"""
PATH = Path("book/01_one.ipynb")
GROWTH = 1_500_000  # bytes in git, all pictures together
# Another seed changed none of 12 figures by more than 0.028. Of two different figures
# half differ by 0.27 or more, and 96 of 100 pairs by more than this: it sees that a
# picture has become another one, and leaves what is finer to the digest.
ALIKE = 0.04


def chapter(text: str = CHAPTER) -> NotebookNode:
    return canonical(jupytext.reads(text, "py:percent"))


def tagged(nb: NotebookNode) -> list[str]:
    return [cell.source for cell in nb.cells if TAG in tags(cell)]


def image(shade: int = 255, size: tuple[int, int] = (60, 40)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (shade,) * 3).save(file, format="png")
    return file.getvalue()


def kept(nb: NotebookNode, cell: NotebookNode, data: bytes = b"") -> NotebookNode:
    """The output that a cell keeps."""
    coded = base64.b64encode(data or image()).decode()
    return new_output(
        "display_data",
        data={"image/png": coded, "text/plain": "A picture."},
        metadata={KEY: drawn_from(nb, cell.id)},
    )


def drawn(text: str = CHAPTER, data: bytes = b"") -> NotebookNode:
    """A chapter with all of its pictures."""
    nb = chosen(chapter(text))
    for cell in nb.cells:
        if TAG in tags(cell):
            cell.outputs = [kept(nb, cell, data)]
    return nb


# ----------------------------------------------------------------- the course itself


def test_all_pictures_together_are_small():
    chapters = previews.chapters()
    cells = [cell for path in chapters for cell in code_cells(read(path))]
    sizes = [len(out.data["image/png"]) for cell in cells for out in stored(cell)]
    assert len(sizes) >= len(chapters)
    assert sum(sizes) < GROWTH


@pytest.mark.browser
def test_every_picture_resembles_the_figure_that_its_chapter_draws_now():
    found = []
    with previews.drawing_page() as page:
        for path in previews.chapters():
            result = previews.executed(path)
            cells = zip(code_cells(read(path)), code_cells(result), strict=True)
            for cell, ran in cells:
                if TAG not in tags(cell):
                    continue
                pairs = zip(stored(cell), previews.figures(ran), strict=True)
                found += [
                    f"{path.name}, cell {cell.id}: its picture is of another figure; "
                    f"run `python -m tools.previews book/{path.name}`"
                    for old, (html, _) in pairs
                    if previews.difference(png(old), previews.picture(page, html))
                    > ALIKE
                ]
    assert not found, "\n".join(found)


# -------------------------------------------------------------------------- which cells


def test_the_first_diagram_and_the_first_and_last_plot_are_chosen():
    assert [source.partition(",")[0] for source in tagged(chosen(chapter()))] == [
        "diagrams.show(diagrams.block(layer",
        "plots.show(ax",
        "plots.show(last",
    ]


def test_what_an_author_has_tagged_stays_and_only_the_other_kind_is_added():
    text = CHAPTER.replace("# %%\nplots.show(second", '# %% tags=["preview"]\n@second')
    nb = chosen(chapter(text.replace("@second", "plots.show(second")))
    assert [source.partition(",")[0] for source in tagged(nb)] == [
        "diagrams.show(diagrams.block(layer",
        "plots.show(second",
    ]
    assert chosen(nb) == nb


def test_choosing_changes_nothing_in_the_notebook_given():
    nb = chapter()
    before = dumps(nb)
    chosen(nb)
    assert dumps(nb) == before


def test_the_tag_does_not_make_a_notebook_run_again():
    assert inputs(chosen(chapter()), ROOT) == inputs(chapter(), ROOT)


# ------------------------------------------------------------------------ what is stale


def test_a_chapter_with_its_pictures_is_fine_and_other_notebooks_need_none():
    assert preview_findings(drawn(), PATH) == []
    for path in ("book/errata.ipynb", "exercises/01_one.ipynb"):
        assert preview_findings(chapter(), Path(path)) == []


@pytest.mark.parametrize(
    ("old", "new", "n_stale"),
    [
        ("x = 1", "x = 2", 3),
        ("plots.show(second", "plots.show(third", 1),
        ("plots.show(last, ", "plots.show(last, name='a', ", 1),
        ("x = 1", "x  =  1  # one", 0),
        ("plots.show(live", "plots.show(other", 0),
    ],
)
def test_a_picture_is_stale_when_code_up_to_its_cell_has_changed(old, new, n_stale):
    before, after = drawn(), chosen(chapter(CHAPTER.replace(old, new)))
    assert before.cells[0].source != after.cells[0].source or old != "x = 1"
    for cell, changed in zip(before.cells, after.cells):
        changed.outputs = cell.outputs
    assert len(stale(after)) == n_stale
    found = preview_findings(after, PATH)
    assert len(found) == n_stale
    assert all("drawn from other code" in finding for finding in found)


def test_a_chapter_without_pictures_is_told_what_to_run():
    found = preview_findings(chapter(), PATH)
    assert found == ["its main figures are not tagged preview; run `python -m "
                     "tools.previews`"]  # fmt: skip
    assert len(preview_findings(chosen(chapter()), PATH)) == 3


def test_a_picture_that_is_too_large_is_found():
    noise = np.random.default_rng(0).integers(0, 255, (200, 300, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, format="png")
    found = preview_findings(drawn(data=file.getvalue()), PATH)
    assert len(found) == 3
    assert all(f"at most {LARGEST:,} are stored" in finding for finding in found)


def test_git_keeps_the_picture_and_nothing_else_of_a_cell():
    nb = drawn()
    wanted = [output for cell in nb.cells for output in cell.outputs]
    shown = new_output("display_data", data={"text/html": "<svg/>", "text/plain": "x"})
    foreign = new_output("display_data", data={"image/png": "aGk=", "text/plain": "x"})
    for cell in nb.cells:
        cell.outputs, cell.execution_count = [shown, *stored(cell), foreign], 7
    clean = [cell for cell in canonical(nb).cells if "nbval" not in str(tags(cell))]
    assert [output for cell in clean for output in cell.outputs] == wanted
    # nbval refuses the outputs of a cell that seems never to have run
    assert all(cell.execution_count == (1 if cell.outputs else None) for cell in clean)


# ------------------------------------------------------------------------ the pictures

DRAWING = '<svg width="300" height="200"><path d="M0 0h150v200h-150" fill="#1f5fa8"/>'


@pytest.fixture(scope="module")
def page():
    with previews.drawing_page() as opened:
        yield opened


def executed(nb: NotebookNode, drawing: str = DRAWING) -> NotebookNode:
    """A notebook whose cells have run: all show a figure."""
    html = figure_html(f"{drawing}</svg>", "A caption.")
    data = {"text/html": html, "text/plain": "Half of it is blue.\nA caption."}
    outputs = [new_output("display_data", data=data)]
    cells = [
        new_code_cell(cell.source, metadata=cell.metadata, outputs=outputs)
        for cell in nb.cells
    ]
    return new_notebook(cells=cells)


@pytest.mark.browser
def test_pictures_are_drawn_where_they_are_missing_and_kept_where_not(page: Any):
    nb = chapter()
    made = previews.with_pictures(nb, executed(nb), page)
    assert preview_findings(canonical(made), PATH) == []
    (output,) = made.cells[1].outputs
    assert output.data["text/plain"] == "Half of it is blue."
    width, height = Image.open(io.BytesIO(png(output))).size
    assert 1.4 * 300 < width < 1.6 * 330  # a card around it, and no caption below
    assert 1.4 * 200 < height < 1.6 * 225
    assert abs(output.metadata["image/png"]["width"] * previews.SCALE - width) < 2
    other = executed(nb, DRAWING.replace("#1f5fa8", "#b35300"))
    before = dumps(made)
    assert dumps(previews.with_pictures(made, other, page)) == before
    anew = previews.with_pictures(made, other, page, anew=True)
    assert previews.difference(png(anew.cells[1].outputs[0]), png(output)) > ALIKE


@pytest.mark.browser
def test_a_tagged_cell_that_shows_no_figure_is_refused(page: Any):
    nb = chosen(chapter())
    blank = executed(nb)
    blank.cells[1].outputs = []
    with pytest.raises(ValueError, match="is tagged preview and shows no figure"):
        previews.with_pictures(nb, blank, page)


@pytest.mark.browser
def test_a_figure_of_many_colours_gets_fewer_until_it_is_small(page: Any):
    noise = np.random.default_rng(0).integers(0, 2**24, 60 * 60)
    dots = "".join(
        f'<rect x="{5 * (i % 60)}" y="{5 * (i // 60)}" width="5" height="5" '
        f'fill="#{colour:06x}"/>'
        for i, colour in enumerate(noise)
    )
    figure = figure_html(f'<svg width="300" height="300">{dots}</svg>')
    assert len(previews.picture(page, figure)) <= LARGEST


def test_pictures_differ_by_shade_and_by_shape():
    assert previews.difference(image(), image()) == 0
    assert previews.difference(image(0), image(255)) == 1
    assert previews.difference(image(), image(size=(60, 60))) == pytest.approx(0.5)


def test_a_chapter_that_has_not_been_executed_is_named(tmp_path: Path):
    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"))
    path = tmp_path / "book" / "01_one.ipynb"
    path.parent.mkdir()
    path.write_text(dumps(chapter()))
    with pytest.raises(ValueError, match=r"01_one\.ipynb has no result.*`make book`"):
        previews.draw([path], tmp_path)
