"""One change at a time: which of today's choices helps a small GPT?

Characters of Python's help topics, windows of 64, 16 windows a step, width 64, two
layers. Each model has the best of three learning rates, chosen on the validation text;
those that were best at the largest of them have two larger ones as well.
One change of chapter 13's GPT at a time, at equal steps; five have RoPE, eight heads,
and fewer heads of keys and values. "two rates" is AdamW with TABLES times the rate for
the tables: the control for Muon, with which the tables have a rate of their own.
"RoPE, …" makes changes once more, where RoPE lets the model use its context, at the
rates around those that were best without it. "longer" has LONGER times the steps: about
the seconds of the dearest model, nanochat with Muon.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F

from course_utils import runtime
from course_utils.data import corpus
from course_utils.data.sequences import consecutive_windows, random_windows
from course_utils.experiments import best_tests
from course_utils.models.choices import LLAMA, NANOCHAT, Choices
from course_utils.models.modern_gpt import ModernGPT
from course_utils.training.loop import lr_at
from course_utils.training.muon import Muon, block_matrices

LENGTH, BASE = 64, Choices()
TABLES = 8  # chosen on the validation text, with seed 0
LONGER = 1.4  # a step of the dearest model takes about so many times as long
ROPE = replace(BASE, positions="rotary")
CHANGES = {
    "RMSNorm": {"norm": "rms"},
    "no biases": {"bias": False},
    "ReLU": {"feed_forward": "relu"},
    "SwiGLU": {"feed_forward": "swiglu"},
    "ReLU squared": {"feed_forward": "relu2"},
    "RoPE": {"positions": "rotary"},
    "QK-norm": {"qk_norm": True},
    "one kv head": {"n_kv_heads": 1},
    "window 16": {"windows": (16,)},
    "untied": {"tied": False},
    "zero start": {"zero_start": True},
    "Muon": {},
    "two rates": {},
}
MODELS = {
    "2017": BASE,  # chapter 13's GPT: LayerNorm, GELU, biases, learned positions, tied
    **{name: replace(BASE, **change) for name, change in CHANGES.items()},
    "Llama": LLAMA,
    "nanochat": NANOCHAT,
    "nanochat, two rates": NANOCHAT,
    "nanochat, Muon": NANOCHAT,
    **{f"{n} of 8 kv": replace(ROPE, n_kv_heads=n) for n in (8, 4, 2, 1)},
    "1 of 8 kv, wider": replace(ROPE, n_kv_heads=1),  # as many parameters as 8 of 8
    **{
        f"RoPE, {name}": replace(ROPE, **CHANGES[name])
        for name in ("RMSNorm", "SwiGLU", "zero start", "Muon", "two rates")
    },
    "RoPE, longer": ROPE,
}
SETTINGS = {"steps": 250, "rates": [3e-3, 6e-3, 1.2e-2], "seeds": [0, 1, 2]}
SETTINGS["models"] = list(MODELS)
SETTINGS |= {"more rates": [2.4e-2, 4.8e-2]}
SETTINGS["more for"] = ["zero start", "Muon", "nanochat", "nanochat, Muon"]
SETTINGS["more for"] += ["nanochat, two rates"]
SETTINGS["on RoPE"] = {"": [3e-3, 6e-3, 1.2e-2], "Muon": [2.4e-2, 4.8e-2]}
SETTINGS["on RoPE"] |= {"zero start": [6e-3, 1.2e-2, 2.4e-2]}
SMOKE = {"steps": 60, "rates": [1.2e-2], "seeds": [0]}
SMOKE["models"] = ["2017", "RMSNorm", "RoPE", "nanochat, Muon"]
SMOKE |= {"more rates": [], "more for": [], "on RoPE": {}}


def rates_of(model, settings):
    if model.startswith("RoPE, "):
        rates = settings["on RoPE"]
        return rates.get(model.removeprefix("RoPE, "), rates[""])
    more = settings["more rates"] if model in settings["more for"] else []
    return settings["rates"] + more


def points(settings):
    def steps(model):
        return round(settings["steps"] * (LONGER if "longer" in model else 1))

    return [
        {"model": model, "lr": lr, "seed": seed, "steps": steps(model)}
        for seed in settings["seeds"]
        for model in settings["models"]
        for lr in rates_of(model, settings)
    ]


def loss_of(model, read, following):
    logits, _ = model(read)
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def bits_on(model, ids):
    with torch.no_grad():
        windows = (part.split(64) for part in consecutive_windows(ids, LENGTH))
        nats = [(loss_of(model, *pair), len(pair[0])) for pair in zip(*windows)]
    total = sum(loss.item() * rows for loss, rows in nats)
    return total / sum(rows for _, rows in nats) / torch.log(torch.tensor(2.0)).item()


def optimisers_of(model, muon):
    """AdamW for everything, or Muon for the blocks' matrices and AdamW for the rest."""
    fused, single = block_matrices(model.blocks) if muon else ([], [])
    taken = {id(p) for p in fused + single}
    rest = [p for p in model.parameters() if id(p) not in taken]
    adam = torch.optim.AdamW(rest, weight_decay=0.0)
    if not muon:
        return [adam]
    return [adam, Muon([{"params": fused, "parts": 3}, {"params": single}])]


