"""English–French sentence pairs with gold word alignments, made by a small grammar.

Real corpora come without alignments; here one derivation writes both languages, so each
French word knows what it translates. The French is real: adjectives move and agree,
"not" wraps the verb in *ne … pas*, object pronouns climb before it, "the girl's cat" is
*le chat de la fille*, *le homme* elides to *l'homme*. An English sentence has exactly
one translation.

This module makes the corpora. `lexicon` has the words and what goes with what,
`phrases` says things in both languages and explains the links, `sentences` draws what
to say. Data of chapters 02, 03, 12 and 13.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from course_utils.data.grammar.lexicon import (
    ADJECTIVES,
    ADVERBS,
    AGREEMENTS,
    ALLER,
    AVOIR,
    BEFORE_VOWEL,
    CONNECTORS,
    CONTRACTIONS,
    DETERMINERS,
    ELISIONS,
    ETRE,
    NOUNS,
    OBJECT_PRONOUNS,
    PREPOSITIONS,
    SUBJECT_PRONOUNS,
    VERBS,
    Verb,
)
from course_utils.data.grammar.phrases import Pair, aligned
from course_utils.data.grammar.sentences import Draw, draw_sentence

__all__ = [
    "Pair",
    "corpus",
    "detokenise_english",
    "detokenise_french",
    "source_words",
    "split",
    "target_words",
]

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
    sentences: where a length is used up, the others make up for it. No source is one
    of `exclude`, which holds pairs or sources. Data of chapter 02.
    """
    _require_whole("n", n)
    _require_whole("seed", seed)
    if not SHORTEST <= min_length <= max_length <= LONGEST:
        raise ValueError(
            f"lengths run from {min_length} to {max_length}, expected "
            f"{SHORTEST} <= min_length <= max_length <= {LONGEST}; change them."
        )
    seen = set()
    for item in exclude:
        if not isinstance(item, tuple):
            raise ValueError(
                f"exclude holds {item!r}, expected pairs or tuples of tokens."
            )
        seen.add(item.source if isinstance(item, Pair) else item)
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
            if not wanted:
                raise ValueError(
                    f"n is {n}, but only {len(pairs)} distinct sentences of "
                    f"{min_length} to {max_length} tokens were found; ask for fewer "
                    "or raise max_length."
                )
            for length, share in _even_shares(missing, list(wanted)).items():
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
    """Write English tokens as a sentence: a capital first, no space before , ' and ."""
    text = " ".join(tokens)
    for mark in (".", ",", "'"):
        text = text.replace(" " + mark, mark)
    return text[:1].upper() + text[1:]


def detokenise_french(tokens: Sequence[str]) -> str:
    """Write French tokens as a sentence; l' and the like lean on the next word."""
    return detokenise_english(tokens).replace("' ", "'")


# -------------------------------------------------------------------------- vocabulary


def source_words() -> list[str]:
    """Return every English token a sentence may hold, sorted."""
    words = {"an", "not", "will", "do", "does", "did", "was", "were", "that", "who"}
    words |= {"of", "to", "'s", "'", ",", "."}
    words |= {*DETERMINERS, *SUBJECT_PRONOUNS, *OBJECT_PRONOUNS, *ADVERBS, *CONNECTORS}
    words |= {word for english, _, _ in PREPOSITIONS for word in english.split()}
    words |= {a.english for a in ADJECTIVES}
    words |= {form for noun in NOUNS for form in (noun.english, noun.english_plural)}
    for verb in VERBS:
        words |= {verb.english, verb.english_third, verb.particle}
        if verb.frame != "clause":
            words |= {verb.english_past} if "past" in verb.tenses else set()
            words |= (
                {verb.english_progressive} if "progressive" in verb.tenses else set()
            )
    return sorted(words - {""})


def target_words() -> list[str]:
    """Return every French token a sentence may hold, sorted."""
    words = {"de", "à", "qui", "que", "ne", "pas", "s'", ",", "."}
    words |= {*ELISIONS.values(), *BEFORE_VOWEL.values(), *CONTRACTIONS.values()}
    words |= {*ADVERBS.values(), *AVOIR, *ETRE, *ALLER}
    for forms in DETERMINERS.values():
        words |= {*forms.values()}
    words |= {french for french, _, _ in SUBJECT_PRONOUNS.values()}
    words |= {word for pair in OBJECT_PRONOUNS.values() for word in pair[:2]}
    phrases = [*CONNECTORS.values(), *(french for _, french, _ in PREPOSITIONS)]
    words |= {word for phrase in phrases for word in phrase.split()}
    for noun in NOUNS:
        for number in noun.numbers:
            _, french = noun.forms(number)
            agreement = noun.gender + number
            words |= {french, *(a.agree(agreement, french) for a in noun.adjectives)}
    for verb in VERBS:
        words |= {*verb.present}
        if verb.frame != "clause":
            words |= {*other_tenses(verb)}
    return sorted(words)


def other_tenses(verb: Verb) -> Iterator[str]:
    """Yield the French forms of a verb in the tenses it has beside the present."""
    if "past" in verb.tenses:
        yield from (verb.participle[a] for a in agreements(verb))
    if "future" in verb.tenses:
        yield verb.infinitive
    if "progressive" in verb.tenses:
        yield from verb.imperfect


def agreements(verb: Verb) -> set[str]:
    """Return the genders and numbers with which the participle of a verb may agree."""
    if verb.etre:
        return set(AGREEMENTS)
    direct = verb.objects if verb.frame in ("object", "gift") else ()
    pronoun = {"mp"} if direct and verb.pronouns else set()
    return {"ms"} | pronoun | {noun.gender + n for noun in direct for n in noun.numbers}
