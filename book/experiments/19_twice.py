"""A prediction, and then the model: twice the parameters of `19_scaling`'s largest.

The first point trains nothing. It fits three laws to the stored points of `19_scaling`
and writes down what each expects of the larger model; the interval repeats the fit with
the seeds drawn anew. The other points train that model, at the best of three rates as
chosen there.
"""

import runpy
from pathlib import Path

import numpy as np

import course_utils
from course_utils import experiments
from course_utils.evaluation.scaling import fit_power_law, fit_scaling_law

TOLERANCE = 0.05  # another version of Python has another library
SETTINGS = {
    "width": 136,
    "parameters": 447_712,
    "tokens": 2_000_000,
    "rates": [3e-3, 6e-3, 1.2e-2],
    "chosen": 6e-3,
    "seeds": [0, 1, 2],
}
SMOKE = {
    "width": 24,
    "parameters": 14_496,
    "tokens": 250_000,
    "rates": [],
    "chosen": 1.2e-2,
    "seeds": [0],
}
TEXT = ["library", 4_000_000]


def points(settings):
    size = {"width": settings["width"], "tokens": settings["tokens"]}
    first = {"role": "prediction", "parameters": settings["parameters"], "seed": 0}
    rate = {"role": "rate", "width": settings["width"], "tokens": 500_000, "seed": 9}
    return [
        {**size, **first},
        *({**rate, "lr": lr} for lr in settings["rates"]),
        *(
            {"role": "trained", **size, "lr": settings["chosen"], "seed": seed}
            for seed in settings["seeds"]
        ),
    ]


def predict(n, d):
    grid = [p for p in experiments.load("19_scaling").points if p["role"] == "grid"]
    same = [p for p in grid if p["tokens"] == d]
    sizes, losses = ([p[key] for p in same] for key in ("parameters", "test"))
    every = [[p[key] for p in grid] for key in ("parameters", "tokens", "test")]
    rng, again = np.random.default_rng(0), []
    for _ in range(200):  # every size keeps its number of seeds
        drawn = []
        for size in sizes:
            runs = [loss for s, loss in zip(sizes, losses) if s == size]
            drawn.append(runs[rng.integers(len(runs))])
        again.append(fit_power_law(sizes, drawn)(n))
    low, high = np.quantile(again, [0.025, 0.975])
    return {
        "pure": fit_power_law(sizes, losses, floor=False)(n),
        "floor": fit_power_law(sizes, losses)(n),
        "joint": float(fit_scaling_law(*every)(n, d)),
        "low": float(low),
        "high": float(high),
    }


def run(point):
    if point["role"] == "prediction":
        return predict(point["parameters"], point["tokens"])
    root = Path(course_utils.__file__).parents[1]
    scaling = runpy.run_path(str(root / "book" / "experiments" / "19_scaling.py"))
    trained = scaling["run"]
    return trained({"corpus": TEXT, **point})


def check(points):
    predicted, *_ = (p for p in points if p["role"] == "prediction")
    losses = [p["test"] for p in points if p["role"] == "trained"]
    assert abs(predicted["floor"] / np.mean(losses) - 1) < 0.05
