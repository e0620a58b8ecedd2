"""What does it take to beat counting? A network that is told what the counts think.

Characters of Python's help topics. Two counting models are given: Kneser-Ney, and
Kneser-Ney with a cache of the last 2,100 characters. A small network adds its own
logits and weighs the two, at every character t from its state h_t:

    log p = log_softmax(h_t W + a_1(h_t) log p_1 + a_2(h_t) log p_2)

Each contestant lacks one part of the first:

    all            attention, own logits, weights by state, both counting models
    last eight     sees the last eight characters in place of attention
    one character  sees the newest character only
    fixed weights  a_1 and a_2 are two learned numbers, the same everywhere
    only weights   no logits of its own: it only decides whom to trust
    no cache       Kneser-Ney alone is given
    no counts      the network alone
"""

import functools

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import runtime
from course_utils.data.sequences import consecutive_windows
from course_utils.experiments import best_tests
from course_utils.models.blocks import EncoderBlock
from course_utils.models.positions import rotate, rotations
from course_utils.tasks import counting
from course_utils.training.loop import train

MODELS = ("all", "last eight", "one character", "fixed weights", "only weights")
MODELS += ("no cache", "no counts")
SETTINGS = {"rates": [2e-3, 5e-3, 1.2e-2], "seeds": [0, 1], "steps": 300}
SETTINGS |= {"order": 12, "share": 1.0}
SMOKE = {"rates": [5e-3], "seeds": [0], "steps": 100, "order": 6, "share": 0.3}
LENGTH = 64


def points(settings):
    sizes = {name: settings[name] for name in ("steps", "order", "share")}
    return [
        {"model": model, "lr": lr, "seed": seed, **sizes}
        for model in MODELS
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class Weigher(nn.Module):
    def __init__(self, model, n_tokens, d_model=64):
        super().__init__()
        self.model = model
        self.embedding = nn.Embedding(n_tokens, d_model)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.last = nn.Linear(8 * d_model, d_model)
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, 2, 4 * d_model, activation="gelu") for _ in range(2)
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_tokens)
        self.by_state = nn.Linear(d_model, 2)  # starts as the second expert alone
        for layer in (self.head, self.by_state):
            if model != "no counts":
                nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.start = torch.tensor([1.0, 0.0] if model == "no cache" else [0.0, 1.0])

    def read(self, tokens):
        x, n = self.embedding(tokens), tokens.shape[1]
        if self.model == "last eight":
            padded = F.pad(x, (0, 0, 7, 0))
            x = self.last(torch.cat([padded[:, i : i + n] for i in range(8)], dim=-1))
        turned = rotations(torch.arange(n), x.shape[-1] // 2)
        turn = functools.partial(rotate, rotation=turned)
        alone = torch.eye(n, dtype=torch.bool)  # a token may attend to itself only
        for block in self.blocks:
            if self.model in ("last eight", "one character"):
                x, _ = block(x, mask=alone)
            else:
                x, _ = block(x, causal=True, rotate=turn)
        return self.norm(x)

    def forward(self, tokens, experts):
        h = self.read(tokens)
        own = 0.0 if self.model == "only weights" else self.head(h)
        if self.model == "no counts":
            return own
        by_state = self.by_state(h)
        if self.model == "fixed weights":
            by_state = self.by_state.bias
        trust = (self.start + by_state).expand(*tokens.shape, 2)
        if self.model == "no cache":
            trust = trust * torch.tensor([1.0, 0.0])
        return own + (trust[..., None, :] @ experts)[..., 0, :]


def part_of(counted, name):
    ids, log_p = counted[name]
    return torch.from_numpy(ids), torch.from_numpy(log_p).transpose(0, 1)


def bits_on(model, ids, experts):
    starts = torch.arange((len(ids) - 1) // LENGTH) * LENGTH
    at = starts[:, None] + torch.arange(LENGTH)
    total = 0.0
    with torch.no_grad():
        for rows in at.split(50):
            logits = model(ids[rows], experts[rows])
            wanted = consecutive_windows(ids, LENGTH)[1][rows[:, 0] // LENGTH]
            total += F.cross_entropy(
                logits.flatten(0, 1), wanted.flatten(), reduction="sum"
            ).item()
    return total / at.numel() / torch.log(torch.tensor(2.0)).item()


def run(point):
    counted = counting.counted_pydoc(point["order"], point["share"])
    runtime.seed(point["seed"])
    model = Weigher(point["model"], counted["n_tokens"])
    ids, experts = part_of(counted, "train")

    def batch(step, generator):
        at = torch.randint(len(ids) - LENGTH, (16, 1), generator=generator)
        at = at + torch.arange(LENGTH)
        return ids[at], experts[at], ids[at + 1]

    def loss(model, tokens, experts, following):
        logits = model(tokens, experts)
        return F.cross_entropy(logits.flatten(0, 1), following.flatten())

    how = {"steps": point["steps"], "lr": point["lr"], "seed": point["seed"]}
    train(model, batch, loss, device="cpu", progress=False, **how)
    text, log_p = counted["test"]
    return {
        "validation": -bits_on(model, *part_of(counted, "validation")),  # to be highest
        "test": bits_on(model, *part_of(counted, "test")),
        "kneser_ney": counting.bits(text, log_p[0]),
        "with_cache": counting.bits(text, log_p[1]),
    }


def check(points):
    best = {m: best_tests(points, model=m) for m in {p["model"] for p in points}}
    counted = points[0]["with_cache"]
    assert counted < points[0]["kneser_ney"] - 0.05  # the cache helps counting
    assert max(best["all"] + best["only weights"]) < counted - 0.01  # so does weighing
    assert min(best["fixed weights"]) > max(best["all"]) + 0.01
    assert min(best["fixed weights"]) > max(best["last eight"]) + 0.01
    assert min(best["no cache"]) > max(best["all"]) + 0.05
    assert min(best["no counts"]) > points[0]["kneser_ney"]