def with_two_rates(model):
    """AdamW, in which the tables are faster than the blocks."""
    inside = {id(p) for p in model.blocks.parameters()}
    tables = [p for p in model.parameters() if id(p) not in inside]
    groups = [
        {"params": model.blocks.parameters()},
        {"params": tables, "times": TABLES},
    ]
    return [torch.optim.AdamW(groups, weight_decay=0.0)]


def run(point):
    split = corpus.split_blocks(corpus.pydoc_text(), 0.1, 0.1, seed=0)
    letters = {c: i for i, c in enumerate(sorted(set("".join(split))))}
    ids = [torch.tensor([letters[c] for c in text]) for text in split]
    runtime.seed(point["seed"])
    name = point["model"]
    n_heads = 8 if "of 8" in name else 4
    d_hidden = 256 + 56 if "wider" in name else None
    sizes = {"d_model": 64, "n_heads": n_heads, "n_layers": 2, "d_hidden": d_hidden}
    model = ModernGPT(len(letters), LENGTH, **sizes, choices=MODELS[name])
    optimisers = optimisers_of(model, name.endswith("Muon"))
    if name.endswith("two rates"):
        optimisers = with_two_rates(model)
    generator = torch.Generator().manual_seed(point["seed"])
    steps = point["steps"]
    for step in range(steps):
        loss = loss_of(model, *random_windows(ids[0], LENGTH, 16, generator))
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                rate = point["lr"] * group.get("times", 1)
                group["lr"] = lr_at(step, steps, rate, steps // 10, "cosine")
            optimiser.step()
    return {
        "validation": -bits_on(model, ids[1]),  # to be highest
        "test": bits_on(model, ids[2]),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def check(points):
    best = {m: best_tests(points, model=m) for m in {p["model"] for p in points}}
    old = best["2017"]
    assert max(best["RoPE"]) < min(old) - 0.05  # the one large gain
    if "zero start" in best:  # the smoke run has fewer models, and one seed
        assert abs(sum(best["RMSNorm"]) - sum(old)) / len(old) < 0.05  # no difference
        assert max(best["zero start"]) < min(old)
        assert max(best["nanochat, Muon"]) < min(best["nanochat"]) - 0.1
        assert min(best["nanochat"]) > max(best["RoPE"])
        assert max(best["nanochat, two rates"]) < min(best["nanochat"]) - 0.2
        ours, theirs = best["RoPE, Muon"], best["nanochat, Muon"]
        assert abs(sum(ours) - sum(theirs)) / len(old) < 0.05  # level
        assert max(theirs) < min(best["RoPE, longer"])  # at equal seconds, too
