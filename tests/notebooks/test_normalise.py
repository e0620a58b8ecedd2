"""Notebooks stand in git in one form, stamped with one address."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import urlsplit

import jupytext
import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.notebooks.io import FOLDERS, ROOT, all_notebooks, dumps, read
from tools.notebooks.normalise import (
    METADATA,
    canonical,
    check,
    main,
    normalise,
    record,
    slug,
    stamp,
)
from tools.notebooks.previews import KEY
from tools.notebooks.repo_links import (
    BADGE,
    blocks,
    colab_source,
    links_line,
    published,
    repository,
    stamped,
    stamped_page,
    strays,
    unstamped,
)

ADDRESS = "https://example.org/someone/somewhere"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A course of one chapter."""
    for folder in ("book", "exercises", "solutions"):
        (tmp_path / folder).mkdir()
    write_config(tmp_path, ADDRESS)
    nb = jupytext.reads("# %% [markdown]\n# # A claim\n\n# %%\n1 + 1\n", "py:percent")
    nbformat.write(nb, tmp_path / "book" / "01_one.ipynb")
    return tmp_path


def write_config(root: Path, url: str, branch: str = "main") -> None:
    text = f"repository:\n  url: {url}\n  branch: {branch}\n"
    (root / "_config.yml").write_text(text, encoding="utf-8")


def worn() -> NotebookNode:
    """A notebook as Jupyter and Colab leave it."""
    shown = [
        new_output("stream", name="stdout", text="2\n"),
        new_output("stream", name="stdout", text="3\n"),
        new_output(
            "execute_result",
            data={"text/plain": "4", "text/html": "<b>4</b>"},
            execution_count=7,
        ),
    ]
    kept = {"tags": ["nbval-check-output"], "id": "x", "colab": {"height": 35}}
    return new_notebook(
        cells=[
            new_markdown_cell("# Schöne Überschrift\n\ntext  \n\n"),
            new_code_cell("\n1 + 1", execution_count=3, outputs=shown),
            new_code_cell("1 + 1", execution_count=4, outputs=shown, metadata=kept),
            new_code_cell("  "),
        ],
        metadata={
            "kernelspec": {"name": "conda-env", "display_name": "conda"},
            "colab": {"provenance": []},
        },
    )


# ----------------------------------------------------------------- the course itself


def test_every_notebook_and_page_is_as_it_should_stand_in_git():
    found = check(all_notebooks())
    assert not found, "\n".join(found)


def test_the_repository_address_stands_in_config_alone():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    found = strays([path for path in paths if path.is_file()])
    assert not found, (
        f"{[str(p.relative_to(ROOT)) for p in found]} hold the repository's address; "
        "it stands in _config.yml alone: take it out, or mark a block (tools/stamps.py)"
    )


# -------------------------------------------------------------------- canonical form


def test_canonical_keeps_only_the_outputs_that_are_tested():
    _, plain, tested = canonical(worn()).cells
    assert plain.outputs == []
    assert plain.execution_count is None
    assert tested.execution_count == 1  # without one, nbval would compare nothing
    stream, result = tested.outputs
    assert stream.text == "2\n3\n"
    assert result.data == {"text/plain": "4"}
    assert result.execution_count is None


def test_canonical_keeps_only_the_metadata_the_course_uses():
    nb = canonical(worn())
    assert nb.metadata == METADATA
    assert nb.cells[2].metadata == {"tags": ["nbval-check-output"]}
    assert nb.nbformat_minor == 5


def test_canonical_keeps_captions_and_attachments():
    image = {"a.png": {"image/png": "aGk="}}
    picture = new_markdown_cell("![a](attachment:a.png)", attachments=image)
    figure = {"mystnb": {"figure": {"name": "fig"}}}
    nb = new_notebook(cells=[picture, new_code_cell("x", metadata=figure)])
    assert canonical(nb).cells[0].attachments == image
    assert canonical(nb).cells[1].metadata == figure


