"""Small synthetic tasks, each built so that one thing decides whether it can be solved.

A task is a function of a batch size and a generator: it draws examples without end and
returns their tensors, the right answer among them and, where there is one, the `gold`
position that a model ought to look at. `IGNORE` marks answers that are not asked for.
What can be had for nothing is computed in `course_utils.tasks.baselines`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from course_utils.data.corpus import BOS, EOS, SPECIALS
from course_utils.doors import check_arguments
from course_utils.shapes import Float, Int, require_sizes

Tokens = Int[Tensor, "batch token"]
Labels = Int[Tensor, "batch"]

IGNORE = -100
"""The label that `torch.nn.functional.cross_entropy` leaves out."""


def pick(rows: Tokens, place: Labels) -> Labels:
    """Take from every row the entry at its own place."""
    return rows.gather(1, place[:, None])[:, 0]


def shuffled(batch: int, n: int, generator: Generator) -> Int[Tensor, "batch n"]:
    """Draw for every row its own random order of $0, …, n - 1$."""
    return torch.rand(batch, n, generator=generator).argsort(dim=1)


def random_ids(n: int, shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Draw ids from 0 to $n - 1$, all equally likely."""
    return torch.randint(n, shape, generator=generator)


# ---------------------------------------------------------- attention beside an RNN


def reverse(
    batch: int, generator: Generator, length: int, n_letters: int = 26
) -> tuple[Int[Tensor, "batch source"], Int[Tensor, "batch target"]]:
    """Write a word backwards: the smallest translation that reorders everything.

    Ids are those of `Vocabulary(["abc…"])`, letters after the specials; as in
    `translation_batch` the source ends in <eos>, the target is <bos> … <eos>. Guessing
    gets 1 / n_letters of the letters. Used in chapter 03.
    """
    require_sizes(batch=batch, length=length, n_letters=n_letters)
    letters = len(SPECIALS) + random_ids(n_letters, (batch, length), generator)
    begin, end = torch.full((batch, 1), BOS), torch.full((batch, 1), EOS)
    source = torch.cat([letters, end], dim=1)
    return source, torch.cat([begin, letters.flip(1), end], dim=1)


def keyword_sentences(
    batch: int,
    generator: Generator,
    n_words: int = 20,
    n_fillers: int = 100,
    n_classes: int = 4,
    per_class: int = 5,
) -> tuple[Int[Tensor, "batch word"], Labels, Labels]:
    """Hide one keyword among fillers; its class is the sentence's label.

    Words 0 … n_fillers - 1 are fillers, the next n_classes * per_class keywords; the id
    after these is free for an erased word. Returns words, label, the keyword's place.
    Guessing gets 1 / n_classes. Used in chapter 03.
    """
    require_sizes(batch=batch, n_words=n_words, n_fillers=n_fillers)
    require_sizes(n_classes=n_classes, per_class=per_class)
    fillers = random_ids(n_fillers, (batch, n_words), generator)
    keyword = random_ids(n_classes * per_class, (batch,), generator)
    gold = random_ids(n_words, (batch,), generator)
    words = fillers.scatter(1, gold[:, None], n_fillers + keyword[:, None])
    return words, keyword // per_class, gold


# ----------------------------------------------------------- one operator, many scores


def marked_token(
    batch: int, generator: Generator, n_tokens: int = 40, n_values: int = 10
) -> tuple[Tokens, Tokens, Labels, Labels]:
    """Read the value of the one token that carries a mark.

    Returns values, marks (0 or 1), answer, the marked place. Without the marks nothing
    beats `majority_chance(n_tokens, n_values)`. Used in chapter 04.
    """
    require_sizes(batch=batch, n_tokens=n_tokens, n_values=n_values)
    values = random_ids(n_values, (batch, n_tokens), generator)
    gold = random_ids(n_tokens, (batch,), generator)
    marks = torch.nn.functional.one_hot(gold, n_tokens)
    return values, marks, pick(values, gold), gold


class SlotWorld(NamedTuple):
    """What stays the same in every batch of `slots`: a rotation, names, a mark."""

    rotation: Float[Tensor, "width width"]
    names: Float[Tensor, "slot width"]
    mark: Float[Tensor, "width"]


def slot_world(generator: Generator, width: int = 32, n_slots: int = 64) -> SlotWorld:
    """Draw the rotation R, the slots' name vectors and the mark, once per experiment.

    R is uniform among the orthogonal matrices: QR of a normal matrix, with the signs of
    R's diagonal moved into Q (without that its trace leans to the negative, and a score
    that ignores the rotation falls below chance). Used in chapter 04.
    """
    require_sizes(width=width, n_slots=n_slots)
    q, r = torch.linalg.qr(torch.randn(width, width, generator=generator))
    return SlotWorld(
        q * r.diagonal().sign(),
        torch.randn(n_slots, width, generator=generator),
        torch.randn(width, generator=generator),
    )


