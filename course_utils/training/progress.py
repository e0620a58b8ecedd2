"""Progress of long work: a bar while it runs, one line when it is done.

In a terminal the bar is a line that is written over. In a notebook (Jupyter, Colab,
VS Code) all trainings of a cell share one output: their bars, one after the other, and
when the cell is done one line that sums them up, so that a saved notebook or a built
page never shows a bar frozen half-way. It needs no widgets. With `COURSE_PROGRESS=0` in
the environment there is no bar, and work of a few seconds or more leaves its line.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

PATIENCE = 1.0  # seconds of work before there is a bar
WORTH_A_LINE = 3.0  # seconds of work that leave a line where there was no bar
REFRESH = 0.2  # seconds between two drawings of the bar
WIDTH = 24  # characters of the terminal's bar


def kernel_shell() -> Any:
    """Return IPython's shell if a notebook's kernel runs this code, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None


def place() -> str:
    """Say where a bar can be drawn: "notebook", "terminal" or "nowhere"."""
    if os.environ.get("COURSE_PROGRESS", "").strip() == "0":
        return "nowhere"
    if kernel_shell() is not None:
        return "notebook"
    return "terminal" if sys.stderr.isatty() else "nowhere"


def duration(seconds: float) -> str:
    """Write a time as a person would: `0.4 s`, `12 s`, `3 min 05 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class CellOutput:
    """The one output that all trainings of a notebook's cell share."""

    current: CellOutput | None = None

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.began = time.monotonic()
        self.runs = self.steps = 0
        self.seconds = 0.0
        self.last = ""
        self.handle: Any = None
        shell.events.register("post_run_cell", self.finish)

    @classmethod
    def of(cls, shell: Any) -> CellOutput:
        """Return the output of the cell that is running."""
        if cls.current is None or cls.current.shell is not shell:
            cls.current = cls(shell)
        return cls.current

    def add(self, steps: int, seconds: float, line: str) -> None:
        """Count one training that is done."""
        self.runs, self.steps = self.runs + 1, self.steps + steps
        self.seconds, self.last = self.seconds + seconds, line

    def draw(self, data: dict[str, str]) -> None:
        """Show the bar, in place of what stood there."""
        from IPython.display import display

        if self.handle is None:
            self.handle = display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)

    def finish(self, _: Any = None) -> None:
        """Leave one line when the cell has run."""
        self.shell.events.unregister("post_run_cell", self.finish)
        CellOutput.current = None
        line = self.last
        if self.runs > 1:
            spent = duration(self.seconds)
            line = f"{self.runs} trainings, {self.steps} steps in {spent}; last: {line}"
        if self.handle is not None:
            self.draw({"text/plain": line})
        elif line and self.seconds >= WORTH_A_LINE:
            print(line, flush=True)


class Progress:
    """Show how far `total` steps have come, wherever the code happens to run."""

    def __init__(self, total: int, start: int = 0, show: bool = True):
        self.total, self.start, self.done, self.show = total, start, start, show
        self.place = place() if show else "nowhere"
        shell = kernel_shell() if show else None
        self.cell = None if shell is None else CellOutput.of(shell)
        self.began = self.drawn = time.monotonic()
        self.length = 0  # characters now standing in the terminal's line

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is not None:
            self.close()

    def say(self, line: str) -> None:
        """Print a line before the bar, where there can be one."""
        if self.place != "nowhere":
            print(line, flush=True)

    def update(self, done: int, note: str = "") -> None:
        """Redraw the bar, if the last drawing is old enough to be worth it."""
        now, self.done = time.monotonic(), done
        began = self.began if self.cell is None else self.cell.began
        early = now - self.drawn < REFRESH or now - began < PATIENCE
        if self.place == "nowhere" or early:
            return
        self.drawn = now
        left = (now - self.began) / max(done - self.start, 1) * (self.total - done)
        text = f"{done}/{self.total} {note}, {duration(left)} left"
        if self.cell is None:
            filled = WIDTH * done // self.total
            self.write(f"[{'#' * filled}{'.' * (WIDTH - filled)}] {text}")
        else:
            if self.cell.runs:
                text = f"training {self.cell.runs + 1}: {text}"
            bar = f'<progress max="{self.total}" value="{done}" aria-label="progress">'
            self.cell.draw(
                {"text/html": f"{bar}</progress> {text}", "text/plain": text}
            )

    def close(self, line: str = "") -> None:
        """Take the bar away and leave `line`, if any: at once, or in the cell's sum."""
        if self.cell is not None:
            spent = time.monotonic() - self.began
            self.cell.add(self.done - self.start, spent, line)
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
