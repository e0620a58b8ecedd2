"""What to say: random sentences in English and French at once.

Each function draws one part of a sentence and says it by the rules of `phrases`, with
words that go together by the tables of `lexicon`. What would leave the translation of
the English open is never drawn; the docstrings say where that matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import TypeVar

from course_utils.lexicon import (
    ADJECTIVES,
    CONNECTORS,
    NOUNS,
    OBJECT_PRONOUNS,
    PREPOSITIONS,
    SUBJECT_PRONOUNS,
    TENSES,
    VERBS,
    Adjective,
    Noun,
    Verb,
    nouns_of,
)
from course_utils.phrases import (
    Manner,
    NounPhrase,
    Phrase,
    both,
    fixed,
    noun_phrase,
    object_pronoun,
    subject_pronoun,
    verb_group,
    verbs_of,
)

Item = TypeVar("Item")


class Draw:
    """Random choices, which avoid the nouns and verbs this sentence has already.

    All come from `random()`, the one method whose numbers Python keeps from version to
    version.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random
        self.used: set[object] = set()
        self.terse = False  # no adjectives, modifiers and places
        self.plain = False  # no adverb, and no negation

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def one_of(self, items: Sequence[Item]) -> Item:
        return items[int(self.random() * len(items))]

    def fresh(self, items: Sequence[Item]) -> Item:
        """Pick an item that is not used yet, if a few tries find one."""
        for _ in range(4):
            item = self.one_of(items)
            if item not in self.used:
                break
        self.used.add(item)
        return item


# ------------------------------------------------------------------------ noun phrases

SUBJECTS = tuple(noun for noun in NOUNS if verbs_of(noun))
PEOPLE = nouns_of("person")
RELATIVE_TENSES = ("past", *TENSES)  # mostly, what happened says which one is meant


@cache
def verbs_taking(noun: Noun) -> tuple[Verb, ...]:
    """Return the verbs this noun may be the direct object of."""
    direct = ("object", "gift")
    return tuple(v for v in VERBS if v.frame in direct and noun in v.objects)


@cache
def adjectives_beside(noun: Noun, before: bool) -> tuple[Adjective, ...]:
    """Return the adjectives of a noun that French puts before it, or after it."""
    return tuple(a for a in noun.adjectives if a.before == before)


@cache
def determiners(noun: Noun, number: str, role: str, modifier: str) -> tuple[str, ...]:
    """List the determiners that suit a noun in its role, the common ones twice."""
    definite = ("the", "the", "this" if number == "s" else "these")
    possessives = ("my", "his", "her", "their") if noun.personal else ()
    if modifier == "of":
        return ("the",)
    if "kin" in noun.kinds:
        return possessives
    if role == "owner" or (role == "negated" and modifier):
        return definite
    if role == "definite":
        return definite + possessives
    indefinite: tuple[str, ...] = (
        ("a", "a") if number == "s" else ("some", "some", "two")
    )
    if role == "negated" and number == "p":
        indefinite = ("any", "any")
    return definite + indefinite + (() if modifier else possessives)


def draw_adjectives(draw: Draw, noun: Noun) -> list[Adjective]:
    """Choose at most one adjective for each side, and put them in English order."""
    chosen: list[Adjective] = []
    if draw.terse:
        return chosen
    for before in (True, False):
        fitting = adjectives_beside(noun, before)
        if draw.chance(min(0.6, 0.25 * len(fitting))):
            chosen.append(draw.one_of(fitting))
    if len(chosen) == 2:
        if {a.sort for a in chosen} == {"beauty", "opinion"}:
            return chosen[:1]
        chosen.sort(key=ADJECTIVES.index)
    return chosen


def draw_modifier(draw: Draw, noun: Noun, role: str, depth: int) -> str:
    """Choose what follows a noun: "of", a relative clause, or mostly nothing."""
    roll = 1 if draw.terse else draw.random()
    if roll < 0.15:
        return "of" if noun.owner and role != "owner" else ""
    if depth == 0 or "kin" in noun.kinds:
        return ""
    if roll < 0.3 and verbs_of(noun):
        return "subject relative"
    return "object relative" if roll < 0.5 and verbs_taking(noun) else ""


