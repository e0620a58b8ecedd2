"""Tell whose each notebook is, and which exercise: the layouts that courses have.

Student first (as nbgrader collects), exercise first, flat files, and the names that
Canvas and Moodle give to what they let you download. What is not understood is an
error that says so: nobody is left out, and nothing is guessed. No link is followed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

from course_utils.grading.classroom.submissions import (
    Submission,
    read_bytes,
    shown_name,
)
from course_utils.grading.questions import EXERCISES

MAX_DEPTH = 6
PASSED_OVER = (".ipynb_checkpoints", ".git", "__MACOSX")
ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".gz", ".tgz")
NBGRADER = {"source", "release", "autograded", "feedback"}
CANVAS = re.compile(r"(?P<who>[^_]+)(?P<late>_LATE)?_(?P<number>\d+)_\d+_(?P<rest>.+)")
MOODLE = re.compile(
    r"(?P<who>.+)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<rest>.*)"
)
COUNTED = re.compile(r"(?:^|[ _-]*)\((\d+)\)$|-(\d+)$")  # a copy: "x (1)", "x-1"
NUMBERED = re.compile(
    r"(?:exercise|ex|homework|hw|chapter|ch|assignment|week|sheet)?[ _-]*(\d\d)"
)


@dataclass(frozen=True)
class Place:
    """What a path says: whose it is, of which exercise, in which version."""

    student: str
    chapters: frozenset[str]
    number: str = ""  # that Canvas or Moodle gave the student
    late: bool = False
    version: int = 0
    between: tuple[str, ...] = ()  # folders that say neither who nor what


def named_whole(text: str) -> str:
    """The exercise whose whole name is in a text."""
    plain = text.lower().replace(" ", "_")
    return next((x for x, exercise in EXERCISES.items() if exercise in plain), "")


def chapter_in(text: str) -> str:
    """Find which exercise a name speaks of: its whole name, or its two digits."""
    if found := named_whole(text):
        return found
    numbers = re.findall(r"(?<!\d)(\d\d)(?!\d)(?=[_ -]|$|\.)", text)
    known = {number for number in numbers if number in EXERCISES}
    return known.pop() if len(known) == 1 else ""


def exercise_folder(name: str) -> str:
    """Tell whether a folder's name is that of an exercise, and of which chapter."""
    numbered = NUMBERED.fullmatch(name.lower())
    number = numbered[1] if numbered and numbered[1] in EXERCISES else ""
    return named_whole(name) or number


def without_exercise(stem: str, chapter: str) -> str:
    """What of a file's name is the student's: the rest beside the exercise's name."""
    found = re.search(re.escape(EXERCISES.get(chapter, "\0")), stem, re.IGNORECASE)
    if not found and chapter:
        found = re.search(rf"(?<!\d){chapter}(?!\d)", stem)
    if not found:
        return stem
    rest = [stem[: found.start()], COUNTED.sub("", stem[found.end() :])]
    return " ".join(piece.strip(" _-") for piece in rest).strip()


def version_of(text: str) -> int:
    """The number of a copy, 0 for the first."""
    found = COUNTED.search(text)
    return int((found[1] or found[2])[:6]) if found else 0


def place(relative: Path, exercise_first: bool) -> Place:
    """Read a path below the folder of submissions."""
    *folders, _ = relative.parts
    stem = relative.stem
    names = [*folders, stem]
    level = 2 if exercise_first else 1  # what lies deeper was named by the student
    for i, name in enumerate(names[:level]):
        canvas = CANVAS.fullmatch(name) if name is stem else None
        found = canvas or MOODLE.fullmatch(name)
        if found:
            rest = [*folders[:i], found["rest"], *names[i + 1 :]]
            chapters = frozenset(map(chapter_in, rest)) - {""}
            late = bool(canvas and canvas["late"])
            version = version_of(stem)
            return Place(found["who"], chapters, found["number"], late, version)
    if exercise_first and folders:
        inner = folders[1:]
        named = {exercise_folder(folders[0]), *map(chapter_in, inner[1:])}
        named.add(exercise_folder(stem) if not inner else chapter_in(stem))
        chapter = exercise_folder(folders[0])
        student = inner[0] if inner else without_exercise(stem, chapter)
        between = tuple(name for name in inner[1:] if not chapter_in(name))
    else:
        named = {chapter_in(name) for name in [*folders[1:], stem]}
        chapter = next(iter(named - {""}), "")
        student = folders[0] if folders else without_exercise(stem, chapter)
        between = tuple(takewhile(lambda name: not chapter_in(name), folders[1:]))
    version = version_of(stem)
    return Place(student, frozenset(named - {""}), "", False, version, between)


