"""The page of the class: how it went, what went wrong, who has which points."""

from __future__ import annotations

import html
import statistics
from pathlib import Path

from course_utils.grading.classroom.gradebook import Row
from course_utils.grading.classroom.reports import file_name, number, page, text

NO_ANSWER = ("unanswered", "missing")
GENERAL = {  # mistakes whose sentence speaks of one answer's own numbers
    "values": "wrong numbers that no mistake explains",
    "leaves": "leaves the solution's path at some step",
    "mutant": "what the solution gives with one small change",
    "exception": "raises an error",
    "shape": "a result of another shape",
    "type": "a result of another type",
    "not_finite": "NaN or infinity in the result",
    "time": "did not finish in time",
    "died": "ended the program that ran it",
    "missing": "not there under its name",
    "unanswered": "not answered",
}
SCRIPT = (Path(__file__).parent / "class_page.js").read_text("utf-8")


def bars(title: str, counts: list[tuple[str, float, float, str]]) -> str:
    """Draw a bar for each label: how much of how much, and what to write beside it."""
    height, left, width = 24, 70, 220
    marks = []
    for i, (label, count, most, beside) in enumerate(counts):
        y = i * height
        filled = width * count / most if most else 0
        marks.append(
            f'<text x="0" y="{y + 15}">{text(label)}</text>'
            f'<rect x="{left}" y="{y + 3}" width="{width}" height="16" fill="none" '
            'stroke="currentColor" stroke-opacity="0.5"/>'
            f'<rect x="{left}" y="{y + 3}" width="{filled:.0f}" height="16" '
            'fill="#0072b2"/>'
            f'<text x="{left + width + 8}" y="{y + 15}">{text(beside)}</text>'
        )
    said = "; ".join(f"{label}: {beside}" for label, _, _, beside in counts)
    return (
        f'<svg role="img" aria-label="{html.escape(f"{title}. {said}")}" '
        f'viewBox="0 0 520 {len(counts) * height}" font-size="13" '
        f'fill="currentColor">{"".join(marks)}</svg>'
    )


def histogram(rows: list[Row]) -> str:
    """How many got which share of the points, in tenths."""
    shares = [row["final"] / row["max_score"] for row in rows if row["max_score"]]
    if not shares:
        return ""
    counts = [0] * 10
    for share in shares:
        counts[min(int(share * 10), 9)] += 1
    title = "Students by their share of the points"
    lines = [
        (f"{10 * i}–{10 * (i + 1)} %", float(n), float(max(counts)), str(n))
        for i, n in enumerate(counts)
    ]
    return f"<h3>{title}</h3>{bars(title, lines)}"


def summary(rows: list[Row]) -> str:
    """Mean and median of those who handed something in, and how many did not."""
    there = [row for row in rows if row["key"]]
    if not there:
        return "<p>Nobody handed anything in.</p>"
    final, most = [row["final"] for row in there], there[0]["max_score"]
    late = sum(row["late"] > 0 for row in there)
    corrected = sum(bool(row["corrections"]) for row in rows)
    said = [
        f"{len(there)} handed in, {len(rows) - len(there)} did not",
        f"mean {number(statistics.mean(final))} of {most}",
        f"median {number(statistics.median(final))}",
        f"{late} lost points by being late",
        f"{corrected} corrected by a person",
        f"{sum(bool(row['flags']) for row in there)} flagged",
    ]
    return f"<p>{'; '.join(said)}.</p>"


def by_question(rows: list[Row], questions: list[str]) -> str:
    """The mean points of each question, and how many lost some."""
    lines = []
    for question in questions:
        results = [r["questions"][question] for r in rows if question in r["questions"]]
        most = results[0]["max_points"]
        mean = statistics.mean(x.get("corrected", x["points"]) for x in results)
        lost = sum(x["points"] < x["max_points"] for x in results)
        beside = f"{number(mean)} of {most}; {lost} lost some"
        lines.append((question, mean, float(most), beside))
    title = "Mean points by question"
    return f"<h3>{title}</h3>{bars(title, lines)}"


def mistakes(rows: list[Row], questions: list[str]) -> str:
    """Count what went wrong by its id, the commonest first, with everyone's name.

    What was not answered is no mistake and comes last; what could not be read is
    flagged below.
    """
    who: dict[tuple[str, str], list[tuple[Row, str]]] = {}
    for question in questions:
        for row in rows:
            result = row["questions"].get(question)
            if result and result["points"] < result["max_points"]:
                kind = result["misconception"]
                if kind != "unread":
                    who.setdefault((question, kind), []).append((row, result["hint"]))
    order = sorted(who, key=lambda what: (what[1] in NO_ANSWER, -len(who[what]), what))
    lines = []
    for question, kind in order:
        found = who[question, kind]
        hints = {hint for _, hint in found}
        said = GENERAL.get(kind) or min(hints, key=lambda hint: (len(hint), hint))
        if kind in GENERAL and len(hints) == 1:
            said = hints.pop()
        names = ", ".join(
            f"<a href='{file_name(row)}'>{text(row['student'])}</a>" for row, _ in found
        )
        lines.append(
            f"<tr><th scope='row'>{question}</th><td>{len(found)}</td>"
            f"<td>{text(kind)}</td><td>{text(said)}"
            f"<details><summary>who: {len(found)}</summary>{names}</details></td></tr>"
        )
    heads = ("Question", "Students", "Mistake", "What was found, and who did it")
    return "<h3>Mistakes, the commonest first</h3>" + table(heads, lines)


def table(heads: tuple[str, ...], lines: list[str]) -> str:
    """A table that can be sorted by each column and filtered."""
    head = "".join(f"<th scope='col'>{name}</th>" for name in heads)
    return (
        f"<div class='wide'><table class='sorted'><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def score_table(rows: list[Row], questions: list[str]) -> str:
    """List the students with their points, each linked to a page."""
    lines = []
    for row in rows:
        results = [row["questions"].get(question, {}) for question in questions]
        given = [x.get("corrected", x.get("points", "")) for x in results]
        points = "".join(f"<td>{x if x == '' else number(x)}</td>" for x in given)
        flags = [x["reason"] for x in row["corrections"]] + row["flags"]
        lines.append(
            f"<tr><th scope='row'><a href='{file_name(row)}'>{text(row['student'])}</a>"
            f"</th><td>{text(row['id'])}</td><td>{number(row['final'])}</td>"
            f"<td>{number(row['score'])}</td><td>{number(row['late'])}</td>{points}"
            f"<td>{text('; '.join(flags))}</td></tr>"
        )
    heads = ("Student", "Id", "Final", "Found", "Late", *questions, "Flags")
    return "<h3>Students</h3>" + table(heads, lines)


def class_page(rows: list[Row]) -> str:
    """Write the class, one exercise after the other."""
    body = []
    for exercise in sorted({row["exercise"] for row in rows}):
        mine = [row for row in rows if row["exercise"] == exercise]
        questions = sorted({name for row in mine for name in row["questions"]})
        body.append(f"<h2>{text(exercise)}</h2>{summary(mine)}{histogram(mine)}")
        if questions:
            body.append(by_question(mine, questions) + mistakes(mine, questions))
        body.append(score_table(mine, questions))
    return page("Grades of the class", "".join(body), SCRIPT)
