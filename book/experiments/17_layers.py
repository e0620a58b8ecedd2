"""One layer of attention against two, on random sequences that come twice.

8 to 24 different tokens of 64, written twice; the loss counts the second copy. Both
models have nothing but attention (chapter 17's `AttentionOnly`):

    two layers  width 64, four heads a layer
    one layer   width 96, eight heads: as many heads, and more parameters

Each is trained at four learning rates. Of the models with two layers we also keep
where their heads look, and what is left without one of them or without a whole layer.
"""

import torch
import torch.nn.functional as F

from course_utils import experiments, runtime
from course_utils.evaluation import circuits
from course_utils.models.attention_only import AttentionOnly
from course_utils.tasks.repeats import repeated, second_copy
from course_utils.training.loop import train

SETTINGS = {"rates": [3e-4, 1e-3, 3e-3, 1e-2], "seeds": [0, 1, 2, 3, 4]}
SETTINGS |= {"steps": {"one layer": 2000, "two layers": 1000}}
SMOKE = {"rates": [3e-3], "seeds": [0]}
SMOKE |= {"steps": {"one layer": 400, "two layers": 400}}
SIZES = {"one layer": (96, 8, 1), "two layers": (64, 4, 2)}


def points(settings):
    return [
        {"model": model, "lr": lr, "seed": seed, "steps": steps}
        for model, steps in settings["steps"].items()
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


def draw(step, generator):
    length = int(torch.randint(8, 25, (), generator=generator))
    return (repeated(32, generator, length),)


def loss(model, tokens):
    return F.cross_entropy(*second_copy(model(tokens)[0], tokens))


@torch.no_grad()
def accuracy(model, tokens):
    logits, right = second_copy(model(tokens)[0], tokens)
    return round((logits.argmax(dim=-1) == right).float().mean().item(), 4)


@torch.no_grad()
def look_inside(model, tokens):
    """Scores of all heads, and the accuracy without each of them and each layer."""
    weights = model(tokens, need_weights=True)[1]
    means = circuits.head_contexts(model, tokens).mean(dim=(1, 3))
    n_layers, n_heads = means.shape[:2]
    found = {"zero": [], "mean": [], "without_layer": []}
    for layer in range(n_layers):
        for head in range(n_heads):
            for name, value in (("zero", 0.0), ("mean", means[layer, head])):
                with circuits.edit_heads(model, {(layer, head): value}):
                    found[name].append(accuracy(model, tokens))
        whole = {(layer, head): means[layer, head] for head in range(n_heads)}
        with circuits.edit_heads(model, whole):
            found["without_layer"].append(accuracy(model, tokens))
    scores = {
        "previous": circuits.previous_token(weights),
        "prefix": circuits.prefix_matching(weights, tokens),
    }
    return found | {name: score.tolist() for name, score in scores.items()}


def run(point):
    seed = point["seed"]
    runtime.seed(seed)
    model = AttentionOnly(64, *SIZES[point["model"]])
    unseen = {
        name: repeated(250, runtime.seed(first + seed))
        for name, first in (("validation", 1000), ("test", 2000))
    }
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}
    how["every"] = point["steps"] // 40
    how["evaluate"] = lambda model: {
        name: accuracy(model, tokens) for name, tokens in unseen.items()
    }
    runtime.seed(seed)
    history = train(model, draw, loss, progress=False, **how)
    result = {name: float(history[name][-1]) for name in unseen}
    result |= {"steps_seen": history["evaluated"].tolist()}
    result |= {"curve": [round(float(a), 4) for a in history["test"]]}
    if point["model"] == "two layers":
        result |= look_inside(model, unseen["test"])
    return result


def check(points):
    def best(model):
        runs = [p for p in points if p["model"] == model]
        return experiments.at_best_rate(runs)

    one, two = best("one layer"), best("two layers")
    assert min(p["test"] for p in two) > max(p["test"] for p in one) + 0.4
    for p in two:
        (before, later), (early, prefix) = p["previous"], p["prefix"]
        assert max(before) > max(later) + 0.2
        assert max(prefix) > max(early) + 0.4
        assert max(p["without_layer"]) < p["test"] - 0.4
