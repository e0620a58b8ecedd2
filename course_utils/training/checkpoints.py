"""Checkpoints: a training's whole state in one file that is never half-written.

The new file is written beside the old one, forced to the disk and then renamed over it:
whenever the machine stops, the name holds either the old state or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

from course_utils.shapes import shape_of

FORMAT = "course_utils training checkpoint 1"
ADVICE = "delete the file to train anew, or give checkpoint= another name."


@runtime_checkable
class Stateful(Protocol):
    """What a checkpoint can hold: a model, an optimiser, a history, …"""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any], /) -> Any: ...


def save(path: str | Path, settings: dict[str, Any], **parts: Stateful) -> None:
    """Write the state of every part to `path`, all of it or nothing."""
    path = Path(path)
    states = {name: part.state_dict() for name, part in parts.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    try:
        with open(unfinished, "wb") as file:
            torch.save({"format": FORMAT, "settings": settings, **states}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the new name itself must reach the disk, too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            # not every folder can be asked for it: one on Google Drive may refuse
            with contextlib.suppress(OSError):
                os.fsync(folder)
        finally:
            os.close(folder)


def save_or_warn(path: str | Path, settings: dict[str, Any], **parts: Stateful) -> None:
    """Save a checkpoint; a full disk is told, and costs no step that was paid for."""
    try:
        save(path, settings, **parts)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        warnings.warn(
            f"the disk is full: {path} was not written, and holds its earlier state, "
            "if any. Training goes on in memory; delete something, and the next "
            "checkpoint will hold all of it.",
            stacklevel=3,
        )


def resume(path: str | Path, settings: dict[str, Any], **parts: Stateful) -> bool:
    """Put every part back into the state saved at `path`; False if nothing is there.

    A file that is damaged, is not a checkpoint, or was made with another model or other
    settings is refused with a sentence, before any part is touched.
    """
    path = Path(path)
    if not path.exists():
        return False
    saved = read(path)
    model = parts.get("model")
    if isinstance(model, nn.Module):
        require_same_shapes(path, saved["model"], model.state_dict())
    require_same_settings(path, saved["settings"], settings)
    for name, part in parts.items():
        part.load_state_dict(saved[name])
    return True


def read(path: Path) -> dict[str, Any]:
    """Load a checkpoint's content (tensors and plain values only, never code)."""
    if path.is_dir():
        raise ValueError(
            f"the checkpoint {path} is a folder, expected the name of a file such as "
            f"{path / 'model.pt'}."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()  # compares every tensor with its checksum
        if broken is not None:
            raise zipfile.BadZipFile(f"bad checksum in {broken}")
        content = torch.load(path, map_location="cpu", weights_only=True)
    except PermissionError:
        raise
    except Exception as error:
        raise ValueError(
            f"the checkpoint {path} is damaged or is not a checkpoint: {ADVICE}"
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(
            f"the file {path} was not written by this version of train(): {ADVICE}"
        )
    return content


def require_same_settings(
    path: Path, saved: dict[str, Any], now: dict[str, Any]
) -> None:
    """Refuse to go on with settings under which the saved part was not trained."""
    changed = [
        f"{name} was {saved.get(name)!r} and is {now.get(name)!r}"
        for name in {**saved, **now}
        if saved.get(name) != now.get(name)
    ]
    if changed:
        raise ValueError(
            f"the checkpoint {path} was made with other settings: "
            f"{'; '.join(changed)}. Set them back to go on, {ADVICE}"
        )


def require_same_shapes(path: Path, saved: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse a checkpoint of another model, naming the first tensor that differs."""

    def shape(state: dict[str, Any], name: str) -> str:
        return shape_of(state[name]) if name in state else "absent"

    for name in {**saved, **now}:
        if shape(saved, name) != shape(now, name):
            raise ValueError(
                f"the checkpoint {path} holds another model: {name} is "
                f"{shape(saved, name)} there and {shape(now, name)} here. Build the "
                f"model it was made with to go on, {ADVICE}"
            )
