"""English–French sentence pairs with gold word alignments, made by a small grammar.

Real corpora come without alignments; here one derivation writes both languages, so each
French word knows what it translates. The French is real: adjectives move and agree,
"not" wraps the verb in *ne … pas*, object pronouns climb before it, *le homme* elides
to *l'homme*. An English sentence has exactly one translation. `lexicon` has the words,
`phrases` the rules and the conventions of the links; this module draws the sentences.

Data of chapters 02, 03, 12 and 13.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from random import Random
from typing import TypeVar

from course_utils.lexicon import (
    ADJECTIVE_SORTS,
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
    source_words,
    target_words,
)
from course_utils.phrases import (
    Manner,
    NounPhrase,
    Pair,
    Phrase,
    aligned,
    both,
    fixed,
    noun_phrase,
    object_pronoun,
    subject_pronoun,
    verb_group,
    verbs_of,
)

__all__ = [
    "Pair",
    "corpus",
    "detokenise_english",
    "detokenise_french",
    "source_words",
    "split",
    "target_words",
]

Item = TypeVar("Item")


class Draw:
    """Random choices, which avoid the nouns and verbs this sentence has already.

    All come from `random()`, the one method whose numbers Python keeps from version to
    version.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random
        self.used: set[object] = set()
        self.terse = False  # no adjectives, no modifiers, no places

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
    if role == "subject" and number == "s":
        indefinite += ("every",)
    return definite + indefinite + (() if modifier else possessives)


def draw_adjectives(draw: Draw, noun: Noun) -> list[Adjective]:
    """Choose at most one adjective for each side, and put them in English order."""
    chosen = []
    for before in (True, False):
        fitting = adjectives_beside(noun, before)
        if fitting and not draw.terse and draw.chance(0.4):
            chosen.append(draw.one_of(fitting))
    if len(chosen) == 2:
        if {a.sort for a in chosen} == {"beauty", "opinion"}:
            return chosen[:1]
        chosen.sort(key=lambda adjective: ADJECTIVE_SORTS.index(adjective.sort))
    return chosen


def draw_modifier(draw: Draw, noun: Noun, role: str, depth: int) -> str:
    """Choose what follows a noun: "of", a relative clause, or mostly nothing."""
    roll = 1 if draw.terse else draw.random()
    if roll < 0.15:
        return "of" if noun.owner and role != "owner" else ""
    if depth == 0 or "kin" in noun.kinds:
        return ""
    if roll < 0.3:
        return "subject relative" if verbs_of(noun) else ""
    return "object relative" if roll < 0.45 and verbs_taking(noun) else ""


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
        tense = draw.one_of(TENSES)
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
    manner = draw_manner(draw, verb, draw.one_of(TENSES))
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
    negated = unclear or (verb.frame != "clause" and draw.chance(0.25))
    adverb = draw.one_of(verb.adverbs) if verb.adverbs and draw.chance(0.2) else ""
    return Manner(tense, negated, "" if negated and adverb == "never" else adverb)


def draw_object_pronoun(draw: Draw, verb: Verb, subject: NounPhrase) -> str:
    """Choose an English object pronoun, mostly none; of things only "them"."""
    likely = 0.7 if draw.terse else 0.35
    if verb.frame not in ("object", "gift", "address") or not draw.chance(likely):
        return ""
    if PEOPLE[-1] not in verb.objects:
        return "them"
    return draw.one_of(tuple(OBJECT_PRONOUNS)[subject.person == 1 :])  # never "I … me"


def draw_objects(draw: Draw, verb: Verb, manner: Manner, depth: int) -> Phrase:
    """Say the direct object, or two of them."""
    role = "negated" if manner.negative else "object"
    phrase: Phrase = draw_noun_phrase(draw, draw.fresh(verb.objects), role, depth)
    if depth and not manner.negative and draw.chance(0.12):
        other = draw_noun_phrase(draw, draw.fresh(verb.objects), role)
        phrase = phrase + fixed("and", "et") + other
    return phrase


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
def verbs_in(verbs: tuple[Verb, ...], tense: str, nest: bool) -> tuple[Verb, ...]:
    """Keep the verbs that have this tense; "say that …" only where clauses may nest."""
    return tuple(
        v for v in verbs if tense in v.tenses and (nest or v.frame != "clause")
    )