def draw_noun_phrase(draw: Draw, noun: Noun, role: str, depth: int = 0) -> NounPhrase:
    """Say a noun as "subject", "object", "negated" object, "definite" or "owner".

    It gets one modifier at most, so that each has one noun to belong to.
    """
    number = "p" if noun.english_plural and draw.chance(0.35) else "s"
    modifier = draw_modifier(draw, noun, role, depth)
    determiner = draw.one_of(determiners(noun, number, role, modifier))
    phrase = noun_phrase(
        determiner, draw_adjectives(draw, noun), noun, number, role == "negated"
    )
    if modifier == "of":
        owner = draw.fresh(nouns_of(noun.owner))
        tail = fixed("of", "de") + draw_noun_phrase(draw, owner, "owner")
    elif modifier == "subject relative":
        pronoun = "who" if "person" in noun.kinds else "that"
        tense = draw.one_of(RELATIVE_TENSES)
        tail = fixed(pronoun, "qui") + draw_predicate(draw, phrase, tense, depth - 1)
    elif modifier == "object relative":
        tail = draw_object_relative(draw, noun, phrase.agreement)
    else:
        return phrase
    phrase.english += tail.english
    phrase.french += tail.french
    return phrase


def draw_object_relative(draw: Draw, noun: Noun, agreement: str) -> Phrase:
    """Say "that the girl saw" of a noun, with which the participle agrees (vue)."""
    verb = draw.fresh(verbs_taking(noun))
    if draw.chance(0.3):
        subject = subject_pronoun(draw.one_of(tuple(SUBJECT_PRONOUNS)))
    else:
        subject = draw_noun_phrase(draw, draw.fresh(verb.subjects), "definite")
    manner = draw_manner(draw, verb, draw.one_of(RELATIVE_TENSES))
    group = verb_group(verb, subject, manner, before=agreement)
    phrase = fixed("that", "que") + subject + group
    return phrase + draw_recipient(draw) if verb.frame == "gift" else phrase


# ------------------------------------------------------------------------ verb phrases


def draw_manner(draw: Draw, verb: Verb, tense: str) -> Manner:
    """Choose negation and adverb.

    "They read" is present and past; to be clear, the past of "read" is always negated.
    Before "that", French negation would ask for the subjunctive: there is none.
    """
    unclear = tense == "past" and verb.english == verb.english_past
    if draw.plain:
        return Manner(tense, negated=unclear)
    negated = unclear or (verb.frame != "clause" and draw.chance(0.35))
    adverb = draw.one_of(verb.adverbs) if verb.adverbs and draw.chance(0.3) else ""
    return Manner(tense, negated, "" if negated and adverb == "never" else adverb)


def draw_object_pronoun(draw: Draw, verb: Verb, subject: NounPhrase) -> str:
    """Choose an object pronoun, or none; things are "them" alone."""
    possible = verb.frame in ("object", "address") and verb.pronouns
    if not possible or draw.chance(0.3 if draw.terse else 0.5):
        return ""
    if PEOPLE[-1] not in verb.objects:
        return "them"
    return draw.one_of(tuple(OBJECT_PRONOUNS)[subject.person == 1 :])  # never "I … me"


def draw_objects(draw: Draw, verb: Verb, manner: Manner, depth: int) -> Phrase:
    """Say the direct object, or two of a kind."""
    noun = draw.fresh(verb.objects)
    if manner.negative:
        role = "definite" if manner.negated and manner.adverb else "negated"
        return draw_noun_phrase(draw, noun, role, depth)
    if depth == 0 or draw.chance(0.88):
        return draw_noun_phrase(draw, noun, "object", depth)
    other = draw.fresh([each for each in verb.objects if each.kinds & noun.kinds])
    first = draw_noun_phrase(draw, noun, "object")
    return first + fixed("and", "et") + draw_noun_phrase(draw, other, "object")


def draw_recipient(draw: Draw, nouns: Sequence[Noun] = PEOPLE) -> Phrase:
    """Say to whom, or to what place."""
    noun = draw.fresh(nouns)
    return fixed("to", "à") + draw_noun_phrase(draw, noun, "definite")


def draw_place(draw: Draw) -> Phrase:
    """Say where."""
    english, french, kinds = draw.one_of(PREPOSITIONS)
    noun = draw.fresh(nouns_of(kinds))
    return fixed(english, french) + draw_noun_phrase(draw, noun, "definite")


@cache
def verbs_without_clause(verbs: tuple[Verb, ...]) -> tuple[Verb, ...]:
    """Leave out "say that …" and the like, where clauses may not nest further."""
    return tuple(verb for verb in verbs if verb.frame != "clause")


