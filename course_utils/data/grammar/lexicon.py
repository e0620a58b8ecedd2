"""The words of the English–French grammar, and what each of them goes with.

Sentences stay sensible because every noun lists the adjectives that fit it and every
verb the subjects and objects it takes, as kinds ("person") or single nouns ("horse").
Regular forms are made by rule; only what is irregular is spelt out. Every English word
fixes its French one: "I", "they", "doctor" and "friend" are masculine by convention.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

# ------------------------------------------------------------------------ inflection

# Gender and number in one key: masculine or feminine, singular or plural.
AGREEMENTS = ("ms", "fs", "mp", "fp")
Forms = dict[str, str]


def inflected(*forms: str) -> Forms:
    """Name the four forms of a word: masculine, feminine, then their plurals."""
    return dict(zip(AGREEMENTS, forms, strict=True))


def plural_in_french(word: str) -> str:
    """Return the plural of a noun or masculine adjective: rois, chevaux, gâteaux."""
    if word.endswith(("s", "x")):
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + ("x" if word.endswith("eau") else "s")


def agreeing(masculine: str, feminine: str = "") -> Forms:
    """Return the four forms of an adjective or participle: petit(e)(s)."""
    if not feminine:
        feminine = masculine if masculine.endswith("e") else masculine + "e"
    return inflected(masculine, feminine, plural_in_french(masculine), feminine + "s")


def begins_with_vowel(french: str) -> bool:
    """Say whether a word makes the one before it elide; every h here is mute."""
    return french[0] in "aeiouéèêâîôh"


def rows(table: str) -> Iterator[list[str]]:
    """Read a table of the lexicon: a word a line, its columns parted by bars."""
    for line in table.strip().splitlines():
        yield [column.strip() for column in line.split("|")]


# ------------------------------------------------------------------------ adjectives


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective in English and in its French forms."""

    english: str
    french: Forms
    before_vowel: str  # vieil, nouvel, bel: the masculine before a vowel, or ""
    sort: str

    @property
    def before(self) -> bool:
        """Say whether French puts it before its noun: beauty, size and age."""
        return self.sort in ("beauty", "size", "age")

    def agree(self, agreement: str, noun: str) -> str:
        """Return the form for a gender and number, beside this French noun."""
        if self.before_vowel and agreement == "ms" and begins_with_vowel(noun):
            return self.before_vowel
        return self.french[agreement]


def adjective(english: str, french: str, sort: str) -> Adjective:
    """Make an adjective from a row of the table."""
    forms = french.split()
    return Adjective(english, agreeing(*forms[:2]), "".join(forms[2:]), sort)


# In the order in which English puts them: a *big strange* tree, a *strange old* one.
# English | French, feminine if irregular, masculine before a vowel | sort
ADJECTIVES = tuple(
    adjective(*row)
    for row in rows("""
    big | grand | size
    famous | célèbre | opinion
    strange | étrange | opinion
    happy | heureux heureuse | opinion
    beautiful | beau belle bel | beauty
    pretty | joli | beauty
    little | petit | size
    old | vieux vieille vieil | age
    young | jeune | age
    new | nouveau nouvelle nouvel | age
    red | rouge | colour
    black | noir | colour
    white | blanc blanche | colour
    """)
)

