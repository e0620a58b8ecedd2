"""How things are said in English and French at once: the rules of the grammar.

Nothing is random here. Each rule writes a phrase in both languages, and every French
word keeps the English words that it translates; `grammar` decides what to say.

Links are sure or possible, as in Och and Ney (2003), "A systematic comparison of
various statistical alignment models":

- a word and its translation are sure, so are both parts of a contraction (du: of the);
- "not" is sure with *ne* and with *pas*, "never" with *ne* and with *jamais*; the "do",
  "does" or "did" beside "not" is possible with *ne*, *pas* and the finite French verb;
- "saw" is sure with the participle *vu* and possible with its auxiliary *a*, "was" in
  "was sleeping" possible with *dormait*;
- "'s" is sure with *de* and possible with the article it leaves out in English: "the
  girl's cat" is *le chat de la fille*;
- "for" in "look for" is possible with *cherche*, each word of "in front of" with
  *devant*, "to" in "to him" with *lui*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from course_utils.data.grammar.lexicon import (
    ADVERBS,
    ALLER,
    AVOIR,
    BEFORE_VOWEL,
    CONTRACTIONS,
    DETERMINERS,
    ELISIONS,
    ETRE,
    NOUNS,
    OBJECT_PRONOUNS,
    SUBJECT_PRONOUNS,
    VERBS,
    Adjective,
    Noun,
    Verb,
    begins_with_vowel,
)

# ---------------------------------------------------------------------------- phrases


class Token:
    """An English word of one sentence; links point to this very object."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Word(NamedTuple):
    """A French word and the English words it translates."""

    text: str
    sure: tuple[Token, ...] = ()
    possible: tuple[Token, ...] = ()


@dataclass(slots=True)
class Phrase:
    """The same stretch of a sentence in both languages."""

    english: list[Token]
    french: list[Word]

    def __add__(self, other: Phrase) -> Phrase:
        return Phrase(self.english + other.english, self.french + other.french)


@dataclass(slots=True)
class NounPhrase(Phrase):
    """A phrase that a verb and its participle agree with."""

    agreement: str
    person: int
    verbs: tuple[Verb, ...]  # the verbs it may be the subject of

    @property
    def slot(self) -> int:
        """Return its place in a conjugation: je 0, il or elle 1, ils or elles 2."""
        return 0 if self.person == 1 else 1 + (self.agreement[1] == "p")


def fixed(english: str, french: str) -> Phrase:
    """Say a set phrase: one English word is a sure link, several are possible."""
    tokens = [Token(text) for text in english.split()]
    links = (tuple(tokens), ()) if len(tokens) == 1 else ((), tuple(tokens))
    return Phrase(tokens, [Word(text, *links) for text in french.split()])


# ------------------------------------------------------------------------ noun phrases


@cache
def verbs_of(noun: Noun) -> tuple[Verb, ...]:
    """Return the verbs this noun may be the subject of."""
    return tuple(verb for verb in VERBS if noun in verb.subjects)


PERSONAL_VERBS = verbs_of(NOUNS[0])  # what a man can do, "I" can do


def noun_phrase(
    determiner: str,
    adjectives: Sequence[Adjective],
    noun: Noun,
    number: str,
    negated: bool = False,
) -> NounPhrase:
    """Say determiner, adjectives and noun, each language in its own order.

    *de* stands for "a" in a `negated` object (pas de chat), and for "some" before an
    adjective (de grandes maisons).
    """
    agreement = noun.gender + number
    english, french = noun.forms(number)
    head = Token(english)
    tokens = [Token(adjective.english) for adjective in adjectives]
    before: list[Word] = []
    after: list[Word] = []
    for adjective, token in zip(adjectives, tokens):
        word = Word(adjective.agree(agreement, french), (token,))
        (before if adjective.before else after).append(word)
    tokens.append(head)

    text = DETERMINERS[determiner][agreement]
    if (negated and determiner == "a") or (before and determiner == "some"):
        text = "de"
    if determiner == "a" and tokens[0].text[0] in "aeiou":
        determiner = "an"
    first = Token(determiner)
    return NounPhrase(
        [first, *tokens],
        [Word(text, (first,)), *before, Word(french, (head,)), *after],
        agreement,
        3,
        verbs_of(noun),
    )


def both(left: NounPhrase, right: NounPhrase) -> NounPhrase:
    """Join two subjects by "and": plural, and masculine unless both are feminine."""
    joined = left + fixed("and", "et") + right
    feminine = left.agreement[0] == right.agreement[0] == "f"
    verbs = tuple(verb for verb in left.verbs if verb in right.verbs)
    return NounPhrase(
        joined.english, joined.french, "fp" if feminine else "mp", 3, verbs
    )


def owned(owner: NounPhrase, thing: NounPhrase) -> NounPhrase:
    """Say "the girl's cat": French begins with the thing, and gives it an article.

    The thing comes with "the", which English drops.
    """
    mark = Token("'" if owner.english[-1].text.endswith("s") else "'s")
    article = Word(thing.french[0].text, (), (mark,))
    of = Word("de", (mark,))
    return NounPhrase(
        [*owner.english, mark, *thing.english[1:]],
        [article, *thing.french[1:], of, *owner.french],
        thing.agreement,
        thing.person,
        thing.verbs,
    )