def draw_predicate(draw: Draw, subject: NounPhrase, tense: str, depth: int) -> Phrase:
    """Say something of a subject: a verb and all that follows it.

    In "he says that she sang" the tense is that of the last verb.
    """
    verbs = subject.verbs if depth else verbs_without_clause(subject.verbs)
    verb = draw.fresh(verbs)
    if verb.frame == "clause":
        phrase = verb_group(verb, subject, draw_manner(draw, verb, "present"))
        return phrase + fixed("that", "que") + draw_clause(draw, tense, depth - 1)

    manner = draw_manner(draw, verb, tense)
    name = draw_object_pronoun(draw, verb, subject)
    if name:
        to = verb.frame == "address"
        before = "" if to else OBJECT_PRONOUNS[name][2]
        pronoun = object_pronoun(name, to)
        phrase = verb_group(verb, subject, manner, pronoun, before)
    else:
        phrase = verb_group(verb, subject, manner)
        if verb.frame == "object":
            phrase += draw_objects(draw, verb, manner, depth)
        elif verb.frame == "gift":
            phrase += draw_objects(draw, verb, manner, 0) + draw_recipient(draw)
        elif verb.frame in ("address", "goal"):
            phrase += draw_recipient(draw, verb.objects)
    if verb.place and not draw.terse and draw.chance(0.2):
        phrase += draw_place(draw)
    return phrase


# --------------------------------------------------------------------------- sentences


def draw_subject(draw: Draw, depth: int, may_coordinate: bool) -> NounPhrase:
    """Say who: a pronoun, two nouns joined by "and", or one with its modifiers."""
    if draw.chance(0.25):
        return subject_pronoun(draw.one_of(tuple(SUBJECT_PRONOUNS)))
    noun = draw.fresh(SUBJECTS)
    if not may_coordinate or draw.chance(0.9):
        return draw_noun_phrase(draw, noun, "subject", depth)
    other = draw.fresh(nouns_of("person" if "person" in noun.kinds else "animal"))
    left, right = (
        noun_phrase(
            draw.one_of(determiners(each, "s", "definite", "")),
            draw_adjectives(draw, each),
            each,
            "s",
        )
        for each in (noun, other)
    )
    return both(left, right)


def draw_clause(draw: Draw, tense: str, depth: int, connector: str = "") -> Phrase:
    """Say a subject and its predicate.

    After "and", a subject has no "and" of its own: "I saw the boy and the girl and the
    king will sing" would not say who sings.
    """
    subject = draw_subject(draw, depth, connector != "and")
    return subject + draw_predicate(draw, subject, tense, depth)


# The connectors that may follow a clause, by its tense.
CONNECTORS_AFTER = {
    "present": ("and", "but", "because", "when", "while", "if"),
    "past": ("and", "but", "because", "when"),
    "future": ("and", "but", "because", "if"),
}


def draw_link(draw: Draw, previous: str, tense: str) -> tuple[str, str]:
    """Choose a connector and the tense after it.

    "And" and "but" start anew, in any tense. The others keep it, except that after
    "if" comes the present; a subordinate clause has no further one.
    """
    choices = CONNECTORS_AFTER[tense]
    if previous in ("and", "but"):
        choices = tuple(connector for connector in choices if connector != previous)
    elif previous:
        choices = ("and", "but")
    connector = draw.one_of(choices)
    if connector in ("and", "but"):
        return connector, draw.one_of(TENSES)
    return connector, "present" if connector == "if" else tense


def draw_sentence(draw: Draw, length: int) -> Phrase:
    """Chain clauses as long as they fit into a length; the first may exceed it."""
    draw.used.clear()
    draw.terse = length < 6
    draw.plain = False
    depth = 0 if length < 7 else 1 if draw.chance(0.6) else 2
    tense = draw.one_of(TENSES)
    phrase = draw_clause(draw, tense, depth)
    connector = ""
    failures = 0
    while len(phrase.english) + 4 <= length and failures < 2:
        link, then = draw_link(draw, connector, tense)
        draw.plain = link in ("when", "while")
        inner = depth if link in ("and", "but", "because") else 0
        more = fixed(link, CONNECTORS[link]) + draw_clause(draw, then, inner, link)
        if len(phrase.english) + len(more.english) < length:
            phrase, connector, tense = phrase + more, link, then
        else:
            failures += 1
    return phrase + fixed(".", ".")
