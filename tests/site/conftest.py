"""What the tests of pages share: a small site, built once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from small_site import PAGES, build


@pytest.fixture(scope="session")
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site with two chapters and all that belongs to them."""
    folder = tmp_path_factory.mktemp("site")
    renamed = {
        "book/07_set": {"a-proof": "theorem-07-1"},
        "book/api": {"course-utils-attention-": "course-utils-models-attention-"},
    }
    moved = {"book/old": "06_queries.html"}
    said = build(folder, PAGES, renamed_anchors=renamed, redirects=moved)
    assert not said
    return folder / "_build" / "html"


@pytest.fixture(scope="session")
def page(small_site: Path) -> Callable[[str], BeautifulSoup]:
    """A page of the small site, by name."""

    def read(name: str) -> BeautifulSoup:
        return BeautifulSoup((small_site / f"{name}.html").read_text("utf-8"), "lxml")

    return read
