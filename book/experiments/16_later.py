"""What nanochat added later: four parts, one at a time, and all at once.

The text, sizes and steps of `16_changes`, on nanochat's choices with Muon: what the
parts add is measured where they are used. Each model has the best of three rates,
chosen on the validation text with the first seed; the others have that one alone.

    mixed    before each block the stream is scaled, and gets the first one once more
    values   in every second layer, the last among them, the values get a row of a table
             of its own, through a gate
    smear    each token gets a share of the one before, through a gate
    backout  a share of the stream after the first half of the layers is taken back

The learned numbers start as in nanochat, the tables with its standard deviation, the
gates' weights at zero (there near it); AdamW moves all at the rate of the other tables.
"""

import runpy
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import course_utils
from course_utils import runtime
from course_utils.data import corpus
from course_utils.data.sequences import random_windows
from course_utils.experiments import best_tests
from course_utils.models.choices import NANOCHAT
from course_utils.models.modern_gpt import ModernGPT
from course_utils.training.loop import lr_at

PARTS = ("mixed", "values", "smear", "backout")
N_SMEAR, N_GATE = 24, 12  # so many features of a token open the gates, as there
MODELS = {"none": (), **{part: (part,) for part in PARTS}, "all four": PARTS}
SETTINGS = {"steps": 250, "rates": [2.4e-2, 4.8e-2, 9.6e-2], "seeds": [0, 1, 2]}
SETTINGS |= {"models": list(MODELS)}
SETTINGS["chosen"] = {model: [4.8e-2] for model in MODELS} | {"all four": [9.6e-2]}
SMOKE = {"steps": 60, "rates": [2.4e-2], "seeds": [0], "models": ["none", "all four"]}
SMOKE |= {"chosen": {}}


class LaterGPT(ModernGPT):
    """nanochat's GPT, with what was added to it after its first version."""

    def __init__(self, n_tokens, max_length, d_model, n_heads, n_layers, parts=()):
        super().__init__(
            n_tokens, max_length, d_model, n_heads, n_layers, choices=NANOCHAT
        )
        self.parts = parts
        if "mixed" in parts:
            self.keep = nn.Parameter(torch.linspace(1.15, 1.05, n_layers))
            self.again = nn.Parameter(torch.linspace(0.2, 0.05, n_layers))
        if "values" in parts:
            some = [str(layer) for layer in range(n_layers - 1, -1, -2)]
            table = torch.empty(n_tokens, d_model)
            self.values = nn.ParameterDict(
                {layer: table.normal_(std=d_model**-0.5).clone() for layer in some}
            )
            self.open = nn.ParameterDict(
                {layer: torch.zeros(n_heads, N_GATE) for layer in some}
            )
        if "smear" in parts:
            self.smear = nn.Parameter(torch.zeros(N_SMEAR))
            self.share = nn.Parameter(torch.zeros(1))
        if "backout" in parts:
            self.back = nn.Parameter(torch.full((1,), 0.2))

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = F.rms_norm(x, x.shape[-1:])
        if "smear" in self.parts:
            gate = (
                self.share * torch.sigmoid(x[:, 1:, :N_SMEAR] @ self.smear)[..., None]
            )
            x = torch.cat([x[:, :1], x[:, 1:] + gate * x[:, :-1]], dim=1)
        first, half = x, None
        where = torch.arange(tokens.shape[1])[None]
        _, turn = self.place(x, where)
        for layer, block in enumerate(self.blocks):
            if "mixed" in self.parts:
                x = self.keep[layer] * x + self.again[layer] * first
            x = self.through(block, str(layer), x, tokens, turn)
            if layer == len(self.blocks) // 2 - 1:
                half = x
        if "backout" in self.parts:
            x = x - self.back * half
        return self.logits(self.norm(x)), None

    def through(self, block, layer, x, tokens, turn):
        """One block; its values get their rows on the way out of `qkv`."""
        if "values" not in self.parts or layer not in self.values:
            return block(x, causal=True, rotate=turn)[0]
        normed = block.around_attention.before(x)
        gate = 3 * torch.sigmoid(normed[..., :N_GATE] @ self.open[layer].T)
        row = self.values[layer][tokens].unflatten(-1, (self.n_heads, -1))
        more = (gate[..., None] * row).flatten(-2)  # (batch, token, d_model)

        def add(_, __, qkv):
            return qkv + F.pad(more, (2 * more.shape[-1], 0))

        hook = block.attention.qkv.register_forward_hook(add)
        try:
            return block(x, causal=True, rotate=turn)[0]
        finally:
            hook.remove()


def points(settings):
    first, *others = settings["seeds"]
    return [
        {"model": model, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for seed in (first, *others)
        for model in settings["models"]
        for lr in (settings["rates"] if seed == first else settings["chosen"][model])
    ]


def run(point):
    root = Path(course_utils.__file__).parents[1]
    before = runpy.run_path(str(root / "book" / "experiments" / "16_changes.py"))
    loss_of, bits_on = before["loss_of"], before["bits_on"]
    split = corpus.split_blocks(corpus.pydoc_text(), 0.1, 0.1, seed=0)
    letters = {c: i for i, c in enumerate(sorted(set("".join(split))))}
    ids = [torch.tensor([letters[c] for c in text]) for text in split]
    runtime.seed(point["seed"])
    model = LaterGPT(len(letters), 64, 64, 4, 2, MODELS[point["model"]])
    optimisers = before["optimisers_of"](model, True)
    generator = torch.Generator().manual_seed(point["seed"])
    steps = point["steps"]
    for step in range(steps):
        loss = loss_of(model, *random_windows(ids[0], 64, 16, generator))
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = lr_at(step, steps, point["lr"], steps // 10, "cosine")
            optimiser.step()
    return {
        "validation": -bits_on(model, ids[1]),  # to be highest
        "test": bits_on(model, ids[2]),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def check(points):
    best = {m: best_tests(points, model=m) for m in {p["model"] for p in points}}
    assert max(best["all four"]) < min(best["none"])  # together they help
