"""Count what no limit of the kernel counts for one worker, four times a second."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MOST = 32  # processes that are looked at
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100  # a second


@dataclass(frozen=True)
class Usage:
    """What a worker uses just now, with all that it started."""

    threads: int = 0
    names: int = 0  # of files in its own temporary folder, where it has one
    seconds: float = 0.0  # of the processor


def family(process: int) -> list[int]:
    """A process and what it started; bubblewrap starts the worker in two steps."""
    found = [process]
    for one in found:
        if len(found) > MOST:
            break
        try:
            children = Path(f"/proc/{one}/task/{one}/children").read_text()
        except OSError:
            continue
        found += [int(child) for child in children.split()[:MOST]]
    return found


def numbers_of(process: int) -> tuple[int, float]:
    """The threads of one process, and its processor time."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return 0, 0.0
    numbers = status.rpartition(")")[2].split()  # its name may hold anything
    return int(numbers[17]), (int(numbers[11]) + int(numbers[12])) / TICKS


def files_of(process: int) -> int:
    """The number of names in a worker's own temporary folder, where it has one."""
    place = f"/proc/{process}/root/tmp"
    try:
        if os.stat(place).st_dev == os.stat("/tmp").st_dev:
            return 0  # everyone's
        status = os.statvfs(place)
    except OSError:
        return 0
    return status.f_files - status.f_ffree


def usage_of(process: int) -> Usage:
    """Look at a worker."""
    everyone = family(process)
    threads, seconds = zip(*map(numbers_of, everyone))
    names = files_of(everyone[-1]) if len(everyone) > 1 else 0
    return Usage(sum(threads), names, sum(seconds))
