"""An experiment, its numbers and specimen answers.

`gain` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

from course_utils import experiments
from course_utils.grading.questions.experiment import Rows, experiment


def gain(change: str, seed: int) -> float:
    """Bits per character that one change gains on chapter 13's GPT, with this seed."""
    points = experiments.load("16_changes").points
    old, new = (experiments.best_tests(points, model=m) for m in ("2017", change))
    return old[seed] - new[seed]


NUMBERS: Rows = [
    ({"change": "RoPE", "seed": 0}, 0.5536),
    ({"change": "RoPE", "seed": 1}, 0.5849),
    ({"change": "RoPE", "seed": 2}, 0.6588),
    ({"change": "SwiGLU", "seed": 0}, -0.0895),
    ({"change": "SwiGLU", "seed": 1}, -0.0603),
    ({"change": "SwiGLU", "seed": 2}, 0.0466),
    ({"change": "zero start", "seed": 0}, 0.2467),
    ({"change": "zero start", "seed": 1}, 0.2042),
    ({"change": "zero start", "seed": 2}, 0.2538),
    ({"change": "Muon", "seed": 0}, 0.3912),
    ({"change": "Muon", "seed": 1}, 0.3617),
    ({"change": "Muon", "seed": 2}, 0.3787),
    ({"change": "window 16", "seed": 0}, 0.1718),
    ({"change": "window 16", "seed": 1}, 0.1109),
    ({"change": "window 16", "seed": 2}, 0.1424),
    ({"change": "Llama", "seed": 0}, 0.5901),
    ({"change": "Llama", "seed": 1}, 0.5648),
    ({"change": "Llama", "seed": 2}, 0.6585),
]
QUESTION = experiment(
    id="16.6",
    title="An experiment: which change was it?",
    minutes=10,
    rows=NUMBERS,
    tolerance=0.0006,
    reason="b",
    other_reasons={
        "a": "that says what the gate does without RoPE: could it help only where the "
        "model already finds out where to look, or stop helping there?",
        "c": "more steps help with and without the gate: which two numbers would you "
        "compare?",
    },
    next_step="guess first, then run `gain` with the setting of your name.",
)
RUN = gain


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "B"), lambda: ["ada", round(NUMBER, 3), " b"]]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
    ("reason_c", lambda: ("Ada", NUMBER, "c")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
