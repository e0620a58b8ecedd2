"""Area 2 again: the loss after a minute of processor time, on text never looked at.

The recipe was chosen by its loss on the validation part. The test part is read once, at
the end of each race, and chooses nothing; a quick run does not read it.
"""

from __future__ import annotations

from functools import partial

from benchmarks.recipes import encoded, ours, published, race, score, texts
from benchmarks.results import Row, made
from benchmarks.tasks import Plan, Task
from benchmarks.timing import summary

AREA = "loss"
SECONDS, SEEDS, TARGET = 60.0, (1, 2, 3), -0.25


def differences(
    seconds: float, seeds: tuple[int, ...], part: str, plan: Plan
) -> list[float]:
    """Our loss on a part of the text less that of the published recipe, by seed."""
    n_tokens, split = texts()
    ids = encoded(split)
    found = []
    for done, seed in enumerate(seeds):
        runners = {
            "ours": ours(n_tokens, seed),
            "published": published(n_tokens, seed),
        }
        for share in race(runners, ids["train"], seconds, seed):
            plan.advance((done + share) / len(seeds))
        losses = {name: score(runner, ids[part]) for name, runner in runners.items()}
        found.append(losses["ours"] - losses["published"])
    return found


def rows(seconds: float, seeds: tuple[int, ...], plan: Plan) -> list[Row]:
    """One row: the median difference over the seeds."""
    part = "validation" if plan.quick else "test"
    found = summary(differences(seconds, seeds, part, plan))
    return [
        made(
            AREA,
            f"{part} loss, nats a character, ours less theirs",
            f"{seconds:.0f} processor seconds",
            found,
            None if plan.quick else TARGET,
            "nanoGPT's published CPU recipe",
            unit="nats",
            rounds=len(seeds),
        )
    ]


def tasks(plan: Plan) -> list[Task]:
    """Three seeds of a minute for each recipe; a quick run tries one, for seconds."""
    seconds, seeds = (5.0, SEEDS[:1]) if plan.quick else (SECONDS, SEEDS)
    whole = 2.2 * seconds * len(seeds)
    return [Task("loss after training", whole, partial(rows, seconds, seeds))]