def slots(
    batch: int,
    generator: Generator,
    world: SlotWorld,
    query: str = "same",
    n_slots: int = 8,
    n_classes: int = 10,
    noise: float = 0.3,
) -> tuple[
    Float[Tensor, "batch width"],
    Float[Tensor, "batch slot width"],
    Int[Tensor, "batch slot"],
    Labels,
    Labels,
]:
    """Ask for the value of one slot, in one of four ways.

    The query is, up to noise, the key of slot j (`"same"`), that key rotated, $q = k_j
    R$ (`"rotated"`), the name of the place j whatever its key (`"slot"`), or nothing at
    all: the key of slot j has the mark added to it (`"marked"`). Returns queries, keys,
    values, answer, j. With equal weights nothing beats `majority_chance(n_slots,
    n_classes)`. Used in chapter 04.
    """
    require_sizes(batch=batch, n_slots=n_slots, n_classes=n_classes)
    if n_slots > len(world.names):
        raise ValueError(
            f"n_slots is {n_slots}, but the world has names for {len(world.names)}; "
            f"make it with slot_world(generator, n_slots={n_slots})."
        )
    width = world.names.shape[1]
    keys = torch.randn(batch, n_slots, width, generator=generator)
    values = random_ids(n_classes, (batch, n_slots), generator)
    gold = random_ids(n_slots, (batch,), generator)
    asked = keys[torch.arange(batch), gold]
    kinds = {
        "same": asked,
        "rotated": asked @ world.rotation,
        "slot": world.names[gold],
        "marked": torch.zeros_like(asked),
    }
    if query not in kinds:
        raise ValueError(
            f"query is {query!r}, expected one of {', '.join(map(repr, kinds))}."
        )
    if query == "marked":
        is_gold = torch.nn.functional.one_hot(gold, n_slots)
        keys = keys + is_gold[:, :, None] * world.mark
    queries = kinds[query] + noise * torch.randn(batch, width, generator=generator)
    return queries, keys, values, pick(values, gold), gold


# ---------------------------------------------------------- self-attention, q, k and v


def cycle(
    batch: int,
    generator: Generator,
    n_letters: int = 3,
    n_contents: int = 8,
    offset: int = 1,
) -> tuple[
    Tokens,
    Tokens,
    Int[Tensor, "batch asker"],
    Int[Tensor, "batch asker"],
]:
    """Rock, paper, scissors: every letter asks what the *next* letter holds.

    The first n_letters tokens hold a content each, in a random order; as many ask, one
    for each letter in order, their content being `n_contents`, a blank. The answer to
    letter a is what letter a + offset (mod n_letters) holds. With offset 1 no symmetric
    score can prefer b for a, c for b and a for c at once: it serves all letters but one
    at best. Offset 0, the same letter, is the control, which it can do. Returns
    letters, contents and, for each asker, answer and gold place. Without asking nothing
    beats `majority_chance(n_letters, n_contents)`. Used in chapters 05 and 06.
    """
    require_sizes(batch=batch, n_letters=n_letters, n_contents=n_contents)
    holders = shuffled(batch, n_letters, generator)
    held = random_ids(n_contents, (batch, n_letters), generator)
    askers = torch.arange(n_letters).expand(batch, -1)
    place_of = holders.argsort(dim=1)
    gold = place_of.gather(1, (askers + offset) % n_letters)
    letters = torch.cat([holders, askers], dim=1)
    contents = torch.cat([held, torch.full_like(held, n_contents)], dim=1)
    return letters, contents, held.gather(1, gold), gold


def associative_recall(
    batch: int,
    generator: Generator,
    n_pairs: int = 24,
    n_keys: int = 40,
    n_values: int = 16,
) -> tuple[Tokens, Tokens, Labels, Labels]:
    """Look one key up among key-value pairs; the last token asks.

    Keys are all different; the asking token repeats one of them, with value `n_values`,
    a blank. Returns keys, values, answer, gold place; the distance looked back is
    `n_pairs - gold`. Guessing gets 1 / n_values, knowing the values but not the key
    `majority_chance(n_pairs, n_values)`. Used in chapter 06, which sweeps $d_k$ with 16
    of 64 keys in sight, and in chapter 15, which compares layers that mix tokens.
    """
    require_sizes(batch=batch, n_pairs=n_pairs, n_keys=n_keys, n_values=n_values)
    if n_pairs > n_keys:
        raise ValueError(
            f"n_pairs is {n_pairs}, but only {n_keys} keys are different; raise n_keys."
        )
    keys = shuffled(batch, n_keys, generator)[:, :n_pairs]
    values = random_ids(n_values, (batch, n_pairs), generator)
    gold = random_ids(n_pairs, (batch,), generator)
    asked, blank = pick(keys, gold)[:, None], torch.full((batch, 1), n_values)
    return (
        torch.cat([keys, asked], dim=1),
        torch.cat([values, blank], dim=1),
        pick(values, gold),
        gold,
    )


