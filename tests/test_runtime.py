"""Device, seed and preset, and what the environment says about them."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from course_utils import runtime


def draws() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


@pytest.fixture(autouse=True)
def unset_environment(monkeypatch):
    monkeypatch.delenv("COURSE_SEED", raising=False)
    monkeypatch.delenv("COURSE_PRESET", raising=False)


def test_the_same_seed_gives_the_same_numbers_everywhere():
    first = torch.rand((), generator=runtime.seed(2)), draws()
    again = torch.rand((), generator=runtime.seed(2)), draws()
    assert first == again


def test_another_offset_gives_other_numbers():
    runtime.seed(0)
    first = draws()
    runtime.seed(1)
    assert all(a != b for a, b in zip(first, draws()))


def test_course_seed_moves_every_repetition(monkeypatch):
    seeds = {}
    for value in ("0", "1", "2"):
        monkeypatch.setenv("COURSE_SEED", value)
        seeds[value] = [runtime.seed(offset).initial_seed() for offset in range(3)]
    assert len({s for row in seeds.values() for s in row}) == 9


def test_no_course_seed_and_an_empty_one_mean_zero(monkeypatch):
    assert runtime.base_seed() == 0
    monkeypatch.setenv("COURSE_SEED", " ")
    assert runtime.base_seed() == 0
    monkeypatch.setenv("COURSE_SEED", " 7 ")
    assert runtime.base_seed() == 7


@pytest.mark.parametrize("value", ["one", "-1", "1.5", "2147483648"])
def test_a_bad_course_seed_is_refused(monkeypatch, value):
    monkeypatch.setenv("COURSE_SEED", value)
    with pytest.raises(ValueError, match=f"COURSE_SEED is '{value}'.*whole number"):
        runtime.seed()


@pytest.mark.parametrize("offset", [-1, 1.0, True, "1"])
def test_a_bad_offset_is_refused(offset):
    with pytest.raises(ValueError, match="expected a whole number"):
        runtime.seed(offset)


def test_the_largest_seed_works(monkeypatch):
    monkeypatch.setenv("COURSE_SEED", "2147483647")
    last, one_before = (
        runtime.seed(offset).initial_seed() for offset in (10_000, 9_999)
    )
    assert last != one_before


@pytest.mark.parametrize(
    ("cuda", "mps", "kind"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_the_fastest_device_is_chosen(monkeypatch, cuda, mps, kind):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert runtime.device().type == kind


@pytest.mark.parametrize("kind", ["cpu", "cuda", "mps"])
def test_preset_follows_the_hardware_unless_told_otherwise(monkeypatch, kind):
    monkeypatch.setattr(runtime, "device", lambda: torch.device(kind))
    found = "big" if kind == "cuda" else "small"
    assert runtime.preset(cpu="small", gpu="big") == found
    monkeypatch.setenv("COURSE_PRESET", "GPU")
    assert runtime.preset(cpu="small", gpu="big") == "big"
    monkeypatch.setenv("COURSE_PRESET", "cpu")
    assert runtime.preset(cpu="small", gpu="big") == "small"


def test_a_bad_preset_is_refused(monkeypatch):
    monkeypatch.setenv("COURSE_PRESET", "tpu")
    with pytest.raises(ValueError, match=r"COURSE_PRESET is 'tpu'.*'cpu' or 'gpu'"):
        runtime.preset(cpu=1, gpu=2)


def test_hardware_is_one_line_for_every_device(monkeypatch):
    class Card:
        name, total_memory = "Some Card", 16 * 2**30

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: Card)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    lines = {}
    for kind in ("cpu", "cuda", "mps"):
        monkeypatch.setattr(runtime, "device", lambda kind=kind: torch.device(kind))
        lines[kind] = runtime.hardware()
        assert "\n" not in lines[kind]
    assert lines["cpu"].startswith("CPU: ")
    assert lines["cuda"] == "GPU: 2 x Some Card, 16 GB"
    assert "mps" in lines["mps"]
