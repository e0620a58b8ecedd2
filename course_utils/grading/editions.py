"""Questions that had another id in an earlier edition.

A learner's notebook and progress file, and an instructor's extra tests, name questions
by their ids, and outlive an edition. An id is therefore never given to another
question: one that moves gets a new id and a line here.
"""

from __future__ import annotations

from collections.abc import Callable

RENAMED: dict[str, str] = {}
"""From an id of any earlier edition to the id of today: `{"06.9": "07.2"}`."""


def current_id(identifier: str, say: Callable[[str], None] = lambda _: None) -> str:
    """Return the id that a question has today, and `say` so if it had another."""
    new = RENAMED.get(identifier, identifier)
    if new != identifier:
        say(f"Question {identifier} of an earlier edition is {new} in this one.")
    return new
