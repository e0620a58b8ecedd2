"""Count what no limit of the kernel counts for one worker: its threads and files."""

from __future__ import annotations

import os
from pathlib import Path

MOST = 32  # processes that are looked at


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


def threads_of(process: int) -> int:
    """The number of threads of one process."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    counts = [line[8:] for line in status.splitlines() if line.startswith("Threads:")]
    return int(counts[0]) if counts else 0


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


def excess_of(process: int, threads: int, names: int) -> str:
    """Say of what a worker has too many: "threads", "files", or nothing."""
    everyone = family(process)
    if sum(map(threads_of, everyone)) > threads:
        return "threads"
    return "files" if len(everyone) > 1 and files_of(everyone[-1]) > names else ""
