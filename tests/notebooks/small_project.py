"""A small project to build: a package, a page and a notebook."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.notebooks.io import ROOT

FILES = {
    "_config.yml": "title: Fruit\nonly_build_toc_files: true\n"
    'execute: {execute_notebooks: "off"}\n',
    "_toc.yml": "format: jb-book\nroot: book/intro\nchapters:\n- file: book/fruit\n",
    "requirements.txt": "",
    "pyproject.toml": '[project]\nname = "course-utils"\ndependencies = ["numpy>=1"]\n',
    "book/intro.md": "# Welcome\n",
    "course_utils/__init__.py": "",
    "course_utils/fruit.py": "from .basket import NAME\ndef name():\n  return NAME\n",
    "course_utils/basket.py": 'NAME = "pomegranate"\n',
    "course_utils/other.py": "x = 1\n",
}
SHOWS_FRUIT = "from course_utils.fruit import name\nname()"


def write_notebook(path: Path, *sources: str) -> None:
    """Write a notebook with a title and these code cells."""
    cells = [new_markdown_cell("# Fruit"), *map(new_code_cell, sources)]
    nbformat.write(new_notebook(cells=cells), path)


def command(project: Path, *arguments: str) -> list[str]:
    """The command line of the build for this project."""
    return [sys.executable, "-m", "tools.build", "--root", str(project), *arguments]


def build(project: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run the build; return its exit status and all it printed."""
    done = subprocess.run(
        command(project, *arguments),
        cwd=ROOT,
        env=os.environ | environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout


def executed(said: str) -> int:
    """How many notebooks the build says it executed."""
    found = re.search(r"(\d+) executed", said)
    assert found, said
    return int(found[1])