def test_canonical_trims_cells_and_drops_empty_ones():
    assert [cell.source for cell in canonical(worn()).cells] == [
        "# Schöne Überschrift\n\ntext",
        "1 + 1",
        "1 + 1",
    ]


def test_cell_ids_are_readable_and_never_twice():
    nb = new_notebook(cells=[new_markdown_cell(s) for s in ("A", "A", "A 2", "A", "→")])
    assert [c.id for c in canonical(nb).cells] == ["a", "a-2", "a-2-2", "a-3", "cell"]
    assert canonical(worn()).cells[0].id == "schone-uberschrift"
    assert slug("word " * 20) == "word-word-word-word-word-word-word-word"
    assert slug("x" * 99) == "x" * 40
    assert slug("$$\n\\alpha$$") == "alpha"


cells = st.lists(
    st.tuples(st.sampled_from(["code", "markdown", "raw"]), st.text(max_size=60)),
    max_size=6,
)


@settings(deadline=None)
@given(cells)
def test_canonical_form_of_a_canonical_notebook_is_itself(contents):
    made = [getattr(nbformat.v4, f"new_{kind}_cell")(text) for kind, text in contents]
    once = canonical(new_notebook(cells=made))
    nbformat.validate(once)
    assert dumps(canonical(nbformat.reads(dumps(once), as_version=4))) == dumps(once)


def test_canonical_changes_nothing_in_the_notebook_given():
    nb = worn()
    before = json.dumps(nb)
    canonical(nb)
    assert json.dumps(nb) == before


# ------------------------------------------------------------ check finds, names, mends


BREAK = {
    "metadata is more or less": lambda nb: nb.metadata.update(colab={}),
    r"form: id of cell 2 \(1-1\)": lambda nb: nb.cells[2].update(id="f00"),
    "execution_count of cell 2": lambda nb: nb.cells[2].update(execution_count=1),
    "outputs of cell 2": lambda nb: nb.cells[2].update(
        outputs=[new_output("stream", name="stdout", text="2")]
    ),
    "metadata of cell 2": lambda nb: nb.cells[2].metadata.update(scrolled=True),
    "source of cell 2": lambda nb: nb.cells[2].update(source="1 + 1\n"),
    "empty cells": lambda nb: nb.cells.append(new_code_cell("")),
    "links below the title.*stamp": lambda nb: nb.cells.pop(1),
    "links below the title.*stamp`": lambda nb: nb.cells[0].update(source="# A claim"),
    "stores no output.*record": lambda nb: nb.cells[2].metadata.update(
        tags=["nbval-check-output"]
    ),
}


@pytest.mark.parametrize("says", BREAK)
def test_check_names_what_is_not_normal(root, says):
    path = root / "book" / "01_one.ipynb"
    stamp([path], root)
    assert check([path], root) == []
    nb = read(path)
    BREAK[says](nb)
    nbformat.write(nb, path)
    found = check([path], root)
    with pytest.raises(AssertionError, match=f"01_one.ipynb: .*{says}"):
        assert not found, "\n".join(found)
    stamp([path], root)
    if "record" not in says:
        assert check([path], root) == []


def test_check_sees_another_layout_of_the_same_notebook(root):
    path = root / "book" / "01_one.ipynb"
    stamp([path], root)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    assert "layout" in "".join(check([path], root))
    normalise([path])
    assert check([path], root) == []


def test_normalise_says_what_it_wrote_and_then_has_nothing_to_do(root, capsys):
    path = root / "book" / "01_one.ipynb"
    normalise([path])
    assert "wrote" in capsys.readouterr().out
    before = path.stat().st_mtime_ns
    normalise([path])
    assert capsys.readouterr().out == ""
    assert path.stat().st_mtime_ns == before
    assert [p.name for p in path.parent.iterdir()] == ["01_one.ipynb"]


