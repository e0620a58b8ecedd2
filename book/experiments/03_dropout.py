"""Whose attention weights can be moved without changing the answer?

Two tasks of chapter 03: a reader that takes one average of its states to answer by a
keyword, and a translator that takes an average for every word. Both with a bi-GRU, and
each trained with and without dropout of one half on its attention weights; a reader
whose states are the bare words is the control.

After training, all the weight is moved to one position, and to each in turn. Is the
answer still the same? The shares are sorted by the weight that the position had. For
comparison, all the weight is given to a state of *another* sentence ("foreign").
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import runtime
from course_utils.data.sequences import translation_batch
from course_utils.evaluation.metrics import (
    alignment_accuracy,
    bleu,
    strongest_links,
)
from course_utils.models.rnn import Seq2SeqAttention
from course_utils.tasks import synthetic
from course_utils.tasks.translation import (
    WITH_ATTENTION,
    Settings,
    train_translator,
    translate,
    translation_task,
)
from course_utils.training.loop import train

BANDS = [0.0, 0.02, 0.05, 0.1, 0.3, 1.01]  # of the weight that a position had
BLANK = 80  # the erased word of a reader
SETTINGS = {
    "seeds": [0, 1, 2, 3, 4],
    "translator_seeds": [0, 1, 2],
    "reader_steps": 350,
    "steps": WITH_ATTENTION.steps,
    "longest": 16,
    "n_train": 12_000,
}
SMOKE = {
    "seeds": [0],
    "translator_seeds": [0],
    "reader_steps": 350,
    "steps": 220,
    "longest": 8,
    "n_train": 3000,
}


def points(settings):
    readers = [("bare words", 0.0), ("reader", 0.0), ("reader", 0.5)]
    runs = [
        {"model": model, "dropout": dropout, "steps": settings["reader_steps"]}
        | {"seed": seed}
        for model, dropout in readers
        for seed in settings["seeds"]
    ]
    sizes = {key: settings[key] for key in ("steps", "longest", "n_train")}
    return runs + [
        {"model": "translator", "dropout": dropout, **sizes, "seed": seed}
        for dropout in (0.0, 0.5)
        for seed in settings["translator_seeds"]
    ]


def run(point):
    if point["model"] == "translator":
        return run_translator(point)
    return run_reader(point)


def by_band(weights, kept):
    """The share of answers kept in every band of weight, and how many there were."""
    bands = list(pairwise(BANDS))
    inside = [(weights >= low) & (weights < high) for low, high in bands]
    counts = [int(mask.sum()) for mask in inside]
    shares = [kept[mask].float().sum().item() / max(1, mask.sum()) for mask in inside]
    return {"kept": [round(float(s), 4) for s in shares], "count": counts}


# ---------------------------------------------------------------------------- readers


class Reader(nn.Module):
    def __init__(self, recurrent, dropout, d=16):
        super().__init__()
        self.embedding = nn.Embedding(81, d)  # 60 fillers, 20 keywords, 1 erased word
        self.gru = nn.GRU(d, d, batch_first=True, bidirectional=True)
        self.recurrent, width = recurrent, 2 * d if recurrent else d
        self.hidden, self.v = nn.Linear(width, 32), nn.Linear(32, 1, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, 4)

    def states(self, x):
        return self.gru(x)[0] if self.recurrent else x

    def forward(self, x):
        states = self.states(x)
        scores = self.v(torch.tanh(self.hidden(states))).squeeze(-1)
        weights = torch.softmax(scores, dim=-1)
        context = (self.dropout(weights)[:, None] @ states).squeeze(1)
        return self.output(context), weights


def run_reader(point):
    def draw(n, generator):
        return synthetic.keyword_sentences(n, generator, n_words=12, n_fillers=60)

    def batch(step, own):
        words, answers, _ = draw(64, own)
        blank = (torch.rand(words.shape, generator=own) < 0.05) & (words < 60)
        return words.masked_fill(blank, BLANK), answers

    def loss(reader, words, answers):
        return F.cross_entropy(reader(reader.embedding(words))[0], answers)

    runtime.seed(point["seed"])
    reader = Reader(point["model"] == "reader", point["dropout"])
    how = {"steps": point["steps"], "lr": 1e-2, "seed": point["seed"], "device": "cpu"}
    train(reader, batch, loss, progress=False, **how)
    words, answers, keyword = draw(1000, runtime.seed(100 + point["seed"]))
    with torch.no_grad():
        x = reader.embedding(words)
        logits, weights = reader(x)
        said, alone = logits.argmax(dim=-1), reader.output(reader.states(x))
        same = alone.argmax(dim=-1) == said[:, None]  # (sentence, position)
        foreign = alone.roll(1, 0).argmax(dim=-1) == said[:, None]
        moves = []
        for j in range(12):
            erased = x.clone()
            erased[:, j] = reader.embedding.weight[BLANK]
            change = reader(erased)[0].softmax(-1) - logits.softmax(-1)
            moves.append(change.abs().sum(dim=-1) / 2)
    looked, moved = weights.argmax(dim=-1), torch.stack(moves, dim=-1).argmax(dim=-1)
    return {
        "right": share(said == answers),
        "plausible": share(looked == keyword),
        "erasure": share(moved == keyword),
        "faithful": share(looked == moved),
        "foreign": share(foreign),
        **by_band(weights, same),
    }


def share(mask):
    return round(mask.float().mean().item(), 4)


# ------------------------------------------------------------------------- translators


class Dropped(nn.Module):
    """Bahdanau's attention with dropout on its weights."""

    def __init__(self, attention, dropout):
        super().__init__()
        self.attention, self.key = attention, attention.key
        self.dropout = nn.Dropout(dropout)

    def forward(self, decoder_state, encoder_states, keys, mask):
        _, weights = self.attention(decoder_state, encoder_states, keys, mask)
        context = (self.dropout(weights)[:, None] @ encoder_states).squeeze(1)
        return context, weights


