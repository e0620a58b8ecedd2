"""Is it the width or the budget? Reversing words through one vector.

The model is that of chapter 02, the words have 2 to 10 random letters. Each of two
widths is trained for each of two budgets at three learning rates.
"""

import torch
import torch.nn.functional as F

from course_utils import runtime
from course_utils.evaluation.decoding import greedy
from course_utils.experiments import at_best_rate
from course_utils.models.rnn import Seq2Seq
from course_utils.tasks import synthetic
from course_utils.tasks.translation import translation_loss
from course_utils.training.loop import train

SETTINGS = {
    "widths": [16, 64],
    "budgets": [300, 1200],
    "rates": [5e-3, 1e-2, 2e-2],
    "seeds": [0, 1],
}
SMOKE = {"widths": [16, 64], "budgets": [100, 400], "rates": [1e-2], "seeds": [0]}
LENGTHS = (2, 4, 6, 8, 10)


def points(settings):
    return [
        {"width": width, "steps": steps, "lr": lr, "seed": seed}
        for width in settings["widths"]
        for steps in settings["budgets"]
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


def batch(step, generator):
    length = int(torch.randint(2, 11, (), generator=generator))
    return synthetic.reverse(48, generator, length)


def letters_right(model, generator):
    """The share of letters at their right positions, for words of each length."""
    shares = []
    for length in LENGTHS:
        source, target = synthetic.reverse(300, generator, length)
        tokens = greedy(model, source, length, bos=1, eos=2).tokens
        tokens = F.pad(tokens, (0, length - tokens.shape[1]))
        shares.append((tokens == target[:, 1:-1]).float().mean().item())
    return shares


def run(point):
    seed = point["seed"]
    runtime.seed(seed)
    model = Seq2Seq(30, 30, 16, point["width"])
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}
    train(model, batch, translation_loss, progress=False, **how)
    validation = letters_right(model, runtime.seed(1000 + seed))
    return {
        "validation": sum(validation) / len(validation),
        "lengths": list(LENGTHS),
        "test": letters_right(model, runtime.seed(2000 + seed)),
    }


def check(points):
    def right(width, steps):
        runs = [p for p in points if (p["width"], p["steps"]) == (width, steps)]
        return torch.tensor([p["test"] for p in at_best_rate(runs)]).mean(dim=0)

    narrow, wide = sorted({p["width"] for p in points})
    short, long = sorted({p["steps"] for p in points})
    assert right(wide, short).mean() > right(narrow, short).mean() + 0.03
    assert right(narrow, long).mean() > right(narrow, short).mean() + 0.05
    assert right(narrow, long).mean() > right(wide, short).mean() - 0.1
    assert right(wide, long)[-1] < right(wide, long)[0] - 0.05  # not flat
