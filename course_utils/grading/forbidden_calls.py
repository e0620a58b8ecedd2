"""What an answer called though it was to be written, and the sentence about it."""

from __future__ import annotations

from course_utils.grading.answer_runner import READY_MADE, Record
from course_utils.grading.questions.model import Question


def not_allowed(question: Question, records: list[Record]) -> list[str]:
    """List what an answer called though it was to be written, this package's first."""
    library = {name for record in records for name in record.library}
    own = sorted(name for name in library if name.startswith("course_utils."))
    rest = sorted(library.difference(own), key=lambda name: (name[:1] == "_", name))
    if question.primitives:
        return own + [name for name in rest if name not in question.allowed]
    ready_made = [name for name in own if is_ready_made(question, name)]
    return ready_made + [name for name in rest if name in question.packaged]


def is_ready_made(question: Question, name: str) -> bool:
    """Tell whether a function of this package is the answer, not a help to it."""
    words = name.split(".")
    return "questions" in words or any(x in words[2:] for x in question.packaged)


def explain_use(question: Question, name: str) -> tuple[str, str]:
    """Say which of these calls it was, and what to do."""
    call = f"`{question.answer}`"
    if name.startswith("course_utils."):
        own = name.removeprefix("course_utils.grading.questions.")
        owner = "the package's own" if own == name else "the question's own solution"
        return "package", f"{call} uses {owner} `{own}`; write it yourself."
    if name == "complex":
        return "library", f"{call} computes with complex numbers: do without them."
    if any(word in name.lower() for word in READY_MADE):
        return "library", (
            f"{call} calls `{name}`; this question asks you to write attention "
            "yourself, from matrix products and softmax alone."
        )
    if name in question.packaged:
        return "library", f"{call} calls PyTorch's own `{name}`; write it yourself."
    return "library", (
        f"{call} calls PyTorch's `{name}`, which does several steps at once: write "
        "them yourself, from products, sums, a softmax and the like."
    )
