"""Chapters keep the house style; each check says how to mend what it finds."""

from __future__ import annotations

from pathlib import Path

import house_style
import jupytext
import pytest
import yaml
from nbformat import NotebookNode

from tools.notebooks.io import ROOT, read
from tools.notebooks.normalise import canonical

CHAPTERS = sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))
EXERCISES = sorted((ROOT / "exercises").glob("*.ipynb"))
EXERCISES += sorted((ROOT / "solutions").glob("*.ipynb"))
CHAPTER = """
# %% [markdown]
# # Attention is an average
#
# **The question.** Of what?

# %% tags=["colab", "remove-cell"]
import sys

# %% [markdown]
# **You will be able to**
#
# - say it;
# - do it
#   by hand;
# - undo it.
#
# **Time** about 5 minutes to read; as long on a CPU as on a GPU.
#
# **You need** nothing.

# %%
import torch

from course_utils.display import plots

# %% [markdown]
# ## An average
#
# **Predict.** What is the mean?

# %%
x = torch.ones(3)
assert x.mean() == 1

# %% [markdown]
# One.

# %% tags=["hide-input"]
ax = plots.plot_lines([1, 2], {"a": [1, 2]})
plots.show(ax, alt="A line that climbs from one to two.")

# %% [markdown]
# ## Summary
#
# ## Exercises
#
# ## Further reading
"""


def notebook(text: str = CHAPTER) -> NotebookNode:
    return canonical(jupytext.reads(text, "py:percent"))


def all_findings(nb: NotebookNode) -> list[str]:
    return [found for check in house_style.CHAPTER for found in check(nb)]


def by_name(check) -> str:
    return check.__name__


# ----------------------------------------------------------------- the course itself


