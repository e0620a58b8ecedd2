"""How many labels does it take? Pre-trained or not, and counting beside them.

Chapter 18: two tasks on the sentences of the grammar, 5 to 500 labels a class.

    from scratch  an encoder that was never trained before: 600 steps; with the most
                  labels also "longer", 2,000 steps
    frozen        a pre-trained encoder, and logistic regression on its states
    fine-tuned    a pre-trained encoder, all of which learns: 150 steps
    LoRA          a pre-trained encoder with adapters of rank 4, only these and the
                  layer on top learn: 150 steps
    TF-IDF        logistic regression on runs of words; `lr` is the longest run and the
                  strength of the penalty's inverse
    blank         no label at all: blank the verb, and ask which of the two fits

Every seed has its own sentences, labels and pre-training. Each contestant chooses among
its rates (or strengths) on 400 sentences that are not reported.
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

STRENGTHS, LONGEST = [1.0, 30.0, 1000.0], [1, 2, 3]
RATES = {
    "from scratch": [5e-4, 1e-3, 2e-3],
    "frozen": STRENGTHS,
    "fine-tuned": [5e-4, 2e-3, 8e-3],
    "LoRA": [3e-3, 1e-2, 3e-2],
    "TF-IDF": [f"{longest} {s:g}" for longest in LONGEST for s in STRENGTHS],
}
SMOKE_RATES = {"from scratch": [1e-3], "frozen": [30.0], "fine-tuned": [2e-3]}
SMOKE_RATES |= {"LoRA": [1e-2], "TF-IDF": ["2 30"]}
SETTINGS = {"labels": [5, 20, 100, 500], "seeds": [0, 1, 2], "pretraining": 1500}
SETTINGS |= {"steps": 150, "scratch": 600, "longer": 2000, "every_rate": True}
SMOKE = {"labels": [20, 500], "seeds": [0], "pretraining": 800}
SMOKE |= {"steps": 200, "scratch": 200, "longer": 300, "every_rate": False}


def points(settings):
    rates = RATES if settings["every_rate"] else SMOKE_RATES
    found = []

    def add(task, method, n, seed, steps, lrs):
        where = {"task": task, "method": method, "labels": n, "seed": seed}
        where |= {"steps": steps, "pretraining": settings["pretraining"]}
        found.extend({**where, "lr": lr} for lr in lrs)

    for seed in settings["seeds"]:
        add("agreement", "blank", 0, seed, 0, [0])
        for task in labels.TASKS:
            for n in settings["labels"]:
                for method, lrs in rates.items():
                    kind = "scratch" if method == "from scratch" else "steps"
                    add(task, method, n, seed, settings[kind], lrs)
        most, lrs = max(settings["labels"]), rates["from scratch"][:2]
        add("agreement", "longer", most, seed, settings["longer"], lrs)
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
    method, examples = point["method"], [few, *parts.values()]
    tokens, truth = zip(*(labels.tensors(p, words) for p in examples if p))
    if method == "TF-IDF":
        longest, strength = map(float, point["lr"].split())
        sentences = [[s for s, _ in part] for part in examples]
        rows = labels.tf_idf_tables(sentences[0], sentences[1:], int(longest))
        scores = regression(rows, truth[0], strength)
    elif method == "frozen":
        body = labels.pretrained(point["seed"], point["pretraining"])
        with torch.no_grad():
            rows = [SentenceClassifier(body, 2).features(t) for t in tokens]
        scores = regression(rows, truth[0], point["lr"])
    elif method == "blank":
        model = labels.pretrained(point["seed"], point["pretraining"])
        scores = [ask_the_blank(model, part, words) for part in parts.values()]
    else:
        model = adapted(point, tokens[0], truth[0], words)
        with torch.no_grad():
            scores = [model(t) for t in tokens[1:]]
    return {
        name: share_right(score.argmax(-1), right)
        for name, score, right in zip(parts, scores, truth[-2:])
    }


def regression(rows, truth, strength):
    train_rows, *others = rows
    weight, bias = labels.logistic_regression(train_rows, truth, strength)
    return [other @ weight + bias for other in others]


def ask_the_blank(model, examples, words):
    tokens, _ = labels.tensors(examples, words)
    shown = (tokens == words.ids["was"]) | (tokens == words.ids["were"])
    blanked = tokens.masked_fill(shown, words.ids[labels.MASK])
    with torch.no_grad():
        logits = model(blanked)[0][shown]  # (sentence, n_tokens)
    shown_logit = logits.gather(1, tokens[shown][:, None])[:, 0]
    both = logits[:, [words.ids["was"], words.ids["were"]]].sum(dim=1)
    return torch.stack([both - shown_logit, shown_logit], dim=1)  # wrong, right


def adapted(point, tokens, truth, words):
    method, seed = point["method"], point["seed"]
    runtime.seed(seed)
    if method in ("from scratch", "longer"):
        body = BERT(len(words), labels.LONGEST + 2, d_model=64)
    else:
        body = deepcopy(labels.pretrained(seed, point["pretraining"]))
        runtime.seed(seed)
    model = SentenceClassifier(body, 2)
    if method == "LoRA":
        body.requires_grad_(False)
        add_lora(body.blocks, rank=4)

    def loss(model, inputs, truth):
        return F.cross_entropy(model(inputs), truth)

    batch = minibatches(tokens, truth, batch_size=min(32, len(truth)), seed=seed)
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed}
    train(model, batch, loss, device="cpu", progress=False, **how)
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
    longer = mean("longer", "agreement", many)
    assert mean("fine-tuned", "agreement", many) > longer + 0.05
    # words: with enough labels counting has caught up, and the frozen encoder has not
    assert mean("TF-IDF", "animals", many) > mean("fine-tuned", "animals", many) - 0.03
    assert mean("TF-IDF", "animals", many) > mean("frozen", "animals", many) + 0.01
    assert mean("TF-IDF", "agreement", many) > mean("frozen", "agreement", many) + 0.03
