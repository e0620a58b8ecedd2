"""How fast are five ways to train a choice among forty tokens, and how noisy?

The task of chapter 04: forty tokens carry a value each, one carries a mark; name the
value of the marked one. Five ways:

    soft              the weighted average is read
    REINFORCE         one token is drawn, the score-function gradient trains the choice
    + baseline        the same, less the mean reward of the other examples
    straight-through  the most likely token is read, with the gradient of the average
    Gumbel-softmax    a token is drawn by Gumbel noise, with the gradient of a softmax

All but the first are examined by reading their most likely token. For REINFORCE the
variance of the gradient over repeated draws is measured while it trains, with the
baseline and without, on one fixed batch.
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import experiments, runtime
from course_utils.tasks import synthetic
from course_utils.training.loop import train

SETTINGS = {
    "rates": [4e-3, 1.6e-2, 6.4e-2, 2.56e-1],
    "seeds": [0, 1, 2],
    "steps": 240,
}
SMOKE = {"rates": [4e-3], "seeds": [0], "steps": 240}
WAYS = ["soft", "straight-through", "Gumbel-softmax", "+ baseline", "REINFORCE"]
DRAWS = 50
NO_NOISE = 1e-12  # added to both variances: where none is left, the ratio is 1


def points(settings):
    return [
        {"way": way, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for way in WAYS
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class Finder(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.value, self.mark = nn.Embedding(10, d), nn.Embedding(2, d)
        self.hidden, self.score = nn.Linear(d, d), nn.Linear(d, 1)
        self.readout = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, 10))

    def forward(self, values, marks):
        x = torch.tanh(self.hidden(self.value(values) + self.mark(marks)))
        return x, self.score(x)[..., 0]  # (batch, token, d), (batch, token)


def reinforce(model, values, marks, answers, baseline):
    x, scores = model(values, marks)
    log_weights = torch.log_softmax(scores, dim=-1)
    chosen = torch.multinomial(log_weights.exp(), 1)[:, 0]
    rows = torch.arange(len(x))
    losses = F.cross_entropy(model.readout(x[rows, chosen]), answers, reduction="none")
    reward = -losses.detach()
    others = (reward.sum() - reward) / (len(reward) - 1) if baseline else 0.0
    return (losses - (reward - others) * log_weights[rows, chosen]).mean()


def loss_of(way):
    def by_weights(model, values, marks, answers):
        x, scores = model(values, marks)
        weights = torch.softmax(scores, dim=-1)
        if way == "straight-through":
            hard = F.one_hot(scores.argmax(dim=-1), 40).float()
            weights = hard + weights - weights.detach()  # value hard, gradient soft
        elif way == "Gumbel-softmax":
            weights = F.gumbel_softmax(scores, tau=1.0, hard=True)
        return F.cross_entropy(model.readout((weights[:, None] @ x)[:, 0]), answers)

    def by_draws(model, values, marks, answers):
        return reinforce(model, values, marks, answers, way == "+ baseline")

    return by_draws if way in ("+ baseline", "REINFORCE") else by_weights


def where_gradient(model, loss):
    deciding = [model.hidden.weight, model.score.weight]
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, deciding)])


def noise(model, batch, baseline):
    """The variance of the gradient over repeated draws, summed over its entries.

    The draws are the same with the baseline and without.
    """
    with torch.enable_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        drawn = [
            where_gradient(model, reinforce(model, *batch, baseline))
            for _ in range(DRAWS)
        ]
    return torch.stack(drawn).var(dim=0).sum().item()


def run(point):
    way, seed = point["way"], point["seed"]

    def draw(step, own):
        return synthetic.marked_token(64, own)[:3]

    unseen = {
        name: synthetic.marked_token(500, runtime.seed(first + seed))[:3]
        for name, first in (("validation", 1000), ("test", 2000))
    }
    fixed = draw(0, runtime.seed(3000 + seed))
    noises = {"plain": [], "baseline": []}

    def evaluate(model):
        found = {}
        for name, (values, marks, answers) in unseen.items():
            x, scores = model(values, marks)
            weights = torch.softmax(scores, dim=-1)
            if way != "soft":
                weights = F.one_hot(scores.argmax(dim=-1), 40).float()
            said = model.readout((weights[:, None] @ x)[:, 0]).argmax(dim=-1)
            found[name] = (said == answers).float().mean().item()
        if way == "+ baseline":
            for name in noises:
                noises[name].append(noise(model, fixed, name == "baseline"))
        return found

    runtime.seed(seed)
    model = Finder()
    with torch.no_grad():
        evaluate(model)  # the noise before training
    how = {"steps": point["steps"], "lr": point["lr"], "schedule": "constant"}
    how |= {"warmup": 0, "every": 10, "evaluate": evaluate, "device": "cpu"}
    history = train(model, draw, loss_of(way), seed=seed, progress=False, **how)
    curves = {name: [round(float(a), 4) for a in history[name]] for name in unseen}
    result = {
        "validation": round(sum(curves["validation"]) / len(curves["validation"]), 4),
        "steps_seen": history["evaluated"].tolist(),
        "curve": curves["test"],
    }
    pairs = zip(noises["plain"], noises["baseline"])
    ratios = [round((a + NO_NOISE) / (b + NO_NOISE), 3) for a, b in pairs]
    return result | {"ratios": ratios}


def check(points):
    def area(way):  # the mean accuracy over training, at the way's own best rate
        runs = experiments.at_best_rate([p for p in points if p["way"] == way])
        return torch.tensor([p["curve"] for p in runs]).mean(dim=-1)

    slowest = area("REINFORCE").mean()
    for way in ("soft", "straight-through", "Gumbel-softmax", "+ baseline"):
        assert area(way).mean() > slowest + 0.03
    assert area("+ baseline").mean() > area("soft").mean() - 0.1  # hardly behind
    learned = [p for p in points if p["ratios"] and min(p["curve"][-3:]) > 0.98]
    assert min(p["ratios"][0] for p in learned) > 10  # before training
    assert all(0.2 < p["ratios"][-1] < 5 for p in learned)  # after it
