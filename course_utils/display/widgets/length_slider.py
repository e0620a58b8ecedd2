"""Slide the length of a sentence, and see what its translation still remembers."""

from __future__ import annotations

from collections.abc import Sequence

from course_utils.display.interactive import Widget, button, script_of, slider, widget


def kept_words(reference: Sequence[str], said: Sequence[str]) -> tuple[set, set]:
    """Find the longest run of words, gaps allowed, that both sentences share in order.

    Returns their places in the reference and in what was said (a longest common
    subsequence).
    """
    longest = [[0] * (len(said) + 1) for _ in range(len(reference) + 1)]
    for i in reversed(range(len(reference))):
        for j in reversed(range(len(said))):
            longest[i][j] = (
                1 + longest[i + 1][j + 1]
                if reference[i] == said[j]
                else max(longest[i + 1][j], longest[i][j + 1])
            )
    i = j = 0
    places: tuple[set, set] = (set(), set())
    while i < len(reference) and j < len(said):
        if reference[i] == said[j]:
            places[0].add(i)
            places[1].add(j)
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return places


def length_slider(
    sources: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    translations: Sequence[Sequence[str]],
    trained_to: int,
    name: str = "length-slider",
    per_length: int = 3,
    start: int = 13,
) -> Widget:
    """Slide the source's length and see which words of the reference are still said.

    Lengths are in tokens, stops and commas included. The first `per_length` sentences
    of every length are shown; the curve is the mean share of the reference's tokens
    that are kept, over all sentences of that length. The slider begins at the length
    nearest to `start`, where something is lost already. Used in chapter 02.
    """
    if not len(sources) == len(references) == len(translations):
        raise ValueError(
            f"length_slider got {len(sources)} sources, {len(references)} references "
            f"and {len(translations)} translations, expected equally many."
        )
    if not sources or not all(map(len, references)) or per_length < 1:
        raise ValueError(
            f"length_slider got {len(sources)} sentences and per_length = "
            f"{per_length}, expected at least one of each and no empty reference."
        )
    shown: dict[int, list[dict[str, object]]] = {}
    shares: dict[int, list[float]] = {}
    for source, reference, said in zip(sources, references, translations):
        kept, right = kept_words(reference, said)
        shares.setdefault(len(source), []).append(len(kept) / len(reference))
        examples = shown.setdefault(len(source), [])
        if len(examples) < per_length:
            examples.append(
                {
                    "source": " ".join(source),
                    "reference": list(reference),
                    "kept": sorted(kept),
                    "said": list(said),
                    "right": sorted(right),
                }
            )
    lengths = sorted(shown)
    nearest = min(lengths, key=lambda length: abs(length - start))
    return widget(
        name,
        "What is left of a sentence after it has been one vector",
        [
            slider("length", "English tokens", lengths, value=nearest),
            button("another", "Another sentence"),
        ],
        data={
            "lengths": lengths,
            "examples": [shown[n] for n in lengths],
            "share": [sum(shares[n]) / len(shares[n]) for n in lengths],
            "trained": trained_to,
        },
        script=script_of(__name__),
        alt="An English sentence, its right French translation and what the model "
        "said, for every length, below a curve of the share of the right words that "
        "it still says, in the right order.",
        height=500,
    )
