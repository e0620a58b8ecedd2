"""What a kernel runs first in `test_desk`, so that a chapter is over in seconds.

Each training makes a dozen steps and hands back a history as long as the real one; the
first one takes its time, so that its bar can be seen. What the chapters assert of their
results is left out: that is for the builds to try.
"""

from __future__ import annotations

import ast
import time
from typing import Any

from IPython import get_ipython

from course_utils.training import loop, progress
from course_utils.training.history import STEP_COLUMNS, History

FEW = 12
PAUSES = [0.15] * FEW  # seconds before each of the first steps


class NoAssertions(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)


def train(
    model: Any,
    batch: Any,
    loss: Any,
    *,
    steps: int,
    every: int = 100,
    whole: Any = loop.train,
    **options: Any,
) -> History:
    """Train for a few steps, with as many evaluations as `steps` would have had."""

    def slow_batch(step: int, generator: Any) -> Any:
        time.sleep(PAUSES.pop() if PAUSES else 0)
        return batch(step, generator)

    looks = -(-steps // every)
    apart = max(1, min(FEW, steps) // looks)
    options |= {"steps": looks * apart, "every": apart}
    history = whole(model, slow_batch, loss, **options)
    history.settle()
    for name, column in history.columns.items():
        if name in STEP_COLUMNS:
            column[:] = [column[i * len(column) // steps] for i in range(steps)]
    history.columns["step"][:] = range(steps)
    if "evaluated" in history.columns:
        at = [min((i + 1) * every, steps) for i in range(looks)]
        history.columns["evaluated"][:] = at
    history.settled = steps
    return history


get_ipython().ast_transformers.append(NoAssertions())
loop.train = train
progress.PATIENCE = progress.REFRESH = 0.0  # a bar for the shortest training
