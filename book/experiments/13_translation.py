"""Does a decoder alone translate as well as encoder and decoder? Does a prefix help?

The translation task of chapters 02, 03 and 12: the same sentences and steps for all.

    encoder and decoder  the transformer of chapter 12
    decoder alone        source and target in one sequence, causal mask
    prefix mask          the same, but inside the source every word sees every other
"""

from functools import partial

import torch
from torch import nn

from course_utils import runtime
from course_utils.evaluation import metrics
from course_utils.experiments import best_tests
from course_utils.models.positions import rotate, rotations
from course_utils.models.transformer import GPT, Transformer, empty_caches
from course_utils.tasks import translation
from course_utils.training.loop import train

MODELS = ("encoder and decoder", "decoder alone", "prefix mask")
SETTINGS = {"rates": [3e-3, 6e-3, 1.2e-2], "seeds": [0, 1], "budgets": [120, 300]}
SMOKE = {"rates": [1e-2], "seeds": [0], "budgets": [120]}
SHORTEST, LONGEST = 7, 16  # tokens of the source; none is longer in training


def points(settings):
    return [
        {"model": model, "lr": lr, "seed": seed, "steps": steps}
        for steps in settings["budgets"]
        for model in MODELS
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class Joined(nn.Module):
    def __init__(self, n_source, n_target, prefix, d_model=96):
        super().__init__()
        self.first, self.prefix = n_source, prefix  # French ids begin at `first`
        self.gpt = GPT(
            n_source + n_target, 96, d_model, d_hidden=2 * d_model, positions="rotary"
        )

    def mask(self, n_source, n_tokens):
        mask = torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()
        mask[:n_source, :n_source] |= self.prefix
        return mask

    def read(self, tokens, mask, caches=None):
        gpt, begin = self.gpt, caches[0].length if caches else 0
        x = gpt.embedding(tokens)
        where = torch.arange(begin, begin + tokens.shape[1])
        turn = partial(rotate, rotation=rotations(where, x.shape[-1] // gpt.n_heads))
        for i, block in enumerate(gpt.blocks):
            x, _ = block(x, mask, rotate=turn, cache=caches[i] if caches else None)
        return gpt.head(gpt.norm(x))

    def forward(self, source, target_in):
        shifted = torch.where(target_in == 0, 0, target_in + self.first)
        tokens = torch.cat([source, shifted], dim=1)
        logits = self.read(tokens, self.mask(source.shape[1], tokens.shape[1]))
        return logits[:, source.shape[1] :, self.first :], None

    def start(self, source):
        gpt, n = self.gpt, source.shape[1]
        sizes = len(gpt.blocks), len(source), gpt.n_heads, gpt.max_length
        caches = empty_caches(*sizes, gpt.embedding.weight)
        self.read(source, self.mask(n, n), caches)
        return caches

    def step(self, token, caches):
        logits = self.read(token[:, None] + self.first, None, caches)
        return logits[:, -1, self.first :], caches, None


def bleu(model, pairs, task):
    said, wanted = [], []
    for n in range(SHORTEST, LONGEST + 1):  # sources of one length need no padding
        some = [pair for pair in pairs if len(pair.source) == n]
        said += translation.translate(model, some, task)
        wanted += [pair.target for pair in some]
    return metrics.bleu(said, wanted) / 100


def run(point):
    seed = point["seed"]
    task = translation.translation_task(seed)
    runtime.seed(seed)
    if point["model"] == "encoder and decoder":
        model = Transformer(*task.sizes)
    else:
        model = Joined(*task.sizes, prefix=point["model"] == "prefix mask")
    vocabularies = task.source_vocabulary, task.target_vocabulary
    batch = translation.translation_batches(task.train, *vocabularies, 64, seed)
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}
    train(model, batch, translation.translation_loss, progress=False, **how)
    return {
        "validation": bleu(model, task.test[::2], task),
        "test": bleu(model, task.test[1::2], task),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def check(points):
    for steps in {p["steps"] for p in points}:
        both, alone, prefix = (
            best_tests(points, model=m, steps=steps)
            for m in ("encoder and decoder", "decoder alone", "prefix mask")
        )
        if steps < 200:
            assert min(alone) > max(both) + 0.02
        else:
            assert min(both) > max(alone) + 0.02
        assert sum(prefix) < sum(alone) + 0.03  # to lift the mask brings nothing
