"""Progress of long work: a bar while it runs, one line when it is done.

In a terminal the bar is a line that is written over. In a notebook (Jupyter, Colab,
VS Code) it is one output that is replaced, at the end by the closing line, so that a
saved notebook or a built page never shows a bar frozen half-way. It needs no widgets.
Anywhere else, or with `COURSE_PROGRESS=0` in the environment, there is no bar.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

REFRESH = 0.2  # seconds between two drawings of the bar
WIDTH = 24  # characters of the terminal's bar


def place() -> str:
    """Say where a bar can be drawn: "notebook", "terminal" or "nowhere"."""
    if os.environ.get("COURSE_PROGRESS", "").strip() == "0":
        return "nowhere"
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is not None:
        return "notebook"
    return "terminal" if sys.stderr.isatty() else "nowhere"


def duration(seconds: float) -> str:
    """Write a time as a person would: `0.4 s`, `12 s`, `3 min 05 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class Progress:
    """Show how far `total` steps have come, wherever the code happens to run."""

    def __init__(self, total: int, start: int = 0, show: bool = True):
        self.total, self.start = total, start
        self.place = place() if show else "nowhere"
        self.began = self.drawn = time.monotonic()
        self.output: Any = None  # the notebook's output, once there is one
        self.length = 0  # characters now standing in the terminal's line

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is not None:
            self.close()

    def update(self, done: int, note: str = "") -> None:
        """Redraw the bar, if the last drawing is old enough to be worth it."""
        now = time.monotonic()
        if self.place == "nowhere" or now - self.drawn < REFRESH:
            return
        self.drawn = now
        left = (now - self.began) / max(done - self.start, 1) * (self.total - done)
        text = f"{done}/{self.total} {note}, {duration(left)} left"
        if self.place == "terminal":
            filled = WIDTH * done // self.total
            self.write(f"[{'#' * filled}{'.' * (WIDTH - filled)}] {text}")
        else:
            bar = f'<progress max="{self.total}" value="{done}" aria-label="progress">'
            self.display({"text/html": f"{bar}</progress> {text}", "text/plain": text})

    def close(self, line: str = "") -> None:
        """Take the bar away and leave `line`, if any, in its place."""
        if self.output is not None:
            self.display({"text/plain": line})
            return
        if self.length:
            self.write("")
            sys.stderr.write("\r")
            sys.stderr.flush()
        if line:
            print(line, flush=True)

    def write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self.length))
        sys.stderr.flush()
        self.length = len(text)

    def display(self, data: dict[str, str]) -> None:
        from IPython.display import display

        if self.output is None:
            self.output = display(data, raw=True, display_id=True)
        else:
            self.output.update(data, raw=True)
