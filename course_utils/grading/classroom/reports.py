"""Reports in HTML: one page per student, and one of the class with what went wrong."""

from __future__ import annotations

import hashlib
import html
import re
from pathlib import Path

from course_utils.grading.classroom.gradebook import Row, write_whole
from course_utils.grading.questions import find_question

NO_ANSWER = ("unanswered", "missing")
UNNAMED = "wrong numbers that no mistake explains; each student's page shows the first"
STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.5; }
table { border-collapse: collapse; } .wide { overflow-x: auto; }
td, th { padding: 0.2rem 0.6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid #8888; }
h1, h2, td, th[scope=row] { overflow-wrap: anywhere; }
td:last-child { min-width: 9rem; } td:nth-child(2) { white-space: nowrap; }
svg { max-width: 40rem; width: 100%; }
"""


def page(title: str, body: str) -> str:
    """Wrap a body into a page that needs nothing from elsewhere."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{STYLE}</style><main><h1>{title}</h1>{body}</main></html>\n"
    )


def text(value: object) -> str:
    """Escape a value for a page; what stands in backticks becomes code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(str(value)))


def file_name(row: Row) -> str:
    """Name a student's page: readable, unique, and a plain file whatever the name."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", row["student"])[:40].strip("-")
    unique = hashlib.sha256(row["key"].encode()).hexdigest()[:8]
    return f"{readable or 'student'}-{unique}.html"


def student_page(row: Row) -> str:
    """Write what one student got, why, and what was flagged."""
    lines = []
    for name, result in row["questions"].items():
        title = find_question(name).title
        parts = ", ".join(f"{p} {got}/{most}" for p, got, most in result["parts"])
        lines.append(
            f"<tr><th scope='row'>{name} {text(title)}</th>"
            f"<td>{result['points']} of {result['max_points']}</td>"
            f"<td>{text(result['hint'] or 'right')}<br>"
            f"<small>{text(parts)}</small></td></tr>"
        )
    flags = "".join(f"<li>{text(flag)}</li>" for flag in row["flags"])
    flagged = f"<h2>For a person to look at</h2><ul>{flags}</ul>" if flags else ""
    return page(
        f"{text(row['student'])}: {text(row['exercise'])}",
        f"<p><strong>{row['score']} of {row['max_score']} points</strong></p>"
        "<div class='wide'><table><thead><tr><th scope='col'>Question</th>"
        "<th scope='col'>Points</th><th scope='col'>What was found</th></tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>{flagged}",
    )


def bars(title: str, counts: list[tuple[str, int, int]]) -> str:
    """Draw a bar for each label: how many of how many."""
    height, left, width = 24, 60, 300
    marks = []
    for i, (label, count, most) in enumerate(counts):
        y = i * height
        filled = width * count / most if most else 0
        marks.append(
            f'<text x="0" y="{y + 15}">{text(label)}</text>'
            f'<rect x="{left}" y="{y + 3}" width="{width}" height="16" fill="none" '
            'stroke="currentColor" stroke-opacity="0.5"/>'
            f'<rect x="{left}" y="{y + 3}" width="{filled:.0f}" height="16" '
            'fill="#0072b2"/>'
            f'<text x="{left + width + 8}" y="{y + 15}">{count} of {most}</text>'
        )
    said = "; ".join(f"{label}: {count} of {most}" for label, count, most in counts)
    return (
        f'<svg role="img" aria-label="{html.escape(f"{title}. {said}")}" '
        f'viewBox="0 0 460 {len(counts) * height}" font-size="13" '
        f'fill="currentColor">{"".join(marks)}</svg>'
    )


def class_page(rows: list[Row]) -> str:
    """Write the class: who failed which question, and the commonest misconceptions."""
    body = []
    for exercise in sorted({row["exercise"] for row in rows}):
        mine = [row for row in rows if row["exercise"] == exercise]
        questions = sorted({name for row in mine for name in row["questions"]})
        body.append(f"<h2>{text(exercise)}: {len(mine)} submissions</h2>")
        if questions:
            counts = [(q, len(losers(mine, q)), len(mine)) for q in questions]
            title = "Students who lost points, by question"
            body.append(f"<h3>{title}</h3>{bars(title, counts)}")
            body.append(misconceptions(mine, questions))
        body.append(score_table(mine, questions))
    return page("Grades of the class", "".join(body))


def losers(rows: list[Row], question: str) -> list[Row]:
    """The rows that lost points in a question."""
    found = [row for row in rows if question in row["questions"]]
    return [
        row
        for row in found
        if row["questions"][question]["points"]
        < row["questions"][question]["max_points"]
    ]


def misconceptions(rows: list[Row], questions: list[str]) -> str:
    """List what went wrong, the commonest first, with who did it.

    What was not answered is no misconception and comes last; what could not be read is
    flagged below.
    """
    who: dict[tuple[str, str, str], list[str]] = {}
    for question in questions:
        for row in losers(rows, question):
            result = row["questions"][question]
            hint = result["hint"] if result["misconception"] != "values" else UNNAMED
            what = (question, result["misconception"], hint)
            if result["misconception"] != "unread":
                who.setdefault(what, []).append(row["student"])
    order = sorted(who, key=lambda what: (what[1] in NO_ANSWER, -len(who[what])))
    lines = []
    for what in order:
        names = who[what]
        shown = ", ".join(names[:8])
        shown += f" and {len(names) - 8} more" if names[8:] else ""
        lines.append(
            f"<tr><th scope='row'>{what[0]}</th><td>{len(names)}</td>"
            f"<td>{text(what[2])}<br><small>{text(shown)}</small></td></tr>"
        )
    return (
        "<h3>Misconceptions, the commonest first</h3><div class='wide'><table><thead>"
        "<tr><th scope='col'>Question</th><th scope='col'>Students</th>"
        "<th scope='col'>What was found, and who did it</th></tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def score_table(rows: list[Row], questions: list[str]) -> str:
    """List the students with their points, each linked to a page."""
    head = "".join(f"<th scope='col'>{question}</th>" for question in questions)
    lines = []
    for row in rows:
        points = "".join(
            f"<td>{row['questions'].get(question, {}).get('points', '')}</td>"
            for question in questions
        )
        lines.append(
            f"<tr><th scope='row'><a href='{file_name(row)}'>{text(row['student'])}</a>"
            f"</th><td>{row['score']} of {row['max_score']}</td>{points}"
            f"<td>{text('; '.join(row['flags']))}</td></tr>"
        )
    return (
        "<h3>Students</h3><div class='wide'><table><thead><tr>"
        "<th scope='col'>Student</th>"
        f"<th scope='col'>Score</th>{head}<th scope='col'>Flags</th></tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def write_reports(out: Path, rows: list[Row]) -> Path:
    """Write all pages into a folder named after the table."""
    folder = out.with_name(f"{out.stem}_reports")
    folder.mkdir(exist_ok=True)
    for row in rows:
        write_whole(folder / file_name(row), student_page(row))
    write_whole(folder / "index.html", class_page(rows))
    return folder