# ------------------------------------------------------------------------ what is there


def files_under(folder: Path, depth: int = 0) -> list[Path]:
    """List notebooks and archives by name, and folders that hold neither.

    Links are listed, never followed.
    """
    found: list[Path] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError:
        if not depth:
            raise
        return [folder]  # a row of its own, whose flag says what is wrong
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in PASSED_OVER:
                found += files_under(path, depth + 1) if depth < MAX_DEPTH else [path]
        elif path.suffix.lower() in (".ipynb", *ARCHIVES) or path.is_dir():
            found += [path] * (not entry.name.startswith("._"))  # which a Mac adds
    folders = (folder.name, folder.parent.name)
    matters = depth == 1 or (depth == 2 and any(map(exercise_folder, folders)))
    return found if found or not matters else [folder]


def exercises_come_first(folder: Path) -> bool:
    """Tell exercise/student from student/exercise, or refuse a folder that is both."""
    entries = [e for e in os.scandir(folder) if e.is_dir(follow_symlinks=False)]
    names = sorted(e.name for e in entries if e.name not in PASSED_OVER)
    if "submitted" in names and (NBGRADER & set(names) or len(names) == 1):
        raise ValueError(
            f"{folder} is the folder of a whole course; give {folder / 'submitted'}."
        )
    exercises = [name for name in names if exercise_folder(name)]
    if exercises and len(exercises) < len(names):
        other = next(name for name in names if not exercise_folder(name))
        raise ValueError(
            f"{folder} holds folders of exercises ({shown_name(exercises[0])}) beside "
            f"others ({shown_name(other)}): keep one folder for each student, or one "
            "for each exercise."
        )
    return bool(exercises)


def handed_in(
    folder: Path, path: Path, exercise_first: bool
) -> tuple[datetime | None, tuple[str, ...]]:
    """Read the `timestamp.txt` that nbgrader writes beside a submission.

    In a folder further down, and in what Canvas and Moodle give you, such a file is
    the student's own.
    """
    folders = path.relative_to(folder).parts[:-1]
    own = exercise_first or any(map(exercise_folder, folders[1:2]))
    beside = folder.joinpath(*folders[: 2 if own else 1], "timestamp.txt")
    if not beside.exists():
        return None, ()
    content = read_bytes(beside, 1000)
    try:
        said = content.decode() if isinstance(content, bytes) else content
        time = datetime.fromisoformat(re.sub(r" ?UTC$", "+00:00", said.strip()))
        time.astimezone(UTC)  # a year that has no such time
    except (ValueError, OverflowError):
        return None, ("timestamp.txt is no time",)
    return time if time.tzinfo else time.replace(tzinfo=UTC), ()


# -------------------------------------------------------------------------- submissions


def newest(paths: list[tuple[Path, Place]], chapter: str) -> tuple[Path, Place]:
    """Choose among several: the last version, then the exercise's own name."""
    exact = EXERCISES.get(chapter)
    return min(
        paths, key=lambda x: (-x[1].version, x[0].stem != exact, os.fsencode(x[0]))
    )


def branches(paths: list[tuple[Path, Place]]) -> list[str]:
    """The folders of a supposed student that could be students themselves."""
    return sorted({place.between[0] for _, place in paths if place.between})


