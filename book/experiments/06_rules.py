"""How far do three scoring rules get on rock, paper, scissors, in how many steps?

The game of chapter 06: three tokens hold a symbol and a content each; three more ask,
each for the content held by the symbol that beats its own. Three rules:

    similarity  the tokens themselves are queries, keys and values
    tied        one learned projection makes both queries and keys
    separate    queries and keys have a projection each

Each rule starts from small or from large embeddings, with each of three learning rates.
"""

import torch.nn.functional as F
from torch import nn

from course_utils import runtime
from course_utils.models.attention import attention
from course_utils.tasks import synthetic
from course_utils.training.loop import train

RULES = {"similarity": 48, "tied": 32, "separate": 16}  # d_k: tied as large as separate
SETTINGS = {
    "stds": [0.3, 1.0],
    "rates": [2e-3, 5e-3, 2e-2],
    "seeds": [0, 1, 2, 3, 4],
    "steps": 2000,
}
SMOKE = {"stds": [0.3, 1.0], "rates": [2e-2], "seeds": [0], "steps": 600}


def points(settings):
    return [
        {"rule": rule, "std": std, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for rule in RULES
        for std in settings["stds"]
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class Player(nn.Module):
    def __init__(self, rule, std, d_model=48):
        super().__init__()
        self.symbol = nn.Embedding(3, d_model)
        self.content = nn.Embedding(9, d_model)  # eight contents, and "nothing"
        for table in (self.symbol, self.content):
            nn.init.normal_(table.weight, std=std)
        self.query = self.key = self.value = nn.Identity()
        if rule != "similarity":
            self.query = self.key = nn.Linear(d_model, RULES[rule], bias=False)
            self.value = nn.Linear(d_model, d_model, bias=False)
        if rule == "separate":
            self.key = nn.Linear(d_model, RULES[rule], bias=False)
        self.readout = nn.Linear(d_model, 8)

    def forward(self, symbols, contents):
        x = self.symbol(symbols) + self.content(contents)
        context, _ = attention(self.query(x), self.key(x), self.value(x))
        return self.readout(context[:, 3:])  # the three that ask


def draw(step, generator):
    return synthetic.cycle(64, generator)[:3]


def loss(player, symbols, contents, answers):
    return F.cross_entropy(player(symbols, contents).transpose(1, 2), answers)


def run(point):
    seed = point["seed"]
    runtime.seed(seed)
    player = Player(point["rule"], point["std"])
    unseen = {
        name: synthetic.cycle(2000, runtime.seed(first + seed))
        for name, first in (("validation", 1000), ("test", 2000))
    }

    def evaluate(player):
        return {
            name: (player(symbols, contents).argmax(dim=-1) == answers).float().mean()
            for name, (symbols, contents, answers, _) in unseen.items()
        }

    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}
    how |= {"schedule": "constant", "every": 100, "evaluate": evaluate}
    history = train(player, draw, loss, progress=False, **how)
    curves = {name: [round(float(a), 4) for a in history[name]] for name in unseen}
    return {
        "validation": curves["validation"][-1],
        "test": curves["test"][-1],
        "steps_seen": history["evaluated"].tolist(),
        "curve": curves["test"],
    }


def check(points):
    rules = ("similarity", "tied", "separate")
    test = {rule: [p["test"] for p in points if p["rule"] == rule] for rule in rules}
    symmetric = [p for p in points if p["rule"] != "separate"]
    assert min(test["separate"]) > 0.99  # all three symbols, from any start
    assert max(max(p["curve"]) for p in symmetric) < 0.8  # at no time all three
    assert min(max(test["similarity"]), max(test["tied"])) > 0.5  # above averaging
