"""An installed course is the whole course: Colab has nothing but the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.notebooks.io import ROOT

PACKAGE = "course_utils"


def files(root: Path) -> set[str]:
    """All files of the package but what Python and Jupyter leave behind."""
    every = (p for p in (root / PACKAGE).rglob("*") if p.is_file())
    leftovers = {"__pycache__", ".ipynb_checkpoints"}
    return {
        p.relative_to(root).as_posix() for p in every if not leftovers & set(p.parts)
    }


def wheel_files(root: Path, out: Path) -> set[str]:
    """What a wheel built from this tree brings along."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(out), str(root)]
    subprocess.run(command, check=True)
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    return {name for name in names if ".dist-info/" not in name}


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_and_no_other(tmp_path: Path):
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / PACKAGE, tree / PACKAGE)
    shutil.copy(ROOT / "pyproject.toml", tree)
    (tree / "benchmarks").mkdir()
    (tree / "benchmarks" / "__init__.py").touch()
    room = tree / PACKAGE / "a_new_room" / "inside"
    room.mkdir(parents=True)
    for name in ("code.py", "data.json", "script.js", "style.css"):
        (room / name).touch()
    assert wheel_files(tree, tmp_path / "out") == files(tree)
