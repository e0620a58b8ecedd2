"""How many labels does it take? Pre-trained or not, and counting beside them.

Chapter 18: two tasks on the sentences of the grammar, 5 to 500 labels a class.

    from scratch  an encoder that was never trained before
    frozen        a pre-trained encoder, and only the layer on top learns
    fine-tuned    a pre-trained encoder, all of which learns
    LoRA          a pre-trained encoder with adapters of rank 4, and only these learn
    TF-IDF        logistic regression on runs of words; `lr` is the strength of the
                  penalty's inverse, `longest` the longest run
    blank         no label at all: blank the verb, and ask which of the two fits

Every seed has its own sentences, labels and pre-training. Each contestant chooses among
its rates on 400 sentences that are not reported.
"""

from copy import deepcopy

import torch
import torch.nn.functional as F

from course_utils import experiments, runtime
from course_utils.data.batches import minibatches
from course_utils.models.bert import BERT, SentenceClassifier
from course_utils.models.lora import add_lora
from course_utils.tasks import labels
from course_utils.training.loop import train

RATES = {
    "from scratch": [3e-4, 1e-3, 3e-3],
    "frozen": [1e-2, 3e-2, 1e-1],
    "fine-tuned": [3e-4, 1e-3, 3e-3],
    "LoRA": [3e-3, 1e-2, 3e-2],
}
SMOKE_RATES = {"from scratch": [1e-3], "frozen": [3e-2]}
SMOKE_RATES |= {"fine-tuned": [2e-3], "LoRA": [1e-2]}
STRENGTHS, LONGEST = [1.0, 10.0, 100.0, 1000.0], [1, 2, 3]
SETTINGS = {"labels": [5, 20, 100, 500], "seeds": [0, 1, 2]}
SETTINGS |= {"pretraining": 1500, "steps": 150, "every_rate": True}
SMOKE = {"labels": [20, 500], "seeds": [0], "pretraining": 800, "steps": 200}
SMOKE |= {"every_rate": False}


def points(settings):
    found = []
    how = {key: settings[key] for key in ("pretraining", "steps")}
    for seed in settings["seeds"]:
        one = {"seed": seed, **how}
        found.append(
            {"task": "agreement", "method": "blank", "labels": 0, "lr": 0, **one}
        )
        for task in labels.TASKS:
            for n in settings["labels"]:
                here = {"task": task, "labels": n, **one}
                for method, rates in RATES.items():
                    rates = rates if settings["every_rate"] else SMOKE_RATES[method]
                    found += [{"method": method, "lr": lr, **here} for lr in rates]
                found += [
                    {"method": "TF-IDF", "lr": f"{longest} {strength:g}", **here}
                    for longest in (LONGEST if settings["every_rate"] else [2])
                    for strength in (STRENGTHS if settings["every_rate"] else [10.0])
                ]
    return found


def share_right(predicted, truth):
    return round((predicted == truth).float().mean().item(), 4)


def run(point):
    words, task = (
        labels.vocabulary(),
        labels.labelled_task(point["task"], point["seed"]),
    )
    few = task.few(point["labels"], point["seed"])
    parts = {"validation": task.validation, "test": task.test}
    if point["method"] == "TF-IDF":
        longest, strength = map(float, point["lr"].split())
        sentences = [[s for s, _ in part] for part in (few, *parts.values())]
        x, *tables = labels.tf_idf(sentences[0], sentences[1:], int(longest))
        truth = torch.tensor([label for _, label in few])
        weight, bias = labels.logistic_regression(x, truth, strength)
        scores = dict(zip(parts, (table @ weight + bias for table in tables)))
    elif point["method"] == "blank":
        model = labels.pretrained(point["seed"], point["pretraining"])
        scores = {k: ask_the_blank(model, part, words) for k, part in parts.items()}
    else:
        model = adapted(point, few, words)
        with torch.no_grad():
            scores = {k: model(labels.tensors(p, words)[0]) for k, p in parts.items()}
    return {
        name: share_right(scores[name].argmax(-1), labels.tensors(part, words)[1])
        for name, part in parts.items()
    }


def ask_the_blank(model, examples, words):
    tokens, _ = labels.tensors(examples, words)
    shown = (tokens == words.ids["was"]) | (tokens == words.ids["were"])
    blanked = tokens.masked_fill(shown, words.ids[labels.MASK])
    with torch.no_grad():
        logits = model(blanked)[0][shown]  # (sentence, n_tokens)
    shown_logit = logits.gather(1, tokens[shown][:, None])[:, 0]
    both = logits[:, [words.ids["was"], words.ids["were"]]].sum(dim=1)
    return torch.stack([both - shown_logit, shown_logit], dim=1)  # wrong, right


def adapted(point, few, words):
    method, seed = point["method"], point["seed"]
    body = deepcopy(labels.pretrained(seed, point["pretraining"]))
    runtime.seed(seed)
    if method == "from scratch":
        body = BERT(len(words), labels.LONGEST + 2, d_model=64)
    model = SentenceClassifier(body, 2)
    if method in ("frozen", "LoRA"):
        body.requires_grad_(False)
    if method == "LoRA":
        add_lora(body.blocks, rank=4)

    def loss(model, inputs, truth):
        return F.cross_entropy(model(inputs), truth)

    tokens, truth = labels.tensors(few, words)
    if method == "frozen":  # its features never change: compute them once
        with torch.no_grad():
            tokens = model.features(tokens)
    batch = minibatches(tokens, truth, batch_size=min(32, len(truth)), seed=seed)
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed}
    learns = model.head if method == "frozen" else model
    train(learns, batch, loss, device="cpu", progress=False, **how)
    return model


def check(points):
    def mean(method, task, n):
        found = experiments.best_tests(points, method=method, task=task, labels=n)
        return sum(found) / len(found)

    few, many = (f(p["labels"] for p in points if p["labels"] > 5) for f in (min, max))
    # structure: no label but a good question beats few labels, and counting is behind
    assert mean("blank", "agreement", 0) > mean("fine-tuned", "agreement", few) + 0.1
    for method in ("fine-tuned", "LoRA"):
        counted = mean("TF-IDF", "agreement", many)
        assert mean(method, "agreement", many) > counted + 0.05
        assert mean(method, "animals", few) > mean("TF-IDF", "animals", few) + 0.05
    # words: with enough labels counting has caught up, and the frozen encoder has not
    assert mean("TF-IDF", "animals", many) > mean("fine-tuned", "animals", many) - 0.03
    assert mean("TF-IDF", "animals", many) > mean("frozen", "animals", many) + 0.01
    assert mean("TF-IDF", "agreement", many) > mean("frozen", "agreement", many) + 0.03
