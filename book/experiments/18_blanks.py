"""Filling a blank: both sides against one, at the same size and budget.

Chapter 18: BERT and GPT have the same parameters and learn from the same sentences for
as many steps. One word of a held-out sentence is blanked.

    both sides      BERT reads the sentence with the blank in it
    left side       GPT reads what comes before the blank
    every sentence  GPT gives a probability to the sentence with each word in turn
"""

import torch
import torch.nn.functional as F

from course_utils import experiments, runtime
from course_utils.data.corpus import EOS, PAD
from course_utils.models.bert import BERT, mask_tokens, masked_loss
from course_utils.models.transformer import GPT
from course_utils.tasks import labels
from course_utils.training.loop import train

WAYS = ("both sides", "left side", "every sentence")
SETTINGS = {"rates": [1.5e-3, 3e-3, 6e-3], "seeds": [0, 1, 2], "budgets": [200, 1000]}
SMOKE = {"rates": [3e-3], "seeds": [0], "budgets": [400]}


def points(settings):
    return [
        {"model": model, "lr": lr, "seed": seed, "steps": steps}
        for steps in settings["budgets"]
        for model in ("BERT", "GPT")
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


def next_token_loss(model, tokens):
    logits, _ = model(tokens[:, :-1])
    targets = tokens[:, 1:].flatten()
    return F.cross_entropy(logits.flatten(0, 1), targets, ignore_index=PAD)


def run(point):
    words, seed = labels.vocabulary(), point["seed"]
    task = labels.labelled_task("animals", seed)
    text = labels.encode(task.text, words)
    is_bert = point["model"] == "BERT"
    runtime.seed(seed)
    model = (BERT if is_bert else GPT)(len(words), labels.LONGEST + 2, d_model=64)

    def batch(step, generator):
        rows = torch.randint(len(text), (64,), generator=generator)
        if not is_bert:
            return (text[rows],)
        return mask_tokens(text[rows], words.ids[labels.MASK], len(words), generator)

    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed}
    loss = masked_loss if is_bert else next_token_loss
    train(model, batch, loss, device="cpu", progress=False, **how)
    found = {}
    for part in ("validation", "test"):
        tokens = labels.encode([s for s, _ in getattr(task, part)][:200], words)
        where = blanks(tokens, seed)
        ways = {"both sides": both_sides} if is_bert else {"left side": left_side}
        ways |= {} if is_bert else {"every sentence": every_sentence}
        for way, fill in ways.items():
            with torch.no_grad():
                right = fill(model, tokens, where, words) == tokens[rows_at(where)]
            key = part if way != "every sentence" else f"{part}, {way}"
            found[key] = round(right.float().mean().item(), 4)
    return found


def blanks(tokens, seed):
    """One position a sentence: a word or a stop, neither begin nor end."""
    generator = torch.Generator().manual_seed(seed)
    chances = torch.rand(tokens.shape, generator=generator)
    return chances.masked_fill(tokens <= EOS, 0).argmax(dim=1)


def rows_at(where):
    return torch.arange(len(where)), where


def both_sides(model, tokens, where, words):
    blanked = tokens.clone()
    blanked[rows_at(where)] = words.ids[labels.MASK]
    return model(blanked)[0][rows_at(where)].argmax(dim=-1)


def left_side(model, tokens, where, words):
    rows, _ = rows_at(where)
    return model(tokens[:, :-1])[0][rows, where - 1].argmax(dim=-1)


def every_sentence(model, tokens, where, words):
    found = []
    for sentence, i in zip(tokens, where):
        tried = sentence.repeat(len(words), 1)  # (word, token)
        tried[:, i] = torch.arange(len(words))
        logits, _ = model(tried[:, :-1])
        nats = F.cross_entropy(
            logits.mT, tried[:, 1:], ignore_index=PAD, reduction="none"
        )
        found.append(nats.sum(dim=1)[EOS + 1 :].argmin() + EOS + 1)
    return torch.stack(found)


def check(points):
    for steps in {p["steps"] for p in points}:
        of = {
            m: [p for p in points if p["model"] == m and p["steps"] == steps]
            for m in ("BERT", "GPT")
        }
        bert, gpt = (experiments.at_best_rate(runs) for runs in of.values())
        left = [p["test"] for p in gpt]
        every = [p["test, every sentence"] for p in gpt]
        assert min(every) > max(left) + 0.05  # the right side helps GPT, too
        if steps < 300:  # BERT learns from fewer tokens a step, and is late
            assert sum(p["test"] for p in bert) < sum(left)
        else:
            assert min(p["test"] for p in bert) > max(left) + 0.03
