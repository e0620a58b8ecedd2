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

from course_utils.data.grammar.lexicon import (
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
from course_utils.data.grammar.phrases import (
    Manner,
    NounPhrase,
    Phrase,
    both,
    fixed,
    noun_phrase,
    object_pronoun,
    owned,
    subject_pronoun,
    two_pronouns,
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
        self.women = False  # a feminine plural was said: "they" might be *elles*
        self.open = False  # the clause might go on after an "and"

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
MAIN_TENSES = (*TENSES, "progressive")
# mostly, what happened says which one is meant
RELATIVE_TENSES = ("past", *MAIN_TENSES)


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
    """List the determiners that suit a noun in its role, the common ones twice.

    *Des filles travaillent* is odd French, so "some" begins no subject; *à* goes with
    "at the church", but "at this church" would be *dans*.
    """
    definite = ("the", "the", "this" if number == "s" else "these")
    possessives = ("my", "his", "her", "their") if noun.personal else ()
    if modifier == "of":
        return ("the",)
    if "kin" in noun.kinds:
        return possessives
    if role == "owner" or (role == "negated" and modifier):
        return definite
    possessives = () if modifier else possessives
    if role == "spot":
        return ("the", *possessives)
    if role == "definite":
        return definite + possessives
    plural = {"negated": ("any", "any"), "subject": ("two",)}
    indefinite = ("a", "a") if number == "s" else plural.get(role, ("some", "two"))
    return definite + indefinite + possessives


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
    """Choose what a noun gets: an owner ("of"), a relative clause, mostly nothing."""
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

    The "definite" noun after "at" is a "spot". A person owns in "the girl's cat", a
    building in "the door of the house".
    It gets one modifier at most, so that each has one noun to belong to.
    """
    number = "p" if noun.english_plural and draw.chance(0.35) else "s"
    modifier = draw_modifier(draw, noun, role, depth)
    determiner = draw.one_of(determiners(noun, number, role, modifier))
    phrase = noun_phrase(
        determiner, draw_adjectives(draw, noun), noun, number, role == "negated"
    )
    draw.women |= phrase.agreement == "fp"
    if modifier == "of":
        owner = draw_noun_phrase(draw, draw.fresh(nouns_of(noun.owner)), "owner")
        if noun.owner != "building":
            return owned(owner, phrase)
        tail = fixed("of", "de") + owner
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
        subject = draw_subject_pronoun(draw)
    else:
        subject = draw_noun_phrase(draw, draw.fresh(verb.subjects), "definite")
    tense = draw.one_of([t for t in RELATIVE_TENSES if t in verb.tenses])
    manner = draw_manner(draw, verb, tense, subject)
    group = verb_group(verb, subject, manner, before=agreement)
    phrase = fixed("that", "que") + subject + group
    return phrase + draw_recipient(draw) if verb.frame == "gift" else phrase


# ------------------------------------------------------------------------ verb phrases


def needs_not(verb: Verb, tense: str, subject: NounPhrase) -> bool:
    """Say whether the English form is present and past: "they read", not "he reads"."""
    two_tenses = tense == "past" or (tense == "present" and subject.slot != 1)
    return two_tenses and verb.english == verb.english_past


def draw_manner(draw: Draw, verb: Verb, tense: str, subject: NounPhrase) -> Manner:
    """Choose negation and adverb.

    "They read" is present and past; to be clear, "not" comes with it, which shows the
    tense ("did not"). Before "that", French negation would ask
    for the subjunctive: there is none.
    "Often sang" would be *chantait souvent* and *va souvent chanter* is "often goes to
    sing", so the past has "never" alone and the future no adverb. *Dort toujours* is
    "still sleeps", but *ne dort pas toujours* "does not always sleep".
    """
    if draw.plain:
        return Manner(tense)
    unclear = needs_not(verb, tense, subject)
    negated = unclear or (verb.frame != "clause" and draw.chance(0.35))
    adverbs = verb.adverbs if tense in ("present", "past") else ()
    adverb = draw.one_of(adverbs) if adverbs and draw.chance(0.4) else ""
    if adverb == "never":
        adverb = "" if negated else adverb
    elif tense == "past" or (adverb == "always" and verb.lasting and not negated):
        adverb = ""
    return Manner(tense, negated, adverb)


def draw_subject_pronoun(draw: Draw) -> NounPhrase:
    """Choose a subject pronoun; "they" is *ils*, so no women came before it."""
    names = tuple(SUBJECT_PRONOUNS)
    return subject_pronoun(draw.one_of(names[:-1] if draw.women else names))


def draw_object_pronoun(draw: Draw, verb: Verb, subject: NounPhrase) -> str:
    """Choose an object pronoun, or none; things are "them" alone.

    "Them" is masculine (vus), so no women came before it.
    """
    possible = verb.frame in ("object", "address") and verb.pronouns
    if not possible or draw.chance(0.3 if draw.terse else 0.5):
        return ""
    if PEOPLE[-1] not in verb.objects:
        return "" if draw.women else "them"
    return draw.one_of(persons(draw, subject))


def persons(draw: Draw, subject: NounPhrase) -> tuple[str, ...]:
    """List the object pronouns for people: never "I … me", no "them" for women."""
    names = tuple(OBJECT_PRONOUNS)[subject.person == 1 :]
    return names[:-1] if draw.women else names


def draw_two_pronouns(draw: Draw, subject: NounPhrase) -> Phrase | None:
    """Choose "them to him", or nothing."""
    if draw.women or draw.chance(0.7):
        return None
    names = [name for name in persons(draw, subject) if name != "them"]
    return two_pronouns("them", draw.one_of(names))


def draw_objects(draw: Draw, verb: Verb, manner: Manner, depth: int) -> Phrase:
    """Say the direct object, or two of a kind."""
    noun = draw.fresh(verb.objects)
    role = "object" if verb.indefinite else "definite"
    if manner.negative:
        bare = not (manner.negated and manner.adverb) and verb.indefinite_after_not
        role = "negated" if bare and verb.indefinite else "definite"
        return draw_noun_phrase(draw, noun, role, depth)
    if depth == 0 or draw.chance(0.88):
        return draw_noun_phrase(draw, noun, role, depth)
    other = draw.fresh([each for each in verb.objects if each.kinds & noun.kinds])
    draw.open = True
    first = draw_noun_phrase(draw, noun, role)
    return first + fixed("and", "et") + draw_noun_phrase(draw, other, role)


def draw_recipient(draw: Draw, nouns: Sequence[Noun] = PEOPLE) -> Phrase:
    """Say to whom, or to what place."""
    noun = draw.fresh(nouns)
    return fixed("to", "à") + draw_noun_phrase(draw, noun, "definite")


def draw_place(draw: Draw) -> Phrase:
    """Say where."""
    english, french, kinds = draw.one_of(PREPOSITIONS)
    noun = draw.fresh(nouns_of(kinds))
    role = "spot" if english == "at" else "definite"
    return fixed(english, french) + draw_noun_phrase(draw, noun, role)


@cache
def verbs_in(tense: str, verbs: tuple[Verb, ...], nested: bool) -> tuple[Verb, ...]:
    """Keep the verbs that have a tense, and "say that …" where clauses may nest."""
    return tuple(
        v for v in verbs if (nested if v.frame == "clause" else tense in v.tenses)
    )


def draw_predicate(draw: Draw, subject: NounPhrase, tense: str, depth: int) -> Phrase:
    """Say something of a subject: a verb and all that follows it.

    In "he says that she sang" the tense is that of the last verb.
    """
    verbs = verbs_in(tense, subject.verbs, depth > 0)
    if draw.plain:  # "when they read" has no "not", and nobody loves for a while
        verbs = tuple(
            v for v in verbs if "past" in v.tenses and not needs_not(v, tense, subject)
        )
    verb = draw.fresh(verbs)
    if verb.frame == "clause":
        draw.open = True
        phrase = verb_group(verb, subject, draw_manner(draw, verb, "present", subject))
        return phrase + fixed("that", "que") + draw_clause(draw, tense, depth - 1)

    manner = draw_manner(draw, verb, "past" if tense == "moment" else tense, subject)
    name = draw_object_pronoun(draw, verb, subject)
    two = draw_two_pronouns(draw, subject) if verb.frame == "gift" else None
    if two:
        phrase = verb_group(verb, subject, manner, two, OBJECT_PRONOUNS["them"][2])
    elif name:
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
        return draw_subject_pronoun(draw)
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
    draw.women |= left.agreement[0] == right.agreement[0] == "f"
    return both(left, right)


def draw_clause(draw: Draw, tense: str, depth: int, connector: str = "") -> Phrase:
    """Say a subject and its predicate.

    After "and", a subject has no "and" of its own: "I saw the boy and the girl and the
    king will sing" would not say who sings.
    """
    subject = draw_subject(draw, depth, connector != "and")
    return subject + draw_predicate(draw, subject, tense, depth)


# What may follow a clause, by its tense: a connector, and the tense after it.
LINKS_AFTER = {
    "present": (
        ("because", "present"),
        ("when", "present"),
        ("while", "present"),
        ("if", "present"),
    ),
    "past": (
        ("because", "moment"),
        ("because", "progressive"),
        ("while", "progressive"),
    ),
    "progressive": (
        ("because", "progressive"),
        ("when", "moment"),
        ("while", "progressive"),
    ),
    "future": (("because", "future"), ("if", "present")),
}


def draw_link(
    draw: Draw, previous: str, tense: str, still_open: bool
) -> tuple[str, str]:
    """Choose a connector and the tense after it.

    "And" and "but" start anew, in any tense. No "and" follows a clause that is
    `still_open`: "if he sings and she dances", "he says that he sings and she dances"
    might go on with *et que*, "he sees a king and a queen and a girl …" with a noun.
    In the past, what lasts is said as such ("while he was sleeping", *dormait*).
    """
    if previous not in ("", "and", "but"):
        return "but", draw.one_of(MAIN_TENSES)
    new = tuple(each for each in ("and", "but") if each != previous)
    if still_open:
        new = tuple(each for each in new if each != "and")
    if new and draw.chance(0.4):
        return draw.one_of(new), draw.one_of(MAIN_TENSES)
    return draw.one_of(LINKS_AFTER[tense])


def draw_sentence(draw: Draw, length: int) -> Phrase:
    """Chain clauses as long as they fit into a length; the first may exceed it."""
    draw.used.clear()
    draw.terse = length < 6
    draw.plain = draw.women = False
    depth = 0 if length < 7 else 1 if draw.chance(0.6) else 2
    tense = draw.one_of(MAIN_TENSES)
    draw.open = False
    phrase = draw_clause(draw, tense, depth)
    still_open = draw.open
    connector = ""
    failures = 0
    while len(phrase.english) + 4 <= length and failures < 2:
        link, then = draw_link(draw, connector, tense, still_open)
        draw.open = False
        draw.plain = link in ("when", "while")
        inner = depth if link in ("and", "but", "because") else 0
        more = fixed(link, CONNECTORS[link]) + draw_clause(draw, then, inner, link)
        more = fixed(",", ",") + more if link == "but" else more
        if len(phrase.english) + len(more.english) < length:
            phrase, connector, tense = phrase + more, link, then
            still_open = draw.open
        else:
            failures += 1
    return phrase + fixed(".", ".")