def run_translator(point):
    longest = point["longest"]
    sizes = {"n_train": point["n_train"], "train_lengths": (4, longest)}
    sizes |= {"n_test": 400, "test_lengths": (4, longest)}
    task = translation_task(point["seed"], Settings(**sizes))
    runtime.seed(point["seed"])
    width = WITH_ATTENTION.d_embedding, WITH_ATTENTION.d_hidden
    model = Seq2SeqAttention(*task.sizes, *width)
    model.decoder.attention = Dropped(model.decoder.attention, point["dropout"])
    model.train()
    train_translator(model, task, point["steps"])
    model.cpu().eval()
    with torch.no_grad():
        return examine(model, task)


def examine(model, task):
    vocabularies = task.source_vocabulary, task.target_vocabulary
    longest = task.settings.test_lengths[1]
    said = translate(model, task.test, task)
    found = {"right": round(bleu(said, [p.target for p in task.test]) / 100, 4)}
    pairs = [p for p in task.test if len(p.source) >= longest * 3 // 4]
    source, target = translation_batch(pairs, *vocabularies)
    real = target[:, 1:] != 0
    moves = erasure(model, source, target)
    logits, weights = model(source, target[:, :-1])
    found["plausible"] = linked(weights, pairs)
    found["erasure"] = linked(moves, pairs)
    agree = [
        w[: len(p.target), : len(p.source)].argmax(-1)
        == e[: len(p.target), : len(p.source)].argmax(-1)
        for w, e, p in zip(weights, moves, pairs)
    ]
    found["faithful"] = share(torch.cat(agree))
    words = (source > 2)[:, None].expand_as(weights) & real[:, :, None]
    same = moved_everywhere(model, source, target, logits.argmax(dim=-1))
    foreign = moved_everywhere(model, source, target, logits.argmax(dim=-1), 1)
    found["foreign"] = share(foreign[words & words.roll(1, 0)])
    return found | by_band(weights[words], same[words])


def linked(table, pairs):
    links = [
        strongest_links(t[: len(p.target), : len(p.source)])
        for t, p in zip(table, pairs)
    ]
    return round(alignment_accuracy([p.possible for p in pairs], links), 4)


def erasure(model, source, target):
    """How far every word moves when one vector of the source is set to zero."""
    x = model.encoder.embedding(source)
    before = model(source, target[:, :-1])[0].softmax(-1)
    moves = []
    for j in range(source.shape[1]):
        erased = x.clone()
        erased[:, j] = 0
        hook = model.encoder.embedding.register_forward_hook(lambda *_, e=erased: e)
        after = model(source, target[:, :-1])[0].softmax(-1)
        hook.remove()
        moves.append((after - before).abs().sum(dim=-1) / 2)
    return torch.stack(moves, dim=-1)  # (sentence, target, source)


def moved_everywhere(model, source, target, said, roll=0):
    """Whether word t stays when all the weight is at j: (sentence, target, source)."""
    state, decoder, kept = model.start(source), model.decoder, []
    for t, token in enumerate(decoder.embedding(target[:, :-1]).unbind(1)):
        _, _, following = decoder.look(token, state)
        row = []
        for other in state.encoder_states.roll(roll, 0).unbind(1):
            new = decoder.cell(torch.cat([token, other], -1), state.decoder_state)
            row.append(decoder.readout(new, other, token).argmax(dim=-1) == said[:, t])
        kept.append(torch.stack(row, dim=-1))
        state = following
    return torch.stack(kept, dim=1)


def check(points):
    def of(model, dropout, key):
        runs = [p for p in points if (p["model"], p["dropout"]) == (model, dropout)]
        return torch.tensor([p[key] for p in runs], dtype=torch.float)

    for model in ("reader", "translator"):  # dropout moves the largest weight away
        gap = of(model, 0.0, "plausible").mean() - of(model, 0.5, "plausible").mean()
        assert gap > 0.08
    assert of("reader", 0.5, "right").min() > 0.99  # though the answers are right
    assert of("reader", 0.5, "erasure").min() > 0.9  # and the keyword decides
    foreign, kept = of("reader", 0.5, "foreign"), of("reader", 0.5, "kept")
    assert (kept[:, 0] < foreign - 0.1).all()  # tiny weights: worse than a stranger
    assert (kept[:, 2] > 0.9).all()  # 0.05 to 0.1: as good as the average itself
    free, bound = of("translator", 0.5, "kept"), of("translator", 0.0, "kept")
    assert (free[:, :4].min(dim=0).values > bound[:, :4].max(dim=0).values).all()
