"""Does the GPT of chapter 13 use what it has read before, on random tokens and text?

The model of chapter 13's page (byte pairs of Python's help topics, windows of 64
tokens, two layers of four heads, width 64) is trained for 700 steps as there, and for
2000, with learned and with rotary positions. Then it reads 32 tokens twice. In the
control the first 32 tokens are others: the same tokens, at the same positions, without
a copy to find.

    random  32 different tokens out of all 512
    text    32 tokens of the test text
"""

import torch
import torch.nn.functional as F

from course_utils import runtime
from course_utils.data import corpus
from course_utils.data.bpe import BytePairEncoder
from course_utils.data.sequences import consecutive_windows, random_windows
from course_utils.evaluation import circuits
from course_utils.models.transformer import GPT
from course_utils.tasks.repeats import repeated, second_copy
from course_utils.training.loop import train

LENGTH = 64
SETTINGS = {"runs": [["learned", 700], ["learned", 2000], ["rotary", 2000]]}
SETTINGS |= {"seeds": [0, 1, 2], "lr": 6e-3}
SMOKE = {"runs": [["learned", 60]], "seeds": [0], "lr": 6e-3}


def points(settings):
    return [
        {"positions": positions, "steps": steps, "lr": settings["lr"], "seed": seed}
        for positions, steps in settings["runs"]
        for seed in settings["seeds"]
    ]


def loss(model, read, following):
    logits, _ = model(read)
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


@torch.no_grad()
def on_copy(model, tokens):
    """The loss on the second half, in nats a token."""
    return F.cross_entropy(*second_copy(model(tokens)[0], tokens)).item()


@torch.no_grad()
def copies(model, once, other):
    """The loss on a second copy, with other tokens in place of the first, and by head.

    The last numbers are for the best induction head: the loss without it, and the mean
    loss without one of the other heads.
    """
    twice = torch.cat([once, once], dim=1)
    weights = model(twice, need_weights=True)[1]
    prefix = circuits.prefix_matching(weights, twice)
    means = circuits.head_contexts(model, twice).mean(dim=(1, 3))
    without = torch.zeros(prefix.shape)
    for layer, head in torch.cartesian_prod(*map(torch.arange, prefix.shape)).tolist():
        with circuits.edit_heads(model, {(layer, head): means[layer, head]}):
            without[layer, head] = on_copy(model, twice)
    return {
        "copy": on_copy(model, twice),
        "control": on_copy(model, torch.cat([other, once], dim=1)),
        "prefix": prefix.tolist(),
        "previous": circuits.previous_token(weights).tolist(),
        "without": without.tolist(),
    }


def run(point):
    split = corpus.split_blocks(corpus.pydoc_text(), 0.1, 0.1, seed=0)
    encoder = BytePairEncoder.train(split.train, n_pieces=512)
    ids, held_out = (
        torch.tensor(encoder.encode(text)) for text in (split.train, split.test)
    )
    runtime.seed(point["seed"])
    model = GPT(512, LENGTH, d_model=64, positions=point["positions"])
    how = {"steps": point["steps"], "lr": point["lr"], "seed": point["seed"]}
    train(
        model,
        lambda _, generator: random_windows(ids, LENGTH, 16, generator),
        loss,
        device="cpu",
        progress=False,
        **how,
    )
    generator = torch.Generator().manual_seed(3000 + point["seed"])
    once, other = (repeated(200, generator, 32, 512)[:, :32] for _ in range(2))
    random = copies(model, once, other)
    windows = consecutive_windows(held_out, 32)[0]
    windows = windows[torch.randperm(len(windows), generator=generator)[:200]]
    half = len(windows) // 2 * 2
    text = copies(model, windows[:half], windows[:half].flip(0))
    with torch.no_grad():
        reads, follow = consecutive_windows(held_out, LENGTH)
        nats = loss(model, reads, follow).item()
    result = {"test": nats}
    for name, found in (("random", random), ("text", text)):
        result |= {f"{name}_{key}": value for key, value in found.items()}
    return result


def check(points):
    for p in points:
        for kind in ("random", "text"):
            gain = p[f"{kind}_control"] - p[f"{kind}_copy"]
            assert gain < 0.2
            assert max(map(max, p[f"{kind}_prefix"])) < 0.1