def find_submissions(
    folder: Path, chapter: str = "", skip_unknown: bool = False
) -> list[Submission]:
    """List every student's notebook for every exercise, once, in a fixed order.

    With a `chapter` every notebook is taken for its exercise. What is not understood is
    an error, or with `skip_unknown` a row with a flag.
    """
    if not folder.is_dir():
        raise ValueError(
            f"{folder} is not a folder; give the folder that holds the submissions."
        )
    first = exercises_come_first(folder)
    groups: dict[tuple[str, str, str], list[tuple[Path, Place]]] = {}
    unknown: dict[tuple[str, str, str], list[tuple[Path, str]]] = {}
    for path in files_under(folder):
        found = place(path.relative_to(folder), first)
        whose = (found.student, found.number)
        reason = refusal(path, found, chapter)
        if reason:
            unknown.setdefault((*whose, ""), []).append((path, reason))
        else:
            which = chapter or next(iter(found.chapters), "")
            groups.setdefault((*whose, which), []).append((path, found))
    for key, paths in list(groups.items()):
        if len(branches(paths)) > 1:
            both = " and ".join(map(shown_name, branches(paths)[:2]))
            reason = f"holds one exercise several times, in {both}"
            if not skip_unknown:
                raise ValueError(
                    f"{shown_name(key[0])} {reason}: if these are students, give the "
                    "folder that holds them; if not, --skip-unknown grades the rest."
                )
            whole = folder.joinpath(*paths[0][0].relative_to(folder).parts[: 1 + first])
            unknown.setdefault((*key[:2], ""), []).append((whole, reason))
            del groups[key]
    known = {(student, number) for student, number, _ in groups}
    extra = {key[:2]: paths for key, paths in unknown.items() if key[:2] in known}
    lost = {key: paths for key, paths in unknown.items() if key[:2] not in known}
    if lost and not skip_unknown:
        raise ValueError(explain_unknown(folder, lost))
    names = Counter((shown_name(key[0]), key[2]) for key in groups)
    made = []
    for key, paths in sorted(groups.items()):
        chosen, found = newest(paths, key[2])
        flags = []
        if names[shown_name(key[0]), key[2]] > 1 and not key[1]:
            flags.append(f"another student's name looks the same: {key[0]!a}")
        if len(paths) > 1:
            name = shown_name(str(chosen.relative_to(folder)))
            flags.append(f"{len(paths)} notebooks, graded {name}")
        for path, _ in extra.get(key[:2], ())[:3]:
            flags.append(f"not graded: {shown_name(path.name)}")
        if found.late:
            flags.append("Canvas calls it late")
        own_folder = not found.number and chosen.parent != folder
        time, more = handed_in(folder, chosen, first) if own_folder else (None, ())
        flags += more
        shown = shown_name(key[0])
        made.append(Submission(shown, key[2], chosen, tuple(flags), key[1], time))
    for key, lacking in sorted(lost.items()):
        flag = f"not understood: {shown_name(lacking[0][0].name)} {lacking[0][1]}"
        shown = shown_name(key[0])
        made.append(Submission(shown, "", lacking[0][0], (flag,), key[1]))
    return made


def find_in_all(
    folders: list[Path], chapter: str = "", skip_unknown: bool = False
) -> list[Submission]:
    """Find the submissions of several folders, each in a layout of its own.

    Nobody may have handed in one exercise in two of them.
    """
    made: dict[tuple[str, str, str], list[Submission]] = {}
    for folder in folders:
        mine = find_submissions(folder, chapter, skip_unknown)
        for one in mine:
            others = made.get((one.student, one.number, one.chapter))
            if one.chapter and others:
                raise ValueError(
                    f"{others[0].path} and {one.path} are both {one.student}'s for "
                    f"{one.exercise}: keep one of them."
                )
        for one in mine:
            made.setdefault((one.student, one.number, one.chapter), []).append(one)
    return [one for several in made.values() for one in several]


def refusal(path: Path, found: Place, chapter: str) -> str:
    """Say why a path is no submission, or nothing."""
    if path.suffix.lower() in ARCHIVES:
        return "is an archive: unpack it"
    if path.is_symlink() and path.is_dir():
        return "is a link to a folder: give the folder itself"
    if path.suffix.lower() != ".ipynb" and not chapter:
        return "holds no notebook that could be read"
    if not found.student:
        return "names no student"
    if len(found.chapters) > 1 and not chapter:
        return f"names the exercises {' and '.join(sorted(found.chapters))}"
    return "" if found.chapters or chapter else "names no exercise"


def explain_unknown(folder: Path, lost: dict[Any, list[tuple[Path, str]]]) -> str:
    """Say what was not understood, and what to do."""
    said = [
        f"{shown_name(str(path.relative_to(folder)))} {reason}"
        for paths in lost.values()
        for path, reason in paths
    ]
    more = f" (and {len(said) - 3} more)" if said[3:] else ""
    return (
        f"nothing was graded, because this is not understood: {'; '.join(said[:3])}"
        f"{more}. Rename or remove it, or say --exercise 06 to take every notebook for "
        "that exercise, or --skip-unknown to grade the rest."
    )