def test_a_file_that_is_no_notebook_is_named(tmp_path, capsys):
    path = tmp_path / "bad.ipynb"
    path.write_text("{")
    assert main(["normalise", str(path)]) == 1
    assert "bad.ipynb is not a readable notebook" in capsys.readouterr().err


# --------------------------------------------------------------------------- record


def test_record_stores_the_outputs_of_tested_cells_alone(root):
    path = root / "book" / "01_one.ipynb"
    text = '# %% tags=["nbval-check-output"]\nprint(2)\n3\n\n# %%\nprint(4)\n'
    nbformat.write(jupytext.reads(text, "py:percent"), path)
    record(path)
    tested, other = read(path).cells
    assert [o.get("text") or o.data["text/plain"] for o in tested.outputs] == [
        "2\n",
        "3",
    ]
    assert other.outputs == []


def test_record_keeps_the_pictures_of_other_cells(root):
    path = root / "book" / "01_one.ipynb"
    text = '# %% tags=["preview"]\nx = 1\n\n# %% tags=["nbval-check-output"]\nx\n'
    nb = jupytext.reads(text, "py:percent")
    picture = {"image/png": "aGk=", "text/plain": "x"}
    output = new_output("display_data", data=picture, metadata={"drawn-from": "0"})
    nb.cells[0].outputs = [output]
    nb = canonical(nb)
    nbformat.write(nb, path)
    record(path)
    shown, tested = read(path).cells
    assert shown.outputs == [output]
    assert tested.outputs[0].data == {"text/plain": "1"}


def test_record_refuses_what_a_test_cannot_compare(root):
    path = root / "book" / "01_one.ipynb"
    text = (
        '# %% tags=["nbval-check-output"]\n'
        "from IPython.display import HTML, display\n"
        'display(HTML("<b>1</b>"))\n'
    )
    nbformat.write(jupytext.reads(text, "py:percent"), path)
    before = path.read_text()
    with pytest.raises(ValueError, match="shows text/html; only text is compared"):
        record(path)
    assert path.read_text() == before


# ---------------------------------------------------------------------------- stamps


def test_stamp_writes_links_and_install_cell_once_and_they_follow_the_address(root):
    path = root / "book" / "01_one.ipynb"
    stamp([path], root)
    write_config(root, "https://example.org/new/home/")
    assert "stamp" in "".join(check([path], root))
    stamp([path], root)
    stamp([path], root)
    links = links_line("book", path.name, root)
    sources = [cell.source for cell in read(path).cells]
    assert sources == [f"# A claim\n\n{links}", colab_source(root), "1 + 1"]
    assert '%pip install -q "git+https://example.org/new/home@main"' in sources[1]
    assert read(path).cells[1].metadata.tags == ["colab", "remove-cell"]


def test_a_notebook_links_its_page_colab_and_its_other_half(root):
    write_config(root, "https://github.com/a/b", "v2")
    (root / "exercises" / "01_one.ipynb").touch()
    colab = "https://colab.research.google.com/github/a/b/blob/v2"
    badge = f"[![Open in Colab]({BADGE})]"
    assert links_line("book", "01_one.ipynb", root) == (
        "[Read it as a page](https://a.github.io/b/book/01_one.html) · "
        f"{badge}({colab}/book/01_one.ipynb) · [Exercise](../exercises/01_one.ipynb)"
    )
    for folder in ("exercises", "solutions"):
        assert links_line(folder, "01_one.ipynb", root) == (
            "[The questions as a page](https://a.github.io/b/exercises/01_one.html) · "
            f"{badge}({colab}/{folder}/01_one.ipynb) · [Chapter](../book/01_one.ipynb)"
        )
    assert "Exercise" not in links_line("book", "errata.ipynb", root)


