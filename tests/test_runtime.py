"""Device, seed and preset, and what the environment says about them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

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
    monkeypatch.delenv("COURSE_THREADS", raising=False)


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
    monkeypatch.setenv("COURSE_PRESET", "tiny")
    assert runtime.preset(cpu="small", gpu="big") == "small"
    assert runtime.preset(cpu=100, gpu=1000, tiny=0) == 0


def test_a_bad_preset_is_refused(monkeypatch):
    monkeypatch.setenv("COURSE_PRESET", "tpu")
    with pytest.raises(
        ValueError, match=r"COURSE_PRESET is 'tpu'.*'cpu', 'gpu' or 'tiny'"
    ):
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, 1),
        ({"COURSE_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "2", "COURSE_THREADS": "1"}, 2),
    ],
)
def test_a_notebook_uses_one_thread_unless_told_otherwise(variables, expected):
    code = "import torch; from course_utils import runtime; runtime.seed(); "
    unset = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "COURSE_THREADS")
    environment = {k: v for k, v in os.environ.items() if k not in unset} | variables
    result = subprocess.run(
        [sys.executable, "-c", code + "print(torch.get_num_threads())"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(result.stdout) == expected


def test_a_wrong_number_of_threads_is_refused(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("COURSE_THREADS", "many")
    with pytest.raises(ValueError, match="COURSE_THREADS is 'many'"):
        runtime.seed()


# ------------------------------------------------------------------- where work is kept


@pytest.fixture
def drive(monkeypatch, tmp_path):
    """A Colab with a GPU, and a Drive that can be refused."""
    drive = Mock()
    monkeypatch.setitem(sys.modules, "google.colab", Mock(drive=drive))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.chdir(tmp_path)
    return drive


def test_on_colab_one_switch_keeps_checkpoints_on_drive(drive, capsys):
    folder = runtime.checkpoint_folder(keep_on_drive=True)
    drive.mount.assert_called_once_with("/content/drive")
    assert folder == Path("/content/drive/MyDrive/attention-course")
    assert f"on your Google Drive, in {folder}" in capsys.readouterr().out


def test_with_the_switch_off_no_drive_is_asked_for_and_the_loss_is_said(drive, capsys):
    folder = runtime.checkpoint_folder()
    drive.mount.assert_not_called()
    assert folder == Path.cwd() / "checkpoints"
    said = capsys.readouterr().out
    assert f"kept in {folder}" in said
    assert "Colab deletes them with the session: KEEP_ON_DRIVE = True" in said


def test_a_drive_that_is_refused_stops_with_what_to_do(drive):
    drive.mount.side_effect = ValueError("mount failed")
    with pytest.raises(RuntimeError, match=r"\(mount failed\).* run the cell again"):
        runtime.checkpoint_folder(keep_on_drive=True)


def test_outside_colab_the_folder_is_beside_the_notebook(drive, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "google.colab")
    assert runtime.checkpoint_folder(True) == Path.cwd() / "checkpoints"
    assert "This is not Colab" in capsys.readouterr().out


def test_without_a_gpu_checkpoints_are_temporary_and_never_mixed(drive, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    folders = {runtime.checkpoint_folder(keep_on_drive=True) for _ in range(2)}
    assert len(folders) == 2
    assert all(folder.is_dir() for folder in folders)
    drive.mount.assert_not_called()
