"""Scenes hold the digits they say they hold, where they say, and leak no test scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from beartype import beartype
from einops import rearrange
from jaxtyping import jaxtyped
from torch import Tensor

from course_utils.data.corpus import EOS, PAD, Vocabulary
from course_utils.tasks import scenes
from course_utils.tasks.baselines import majority_chance
from course_utils.tasks.scenes import COLOURS, QUESTION_WORDS, digits

SCENES: list[Callable[..., Any]] = [
    scenes.caption_scenes,
    scenes.marked_scenes,
    scenes.channel_scenes,
    scenes.question_scenes,
]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def cells_of(images: Tensor) -> Tensor:
    """(batch, channel, 24, 24) to (batch, cell, channel, 8, 8), written anew."""
    return torch.stack(
        [
            images[:, :, 8 * (i // 3) : 8 * (i // 3) + 8, 8 * (i % 3) : 8 * (i % 3) + 8]
            for i in range(9)
        ],
        dim=1,
    )


def label_of(scan: Tensor, split: str) -> int:
    """The label of the scan in `split` that is this very one; -1 if none is."""
    known, labels = digits(split)
    hits = (known == scan).flatten(1).all(1).nonzero()
    return int(labels[hits[0, 0]]) if len(hits) else -1


def test_no_test_scan_is_a_training_scan() -> None:
    (train, labels), (test, _) = digits("train"), digits("test")
    assert (len(train), len(test)) == (1297, 500)
    assert torch.cdist(test.flatten(1), train.flatten(1)).min() > 0
    assert train.min() == 0
    assert train.max() == 1
    assert labels.bincount().min() > 100


def test_changing_a_scan_one_was_given_changes_no_scene() -> None:
    before = scenes.marked_scenes(2, generator())[0]
    digits("train")[0].zero_()
    assert torch.equal(before, scenes.marked_scenes(2, generator())[0])


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene_is_a_function_of_its_generator(scene: Callable[..., Any]) -> None:
    torch.manual_seed(1)
    first = scene(4, generator())
    torch.manual_seed(2)
    again, other = scene(4, generator()), scene(4, generator(1))
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("scene", SCENES)
def test_shapes_are_those_of_the_signature(scene: Callable[..., Any]) -> None:
    jaxtyped(typechecker=beartype)(scene)(2, generator())


@pytest.mark.parametrize("split", ["train", "test"])
def test_captions_read_the_digits_in_order(split: str) -> None:
    vocabulary = Vocabulary([map(str, range(10))])
    images, captions, gold = scenes.caption_scenes(60, generator(), split, noise=0)
    for cells, caption, places in zip(cells_of(images)[:, :, 0], captions, gold):
        filled = [i for i in range(9) if cells[i].any()]
        assert places[places >= 0].tolist() == filled
        read = [str(label_of(cells[i], split)) for i in filled]
        assert vocabulary.decode(caption) == read
        assert 1 <= len(read) <= 5
        assert caption.tolist()[len(read) :] == [EOS] + [PAD] * (5 - len(read))


@pytest.mark.parametrize(("fewest", "most"), [(1, 1), (2, 4), (9, 9), (1, 9)])
def test_captions_have_as_many_digits_as_asked_for(fewest: int, most: int) -> None:
    _, captions, gold = scenes.caption_scenes(
        400, generator(), max_digits=most, min_digits=fewest
    )
    counts = (gold >= 0).sum(1)
    assert captions.shape == gold.shape == (400, most + 1)
    assert set(counts.tolist()) == set(range(fewest, most + 1))
    assert ((captions == EOS).sum(1) == 1).all()
    assert torch.equal((captions > EOS).sum(1), counts)


def test_caption_digits_are_found_in_every_cell() -> None:
    _, _, gold = scenes.caption_scenes(3000, generator())
    share = gold[gold >= 0].bincount(minlength=9) / (gold >= 0).sum()
    assert (share - 1 / 9).abs().max() < 0.02


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_digit_with_the_bar_is_the_answer(split: str) -> None:
    images, answers, gold = scenes.marked_scenes(60, generator(), split, noise=0)
    known, labels = digits(split)
    for cells, answer, place in zip(cells_of(images)[:, :, 0], answers, gold):
        bars = (cells[:, :, 0] == 1).all(1)
        assert bars.nonzero().tolist() == [[place]]
        hits = (known[:, :, 1:] == cells[place, :, 1:]).flatten(1).all(1)
        assert answer in labels[hits]
        assert all(label_of(c, split) >= 0 for i, c in enumerate(cells) if i != place)


def test_marked_cells_and_digits_are_balanced() -> None:
    _, answers, gold = scenes.marked_scenes(3000, generator())
    assert (gold.bincount() / 3000 - 1 / 9).abs().max() < 0.02
    assert (answers.bincount() / 3000 - 1 / 10).abs().max() < 0.03


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_strip_names_the_channel_to_read(split: str) -> None:
    images, answers, asked, shown = scenes.channel_scenes(40, generator(), split, 0)
    for image, answer, channel, all_digits in zip(images, answers, asked, shown):
        read = [label_of(image[c, 8:, 4:12], split) for c in range(3)]
        assert read == all_digits.tolist()
        assert read[channel] == answer
        for strip in image[:, :4]:
            assert torch.equal(strip, scenes.CUES[channel].repeat(1, 4))
        assert not image[:, 4:8].any()


def test_without_the_strip_a_channel_is_a_guess() -> None:
    _, answers, asked, shown = scenes.channel_scenes(4000, generator())
    guess = torch.nn.functional.one_hot(shown, 10).sum(1).argmax(1)
    right = (guess == answers).float().mean().item()
    assert majority_chance(3, 10) == pytest.approx(0.43)
    assert right == pytest.approx(0.43, abs=0.03)
    assert (asked.bincount() / 4000 - 1 / 3).abs().max() < 0.03


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("n_objects", [1, 4, 6])
def test_questions_are_answered_by_their_cell(split: str, n_objects: int) -> None:
    images, questions, answers, gold = scenes.question_scenes(
        30, generator(), split, n_objects
    )
    paints = {torch.tensor(paint).float(): name for name, paint in COLOURS.items()}
    for row, cells in enumerate(cells_of(images)):
        seen = {}
        for place in range(9):
            if not cells[place].any():
                continue
            scan = cells[place].amax(0)
            (name,) = (
                name
                for paint, name in paints.items()
                if torch.equal(cells[place], paint[:, None, None] * scan)
            )
            seen[place] = str(label_of(scan, split)), name
        shown_digits, shown_colours = zip(*seen.values())
        assert len(seen) == len(set(shown_digits)) == len(set(shown_colours))
        assert len(seen) == n_objects
        word, about = (QUESTION_WORDS[i] for i in questions[row])
        digit, colour = seen[int(gold[row])]
        answer = QUESTION_WORDS[answers[row]]
        if word == "which-digit-is":
            assert (about, answer) == (colour, digit)
        else:
            assert (word, about, answer) == ("what-colour-is", digit, colour)


def test_questions_are_balanced_and_the_question_alone_says_nothing() -> None:
    _, questions, answers, gold = scenes.question_scenes(6000, generator())
    kinds = questions[:, 0].bincount()[16:] / 6000
    assert (kinds - 0.5).abs().max() < 0.03
    assert (gold.bincount() / 6000 - 1 / 9).abs().max() < 0.02
    for about in (0, 7):  # asked for the colour of a digit, every colour is as likely
        colours = answers[questions[:, 1] == about] - 10
        assert (colours.bincount(minlength=6) / len(colours) - 1 / 6).abs().max() < 0.07


def test_compose_lays_cells_out_in_reading_order() -> None:
    cells = torch.arange(9.0)[None, :, None, None, None].expand(1, 9, 2, 8, 8)
    image = scenes.compose(cells, 0, generator())
    assert image[0, 1, ::8, ::8].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    patches = rearrange(image, "b c (r y) (q x) -> b (r q) c y x", y=8, x=8)
    assert torch.equal(patches, cells_of(image))


def test_noise_has_the_size_asked_for() -> None:
    cells = torch.zeros(50, 9, 1, 8, 8)
    assert scenes.compose(cells, 0.2, generator()).std() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: digits("validation"), "expected 'train' or 'test'"),
        (lambda g: scenes.marked_scenes(2, g, "all"), "split is 'all'"),
        (lambda g: scenes.marked_scenes(0, g), "batch is 0"),
        (lambda g: scenes.channel_scenes(-1, g), "batch is -1"),
        (lambda g: scenes.caption_scenes(2, g, max_digits=10), "1 to 10 digits"),
        (lambda g: scenes.caption_scenes(2, g, min_digits=6), "6 to 5 digits"),
        (lambda g: scenes.caption_scenes(2, g, min_digits=0), "min_digits is 0"),
        (lambda g: scenes.caption_scenes(2, g, noise=-0.1), "noise is -0.1"),
        (lambda g: scenes.question_scenes(2, g, n_objects=7), "at most 6"),
        (lambda g: scenes.question_scenes(2, g, n_objects=0), "n_objects is 0"),
    ],
)
def test_bad_scenes_are_refused_in_a_sentence(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(generator())
