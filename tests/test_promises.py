"""What the README, the introduction and CONTRIBUTING promise, where a test can tell.

What they say of commands is tested in test_commands.py, of the site in site/, of Colab
in notebooks/test_colab.py, of the grader in grading/test_instructors_page.py.
"""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml

from tools.notebooks.io import ROOT, all_notebooks, read, tags

PAGES = ["README.md", "CONTRIBUTING.md"]
PAGES += sorted(f"book/{path.name}" for path in (ROOT / "book").glob("*.md"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def stems(folder: str) -> list[str]:
    """The chapters that have a notebook in this folder."""
    return sorted(p.stem for p in (ROOT / folder).glob("[0-9][0-9]_*.ipynb"))


# --------------------------------------------------------------------------- versions


def test_one_version_stands_in_pyproject_citation_and_changelog():
    citation = yaml.safe_load(text("CITATION.cff"))
    (newest, *_) = re.findall(r"^## (.*)$", text("CHANGELOG.md"), re.MULTILINE)
    released = citation.get("date-released", "unreleased")
    assert citation["version"] == PROJECT["version"]
    assert newest == f"{PROJECT['version']} ({released})"


def test_the_oldest_python_is_said_alike_everywhere():
    (least,) = re.findall(r">=(\d\.\d+)", PROJECT["requires-python"])
    assert f"Python {least} or newer" in text("README.md")
    assert f"Python {least} or newer" in text("Makefile")
    assert f"Python {least} or newer" in text("book/instructors.md")
    assert f'python_version = "{least}"' in text("pyproject.toml")
    assert f'target-version = "py{least.replace(".", "")}"' in text("pyproject.toml")


# ------------------------------------------------------------------------ the README


def test_every_file_and_folder_that_the_readme_names_is_there():
    readme = text("README.md")
    rows = re.findall(r"^\| `(\w+)/` \|", readme, re.MULTILINE)
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", readme)
    assert len(rows) > 5
    assert len(links) > 3
    assert [name for name in rows + links if not (ROOT / name).exists()] == []


def test_every_folder_of_code_is_explained_in_the_readme():
    explained = set(re.findall(r"^\| `(\w+)/` \|", text("README.md"), re.MULTILINE))
    holds_work = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith((".", "_"))
        if any(path.glob("*.py")) or any(path.glob("*.ipynb"))
    }
    assert holds_work == explained


# ------------------------------------------------------------------- the introduction


def test_every_chapter_has_an_exercise_and_its_solution():
    assert stems("book")
    assert stems("book") == stems("exercises") == stems("solutions")


def test_the_introduction_names_no_page_twice_but_the_playground():
    pages = re.findall(r"\{doc\}`(?:[^<`]*<)?(\w+)>?`", text("book/intro.md"))
    repeated = {page for page in pages if pages.count(page) > 1}
    assert repeated <= {"transformer_in_the_page"}


# ------------------------------------------------------------------------ CONTRIBUTING


def borne_tags() -> set[str]:
    """The tags of all cells of all notebooks."""
    cells = [cell for path in all_notebooks() for cell in read(path).cells]
    return {tag for cell in cells for tag in tags(cell)}


def test_every_tag_that_a_notebook_bears_is_explained_and_no_other():
    page = text("CONTRIBUTING.md")
    listed = set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE))
    borne = borne_tags()
    assert listed, "CONTRIBUTING.md has no table of tags"
    assert listed <= borne, f"no notebook bears {sorted(listed - borne)}"
    explained = set(re.findall(r"`([a-z-]+)`", page))
    assert borne <= explained, f"CONTRIBUTING.md is silent on {borne - explained}"


@pytest.mark.parametrize("page", PAGES)
def test_every_room_that_a_page_names_is_there(page: str):
    """A file may be an example yet to be written; the folder it stands in may not."""
    named = re.findall(r"`((?:course_utils|tests|tools)/[\w./]*)`", text(page))
    missing = [n for n in named if not (ROOT / n).parent.is_dir()]
    missing += [n for n in named if n.endswith("/") and not (ROOT / n).is_dir()]
    assert missing == []
