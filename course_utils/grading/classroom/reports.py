"""Reports in HTML: one page for each submission, and one for the class.

The folder is written anew each time: what is no longer true is not there any more.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path

from course_utils.grading.classroom.gradebook import Row, write_whole
from course_utils.grading.questions import find_question

MADE_HERE = '<meta name="generator" content="course_utils.grading">'
STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.5; }
table { border-collapse: collapse; } .wide { overflow-x: auto; }
td, th { padding: 0.2rem 0.6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid #8888; }
h1, h2, td:last-child { overflow-wrap: anywhere; }
th[scope=row] { min-width: 6rem; overflow-wrap: break-word; }
td:last-child { min-width: 9rem; } td:nth-child(2) { white-space: nowrap; }
svg { max-width: 40rem; width: 100%; } summary { cursor: pointer; }
th button { font: inherit; font-weight: bold; border: 0; padding: 0; cursor: pointer;
  background: none; color: inherit; text-decoration: underline dotted; }
input { font: inherit; padding: 0.2rem 0.4rem; margin-bottom: 0.6rem; }
"""


def page(title: str, body: str, script: str = "") -> str:
    """Wrap a body into a page that needs nothing from elsewhere.

    Only this one script may run, whatever a student's text would like to.
    """
    allowed = "default-src 'none'; style-src 'unsafe-inline'"
    if script:
        code = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        allowed += f"; script-src 'sha256-{code}'"
        body += f"<script>{script}</script>"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width">{MADE_HERE}'
        f'<meta http-equiv="Content-Security-Policy" content="{allowed}">'
        f"<style>{STYLE}</style><main><h1>{title}</h1>{body}</main></html>\n"
    )


def text(value: object) -> str:
    """Escape a value for a page; what stands in backticks becomes code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(str(value)))


def number(value: float) -> str:
    """Write points: whole ones so, others with two digits."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def file_name(row: Row) -> str:
    """Name a student's page: readable, unique, and a plain file whatever the name.

    The name depends on whose it is and where it was, not on what was found.
    """
    readable = re.sub(r"[^A-Za-z0-9]+", "-", row["student"])[:40].strip("-")
    whose = "\0".join((row["student"], row["id"], row["exercise"], row["place"]))
    unique = hashlib.sha256(whose.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{readable or 'student'}-{unique}.html"


def points_of(result: dict) -> str:
    """Say the points of a question, corrected ones with what was found."""
    found = f"{result['points']} of {result['max_points']}"
    if "corrected" not in result:
        return found
    return f"{number(result['corrected'])} of {result['max_points']} (found: {found})"


def listed(title: str, items: list[str]) -> str:
    """A heading with a list below it, or nothing."""
    lines = "".join(f"<li>{text(item)}</li>" for item in items)
    return f"<h2>{title}</h2><ul>{lines}</ul>" if items else ""


def student_page(row: Row) -> str:
    """Write what one student got, why, and what was flagged."""
    lines = []
    for name, result in row["questions"].items():
        title = find_question(name).title
        parts = ", ".join(f"{p} {got}/{most}" for p, got, most in result["parts"])
        lines.append(
            f"<tr><th scope='row'>{name} {text(title)}</th>"
            f"<td>{points_of(result)}</td>"
            f"<td>{text(result['hint'] or 'right')}<br>"
            f"<small>{text(parts)}</small></td></tr>"
        )
    how = [f"{number(row['score'])} found"]
    if row["correction"]:
        how.append(f"{row['correction']:+g} by correction")
    if row["late"]:
        how.append(f"{number(-row['late'])} for {row['hours_late']:g} hours late")
    said = f" ({', '.join(how)})" if how[1:] else ""
    corrections = [f"{x['change']}: {x['reason']}" for x in row["corrections"]]
    final = f"{number(row['final'])} of {row['max_score']} points"
    return page(
        f"{text(row['student'])}: {text(row['exercise'])}",
        f"<p><strong>{final}</strong>{said}</p>"
        "<div class='wide'><table><thead><tr><th scope='col'>Question</th>"
        "<th scope='col'>Points</th><th scope='col'>What was found</th></tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
        + listed("Corrected by a person", corrections)
        + listed("Not run", row["notes"])
        + listed("For a person to look at", row["flags"]),
    )


def write_reports(out: Path, rows: list[Row]) -> Path:
    """Write all pages into a folder named after the table, and remove older ones.

    The old page of the class goes first: a killed run leaves no page that is half true.
    """
    from course_utils.grading.classroom.class_page import class_page

    folder = out.with_name(f"{out.stem}_reports")
    folder.mkdir(exist_ok=True)
    index = folder / "index.html"
    index.unlink(missing_ok=True)
    for path in folder.glob("*.html"):
        if MADE_HERE in path.read_text(encoding="utf-8", errors="replace")[:2000]:
            path.unlink()
    for row in rows:
        write_whole(folder / file_name(row), student_page(row))
    write_whole(index, class_page(rows))
    return folder