def draw_predicate(draw: Draw, subject: NounPhrase, tense: str, depth: int) -> Phrase:
    """Say something of a subject: a verb and all that follows it."""
    verb = draw.fresh(verbs_in(subject.verbs, tense, depth > 0))
    manner = draw_manner(draw, verb, tense)
    name = draw_object_pronoun(draw, verb, subject)
    if name:
        to = verb.frame == "address"
        before = "" if to else OBJECT_PRONOUNS[name][2]
        pronoun = object_pronoun(name, to)
        phrase = verb_group(verb, subject, manner, pronoun, before)
    else:
        phrase = verb_group(verb, subject, manner)
        if verb.frame in ("object", "gift"):
            phrase += draw_objects(draw, verb, manner, depth)
        elif verb.frame in ("address", "goal"):
            phrase += draw_recipient(draw, verb.objects)
    if verb.frame == "gift":
        phrase += draw_recipient(draw)
    if verb.frame == "clause":
        # After "said that", a past would have to be a pluperfect in French.
        tense = draw.one_of(("present", "future") if tense == "past" else TENSES)
        phrase += fixed("that", "que") + draw_clause(draw, tense, depth - 1)
    elif verb.place and not draw.terse and draw.chance(0.2):
        phrase += draw_place(draw)
    return phrase


# --------------------------------------------------------------------------- sentences


def draw_subject(draw: Draw, depth: int, may_coordinate: bool) -> NounPhrase:
    """Say who: a pronoun, two nouns joined by "and", or one with its modifiers."""
    roll = draw.random()
    if roll < 0.25:
        return subject_pronoun(draw.one_of(tuple(SUBJECT_PRONOUNS)))
    if roll < 0.32 and may_coordinate:
        left, right = (
            noun_phrase(
                draw.one_of(determiners(noun, "s", "definite", "")),
                draw_adjectives(draw, noun),
                noun,
                "s",
            )
            for noun in (draw.fresh(SUBJECTS), draw.fresh(SUBJECTS))
        )
        return both(left, right)
    return draw_noun_phrase(draw, draw.fresh(SUBJECTS), "subject", depth)


def draw_clause(draw: Draw, tense: str, depth: int, connector: str = "") -> Phrase:
    """Say a subject and its predicate.

    After "and", a subject has no "and" of its own: "I saw the boy and the girl and the
    king will sing" would not say who sings.
    """
    subject = draw_subject(draw, depth, connector != "and")
    return subject + draw_predicate(draw, subject, tense, depth)


# The connectors that may follow a main clause, by its tense.
CONNECTORS_AFTER = {
    "present": ("and", "but", "because", "when", "while", "if"),
    "past": ("and", "but", "because", "when"),
    "future": ("and", "but", "because", "if"),
}


def draw_sentence(draw: Draw, length: int) -> Phrase:
    """Chain clauses as long as they fit into a length, which a first clause may exceed.

    A subordinate clause has the tense of the one before, after "if" the present.
    """
    draw.used.clear()
    draw.terse = length < 6
    depth = 0 if length < 7 else 1 if draw.chance(0.6) else 2
    tense = draw.one_of(TENSES)
    phrase = draw_clause(draw, tense, depth)
    connector = ""
    failures = 0
    while len(phrase.english) + 4 <= length and failures < 2:
        subordinate = connector not in ("", "and", "but")
        choices = ("and", "but") if subordinate else CONNECTORS_AFTER[tense]
        link = draw.one_of(choices)
        then = draw.one_of(TENSES) if link in ("and", "but") else tense
        then = "present" if link == "if" else then
        more = fixed(link, CONNECTORS[link]) + draw_clause(draw, then, depth, link)
        if len(phrase.english) + len(more.english) < length:
            phrase, connector, tense = phrase + more, link, then
        else:
            failures += 1
    return phrase + fixed(".", ".")