def test_the_links_stand_below_the_first_paragraph(root):
    text = "# A claim\n\nOne sentence\nof two lines.\n\n**Time** a minute.\n\nMore."
    nb = new_notebook(cells=[new_markdown_cell(text), new_code_cell("1 + 1")])
    opening = stamped(nb, "book", "01_one.ipynb", root).cells[0].source
    links = links_line("book", "01_one.ipynb", root)
    assert opening == text.replace("\n\n**Time", f"\n\n{links}\n\n**Time")
    bare = new_notebook(cells=[new_markdown_cell("# A claim\n\n## A section")])
    opening = stamped(bare, "book", "01_one.ipynb", root).cells[0].source
    assert opening == f"# A claim\n\n{links}\n\n## A section"


@pytest.mark.parametrize("first", [new_code_cell("# A claim"), new_markdown_cell("A")])
def test_a_notebook_that_does_not_begin_with_its_title_is_refused(root, first):
    nb = new_notebook(cells=[first, new_markdown_cell("# A claim")])
    with pytest.raises(ValueError, match=r"book/1.ipynb does not begin with its title"):
        stamped(nb, "book", "1.ipynb", root)


def test_the_site_may_be_published_elsewhere(root):
    assert published(root) == "https://someone.github.io/somewhere/"
    with (root / "_config.yml").open("a") as config:
        config.write("html: {baseurl: https://course.example.org/en}\n")
    assert published(root) == "https://course.example.org/en/"
    assert "(https://course.example.org/en/book/1.html)" in links_line(
        "book", "1.ipynb", root
    )


def test_a_page_of_the_site_has_neither_links_nor_install_cell(root):
    path = root / "book" / "01_one.ipynb"
    before = read(path)
    stamp([path], root)
    assert [cell.source for cell in unstamped(read(path)).cells] == [
        cell.source for cell in before.cells
    ]


@pytest.mark.slow
def test_a_fork_or_release_is_said_in_one_place_and_every_link_follows(tmp_path):
    """On a copy of the course: nothing passes before it is stamped, all of it after."""
    old_url, old_branch = repository()
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for name in ("README.md", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path)
    write_config(tmp_path, "https://github.com/new/home", "v9.8")
    paths = all_notebooks(tmp_path)
    stale = [*paths, tmp_path / "README.md", tmp_path / "CITATION.cff"]
    findings = "\n".join(check(paths, tmp_path))
    assert [p for p in stale if f"{p}: " not in findings] == []
    stamp(paths, tmp_path)
    assert check(paths, tmp_path) == []
    readme = (tmp_path / "README.md").read_text("utf-8")
    book = [p for p in paths if p.parent.name == "book"]
    home = "https://colab.research.google.com/github/new/home/blob/v9.8/book"
    assert [p for p in book if f"({home}/{p.name})" not in readme] == []
    assert "git clone --branch v9.8 https://github.com/new/home.git\ncd home" in readme
    for path in stale:
        text = path.read_text("utf-8")
        assert urlsplit(old_url).path not in text, f"{path} keeps {old_url}"
        assert f"@{old_branch}" not in text
        assert f"/{old_branch}/" not in text
    for path in paths:
        text, where = path.read_text("utf-8"), f"{path.parent.name}/{path.name}"
        assert "git+https://github.com/new/home@v9.8" in text
        assert f"/new/home/blob/v9.8/{where}" in text
        assert "https://new.github.io/home/" in text


def test_colab_cell_installs_on_colab_and_does_nothing_elsewhere(root, monkeypatch):
    code = TransformerManager().transform_cell(colab_source(root))
    shell = Mock()
    exec(code, {"get_ipython": lambda: shell})
    assert not shell.mock_calls
    monkeypatch.setitem(sys.modules, "google.colab", Mock())
    exec(code, {"get_ipython": lambda: shell})
    shell.run_line_magic.assert_called_once_with(
        "pip", f'install -q "git+{ADDRESS}@main"'
    )


def test_config_without_an_address_is_refused(root):
    (root / "_config.yml").write_text("title: A course\n")
    with pytest.raises(ValueError, match="has no `repository"):
        repository(root)