def subject_pronoun(english: str) -> NounPhrase:
    """Say "I", "he", "she" or "they"."""
    french, agreement, person = SUBJECT_PRONOUNS[english]
    token = Token(english)
    return NounPhrase(
        [token], [Word(french, (token,))], agreement, person, PERSONAL_VERBS
    )


def object_pronoun(english: str, to: bool = False) -> Phrase:
    """Say "him" (le) or, with `to`, "to him" (lui)."""
    direct, indirect, _ = OBJECT_PRONOUNS[english]
    token = Token(english)
    if not to:
        return Phrase([token], [Word(direct, (token,))])
    preposition = Token("to")
    return Phrase([preposition, token], [Word(indirect, (token,), (preposition,))])


def two_pronouns(direct: str, indirect: str) -> Phrase:
    """Say "them to him" (les lui) or "them to me" (me les)."""
    what, whom = object_pronoun(direct), object_pronoun(indirect, to=True)
    turned = whom + what if indirect == "me" else what + whom
    return Phrase(what.english + whom.english, turned.french)


# ------------------------------------------------------------------------- verb groups


class Manner(NamedTuple):
    """How a verb is said: its tense, with "not", with an adverb."""

    tense: str = "present"
    negated: bool = False
    adverb: str = ""

    @property
    def negative(self) -> bool:
        """Say whether French needs *ne*."""
        return self.negated or self.adverb == "never"


def english_verb(verb: Verb, slot: int, manner: Manner) -> tuple[str, str]:
    """Return the auxiliary ("" if none) and the form of the verb: did, see."""
    third = slot == 1
    if manner.tense == "future":
        return "will", verb.english
    if manner.tense == "progressive":
        return "were" if slot == 2 else "was", verb.english_progressive
    if manner.negated:
        support = "does" if third else "do"
        return "did" if manner.tense == "past" else support, verb.english
    if manner.tense == "past":
        return "", verb.english_past
    return "", verb.english_third if third else verb.english


def verb_group(
    verb: Verb,
    subject: NounPhrase,
    manner: Manner,
    pronoun: Phrase | None = None,
    before: str = "",
) -> Phrase:
    """Conjugate a verb, with its negation, adverb and object pronoun in place.

    English: auxiliary, not, adverb, verb, particle, pronoun. French: ne, pronoun,
    finite verb, pas, adverb, participle or infinitive; the pronoun of an infinitive
    comes right before it. A participle agrees with the subject after être, and after
    avoir with the direct object that came `before` it, here given by its agreement.
    """
    auxiliary, form = english_verb(verb, subject.slot, manner)
    helper = (Token(auxiliary),) if auxiliary else ()
    no = (Token("not"),) if manner.negated else ()
    adverb = (Token(manner.adverb),) if manner.adverb else ()
    main = Token(form)
    particle = (Token(verb.particle),) if verb.particle else ()
    clitic = pronoun or Phrase([], [])
    english = [*helper, *no, *adverb, main, *particle, *clitic.english]

    support = helper if auxiliary in ("do", "does", "did") else ()
    ne = [Word("ne", no or adverb, support)] if manner.negative else []
    after = [Word("pas", no, support)] if no else []
    if adverb:
        after.append(Word(ADVERBS[manner.adverb], adverb))
    slot = subject.slot
    if manner.tense in ("present", "progressive"):
        forms = verb.present if manner.tense == "present" else verb.imperfect
        finite = Word(forms[slot], (main,), particle + helper)
        return Phrase(english, [*ne, *clitic.french, finite, *after])
    if manner.tense == "past":
        finite = Word((ETRE if verb.etre else AVOIR)[slot], (), (main, *support))
        agreement = subject.agreement if verb.etre else before or "ms"
        participle = Word(verb.participle[agreement], (main,), particle)
        return Phrase(english, [*ne, *clitic.french, finite, *after, participle])
    finite = Word(ALLER[slot], helper)
    infinitive = Word(verb.infinitive, (main,), particle)
    return Phrase(english, [*ne, finite, *after, *clitic.french, infinitive])


# ----------------------------------------------------------------------- whole sentence


def euphony(words: Sequence[Word]) -> list[Word]:
    """Elide before vowels (l', j', qu', s'il), say cet and mon, contract (du, aux)."""
    result: list[Word] = []
    following = [word.text for word in words[1:]] + ["."]
    for (text, sure, possible), after in zip(words, following):
        softer = ELISIONS.get(text) or BEFORE_VOWEL.get(text)
        if softer and begins_with_vowel(after):
            text = softer
        elif text == "si" and after in ("il", "ils"):
            text = "s'"
        if result and (result[-1].text, text) in CONTRACTIONS:
            previous = result.pop()
            text = CONTRACTIONS[previous.text, text]
            sure, possible = previous.sure + sure, previous.possible + possible
        result.append(Word(text, sure, possible))
    return result


class Pair(NamedTuple):
    """A sentence, its translation, and their links as (source index, target index)."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]  # every sure link is possible too


def aligned(phrase: Phrase) -> Pair:
    """Read tokens and links off a finished phrase."""
    french = euphony(phrase.french)
    index = {token: i for i, token in enumerate(phrase.english)}
    sure = {(index[t], j) for j, word in enumerate(french) for t in word.sure}
    loose = {(index[t], j) for j, word in enumerate(french) for t in word.possible}
    return Pair(
        tuple(token.text for token in phrase.english),
        tuple(word.text for word in french),
        frozenset(sure),
        frozenset(sure | loose),
    )