# ----------------------------------------------------------------------------- corpora

SHORTEST, LONGEST = 3, 60  # "he sleeps ." has three tokens
PATIENCE = 1500  # draws in vain after which a length counts as used up


def corpus(
    n: int,
    seed: int,
    min_length: int = 4,
    max_length: int = 24,
    exclude: Iterable[Pair | tuple[str, ...]] = (),
) -> list[Pair]:
    """Return n distinct pairs whose English lengths spread evenly over the range.

    A length counts the tokens, the final stop among them. There are few short
    sentences: where a length is used up, longer ones make up for it. No source is one
    of `exclude`, which holds pairs or sources. Data of chapter 02.
    """
    _require_whole("n", n)
    _require_whole("seed", seed)
    if not SHORTEST <= min_length <= max_length <= LONGEST:
        raise ValueError(
            f"lengths run from {min_length} to {max_length}, expected "
            f"{SHORTEST} <= min_length <= max_length <= {LONGEST}; change them."
        )
    seen = {item.source if isinstance(item, Pair) else item for item in exclude}
    draw = Draw(seed)
    lengths = range(min_length, max_length + 1)
    wanted = _even_shares(n, lengths)
    in_vain = dict.fromkeys(lengths, 0)
    pairs: list[Pair] = []
    while len(pairs) < n:
        aim = max(wanted, key=wanted.__getitem__)  # the length that lacks most
        phrase = draw_sentence(draw, aim)
        source = tuple(token.text for token in phrase.english)
        if wanted.get(len(source)) and source not in seen:
            seen.add(source)
            pairs.append(aligned(phrase))
            wanted[len(source)] -= 1
            in_vain[len(source)] = 0
            continue
        in_vain[aim] += 1
        if in_vain[aim] == PATIENCE:
            missing = wanted.pop(aim)
            others = [length for length in wanted if length > aim] or list(wanted)
            if not others:
                raise ValueError(
                    f"n is {n}, but only {len(pairs)} distinct sentences of "
                    f"{min_length} to {max_length} tokens were found; ask for fewer "
                    "or raise max_length."
                )
            for length, share in _even_shares(missing, others).items():
                wanted[length] += share
    pairs.sort(key=lambda _: draw.random())  # lengths fill at their own pace: mix them
    return pairs


def split(
    n_train: int,
    n_test: int,
    seed: int,
    train_lengths: tuple[int, int] = (4, 24),
    test_lengths: tuple[int, int] = (4, 40),
) -> tuple[list[Pair], list[Pair]]:
    """Return training and test pairs that have no source in common.

    The test set reaches further than the training set, so that it shows what a model
    makes of sentences longer than any it has seen. Data of chapters 02, 03 and 12.
    """
    _require_whole("seed", seed)
    test = corpus(n_test, 2 * seed + 1, *test_lengths)
    return corpus(n_train, 2 * seed, *train_lengths, exclude=test), test


def _require_whole(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} is {value!r}, expected a whole number 0, 1, 2, …")


def _even_shares(total: int, lengths: Sequence[int]) -> dict[int, int]:
    """Divide a total among lengths, the remainder spread evenly as well."""
    steps = [total * i // len(lengths) for i in range(len(lengths) + 1)]
    return {length: steps[i + 1] - steps[i] for i, length in enumerate(lengths)}


# ----------------------------------------------------------------------- readable text


def detokenise_english(tokens: Sequence[str]) -> str:
    """Write English tokens as a sentence: a capital first, no space before the stop."""
    text = " ".join(tokens).replace(" .", ".")
    return text[:1].upper() + text[1:]


def detokenise_french(tokens: Sequence[str]) -> str:
    """Write French tokens as a sentence; l' and the like lean on the next word."""
    return detokenise_english(tokens).replace("' ", "'")