@pytest.mark.parametrize("check", house_style.CHAPTER, ids=by_name)
def test_every_chapter_keeps(check):
    assert CHAPTERS
    found = [f"{path.name}: {f}" for path in CHAPTERS for f in check(read(path))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("check", house_style.EXERCISES, ids=by_name)
def test_every_exercise_and_solution_keeps(check):
    found = [
        f"{path.parent.name}/{path.name}: {f}"
        for path in EXERCISES
        for f in check(read(path))
    ]
    assert not found, "\n".join(found)


def test_every_figure_of_these_chapters_has_a_caption():
    captioned = [path for path in CHAPTERS if path.name[:2] in house_style.CAPTIONED]
    assert len(captioned) == len(house_style.CAPTIONED)
    found = [
        f"{path.name}: {f}"
        for path in captioned
        for f in house_style.captions(read(path))
    ]
    assert not found, "\n".join(found)


def test_every_training_may_show_its_bar():
    silent = [p.name for p in CHAPTERS if "progress=False" in p.read_text("utf-8")]
    assert silent == [], "leave progress=False out: a cell of seconds needs its bar"


def test_every_image_of_a_page_has_alt_text():
    pages = [ROOT / "README.md", *sorted((ROOT / "book").glob("*.md"))]
    found = [
        f"{p.name}: {f}"
        for p in pages
        for f in house_style.images(p.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_the_table_of_contents_is_what_is_there():
    found = house_style.contents(ROOT)
    assert not found, "\n".join(found)


def test_no_error_is_tolerated_when_the_book_is_built():
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    assert not config.get("execute", {}).get("allow_errors")
    sphinx = config.get("sphinx", {}).get("config", {})
    assert not sphinx.get("nb_execution_allow_errors")


# -------------------------------------------------------------- each check can fail


def test_a_good_chapter_has_no_findings():
    assert all_findings(notebook()) == []


CODE = "\n# %%\ny = 1\n"
BREAK = {
    "4 places have two code cells": lambda t: t + 5 * CODE,
    "has 26 lines of code": lambda t: t + "\n# %%\n" + 26 * "y = 1\n\n",
    "line 2: 89 characters": lambda t: t + "\n# %%\ny = 1\nx = " + 85 * "1",
    "imports nothing": lambda t: t.replace(
        "import torch\n\nfrom course_utils.display import plots", "x = 1"
    ),
    "imports cell import-torch has 11 lines": lambda t: t.replace(
        "import torch\n", "import torch\n" + 9 * "import math\n"
    ),
    "there are 0 titles": lambda t: t.replace("# # Att", "# Att"),
    "there are 2 titles": lambda t: t + "\n# %% [markdown]\n# # Two",
    "no `**The question**`": lambda t: t.replace("The question", "Question"),
    "no `**You will be able to**`": lambda t: t.replace("You will be", "You are"),
    "no `**Time**`": lambda t: t.replace("**Time**", "It takes"),
    "whose number": lambda t: t.replace("about 5 minutes to read", "an hour"),
    "no `**You need**`": lambda t: t.replace("**You need**", "Know"),
    "has 2 bullets": lambda t: t.replace("# - say it;\n", ""),
    "says nothing of GPU": lambda t: t.replace(" GPU", " phone"),
    "says nothing of CPU and GPU": lambda t: t.replace("PU", "at"),
    "no section `## Summary`": lambda t: t.replace("## Summary", "## The end"),
    "no section `## Exercises`": lambda t: t.replace("## Exercises", "### Exercises"),
    "no section `## Further reading`": lambda t: t.replace("## Further r", "## R"),
    "no **Predict**": lambda t: t.replace("**Predict.**", "Predict."),
    "nothing is asserted": lambda t: t.replace("assert x", "print(x) # assert"),
    "is tagged raises-exception": lambda t: t.replace("hide-input", "raises-exception"),
    "is tagged nbval-skip": lambda t: t.replace("hide-input", "nbval-skip"),
    "draws a figure without alt text": lambda t: t.replace(
        'alt="A line that climbs from one to two."', ""
    ),
    "cell ax-plots-plot-lines-1-2-a-1-2 draws": lambda t: t.replace(
        "A line that climbs from one to two.", "A line."
    ),
    "cell ax-plots-plot-lines-1-2-a-1-2 draws ": lambda t: t.replace("plots.show", "f"),
    "cell plt-show draws": lambda t: t + "\n# %% [markdown]\n# x\n\n# %%\nplt.show()",
    "cell plt-plot-x draws": lambda t: (
        t + "\n# %% [markdown]\n# x\n\n# %%\nplt.plot(x)"
    ),
    "cell train-model shows its training's last line": lambda t: (
        t + "\n# %% [markdown]\n# x\n\n# %%\ntrain(model)"
    ),
    "an image without alt text, ![](a.png)": lambda t: t.replace("One.", "![](a.png)"),
}


@pytest.mark.parametrize("says", BREAK)
def test_a_broken_chapter_is_told_so(says):
    broken = BREAK[says](CHAPTER)
    assert broken != CHAPTER
    found = all_findings(notebook(broken))
    assert any(says.strip() in finding for finding in found), found
    assert len(found) == 1


def test_two_pairs_of_code_cells_are_fine():
    assert house_style.crowded(notebook(CHAPTER + 3 * CODE)) == []


def test_a_hidden_figure_may_follow_its_code():
    figure = CODE.replace("# %%", '# %% tags=["hide-input"]')
    assert house_style.crowded(notebook(CHAPTER + 6 * figure)) == []


def test_allow_errors_in_the_metadata_is_found():
    nb = notebook()
    nb.metadata["mystnb"] = {"execution_allow_errors": True, "allow_errors": True}
    assert "metadata sets allow_errors" in house_style.tolerated_errors(nb)[0]


def test_a_function_that_draws_needs_its_alt_text_where_it_is_called():
    text = "# %%\ndef draw(x):\n    x = plots.plot_lines(x)\n"
    assert house_style.figures(notebook(text)) == []
    assert len(house_style.figures(notebook(text + "    show(x)\n"))) == 1


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("", 1),
        (', caption="Dots."', 1),
        (', caption="A dot for each of five seeds."', 0),
        (', caption=f"A dot for each of {n} seeds."', 0),
        (', None, "A dot for each of five seeds."', 0),
    ],
)
def test_a_figure_without_a_caption_is_found(given, missing):
    text = f'# %%\nplots.show(ax, "A line that climbs from 1 to 2."{given})\n'
    assert len(house_style.captions(notebook(text))) == missing


def test_alt_text_may_be_positional_or_computed():
    text = '# %%\nplots.show(ax, "A line that climbs from 1 to 2.")\n'
    text += '\n# %%\nplots.show(ax, alt=f"A line that climbs to {top}.")\n'
    assert house_style.figures(notebook(text)) == []


@pytest.mark.parametrize(
    "image",
    [
        "![ ](a.png)",
        '<img src="a.png">',
        '<img src="a.png" alt="">',
        "```{figure} a.png\n:name: a\nCaption\n```",
        ":::{image} a.png\n:width: 9\n:::",
    ],
)
def test_an_image_without_alt_text_is_found(image):
    assert len(house_style.images(f"text\n\n{image}\n\ntext")) == 1


@pytest.mark.parametrize(
    "image",
    [
        "![A map.](a.png)",
        '<img src="a.png" alt="A map.">',
        "```{figure} a.png\n:alt: A map.\nCaption\n```",
        ":::{image} a.png\n:alt: A map.\n:::",
    ],
)
def test_an_image_with_alt_text_is_fine(image):
    assert house_style.images(f"text\n\n{image}\n\ntext") == []


def test_the_table_of_contents_and_the_disk_are_compared(tmp_path: Path):
    for name in ("book/intro.md", "book/01_a.ipynb", "exercises/01_a.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    parts = [{"chapters": [{"file": "book/01_a", "sections": []}]}]
    toc = {"format": "jb-book", "root": "book/intro", "parts": parts}
    sections = parts[0]["chapters"][0]["sections"]
    config = tmp_path / "_toc.yml"
    config.write_text(yaml.safe_dump(toc))
    (found,) = house_style.contents(tmp_path)
    assert found.startswith("exercises/01_a.ipynb is not in _toc.yml")
    sections += [{"file": "exercises/01_a"}]
    config.write_text(yaml.safe_dump(toc))
    assert house_style.contents(tmp_path) == []
    sections += [{"file": "exercises/01_a"}, {"file": "book/02_b"}]
    config.write_text(yaml.safe_dump(toc))
    assert house_style.contents(tmp_path) == [
        "_toc.yml lists book/02_b, which is not there.",
        "_toc.yml lists exercises/01_a twice.",
    ]