# ----------------------------------------------------------------------------- nouns


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun, its kinds, who may own it, and the adjectives that fit it."""

    english: str
    english_plural: str  # "" where the corpus uses the singular alone
    french: str
    gender: str
    kinds: frozenset[str]  # among them its own English name
    owner: str  # the kind of noun that "has" it: the girl's cat, or ""
    adjectives: tuple[Adjective, ...]

    @property
    def personal(self) -> bool:
        """Say whether "my …" is natural: what people own, and whom they know."""
        return self.owner in ("person", "folk")

    @property
    def numbers(self) -> str:
        """Return the numbers it is used in: "s", or "sp" with the plural."""
        return "sp" if self.english_plural else "s"

    def forms(self, number: str) -> tuple[str, str]:
        """Return the English and the French form, singular "s" or plural "p"."""
        if number == "s":
            return self.english, self.french
        return self.english_plural, plural_in_french(self.french)


def noun(english: str, french: str, kinds: str, owner: str, adjectives: str) -> Noun:
    """Make a noun from a row of the table."""
    singular, *irregular = english.split()
    plural = irregular[0] if irregular else singular + "s"
    word, gender = french.split()
    fits = adjectives.split()
    return Noun(
        singular,
        plural.strip("-"),
        word,
        gender,
        frozenset([singular, *kinds.split()]),
        owner,
        tuple(a for a in ADJECTIVES if a.english in fits or a.sort in fits),
    )


# English, plural if irregular ("-": none) | French, gender | kinds | owner | adjectives
NOUNS = tuple(
    noun(*row)
    for row in rows("""
    man men | homme m | living person folk | | old young famous strange happy
    woman women | femme f | living person folk | | old young famous strange happy
    boy | garçon m | living person folk | | little happy
    girl | fille f | living person folk | | little happy
    king | roi m | living person folk | | old young new famous happy
    queen | reine f | living person folk | | old young new famous happy
    doctor | médecin m | living person folk | person | old young new famous
    friend | ami m | living person folk kin | person | old new
    brother | frère m | living person kin | folk | size
    sister | sœur f | living person kin | folk | size
    mother - | mère f | living person kin | folk |
    father - | père m | living person kin | folk |
    cat | chat m | living animal | person | beautiful little old young black white happy
    dog | chien m | living animal | person | size old young black white happy
    horse | cheval m | living animal goods | person | beautiful size old black white
    bird | oiseau m | living animal | person | beauty size colour strange
    mouse mice | souris f | living animal | | pretty little black white
    book | livre m | text gift sight goods | person | beautiful little old new famous
    letter | lettre f | text gift sight | person | beautiful old new strange
    story stories | histoire f | text | person | beautiful old new famous strange
    apple | pomme f | food gift goods sight | person | little red
    cake | gâteau m | food gift goods sight | person | beautiful big
    flower | fleur f | gift sight goods | person | beauty size red white strange
    hat | chapeau m | gift sight goods | person | beauty size old new colour strange
    boat | bateau m | sight goods | person | beauty size old new colour
    door | porte f | sight | building | pretty size old new colour strange
    tree | arbre m | landmark sight | | beautiful size old strange
    house | maison f | building inside landmark goods | person | beauty size old white
    church - | église f | building inside landmark spot | | beauty size old famous
    school - | école f | building inside landmark spot | person | size new famous
    castle - | château m | building inside landmark spot | king queen | size old famous
    market - | marché m | landmark spot | | size old new famous
    garden - | jardin m | inside | person | beauty size old strange
    forest - | forêt f | inside | | beautiful size old strange
    """)
)


@cache
def nouns_of(kinds: str) -> tuple[Noun, ...]:
    """Return the nouns that are of any of these kinds, in the order of the table."""
    wanted = set(kinds.split())
    return tuple(noun for noun in NOUNS if wanted & noun.kinds)


# ----------------------------------------------------------------------------- verbs


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """A verb in both languages, its frame, and the nouns it takes."""

    english: str
    english_past: str
    particle: str  # look *for*, or ""
    present: tuple[str, str, str]  # je, il or elle, ils or elles
    participle: Forms
    infinitive: str
    frame: str  # what follows, see FRAMES
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    tenses: tuple[str, ...]
    adverbs: tuple[str, ...]
    place: bool  # "in the garden" may follow
    etre: bool  # être, not avoir, makes its past tense
    pronouns: bool  # "him" or "them" may be its object
    indefinite: bool  # "a" and "some" may begin its object
    indefinite_after_not: bool  # "not any" (pas de) may
    lasting: bool  # *toujours* without "not" would mean "still"

    @property
    def english_third(self) -> str:
        """Return the form after "he" and "she"."""
        return self.english + ("es" if self.english.endswith(("ch", "o")) else "s")

    @property
    def english_progressive(self) -> str:
        """Return the form after "was" and "were"."""
        return self.english.removesuffix("e") + "ing"

    @property
    def imperfect(self) -> tuple[str, str, str]:
        """Return *dormais, dormait, dormaient*, on the stem of *ils dorment*."""
        stem = self.present[2].removesuffix("ent")
        stem += "e" if stem.endswith("g") else ""
        return stem + "ais", stem + "ait", stem + "aient"


def conjugation(french: str) -> tuple[str, str, str, str, str]:
    """Return je, il, ils, participle, infinitive; regular verbs give the last alone.

    "achète acheter" is regular but for the stem of its present.
    """
    *irregular, infinitive = french.split()
    stem = infinitive[:-2]
    if len(irregular) == 4:
        je, il, ils, participle = irregular
        return je, il, ils, participle, infinitive
    if infinitive.endswith("re"):
        return stem + "s", stem, stem + "ent", stem + "u", infinitive
    present = irregular[0] if irregular else stem + "e"
    return present, present, present + "nt", stem + "é", infinitive


def verb(
    english: str, french: str, frame: str, subjects: str, objects: str, options: str
) -> Verb:
    """Make a verb from a row of the table."""
    words, _, past = english.partition(", ")
    base, _, particle = words.partition(" ")
    je, il, ils, participle, infinitive = conjugation(french)
    marks = options.split()
    return Verb(
        base,
        past or base + ("d" if base.endswith("e") else "ed"),
        particle,
        (je, il, ils),
        agreeing(participle),
        infinitive,
        frame,
        nouns_of(subjects),
        nouns_of(objects),
        tuple(t for t in TENSES if "-" + t not in marks)
        + tuple(t for t in SPECIAL_TENSES if t in marks),
        tuple(adverb for adverb in ADVERBS if "-" + adverb not in marks),
        "-place" not in marks,
        "être" in marks,
        "-pronoun" not in marks,
        "-a" not in marks,
        "-any" not in marks,
        "lasting" in marks,
    )


TENSES = ("present", "past", "future")
# "was sleeping" (dormait); and the past of what happens at one moment, as in "when he
# arrived"
SPECIAL_TENSES = ("progressive", "moment")
ADVERBS = {"often": "souvent", "always": "toujours", "never": "jamais"}
FRAMES = {
    "alone": "nothing",
    "object": "a direct object",
    "gift": "a direct object, and to someone",
    "address": "to someone",
    "goal": "to a place",
    "clause": "that and a clause; itself in the present",
}

# English, irregular past | French | frame | subjects | objects | options: être in the
# past, special tenses, what lasts, and what does not go with it. *Va chercher* is
# "fetches" and *va voir* "visits", so "will" is not for these; "loved" would be
# *aimait* or *a aimé*, so love is present.
VERBS = tuple(
    verb(*row)
    for row in rows("""
    sleep, slept | dors dort dorment dormi dormir | alone | living | | \
        progressive lasting
    sing, sang | chanter | alone | person bird | | progressive lasting
    dance | danser | alone | person | | progressive lasting
    work | travailler | alone | person | | progressive lasting
    arrive | arriver | alone | living | | être moment -often -always
    go, went | vais va vont allé aller | goal | person | spot | être moment -place
    speak, spoke | parler | address | person | living | moment
    see, saw | vois voit voient vu voir | object | living | \
        living sight building | moment -future lasting
    love | aimer | object | person | kin animal text food flower | \
        -past -future -often -always -never -place -a
    watch | regarder | object | living | living boat | lasting -any
    look for | chercher | object | person | living gift | -future lasting
    wait for | attendre | object | person | person letter boat | \
        progressive lasting -any
    help | aider | object | person | living | moment -place -any
    listen to | écouter | object | person | person bird story | -any
    buy, bought | achète acheter | object | person | goods | \
        moment -often -always -pronoun
    eat, ate | manger | object | person dog horse bird mouse | food | \
        progressive -pronoun
    read, read | lis lit lisent lu lire | object | person | text | progressive
    open | ouvre ouvre ouvrent ouvert ouvrir | object | person | \
        door letter | moment -pronoun
    give, gave | donner | gift | person | gift | moment -often -always -place -pronoun
    say | dis dit disent dit dire | clause | person | | -never
    think | penser | clause | person | | -always -never
    know | sais sait savent su savoir | clause | person | | -often -always -never
    """)
)

# -------------------------------------------------------------------- function words

DETERMINERS: dict[str, Forms] = {
    "the": inflected("le", "la", "les", "les"),
    "a": {"ms": "un", "fs": "une"},
    "this": {"ms": "ce", "fs": "cette"},
    "some": {"mp": "des", "fp": "des"},
    "any": {"mp": "de", "fp": "de"},
    "these": {"mp": "ces", "fp": "ces"},
    "two": {"mp": "deux", "fp": "deux"},
    "my": inflected("mon", "ma", "mes", "mes"),
    "his": inflected("son", "sa", "ses", "ses"),
    "her": inflected("son", "sa", "ses", "ses"),
    "their": inflected("leur", "leur", "leurs", "leurs"),
}
# English: French, agreement, person.
SUBJECT_PRONOUNS = {
    "I": ("je", "ms", 1),
    "he": ("il", "ms", 3),
    "she": ("elle", "fs", 3),
    "they": ("ils", "mp", 3),
}
# English: French as a direct object, French for "to him", agreement.
OBJECT_PRONOUNS = {
    "me": ("me", "me", "ms"),
    "him": ("le", "lui", "ms"),
    "her": ("la", "lui", "fs"),
    "them": ("les", "leur", "mp"),
}
# English, French, the kinds of place that may follow.
PREPOSITIONS = (
    ("in", "dans", "inside"),
    ("at", "à", "spot"),
    ("near", "près de", "landmark garden forest"),
    ("behind", "derrière", "landmark"),
    ("in front of", "devant", "landmark"),
)
CONNECTORS = {
    "and": "et",
    "but": "mais",
    "because": "parce que",
    "when": "quand",
    "while": "pendant que",
    "if": "si",
}
# je, il or elle, ils or elles
AVOIR = ("ai", "a", "ont")
ETRE = ("suis", "est", "sont")
ALLER = ("vais", "va", "vont")

# ---------------------------------------------------------------------------- euphony

ELISIONS = {
    "je": "j'",
    "me": "m'",
    "le": "l'",
    "la": "l'",
    "ne": "n'",
    "de": "d'",
    "que": "qu'",
}
BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "sa": "son"}
CONTRACTIONS = {
    ("de", "le"): "du",
    ("de", "les"): "des",
    ("à", "le"): "au",
    ("à", "les"): "aux",
}
