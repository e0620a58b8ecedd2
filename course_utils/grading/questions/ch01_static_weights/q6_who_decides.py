"""`who_decides`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

from course_utils.grading.questions.model import Mistake, Output, Part, Question

WHO = ("word", "document", "question")
DECIDES = {
    "idf": "word",
    "tf": "document",
    "learned_score": "word",
    "weight": "document",
    "ratio": "word",
    "embedding_length": "word",
    "document_vector": "document",
    "cosine": "question",
}


def decided_by(kind: str) -> Any:
    """Look at what is said to depend on one thing: no more and no less may be."""
    return lambda value: [value.get(name) == kind for name in DECIDES]


def decided_as(**wrong: str) -> Any:
    return lambda: DECIDES | wrong


def says_else(name: str) -> Any:
    return lambda args, value: value[name] != DECIDES[name]


QUESTION = Question(
    id="01.6",
    title="Who decides?",
    answer="who_decides",
    arguments=(),
    outputs=(Output("who"),),
    reference=lambda: dict(DECIDES),
    difficulty="medium",
    minutes=8,
    next_step="for each quantity, change the question, then the document, and ask "
    "whether it moves.",
    parts=tuple(
        Part(f"what the {kind} decides", 1, lambda rng: [()], view=decided_by(kind))
        for kind in WHO
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "every one of the eight names needs one of the three words: 'word', "
            "'document', 'question'",
            lambda: dict.fromkeys(DECIDES, "static"),
            lambda args, value: any(value.get(name) not in WHO for name in DECIDES),
        ),
        Mistake(
            "weight_is_static",
            "look at `weight` again: add a louder word to the document; does the "
            "share of this one stay what it was?",
            decided_as(weight="word"),
            says_else("weight"),
        ),
        Mistake(
            "ratio_moves",
            "look at `ratio` again: write both weights as fractions and divide one by "
            "the other; what is left of the common denominator?",
            decided_as(ratio="document"),
            says_else("ratio"),
        ),
        Mistake(
            "idf_of_a_document",
            "look at `idf` again: it was counted over the collection, once; does the "
            "page you are reading change it?",
            decided_as(idf="document"),
            says_else("idf"),
        ),
        Mistake(
            "tf_of_a_word",
            "look at `tf` again: is the same word used equally often everywhere?",
            decided_as(tf="word"),
            says_else("tf"),
        ),
        Mistake(
            "score_adapts",
            "look at `learned_score` again: training is over, and it is a table with "
            "one number in each row; what do you look it up with?",
            decided_as(learned_score="document"),
            says_else("learned_score"),
        ),
        Mistake(
            "length_adapts",
            "look at `embedding_length` again: the vectors stand in a table with one "
            "row each; what do you look a row up with?",
            decided_as(embedding_length="document"),
            says_else("embedding_length"),
        ),
        Mistake(
            "vector_answers",
            "look at `document_vector` again: it is made of words and their weights "
            "and nothing else; has anybody asked anything yet?",
            decided_as(document_vector="question"),
            says_else("document_vector"),
        ),
        Mistake(
            "cosine_is_fixed",
            "look at `cosine` again: one document, two different searches; is the "
            "number the same?",
            decided_as(cosine="document"),
            says_else("cosine"),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: DECIDES | {"tf": "Document"},  # capitals make no other word
    lambda: dict(reversed(DECIDES.items())),
]
WRONG = [
    ("weight_is_static", lambda: DECIDES | {"weight": "word"}),
    ("ratio_moves", lambda: DECIDES | {"ratio": "question"}),
    ("vector_answers", lambda: DECIDES | {"document_vector": "question"}),
    ("not_all_or_other_words", lambda: {"idf": "word"}),
    ("not_all_or_other_words", lambda: DECIDES | {"tf": "page"}),
]
