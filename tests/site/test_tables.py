"""Tables on a narrow screen, and what those who listen hear of a table."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def tables(page):
    return page("book/06_queries").select("article table")


def labels(table):
    return [cell["data-label"] for cell in table.select("[data-label]")]


def test_a_row_of_many_columns_names_them_for_narrow_screens(tables):
    table = tables[0]
    assert "stacked" in table["class"]
    assert labels(table) == ["code", "shape & size"]  # the first heads its list
    assert len(table.select("td.course-blank")) == 1
    roles = [(part.name, part.get("role")) for part in table.find_all(True)]
    roles = [
        (name, role) for name, role in roles if name in ("thead", "tr", "th", "td")
    ]
    header = [("thead", "rowgroup"), ("tr", "row"), *4 * [("th", "columnheader")]]
    assert roles == [*header, ("tr", "row"), *4 * [("td", "cell")]]
    assert (table["role"], table.tbody["role"]) == ("table", "rowgroup")


def test_a_heading_with_nothing_in_it_is_none(tables):
    assert labels(tables[1]) == ["queries", "keys", "mask"]
    assert tables[1].thead.select_one("tr > *").name == "td"
    assert not [th for table in tables for th in table.select("th") if not th.text]


def test_a_wide_formula_gets_a_line_of_its_own_and_a_numbered_row_its_name(tables):
    assert labels(tables[2]) == ["line", "formula", "because"]
    (wide,) = tables[2].select(".course-wide")
    assert wide["data-label"] == "formula"


def test_tables_that_fit_a_phone_or_hold_data_stay_as_they_are(tables):
    assert len(tables) == 5
    for table in tables[3:]:
        assert "stacked" not in table["class"]
        assert not table.select("[role], [data-label]")


def test_references_are_the_items_of_their_list(page):
    (listed,) = page("book/07_set").select("[role=list] > .citation")
    assert listed["role"] == "listitem"
