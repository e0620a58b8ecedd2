"""Watch a training: both losses drawn as they fall, and a sample every minute.

In a notebook's kernel the drawing is renewed while `train` runs. Elsewhere, and with
`COURSE_PROGRESS=0`, nothing is drawn until `plot` is called. `against_seconds` draws
several trainings, each with the seconds it took.
"""

from __future__ import annotations

import html
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import nn

from course_utils.display import plots
from course_utils.display.figures import show
from course_utils.training import progress
from course_utils.training.history import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REDRAW = 3.0  # seconds between two drawings
POINTS = 120  # of the training curve: more steps than that are averaged
ALT = "Loss on training and held-out data against steps, as far as the training went."


class Sample(NamedTuple):
    """What the model wrote after so many steps and seconds of training."""

    step: int
    seconds: float
    text: str


class Watch:
    """Give it to `train(watch=…)`: it draws, samples, and keeps the history.

    `sample(model)` returns a text; it is asked every `every` seconds and at the end.
    After an interrupt `history` and `samples` hold what was reached. Used in chapters
    12, 13 and 18.
    """

    def __init__(
        self,
        sample: Callable[[nn.Module], str] | None = None,
        every: float = 60.0,
        held_out: str = "validation",
    ):
        if not isinstance(every, int | float) or not every > 0:
            raise ValueError(f"every is {every!r}, expected seconds, more than 0.")
        self.sample, self.every, self.held_out = sample, every, held_out
        self.history = History()
        self.samples: list[Sample] = []
        self.sampled = time.monotonic()
        self.drawn = 0.0
        self.handle: Any = None

    def __call__(self, history: History, model: nn.Module, ended: bool) -> None:
        """Look at a training; called by `train` after steps and when it ends."""
        self.history, now = history, time.monotonic()
        due = self.sample is not None and (now - self.sampled >= self.every or ended)
        if due and self.sample is not None and len(history):
            text = self.sample(model)
            self.samples.append(Sample(len(history), history.elapsed, text))
            self.sampled = time.monotonic()
        if now - self.drawn >= REDRAW or due or ended:
            self.drawn = now
            self.redraw(ended)

    def redraw(self, ended: bool) -> None:
        """Show the curve and the last sample in place of what stood there."""
        if progress.place() != "notebook" or len(self.history) < 2:
            return
        from IPython.display import HTML, DisplayHandle, display
        from IPython.utils.capture import capture_output

        with capture_output() as captured:
            show(self.plot(), alt=ALT, narrow=ended)
        drawing = captured.outputs[0].data["text/html"]
        if self.samples:
            step, seconds, text = self.samples[-1]
            when = f"after {step} steps, {progress.duration(seconds)}"
            drawing += (
                f"<p>{when}:</p><pre style='white-space:pre-wrap'>"
                f"{html.escape(text)}</pre>"
            )
        if self.handle is None:
            self.handle = DisplayHandle()
            display(HTML(drawing), display_id=self.handle.display_id)
        else:
            self.handle.update(HTML(drawing))

    def plot(self, title: str = "") -> Axes:
        """Draw both losses against steps; the training loss as means of some steps."""
        history = self.history
        if not len(history):
            raise ValueError("nothing was watched yet; give this to train(watch=…).")
        _, ax = plots.figure()
        groups = np.array_split(np.arange(len(history)), min(POINTS, len(history)))
        losses = history["loss"]
        x = [group.mean() for group in groups]
        y = [losses[group].mean() for group in groups]
        colours = plots.COLOURS
        ax.plot(x, y, color=colours["grey"], label="training")
        if self.held_out in history.columns:
            ax.plot(
                history["evaluated"],
                history[self.held_out],
                "o--",
                color=colours["orange"],
                markersize=5,
                label="held out",
            )
        ax.set(xlabel="steps", ylabel="loss (nats)")
        ax.set_title(title or repr(history), loc="left", weight="bold")
        ax.legend(frameon=False)
        return ax

    def read(self) -> str:
        """Give the samples one under the other, each with its step and seconds."""
        if not self.samples:
            return "no sample was drawn"
        return "\n\n".join(
            f"after {step} steps, {progress.duration(seconds)}:\n{text}"
            for step, seconds, text in self.samples
        )


def against_seconds(watched: Mapping[str, Watch]) -> Axes:
    """Draw the held-out loss of several trainings, in bits, against their seconds.

    Each name begins with that of a model, whose colour it gets; the last one is solid.
    A run that was stopped before its first evaluation has no curve.
    """
    found = {n: w for n, w in watched.items() if w.held_out in w.history.columns}
    if not found:
        raise ValueError(
            "no training has a held-out loss; give `train` evaluate=, such as "
            "`held_out_loss(loss, batches)`."
        )
    _, ax = plots.figure()
    colours = plots.colours_of(watched)
    for name, watch in found.items():
        history = watch.history
        ax.plot(
            history["seconds"][history["evaluated"] - 1],
            history[watch.held_out] / math.log(2),
            "o-" if name == list(watched)[-1] else "o--",
            color=colours[name],
            markersize=5,
            label=name,
        )
    ax.set(xscale="log", xlabel="seconds of training", ylabel="held-out loss (bits)")
    ax.legend(frameon=False)
    return ax


def show_against_seconds(watched: Mapping[str, Watch]) -> None:
    """Show that drawing with its words. Used in chapters 12 and 13."""
    *others, last = watched
    show(
        against_seconds(watched),
        alt="Held-out loss in bits against seconds of training, on a log axis: "
        f"{', '.join(watched)}.",
        caption="Held-out loss, in bits a token, against the seconds of training. Dots "
        f"are evaluations; solid: {last}; dashed: {', '.join(others) or 'none'}.",
    )
