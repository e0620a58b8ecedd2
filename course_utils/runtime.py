"""Where the code runs, and with which random numbers.

One cell serves a laptop and a GPU: `device()` finds the hardware, `seed()` makes a run
repeatable, `preset()` picks the sizes that suit what was found, and
`checkpoint_folder()` the place where a long training is safe.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

Choice = TypeVar("Choice")
DRIVE = "/content/drive"  # where Colab puts Google Drive
ON_DRIVE = "MyDrive/attention-course"


def device() -> torch.device:
    """Return the fastest device there is: cuda, else Apple's mps, else the cpu."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def base_seed() -> int:
    """Return the seed of this run: the environment's `COURSE_SEED`, or 0."""
    text = os.environ.get("COURSE_SEED", "0").strip() or "0"
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**31:
        raise ValueError(
            f"COURSE_SEED is {text!r}, expected a whole number from 0 to 2147483647; "
            "set it to one (COURSE_SEED=1) or unset it."
        )
    return value


def seed(offset: int = 0) -> torch.Generator:
    """Seed Python, NumPy and PyTorch, and return a generator of its own.

    As the first call of every notebook it also settles the number of threads.

    The number used is `COURSE_SEED + 1000 * offset`, so that `seed(0)`, `seed(1)`, …
    are the repetitions of an experiment, and another `COURSE_SEED` gives fresh ones.
    """
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        raise ValueError(f"seed() got {offset!r}, expected a whole number 0, 1, 2, …")
    choose_threads()
    number = base_seed() + 1000 * offset
    random.seed(number)
    np.random.seed(number % 2**32)
    torch.manual_seed(number)
    return torch.Generator().manual_seed(number)


def choose_threads() -> None:
    """Let PyTorch use one CPU thread, or as many as `COURSE_THREADS` says.

    The course's tensors are small. Several threads gain little on them, and wait for
    each other for minutes where another program keeps the cores busy. Whoever has set
    `OMP_NUM_THREADS` has chosen already.
    """
    if os.environ.get("OMP_NUM_THREADS", "").strip():
        return
    text = os.environ.get("COURSE_THREADS", "").strip() or "1"
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(
            f"COURSE_THREADS is {text!r}, expected a whole number from 1; unset it to "
            "use one thread."
        )
    torch.set_num_threads(int(text))


def preset(*, cpu: Choice, gpu: Choice, tiny: Choice | None = None) -> Choice:
    """Pick the setting for the hardware found, so that one cell serves both.

    `COURSE_PRESET=cpu`, `gpu` or `tiny` in the environment overrules what was found.
    `make test` runs the solutions with `tiny`, the size that tries a training's code
    and not its result; where none is given it is that of the CPU.
    """
    sizes = {"cpu": cpu, "gpu": gpu, "tiny": cpu if tiny is None else tiny}
    forced = os.environ.get("COURSE_PRESET", "").strip().lower()
    if forced not in ("", *sizes):
        raise ValueError(
            f"COURSE_PRESET is {forced!r}, expected 'cpu', 'gpu' or 'tiny'; unset it "
            "to let the hardware decide."
        )
    return sizes[forced or ("gpu" if device().type == "cuda" else "cpu")]


def checkpoint_folder(keep_on_drive: bool = False) -> Path:
    """Choose the folder for the checkpoints of a long training, and say where it is.

    With a GPU it is `checkpoints` beside the notebook. Colab deletes that at the end of
    the session; with `keep_on_drive=True` Colab asks for your Google Drive instead. On
    a CPU, where a few steps only show that the code runs, it is a temporary folder.
    Used in chapters 12, 13 and 18.
    """
    if not torch.cuda.is_available():
        print("No GPU: the checkpoints of these few steps go to a temporary folder.")
        return Path(tempfile.mkdtemp())
    on_colab = "google.colab" in sys.modules
    if keep_on_drive and on_colab:
        folder = mount_drive() / ON_DRIVE
        print(f"Checkpoints are kept on your Google Drive, in {folder}.")
        return folder
    folder = Path("checkpoints").resolve()
    print(f"Checkpoints are kept in {folder}.")
    if keep_on_drive:
        print("This is not Colab: Google Drive can't be mounted, nor is there need.")
    elif on_colab:
        print("Colab deletes them with the session: KEEP_ON_DRIVE = True saves them.")
    return folder


def mount_drive() -> Path:
    """Ask Colab for Google Drive; say what to do if it is not given."""
    try:
        from google.colab import drive  # type: ignore[import-not-found]

        drive.mount(DRIVE)
    except Exception as error:
        raise RuntimeError(
            f"Google Drive was not mounted ({error}), and the checkpoints would be "
            "lost with the session; run the cell again and allow it, or set "
            "KEEP_ON_DRIVE = False."
        ) from error
    return Path(DRIVE)


def hardware() -> str:
    """Say in one line what was found, for the first cell of a training notebook."""
    kind = device().type
    if kind == "cuda":
        card = torch.cuda.get_device_properties(0)
        count = torch.cuda.device_count()
        many = f"{count} x " if count > 1 else ""
        return f"GPU: {many}{card.name}, {card.total_memory / 2**30:.0f} GB"
    cores = f"{os.cpu_count()} CPU cores"
    if kind == "mps":
        return f"Apple GPU (mps) beside {cores}"
    threads = torch.get_num_threads()
    return f"CPU: {cores}, {threads} used by PyTorch; no GPU needed for this page"
