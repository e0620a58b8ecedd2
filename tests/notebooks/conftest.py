"""What the tests of the build share."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_project import FILES, SHOWS_FRUIT, write_notebook


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with a package, a page and a notebook."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    write_notebook(tmp_path / "book" / "fruit.ipynb", SHOWS_FRUIT)
    return tmp_path
