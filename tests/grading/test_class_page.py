"""The page of the class can be sorted and filtered, and runs no script but its own."""

from __future__ import annotations

import pytest
from playwright.sync_api import sync_playwright

from course_utils.grading.classroom.reports import write_reports
from tools.site.browser import LAUNCH, chromium

NAME = "06_queries_keys_values"


def row(i: int, **changes) -> dict:
    question = {
        "points": i % 5,
        "max_points": 4,
        "parts": [["all", i % 5, 4]],
        "misconception": "no_scale",
        "hint": "the scores are not scaled.",
    }
    made = {
        **dict.fromkeys(("late", "hours_late", "correction"), 0),
        "key": "k",
        "student": f"student {i:02}",
        "id": str(i),
        "place": str(i),
        "exercise": NAME,
        "chapter": "06",
        "file": "x.ipynb",
        "score": i % 5,
        "final": i % 5,
        "max_score": 4,
        "flags": ["cell 3: never ends"] if i == 7 else [],
        "notes": [],
        "corrections": [],
        "questions": {"06.1": question},
    }
    return {**made, **changes}


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [1100, 360])
def test_the_tables_can_be_sorted_and_filtered(width, tmp_path):
    rows = [row(i) for i in range(12)]
    rows.append(row(12, student="<script>document.title = 'taken'</script>"))
    folder = write_reports(tmp_path / "grades.csv", rows)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=LAUNCH)
        page = browser.new_page(viewport={"width": width, "height": 800})
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((folder / "index.html").as_uri())
        students = page.locator("table.sorted").last
        final = students.locator("tbody tr td:nth-child(3)")
        head = students.get_by_role("button", name="Final")
        for order in (sorted, lambda x: sorted(x, reverse=True)):
            head.click()
            shown = [float(text) for text in final.all_inner_texts()]
            assert shown == order(shown)
        page.locator("input").last.fill("NEVER ENDS")
        assert students.locator("tbody tr:visible").count() == 1
        assert page.title() == "Grades of the class"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        cut = page.evaluate(
            """[...document.querySelectorAll("svg text")].filter((x) => {
              const box = x.getBBox(), view = x.ownerSVGElement.viewBox.baseVal;
              return box.x + box.width > view.width;
            }).length"""
        )
        assert cut == 0
        browser.close()
    assert said == []