# ------------------------------------------------------------------ order and position


def order_pairs(
    batch: int, generator: Generator, n_tokens: int = 16, n_fillers: int = 24
) -> tuple[Tokens, Labels]:
    """Does A (token 0) come before B (token 1)? Each sentence comes with its swap.

    Row i + batch / 2 is row i with A and B exchanged, so a model that sees no order
    gives both the same answer and is right in exactly half. Returns tokens and labels,
    1 where A comes first. Used in chapters 07 and 08.
    """
    require_sizes(batch=batch, n_tokens=n_tokens, n_fillers=n_fillers)
    if batch % 2 or n_tokens < 2:
        raise ValueError(
            f"order_pairs got batch={batch} and n_tokens={n_tokens}, expected an even "
            "batch (sentences and their swaps) and at least 2 tokens for A and B."
        )
    half = batch // 2
    fillers = 2 + random_ids(n_fillers, (half, n_tokens), generator)
    places = shuffled(half, n_tokens, generator)[:, :2]
    ab = torch.tensor([0, 1]).expand(half, -1)
    tokens = torch.cat([fillers.scatter(1, places, x) for x in (ab, 1 - ab)])
    label = (places[:, 0] < places[:, 1]).long()
    return tokens, torch.cat([label, 1 - label])


def last_marked(
    batch: int,
    generator: Generator,
    n_tokens: int = 256,
    n_symbols: int = 16,
    rate: float = 1 / 48,
) -> tuple[Tokens, Tokens, Tokens, Tokens]:
    """Say at every position which symbol was marked last (itself included).

    Marks fall at `rate`, and always on the first symbol. Returns symbols, marks (0 or
    1), answers, gold places. Guessing gets 1 / n_symbols. Taught in chapter 15, and in
    chapter 08 as the most recent upper-case letter: `symbols + n_symbols * marks`.
    """
    require_sizes(batch=batch, n_tokens=n_tokens, n_symbols=n_symbols)
    if not 0 <= rate <= 1:
        raise ValueError(f"rate is {rate}, expected a probability from 0 to 1.")
    symbols = random_ids(n_symbols, (batch, n_tokens), generator)
    places = torch.arange(n_tokens)
    marked = (torch.rand(batch, n_tokens, generator=generator) < rate) | (places == 0)
    gold = (places * marked).cummax(dim=1).values
    return symbols, marked.long(), symbols.gather(1, gold), gold


def previous_token(
    batch: int, generator: Generator, n_tokens: int = 16, n_symbols: int = 16
) -> tuple[Tokens, Tokens]:
    """Say at every position which symbol came just before; at the first, `IGNORE`.

    Guessing gets 1 / n_symbols. Used in chapter 08.
    """
    require_sizes(batch=batch, n_tokens=n_tokens, n_symbols=n_symbols)
    symbols = random_ids(n_symbols, (batch, n_tokens), generator)
    return symbols, _one_before(symbols)


def _one_before(symbols: Tokens) -> Tokens:
    return torch.cat([torch.full_like(symbols[:, :1], IGNORE), symbols[:, :-1]], dim=1)


# -------------------------------------------------------------- several heads, a block


def two_relations(
    batch: int, generator: Generator, n_colours: int = 6, n_letters: int = 8
) -> tuple[Tokens, Tokens, Tokens, Tokens, Tokens]:
    """Ask every token two things at once: who is before me, who has my colour?

    Each colour comes twice, in a random order. Returns colours, letters, the letter of
    the token before (first: `IGNORE`), the letter of the token of the same colour, and
    that token's place. Guessing gets 1 / n_letters of each. Used in chapter 10.
    """
    require_sizes(batch=batch, n_colours=n_colours, n_letters=n_letters)
    dealt = shuffled(batch, 2 * n_colours, generator)
    letters = random_ids(n_letters, (batch, 2 * n_colours), generator)
    partner_card = (dealt + n_colours) % (2 * n_colours)
    gold = dealt.argsort(dim=1).gather(1, partner_card)
    return (
        dealt % n_colours,
        letters,
        _one_before(letters),
        letters.gather(1, gold),
        gold,
    )


def sort_tokens(
    batch: int, generator: Generator, n_tokens: int = 8, n_symbols: int = 10
) -> tuple[Tokens, Tokens]:
    """Sort the tokens: every position must weigh all the others.

    Guessing gets 1 / n_symbols; knowing only the position, `sorting_chance`.
    Used in chapter 11.
    """
    require_sizes(batch=batch, n_tokens=n_tokens, n_symbols=n_symbols)
    tokens = random_ids(n_symbols, (batch, n_tokens), generator)
    return tokens, tokens.sort(dim=1).values


check_arguments(__name__)
