"""Area 2 again: what a minute of processor time reaches, on text never looked at.

Recipes were chosen by their loss on the validation part. The test part is read at the
end of each race and chooses nothing; a quick run does not read it.
"""

from __future__ import annotations

from functools import partial

from benchmarks import counting
from benchmarks.recipes import encoded, ours, published, race, score, texts
from benchmarks.results import Row, made
from benchmarks.tasks import Plan, Task
from benchmarks.timing import summary

AREA = "loss"
SECONDS, SEEDS, TARGET = 60.0, (1, 2, 3), -0.25
RATES = (1e-3, 2e-3, 4e-3, 8e-3)  # for nanoGPT's recipe: its own, and larger ones
COUNTING = {  # whether both sides have a cache: who, and the target in bits
    True: ("Kneser-Ney with a cache, its order chosen on validation", -0.07),
    False: ("Kneser-Ney, its order chosen on validation", -0.06),
}


def best_rate(seconds: float, plan: Plan) -> float:
    """The rate at which nanoGPT's recipe has the lowest loss on validation text."""
    n_tokens, split = texts()
    ids = encoded(split)
    runners = {lr: published(n_tokens, 0, lr) for lr in RATES}
    for share in race(
        {str(lr): r for lr, r in runners.items()}, ids["train"], seconds, 0
    ):
        plan.advance(0.3 * share)
    return min(RATES, key=lambda lr: score(runners[lr], ids["validation"]))


def differences(
    seconds: float, seeds: tuple[int, ...], part: str, rate: float, plan: Plan
) -> dict[str, list[float]]:
    """Our loss on a part of the text less that of the published recipe, by seed."""
    n_tokens, split = texts()
    ids = encoded(split)
    found: dict[str, list[float]] = {
        "as published": [],
        "its rate tuned": [],
        "steps": [],
    }
    for done, seed in enumerate(seeds):
        runners = {
            "ours": ours(n_tokens, seed),
            "as published": published(n_tokens, seed),
            "its rate tuned": published(n_tokens, seed, rate),
        }
        for share in race(runners, ids["train"], seconds, seed):
            plan.advance(0.3 + 0.7 * (done + share) / len(seeds))
        losses = {name: score(runner, ids[part]) for name, runner in runners.items()}
        for name in ("as published", "its rate tuned"):
            found[name].append(losses["ours"] - losses[name])
        found["steps"].append(runners["as published"].steps)
    return found


def rows(seconds: float, seeds: tuple[int, ...], plan: Plan) -> list[Row]:
    """Two rows: against the recipe as it is, and with a rate chosen on this text."""
    part = "validation" if plan.quick else "test"
    rate = best_rate(seconds, plan)
    found = differences(seconds, seeds, part, rate, plan)
    steps = round(summary(found["steps"]).median)
    rates = ", ".join(f"{lr:g}" for lr in RATES)
    note = (
        f"nanoGPT's recipe was written for another text and for 2000 steps, of which "
        f"{steps} fit here. Of the rates {rates}, {rate:g} "
        "was best on the validation part. Ours was tuned on that part, too. The recipe "
        "switches nanoGPT's compiling off, and nothing of ours is compiled."
    )
    return [
        made(
            AREA,
            f"{part} loss, nats a character, ours less theirs",
            f"{seconds:.0f} processor seconds",
            summary(found[name]),
            None if plan.quick or name != "as published" else TARGET,
            f"nanoGPT's CPU recipe, {name}",
            unit="nats",
            rounds=len(seeds),
            note=note,
        )
        for name in ("as published", "its rate tuned")
    ]


def counting_rows(
    cache: bool, seconds: float, seeds: tuple[int, ...], plan: Plan
) -> list[Row]:
    """One row: a network that weighs counts against the counts alone."""
    found = []
    for done, seed in enumerate(seeds):
        model = counting.trained(seconds, seed, cache)
        found.append(counting.bits(model, "test", cache))
        plan.advance((done + 1) / (len(seeds) + 1))
    theirs = counting.counted_bits("test", cache)
    baseline, target = COUNTING[cache]
    said = ", ".join(f"{value:.3f}" for value in found)
    return [
        made(
            AREA,
            "test bits a character, a network that weighs counts less counting",
            f"{seconds:.0f} processor seconds",
            summary([value - theirs for value in found]),
            target,
            baseline,
            unit="bits",
            rounds=len(seeds),
            note=f"{baseline}: {theirs:.3f} bits; the network: {said}.",
        )
    ]


def tasks(plan: Plan) -> list[Task]:
    """Three seeds of a minute for each; a quick run tries one, for seconds."""
    seconds, seeds = (5.0, SEEDS[:1]) if plan.quick else (SECONDS, SEEDS)
    whole = (len(RATES) + 3 * len(seeds)) * seconds
    found = [Task("loss after training", whole, partial(rows, seconds, seeds))]
    for cache in () if plan.quick else COUNTING:  # to count alone takes some seconds
        run = partial(counting_rows, cache, seconds, seeds)
        found.append(Task("counts and a network", 1.2 * seconds * len(seeds), run))
    return found