def test_pages_get_links_and_lose_them_when_stale(root):
    readme = root / "README.md"
    readme.write_text(
        "# Course\n<!-- colab-links:begin -->\n<!-- colab-links:end -->\ntext\n"
        "<!-- clone:begin -->\nold\n<!-- clone:end -->\n"
    )
    cite = root / "CITATION.cff"
    cite.write_text("a: 1\n# <!-- citation:begin -->\n# <!-- citation:end -->\n")
    assert len(check([], root)) == 2
    stamp([], root)
    assert check([], root) == []
    text = readme.read_text()
    (row,) = (line for line in text.splitlines() if line.startswith("| 01 |"))
    assert "| A claim |" in row
    assert f"]({ADDRESS}/blob/main/book/01_one.ipynb)" in row
    assert f"git clone --branch main {ADDRESS}.git\ncd somewhere\n" in text
    assert "old" not in text
    assert cite.read_text() == (
        f'a: 1\n# <!-- citation:begin -->\nrepository-code: "{ADDRESS}"\n'
        "# <!-- citation:end -->\n"
    )


def test_the_readme_shows_each_chapter_s_first_picture(root):
    path, picture = root / "book" / "01_one.ipynb", b"\x89PNG, or so"
    nb, readme = read(path), root / "README.md"
    readme.write_text("<!-- colab-links:begin -->\n<!-- colab-links:end -->\n")
    stamp([], root)
    assert "<img" not in readme.read_text()
    data = {"image/png": base64.b64encode(picture).decode(), "text/plain": 'A "b" | c'}
    nb.cells.append(new_code_cell("x", metadata={"tags": ["preview"]}))
    nb.cells[-1].outputs = [new_output("display_data", data, metadata={KEY: "1"})]
    nbformat.write(nb, path)
    assert len(check([], root)) == 2  # the table, and the picture
    stamp([], root)
    assert (root / "book/_static/thumbnails/01.png").read_bytes() == picture
    assert 'alt="A &quot;b&quot; &#124; c"' in readme.read_text()
    assert check([], root) == []


def test_a_title_with_latex_survives_the_stamp():
    page = "<!-- x:begin -->\n<!-- x:end -->"
    assert r"$\sqrt{d}$ \1" in stamped_page(page, {"x": r"$\sqrt{d}$ \1"})


def test_github_address_becomes_a_colab_link(root):
    write_config(root, "https://github.com/a/b")
    link = "https://colab.research.google.com/github/a/b/blob/main/book/01_one.ipynb"
    assert link in blocks(root)["colab-links"]


def test_a_stray_address_is_found_and_a_stamped_one_is_not(root):
    notebook, page = root / "book" / "01_one.ipynb", root / "README.md"
    page.write_text("<!-- clone:begin -->\n<!-- clone:end -->\n")
    stamp([notebook], root)
    paths = [notebook, page, root / "_config.yml"]
    assert strays(paths, root) == []
    page.write_text(page.read_text() + f"See {ADDRESS}.\n")
    nb = read(notebook)
    nb.cells[0].source += f"\n\nSee {ADDRESS}."
    nbformat.write(nb, notebook)
    assert strays(paths, root) == [notebook, page]


# -------------------------------------------------------------------- editing as text


@pytest.mark.parametrize("form", ["py:percent", "md:myst"])
def test_a_chapter_survives_the_round_trip_through_text(root, form):
    path = root / "book" / "01_one.ipynb"
    text = (
        "# %% [markdown]\n# # Claim\n#\n# $$a_i = \\frac{1}{2}$$\n\n"
        '# %% tags=["twin", "nbval-check-output"]\ndef f():\n    return 1\n\n\nf()\n'
    )
    nbformat.write(jupytext.reads(text, "py:percent"), path)
    stamp([path], root)
    before = canonical(read(path))
    after = jupytext.reads(jupytext.writes(before, form), form)
    assert dumps(canonical(after)) == dumps(before)
