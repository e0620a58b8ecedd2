# %% [markdown]
# # Two stacks of blocks translate, and learn every word at once
#
# **The question.** Chapter 03 translated with two recurrent networks and one layer of
# attention between them. Attention did the looking; what did the recurrence do? Can we
# leave it out, and what is won and lost?
#
# **You will be able to**
#
# - build the whole transformer of 2017 from the blocks of chapter 11, and show that it is
#   PyTorch's, number for number;
# - say which of its three attentions asks whom, and why all words of a translation can be
#   learned in one pass but must be written one after the other;
# - train it, read its maps, decode with a beam, and say where it beats the recurrent
#   network and where it does not.
#
# **Time** about 90 minutes to read and run; the code takes two to three minutes on a
# laptop's CPU. With a GPU the last section trains a larger model on real captions.
#
# **You need** Python, a little PyTorch, multi-head attention (chapter 10), the block
# ([chapter 11](11_transformer_block.ipynb)), and from chapters 02 and 03 the translation
# task and teacher forcing.

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import metrics, plots, runtime
from course_utils.attention import MultiHeadAttention

generator = runtime.seed()
print(runtime.hardware())

# %% [markdown]
# ## What is missing
#
# A translator reads one sentence and writes another. For *reading* we have everything: a
# stack of the blocks of chapter 11, in which every word looks at every other. For
# *writing* a block needs two looks instead of one: at what has been written so far, and
# at the source. So there are three kinds of attention in a translator, all of them the
# same layer:
#
# | | queries from | keys and values from | what is masked |
# |---|---|---|---|
# | encoder, self-attention | the source | the source | padding |
# | decoder, self-attention | the target | the target | the future, and so padding too |
# | decoder, cross-attention | the target | the source as the encoder left it | padding of the source |
#
# What the encoder hands over, one vector for each word of the source, is called the
# **memory**. It takes the place of Bahdanau's annotations.
#
# > **Predict.** A source of 5 words, a target of 4 so far. Which shapes have the three
# > tables of weights? Which of them is a triangle?

# %%
attend = MultiHeadAttention(d_model=8, n_heads=2)
source = torch.randn(1, 5, 8, generator=generator)  # (batch, source, d_model)
target = torch.randn(1, 4, 8, generator=generator)  # (batch, target, d_model)
_, encoder_self = attend(source, need_weights=True)
_, decoder_self = attend(target, causal=True, need_weights=True)
_, cross = attend(target, source, need_weights=True)
print([tuple(w.shape[2:]) for w in (encoder_self, decoder_self, cross)])
assert torch.equal(decoder_self, decoder_self.tril())

# %% [markdown]
# $5 \times 5$, $4 \times 4$ and a triangle, $4 \times 5$. Rows are who asks, columns who
# is asked.
#
# ## The decoder's block
#
# Three layers, each with its residual and its norm: look back, look across, think. Two
# of them you know; the one in the middle gets its queries from the stream and its keys
# and values from the memory. (`cache` is for later: it saves work when words are written
# one at a time.)

# %% tags=["twin"]
from course_utils.blocks import FeedForward, Residual


class DecoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_hidden, norm="pre", dropout=0.0):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_hidden)
        self.around_attention = Residual(d_model, norm, dropout)
        self.around_cross_attention = Residual(d_model, norm, dropout)
        self.around_feed_forward = Residual(d_model, norm, dropout)

    def forward(self, x, memory, memory_mask=None, need_weights=False, cache=None):
        asked = self.around_attention.before(x)
        found, own = self.attention(
            asked, causal=True, need_weights=need_weights, cache=cache
        )
        x = self.around_attention.after(x, found)
        asked = self.around_cross_attention.before(x)
        found, cross = self.cross_attention(
            asked, memory, memory_mask, need_weights=need_weights
        )
        x = self.around_cross_attention.after(x, found)
        found = self.feed_forward(self.around_feed_forward.before(x))
        return self.around_feed_forward.after(x, found), own, cross


# %% [markdown]
# > **Predict.** Which outputs change if the *third* word of the target is another one?
# > And which if the third word of the *source* is another one?
#
# The leak test of chapter 09 answers both questions. It changes every input alone and
# prints which output moved with it.

# %%
from course_utils.leaks import leak_test

block = DecoderBlock(d_model=8, n_heads=2, d_hidden=16)
report = leak_test(lambda x: block(x, source)[0], target)
across = leak_test(lambda m: block(target, m)[0], source, torch.ones(4, 5).bool())
print(report.moved.int().numpy(), "moves with the target", sep="\n")
print(across.moved.int().numpy(), "moves with the source", sep="\n")
assert not report.leaks and across.moved.all()

# %% [markdown]
# A word of the target moves itself and what comes after it: the mask holds. A word of the
# source moves *everything*, from the first word on. That is what we want of a translator:
# the whole source is known before the first word is written.
#
# ## Stacks
#
# One look is often not enough: to find out whom *her* belongs to you first have to know
# who is a woman. So blocks are stacked. In the pre-norm order nothing normalises what
# the last block adds, so the stack ends with a norm of its own.

# %% tags=["twin"]
from course_utils.blocks import EncoderBlock, stack_layers


class Encoder(nn.Module):
    def __init__(self, n_layers, d_model, n_heads, d_hidden, norm="pre", dropout=0.0):
        super().__init__()
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, n_heads, d_hidden, norm, dropout)
            for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()

    def forward(self, x, mask=None, need_weights=False):
        all_weights = []
        for block in self.blocks:
            x, weights = block(x, mask=mask, need_weights=need_weights)
            all_weights.append(weights)
        return self.norm(x), stack_layers(all_weights)


# %% [markdown]
# `Decoder` is the same with decoder blocks, each of which is handed the memory; it comes
# from the package. **Every layer of the decoder asks the encoder's last layer**: the
# source is read to the end, then it is asked. (The memory that is handed over stays
# the same; each layer makes keys and values of its own from it.)
#
# ## The same numbers as PyTorch
#
# PyTorch has all of this as `nn.Transformer`. If our parts are right, then with the same
# weights it must give the same numbers, to the last digits that `float32` has. Its
# parameters have other names, so first a dictionary from theirs to ours.

# %%
def torch_names(ours):
    """For one of our blocks: the name of each parameter in PyTorch's layer."""
    names = {"attention": "self_attn", "cross_attention": "multihead_attn"}
    pairs = {}
    for mine, theirs in names.items():
        if hasattr(ours, mine):
            pairs[f"{mine}.qkv."] = f"{theirs}.in_proj_"
            pairs[f"{mine}.output."] = f"{theirs}.out_proj."
    pairs |= {"feed_forward.wide.": "linear1.", "feed_forward.narrow.": "linear2."}
    layers = ("attention", "cross_attention", "feed_forward")
    present = [name for name in layers if hasattr(ours, name)]
    for i, name in enumerate(present, start=1):
        pairs[f"around_{name}.norm."] = f"norm{i}."
    return pairs


# %% [markdown]
# Now copy. The norms start at 1 and the biases at 0, where a mix-up would not
# show, so all parameters are moved at random first. The second source is shorter than
# the first. PyTorch's masks say True where something is *forbidden* (chapter 09), hence
# the two `~`.

# %%
def copy_into(theirs, ours):
    state = {}
    for name, value in ours.state_dict().items():
        for mine, other in torch_names(ours).items():
            if name.startswith(mine):
                state[other + name.removeprefix(mine)] = value
    theirs.load_state_dict(state)  # complains if one is missing or left over


# %% [markdown]
# Two layers to read and three to write, so that no mix-up of the stacks can hide:

# %%
import warnings

from course_utils.blocks import Decoder

warnings.filterwarnings("ignore", "enable_nested_tensor")  # a hint of nn.Transformer
sizes = dict(d_model=8, n_heads=2, d_hidden=16)
encoder, decoder = Encoder(2, **sizes), Decoder(3, **sizes)
library = nn.Transformer(8, 2, 2, 3, 16, dropout=0.0, batch_first=True, norm_first=True)
with torch.no_grad():
    for parameter in [*encoder.parameters(), *decoder.parameters()]:
        parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
for ours, theirs in ((encoder, library.encoder), (decoder, library.decoder)):
    for mine, other in zip(ours.blocks, theirs.layers):
        copy_into(other, mine)
    theirs.norm.load_state_dict(ours.norm.state_dict())

# %% [markdown]
# The comparison, forwards and backwards:

# %%
source = torch.randn(2, 5, 8, generator=generator)
target = torch.randn(2, 4, 8, generator=generator, requires_grad=True)
real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])  # (batch, source)
ours = decoder(target, encoder(source, real[:, None])[0], real[:, None])[0]
padding, future = ~real, ~torch.ones(4, 4).tril().bool()
theirs = library(source, target, None, future, None, padding, None, padding)
torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
direction = torch.randn(ours.shape, generator=generator)
torch.testing.assert_close(
    *(torch.autograd.grad((y * direction).sum(), target)[0] for y in (ours, theirs)),
    atol=1e-5,
    rtol=1e-4,
)
print("equal, forward and backward")

# %% [markdown]
# ## From words to vectors, and back
#
# Around the stacks stand three small things.
#
# **Words become vectors** by a table, one row a word, times $\sqrt{d_{model}}$.
# **Positions** are added: without them the encoder could not tell *the dog bites the man*
# from *the man bites the dog* (chapter 07). And at the end the **scores** of the next word
# are the products of the decoder's vector with every row of the target's table, the same
# table that reads the words (*weight tying*). A word is likely if its own vector points
# where the decoder's does.
#
# Why the factor? The table serves two masters. As an output layer it should start with
# rows of length about 1, so that scores start near 0 and not in the hundreds. As an input
# it has to be heard beside the positions, whose rows have length $\sqrt{d_{model} / 2}$,
# however long the sentence.
#
# > **Predict.** $d_{model} = 64$, rows of length about 1. How long are the rows of
# > positions? How much of the sum would be the word, without the factor?

# %%
from course_utils.positions import sinusoidal

rows = torch.randn(100, 64, generator=generator) * 64**-0.5  # 100 words
positions = sinusoidal(16, 64)
lengths = rows.norm(dim=-1).mean(), 8 * rows.norm(dim=-1).mean(), positions[1].norm()
print("word {:.2f}, word times 8 {:.2f}, position {:.2f}".format(*lengths))
assert lengths[0] < 0.3 * lengths[2] < 0.6 * lengths[1]

# %% [markdown]
# Without the factor a word would be a whisper of length 1 beside a position of length
# 5.66. With it, word and place are of one size.
#
# Now everything stands, and the whole forward pass fits on a hand. Here it is in the
# open, for the package's `Transformer`, which holds the two tables and the two stacks:

# %%
from course_utils.attention import padding_mask
from course_utils.transformer import Transformer


def translate_in_the_open(model, source, target_in):
    scale, mask = math.sqrt(64), padding_mask(source)
    places = model.positions
    x = scale * model.source_embedding(source) + places[: source.shape[1]]
    memory, _ = model.encoder(x, mask)
    y = scale * model.target_embedding(target_in) + places[: target_in.shape[1]]
    y, _, _ = model.decoder(y, memory, mask)
    return y @ model.target_embedding.weight.T  # (batch, target, word)


small = Transformer(n_source=11, n_target=13, d_model=64)
source = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0]])  # 0 is padding, 2 the end
target = torch.tensor([[1, 3, 4, 5, 2], [1, 6, 7, 2, 0]])  # 1 is the beginning
logits, _ = small(source, target[:, :-1])
torch.testing.assert_close(
    translate_in_the_open(small, source, target[:, :-1]), logits
)

# %% [markdown]
# ## Learn all words at once, write them one by one
#
# In training the right translation is known. Word $t$ is to be predicted from the right
# words before it (teacher forcing), and the mask sees to it that it is predicted from
# nothing else. So the model answers all the questions "which word comes next?" of a
# sentence **in one pass**. A recurrent decoder can't: its state for word 10 needs the
# state for word 9.
#
# In use nobody knows the translation. Then a word has to be written before the next can
# be asked for. `start` reads the source once, and `step` takes one word and gives the
# scores of the next. It computes the new word only: the keys and values of the words
# before it are kept (chapter 13 takes that apart).
#
# > **Predict.** Feed `step` with the right words, one by one. How do its scores compare
# > with those of the one pass?

# %%
state, by_step = small.start(source), []
for word in target[:, :-1].unbind(1):
    scores, state, _ = small.step(word, state)
    by_step.append(scores)
torch.testing.assert_close(torch.stack(by_step, dim=1), logits, atol=1e-5, rtol=1e-4)

# %% [markdown]
# Equal. One pass in training, 4 steps in use, the same function. That is the bargain of
# the transformer: **nothing in training waits for anything but the layer below**.
#
# ## Three habits of training
#
# **A start of the right size.** Each matrix starts at random, with entries so large that
# what comes out has about the size of what went in, forwards and backwards (Glorot and
# Bengio, 2010). Our layer keeps the matrices for queries, keys and values in one; each is
# drawn for itself, since each is a matrix with $d_{model}$ rows and columns of its own.

# %% tags=["twin"]
def xavier(model):
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            for matrix in module.qkv.weight.detach().chunk(3):
                nn.init.xavier_uniform_(matrix)


# %% [markdown]
# **A warm-up.** Adam divides every step by the size of recent gradients, and after ten
# batches it has seen few. The learning rate starts near zero and rises in a line; then it
# falls, so that the last steps are small. In 2017 it fell like $1/\sqrt{t}$; today the
# half-wave of a cosine is common, and so it is in the course.

# %% tags=["twin"]
from course_utils.training import SCHEDULES


def lr_at(step, steps, lr, warmup=0, schedule="cosine"):
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule is {schedule!r}, expected one of {SCHEDULES}.")
    if step < warmup:
        return lr * (step + 1) / warmup
    t = (step - warmup) / max(steps - warmup, 1)
    if schedule == "linear":
        return lr * (1 - t)
    if schedule == "cosine":
        return lr * (1 + math.cos(math.pi * t)) / 2
    if schedule == "inverse_sqrt":
        return lr * math.sqrt(max(warmup, 1) / (step + 1))
    return lr


# %% tags=["hide-input"]
steps = range(600)
plots.show(
    plots.plot_lines(
        steps,
        {
            name: [lr_at(step, 600, 1.0, 60, name) for step in steps]
            for name in ("cosine", "inverse_sqrt")
        },
        x_label="step",
        y_label="share of the full learning rate",
        title="Up in a line, then down",
    ),
    alt="The learning rate over 600 steps: both schedules rise in a line to 1 at step "
    "60; the cosine falls slowly, then faster, to 0; the inverse square root falls "
    "fast at first and still stands at 0.3 at the end.",
)

# %% [markdown]
# What the warm-up is good for was measured in chapter 11: a post-norm stack of twelve
# layers did not learn without it. Our small pre-norm stack could do without.
#
# **Label smoothing.** The loss asks for the right word with probability 1. A softmax
# reaches 1 only with endless scores, so a model that is right already is pushed on for
# ever. Label smoothing ([Szegedy et al., 2016](https://arxiv.org/abs/1512.00567)) asks
# for a little less: with $\varepsilon = 0.1$ the right word should get 0.9, and 0.1 is
# spread evenly over all $V$ words, the right one among them:
#
# $$\mathrm{loss} = (1 - \varepsilon)\,(-\log p_{right})
# + \varepsilon\, \frac1V \sum_v (-\log p_v) .$$
#
# > **Predict.** Ten words. Which probability of the right word makes this loss smallest?

# %%
def smoothed_loss(log_p, right, epsilon=0.1):
    return -(1 - epsilon) * log_p[right] - epsilon * log_p.mean()


scores = torch.zeros(10, requires_grad=True)
optimiser = torch.optim.SGD([scores], lr=5.0)
for _ in range(2000):
    optimiser.zero_grad()
    smoothed_loss(torch.log_softmax(scores, dim=0), right=3).backward()
    optimiser.step()
p = torch.softmax(scores.detach(), dim=0)
print(f"right word {p[3]:.3f}, every other {p[0]:.3f}")
library_loss = F.cross_entropy(scores, torch.tensor(3), label_smoothing=0.1)
torch.testing.assert_close(smoothed_loss(torch.log_softmax(scores, 0), 3), library_loss)
assert abs(p[3] - 0.91) < 1e-3

# %% [markdown]
# 0.91: its own 0.9, and its share of the 0.1. Scores stay finite. The larger model at the
# end of this page is trained with it.

# %% [markdown]
# ## The race on the axes of Part II
#
# The task is the one of chapters 02 and 03: the same sentences for the same seed, training
# lengths of 4 to 16 tokens, test lengths up to 24. The transformer has two blocks on each
# side, four heads, $d_{model} = 64$. Its learning rate was chosen among three on a seed
# that appears nowhere on this page; that of the recurrent networks is chapter 02's.

# %%
from course_utils import translation
from course_utils.sequences import translation_batches
from course_utils.training import train
from course_utils.translation import score_by_length, translate, translation_task

STEPS, RATE = 600, 6e-3


def share_right(model, task):
    """The share of 100 test sentences of trained lengths that come out right."""
    pairs = [p for p in task.test if len(p.source) <= 16][:100]
    said = translate(model, pairs, task)
    return {"right": metrics.exact_match(said, [p.target for p in pairs])}


def batches_of(task):
    vocabularies = task.source_vocabulary, task.target_vocabulary
    return translation_batches(task.train, *vocabularies, 64, task.seed)


# %% [markdown]
# A run is one seed: its own sentences, its own first weights.

# %%
def learn_to_translate(seed, loss=translation.translation_loss):
    task = translation_task(seed)
    runtime.seed(seed)
    model = Transformer(*task.sizes)
    settings = dict(steps=STEPS, lr=RATE, seed=seed, progress=False)
    history = train(
        model,
        batches_of(task),
        loss,
        evaluate=lambda model: share_right(model, task),
        **settings,
    )
    said = translate(model, task.test, task)
    return dict(model=model, task=task, history=history, said=said)


runs = [learn_to_translate(seed=0)]
print(runs[0]["history"])
task = runs[0]["task"]
for pair, words in list(zip(task.test, runs[0]["said"]))[:3]:
    print(" ".join(pair.source), "\n   ->", " ".join(words))

# %% [markdown]
# Two more, with other sentences and other first weights:

# %%
runs += [learn_to_translate(seed) for seed in (1, 2)]
print([f"{run['history']['right'][-1]:.2f}" for run in runs], "right, by seed")

# %% [markdown]
# And the two recurrent networks, one run of each as chapters 02 and 03 train them (their
# spread over seeds is shown there). First the one with attention:

# %%
from course_utils.rnn import Seq2Seq, Seq2SeqAttention


def learn_recurrent(kind, recipe):
    runtime.seed(0)
    model = kind(*task.sizes, recipe.d_embedding, recipe.d_hidden)
    evaluate = lambda model: share_right(model, task)
    history = translation.train_translator(model, task, recipe.steps, evaluate)
    said = translate(model, task.test, task)
    return dict(model=model, task=task, history=history, said=said)


looking = learn_recurrent(Seq2SeqAttention, translation.WITH_ATTENTION)
looking["history"]

# %% [markdown]
# Then the one with a single vector between reader and writer:

# %%
squeezed = learn_recurrent(Seq2Seq, translation.FIXED_VECTOR)
contestants = {
    "transformer": runs,
    "GRU with attention": [looking],
    "GRU, fixed vector": [squeezed],
}
for name, members in contestants.items():
    count = sum(p.numel() for p in members[0]["model"].parameters())
    print(f"{name:19s} {count:8,d} parameters, {len(members[0]['history'])} steps")

# %% [markdown]
# All three have about 200,000 parameters.
#
# > **Predict.** You know two of the curves. Draw the third, up to 16 tokens and beyond.

# %%
quality = {
    name: [
        [b.score / 100 for b in score_by_length(metrics.bleu, r["said"], r["task"])]
        for r in members
    ]
    for name, members in contestants.items()
}
for name, curves in quality.items():
    for curve in curves:
        print(f"{name:19s} " + "  ".join(f"{score:.2f}" for score in curve))

# %% tags=["hide-input"]
buckets = [f"{low}–{high}" for low, high in task.settings.buckets]
axes = plots.plot_lines(
    range(len(buckets)),
    quality,
    x_label="tokens of the source (right of the line: longer than in training)",
    y_label="BLEU / 100",
    title="As good as the GRU, up to the training length",
)
axes.set_xticks(range(len(buckets)), buckets)
axes.set_ylim(-0.02, 1.05)
axes.axvline(3.5, color=plots.COLOURS["muted"], linestyle="--")
plots.show(
    axes,
    alt="BLEU against the length of the source for three models. Transformer and GRU "
    "with attention stay above 0.8 up to 16 tokens, the fixed vector falls to 0.3. "
    "Beyond 16 tokens the transformer falls below the GRU with attention.",
)

# %% [markdown]
# Up to 16 tokens the transformer keeps up with the GRU with attention, give or take a few
# hundredths, though no state is passed on from word to word anywhere in it. So the recurrence was not what made
# translation possible: the looking was.
#
# To the right of the line it falls **further** than the GRU. Whatever the recurrence knows
# about going on and on, the transformer has to learn from its positions, and at place 17
# it has never stood. "Attention sees everything" is true of distance and false of length.

# %%
ours = torch.tensor(quality["transformer"])
gru = torch.tensor(quality["GRU with attention"][0])
fixed = torch.tensor(quality["GRU, fixed vector"][0])
assert (ours[:, :4] > gru[:4] - 0.1).all()  # level as far as training went
assert (ours[:, 3] > fixed[3] + 0.3).all()
assert (ours[:, 5] < gru[5] - 0.05).all()  # and clearly worse beyond

# %% [markdown]
# ## Quality against time
#
# A step of the transformer and a step of a GRU do not cost the same, so let us put
# seconds of training on the axis instead of steps.

# %% tags=["hide-input"]
drawn, axes = plots.figure()
colours = ("blue", "orange", "green")
for (name, members), colour in zip(contestants.items(), colours):
    for i, run in enumerate(members):
        history = run["history"]
        seconds = history["seconds"][history["evaluated"] - 1]
        axes.plot(
            seconds,
            history["right"],
            color=plots.COLOURS[colour],
            marker="o",
            markersize=4,
            label=name if i == 0 else None,
        )
axes.set(xlabel="seconds of training", ylabel="sentences right, up to 16 tokens")
axes.set_ylim(-0.02, 1.02)
axes.set_title("In the same seconds, about as many right", weight="bold")
axes.legend()
plots.show(
    drawn,
    alt="Share of sentences right against seconds of training. The three runs of the "
    "transformer and that of the GRU with attention rise together to about 0.8; the "
    "fixed vector stays below 0.5.",
)

# %% [markdown]
# On one core of a CPU the two are close, and the picture depends on the machine. The
# difference is in the shape of the work, not in its amount: in a training step of the GRU
# the decoder makes about twenty small steps that wait for each other, the transformer
# makes a few large products. A processor that does thousands of sums at a time has
# nothing to do in the first case. That is why the transformer came with the GPU.
#
# ## The three maps
#
# Let us look inside. One sentence of the test set, the right translation given, and the
# weights of all heads.

# %%
from course_utils.grammar import Pair


def maps_of(run, pair):
    """Words of source and target, and the three tables (layer, head, row, column)."""
    task, model = run["task"], run["model"]
    device = next(model.parameters()).device
    source = task.source_vocabulary.encode(pair.source, eos=True)
    target = task.target_vocabulary.encode(pair.target, bos=True)
    with torch.no_grad():
        tables = model(
            torch.tensor([source], device=device),
            torch.tensor([target], device=device),
            need_weights=True,
        )[1]
    return [table[:, 0].cpu() for table in tables]


pair: Pair = next(p for p in task.test if len(p.source) == 6 and p.sure)
encoder_maps, decoder_maps, cross_maps = maps_of(runs[0], pair)
read, written = [*pair.source, "end"], ["begin", *pair.target]
print(" ".join(pair.source), "->", " ".join(pair.target))
print([tuple(maps.shape) for maps in (encoder_maps, decoder_maps, cross_maps)])

# %% [markdown]
# > **Predict.** Row *begin* of the decoder's self-attention: where can it look? And in
# > the cross-attention: which row should look at the first noun?

# %% tags=["hide-input"]
drawn, panels = plots.figure(n_columns=2, height=3.6)
plots.plot_attention(
    encoder_maps[1, 0], read, read, ax=panels[0], title="encoder: a square"
)
plots.plot_attention(
    decoder_maps[1, 0], written, written, ax=panels[1], title="decoder: a triangle"
)
plots.show(
    drawn,
    alt="Two tables of weights for one sentence: the encoder's self-attention, in which "
    "every word looks at any other, and the decoder's, empty above the diagonal.",
)

# %% tags=["hide-input"]
plots.show(
    plots.plot_attention(
        cross_maps[1].mean(dim=0),
        written,
        read,
        ax=plots.figure(height=4)[1],
        title="cross: from the translation to its source",
    ),
    alt="The cross-attention of the same sentence, mean over heads: most rows have one "
    "dark place, on the word that is translated next.",
)

# %% [markdown]
# *begin* can look at nothing but itself. And mind the rows of the cross-attention: the
# row of a word shows where the model looks **in order to write the next one**.
#
# Do the weights follow the grammar's gold links, as Bahdanau's did in chapter 03? For
# every word of the target take the source word with the largest weight, once for every
# head, and count how often it is allowed.

# %%
def accuracy_of_heads(run, pairs):
    """Share of words whose strongest source word is an allowed link: (layer, head)."""
    found = []
    for pair in pairs:
        cross = maps_of(run, pair)[2][:, :, : len(pair.target), : len(pair.source)]
        allowed = torch.zeros(len(pair.target), len(pair.source))
        for j, t in pair.possible:
            allowed[t, j] = 1
        best = F.one_hot(cross.argmax(dim=-1), len(pair.source))
        found.append((best * allowed).sum(dim=-1))  # (layer, head, word)
    return torch.cat(found, dim=-1).mean(dim=-1)


checked = [[p for p in run["task"].test if len(p.source) <= 16][:60] for run in runs]
heads = [accuracy_of_heads(run, pairs) for run, pairs in zip(runs, checked)]
print("seed 0, layers in rows, heads in columns:")
print(heads[0].numpy().round(2))
print("best head, by seed:", [f"{h.max():.2f}" for h in heads])
assert all(h.min() > 0.4 and h.max() > 0.7 for h in heads)
assert all(h.max() - h.min() > 0.08 for h in heads)  # heads differ

# %% [markdown]
# Every head lands on an allowed word most of the time, some clearly more often than others,
# though no loss ever asked for it. The best comes close to the alignments of chapter 03.
# Keep that chapter's warning in mind, here more than there: what stands at a place of the
# memory has gone through two layers in which every word looked at every other. **A weight
# on a place is not a weight on a word.**
#
# ## The explorer
#
# All heads of the trained model, for some sentences of the test set. Choose which
# attention, layer and head; press a row to read its weights.

# %% tags=["hide-input"]
from course_utils.widgets.three_attentions import three_attentions

shown = [p for p in task.test if 6 <= len(p.source) <= 9][:5]
three_attentions(
    "transformer-heads",
    [(p.source, p.target, [m.numpy() for m in maps_of(runs[0], p)]) for p in shown],
)

# %% [markdown]
# ## Look further than the next word
#
# So far every word was the most probable one, given the words before it: **greedy**
# decoding. That can go wrong, because the first word of the best sentence need not be the
# best first word. A model small enough to count by hand, with three words and an end:

# %%
from course_utils.decoding import greedy

PAD, BOS, EOS = 0, 1, 2  # and the words 3, 4, 5
NEXT = torch.zeros(6, 6)
NEXT[BOS, [3, 4]] = torch.tensor([0.6, 0.4])
NEXT[3, [EOS, 4, 5]] = torch.tensor([0.3, 0.3, 0.4])
NEXT[4, EOS] = NEXT[5, EOS] = 1.0


class Fork:
    """After each word a fixed table of what comes next."""

    def start(self, source):
        return torch.zeros(len(source))

    def step(self, token, state):
        return NEXT[token].log(), state, None


nothing = torch.zeros(1, 1)  # a source that says nothing
print("greedy writes", greedy(Fork(), nothing, 4, BOS, EOS).tokens.tolist())

# %% [markdown]
# > **Predict.** How probable is what greedy wrote? Is there a sentence that is more
# > probable?
#
# It wrote 3 5 and the end, with probability $0.6 \cdot 0.4 \cdot 1 = 0.24$. The sentence
# 4 and the end has $0.4 \cdot 1 = 0.40$. Greedy decoding never got to see it.
#
# **Beam search** keeps the $k$ best beginnings instead of one. At every step each of them
# is continued with every word of the vocabulary, and the best $k$ of all these stay. Two
# details: a beginning that has ended goes on with padding, at no cost; and a sum of
# logarithms gets smaller with every word, so short sentences have an advantage. Dividing
# by $\mathrm{length}^{\alpha}$ takes some of it back ($\alpha = 0$: none,
# $\alpha = 1$: the average over words).

# %% tags=["twin"]
def extend_beams(log_p, lengths, ended, logits, pad=0, length_penalty=0.0):
    batch, n_beams = log_p.shape
    gain = torch.log_softmax(logits.float(), dim=-1).view(batch, n_beams, -1)
    n_tokens = gain.shape[-1]
    # A beam that has ended goes on with padding alone, at no cost.
    is_pad = torch.arange(n_tokens, device=logits.device) == pad
    gain = torch.where(ended[:, :, None], is_pad.float().log(), gain)
    total = (log_p[:, :, None] + gain).flatten(1)
    lengths = lengths + (~ended).float()
    scale = lengths.repeat_interleave(n_tokens, dim=1) ** length_penalty
    best = (total / scale).topk(n_beams, dim=-1).indices
    parent, token = best // n_tokens, best % n_tokens
    return parent, token, total.gather(1, best), lengths.gather(1, parent)


# %% [markdown]
# The search around it. All beams of a sentence begin alike, so at first only one of them
# may count. After each step the states are put in order: beam $i$ goes on from the state
# of its parent.

# %% tags=["twin"]
from course_utils.decoding import Beams, evaluating, require_beams, select_rows


def beam_search(
    model, source, max_length, bos, eos, pad=0, n_beams=4, length_penalty=0.0
):
    require_beams(source, max_length, n_beams)
    rows = torch.arange(len(source), device=source.device)[:, None]
    with evaluating(model):
        state = select_rows(model.start(source), rows.expand(-1, n_beams).flatten())
        tokens = torch.full((len(source), n_beams, 1), bos, device=source.device)
        lengths = torch.zeros(len(source), n_beams, device=source.device)
        ended, log_p = lengths > 0, lengths.clone()
        log_p[:, 1:] = -torch.inf  # all beams begin alike: only the first may count
        while tokens.shape[-1] <= max_length and not ended.all():
            logits, state, _ = model.step(tokens[:, :, -1].flatten(), state)
            parent, token, log_p, lengths = extend_beams(
                log_p, lengths, ended, logits, pad, length_penalty
            )
            ended = ended.gather(1, parent) | (token == eos)
            tokens = torch.cat([tokens[rows, parent], token[:, :, None]], dim=-1)
            state = select_rows(state, (rows * n_beams + parent).flatten())
    scores, winner = (log_p / lengths**length_penalty).max(dim=-1)
    return Beams(tokens[rows[:, 0], winner, 1:], scores)


# %% [markdown]
# The fork again, with one beam and with two:

# %% tags=["nbval-check-output"]
for n_beams in (1, 2):
    found = beam_search(Fork(), nothing, 4, BOS, EOS, n_beams=n_beams)
    probability = found.scores.exp().item()
    print(f"{n_beams} beam(s): {found.tokens[0].tolist()}, p = {probability:.2f}")

# %% [markdown]
# One beam is greedy decoding; two find the better sentence. Does it matter for the trained
# transformer?
#
# > **Predict.** About 0.8 of the sentences are right with one beam. How many with four?

# %%
from course_utils.sequences import translation_batch


def decode(run, pairs, **options):
    task = run["task"]
    vocabularies = task.source_vocabulary, task.target_vocabulary
    device = next(run["model"].parameters()).device
    source = translation_batch(pairs, *vocabularies)[0].to(device)
    found = beam_search(run["model"], source, 40, BOS, EOS, **options)
    return found, [vocabularies[1].decode(row) for row in found.tokens.tolist()]


table = []
for run, pairs in zip(runs, checked):
    one, words = decode(run, pairs, n_beams=1)
    assert words == translate(run["model"], pairs, run["task"])  # one beam is greedy
    four, better = decode(run, pairs, n_beams=4)
    references = [p.target for p in pairs]
    right = [metrics.exact_match(w, references) for w in (words, better)]
    table.append([*right, one.scores.mean().item(), four.scores.mean().item()])
    print("right {:.2f} -> {:.2f},  mean log p {:.3f} -> {:.3f}".format(*table[-1]))

# %% [markdown]
# The search finds sentences that the model holds for more probable, as it should. But it
# repairs only a few of those that were wrong: most of the time this model is sure of its
# words, also where it errs. Vaswani et al. (2017) used four beams, with $\alpha = 0.6$.

# %%
table = torch.tensor(table)
assert (table[:, 3] >= table[:, 2] - 1e-4).all()  # more probable on average
assert ((table[:, 1] - table[:, 0]).abs() < 0.1).all()  # and little better

# %% [markdown]
# And the length penalty? It can only do something where sentences of different lengths
# compete. Mean lengths, by seed:

# %%
mean_lengths = {}
for alpha in (0.0, 1.0, 3.0):
    mean_lengths[alpha] = []
    for run, pairs in zip(runs, checked):
        _, words = decode(run, pairs, n_beams=4, length_penalty=alpha)
        mean_lengths[alpha].append(sum(map(len, words)) / len(words))
    print(alpha, [f"{length:.2f}" for length in mean_lengths[alpha]])

# %% [markdown]
# The larger $\alpha$ is, the longer the sentences, if only by a little: a translation has
# its length from the source, and the model knows when it has said everything.

# %%
assert all(short <= long for short, long in zip(mean_lengths[0.0], mean_lengths[3.0]))

# %% [markdown]
# ## On a GPU: a real corpus
#
# Everything above is small enough for a CPU. With a GPU the same cells below train a
# larger model on Multi30k, 29,000 captions of photographs in English and French. With no
# network they go on with the grammar, and say so. On a CPU they make a few steps with a
# small model, which proves that they run.

# %%
from course_utils.corpora import load_translation
from course_utils.data import Vocabulary

BIG = runtime.preset(
    cpu=dict(corpus="grammar", d_model=64, n_heads=4, d_hidden=128, n_layers=2),
    gpu=dict(corpus="multi30k", d_model=256, n_heads=8, d_hidden=1024, n_layers=3),
)
STEPS_BIG, ROWS = runtime.preset(cpu=(20, 32), gpu=(6000, 128))
corpus = load_translation(BIG.pop("corpus"))
sources = Vocabulary((p.source for p in corpus.train), min_count=2)
targets = Vocabulary((p.target for p in corpus.train), min_count=2)
big = Transformer(len(sources), len(targets), dropout=0.1, **BIG)
print(f"{corpus.name}: {len(corpus.train):,} pairs, {len(sources):,} and ", end="")
print(f"{len(targets):,} words; {sum(p.numel() for p in big.parameters()):,} parameters")

# %% [markdown]
# **What does it need in memory?** Count before you start. Each parameter needs four
# numbers (itself, its gradient, and Adam's two averages), 16 bytes. On top of that come
# the tensors that are kept for the backward pass. PyTorch tells which: a hook sees every
# one of them, and on the device `meta` nothing is computed or stored at all.

# %%
import copy


def bytes_needed(model, rows, length):
    ghost, kept = copy.deepcopy(model).to("meta"), []
    tokens = torch.ones(rows, length, dtype=torch.long, device="meta")

    def note(tensor):
        kept.append(tensor.numel() * tensor.element_size())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        logits, _ = ghost(tokens, tokens)
        F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    return 16 * sum(p.numel() for p in model.parameters()) + sum(kept)


longest = max(max(len(p.source), len(p.target)) + 1 for p in corpus.train)
needed = bytes_needed(big, ROWS, longest) / 2**30
print(f"at most about {needed:.2f} GB for {ROWS} sentences of {longest} tokens")
if torch.cuda.is_available():
    free = torch.cuda.mem_get_info()[0] / 2**30
    print(f"{free:.1f} GB are free on the GPU")
    if needed > free:
        ROWS //= 2 ** math.ceil(math.log2(needed / free))
        print(f"too little: going on with {ROWS} sentences at a time")

# %% [markdown]
# It is an upper bound: a tensor that is kept twice is counted twice, and with mixed
# precision many are half as large. If it does not fit, halve the batch; that halves all
# but the parameters.
#
# **How long will it take?** A product of matrices costs two operations for each weight
# and token, and its backward pass twice that: six in all. The rest is small beside it.

# %%
weights = sum(p.numel() for p in big.parameters())
tokens = STEPS_BIG * ROWS * 2 * sum(len(p.source) for p in corpus.train) // len(
    corpus.train
)
operations = 6 * weights * tokens / 2  # a token passes one of the two stacks
print(f"about {operations:.0e} operations, {operations / 1e13:.2g} s at 10^13 a second")

# %% [markdown]
# That is arithmetic, not a measurement: a small model keeps a GPU from reaching anything
# like its full speed. Your own run will tell.
#
# `train` uses mixed precision on its own where the GPU has it, `compile=True` takes
# effect on a GPU only, and the checkpoint is written every 100 steps, whole or not at
# all: call the cell again after an interruption, and it goes on where it was.

# %%
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp() if not torch.cuda.is_available() else ".")
batch = translation_batches(corpus.train, sources, targets, ROWS, 0)


def smoothed(model, source, target):
    logits, _ = model(source, target[:, :-1])
    return F.cross_entropy(
        logits.flatten(0, 1),
        target[:, 1:].flatten(),
        ignore_index=PAD,
        label_smoothing=0.1,
    )


options = dict(lr=1e-3, steps=STEPS_BIG, compile=True, progress=False)
history = train(big, batch, smoothed, checkpoint=folder / "translator.pt", **options)
again = train(big, batch, smoothed, checkpoint=folder / "translator.pt", **options)
assert len(again) == len(history)  # nothing left to do: it was all in the checkpoint
print(history)

# %% [markdown]
# ## What this page does not show
#
# - **Not that the transformer is better.** On this task, on a CPU, it is level with the GRU
#   with attention and worse on longer sentences. What made it win were large corpora
#   and processors that do thousands of sums at a time, and neither is on this page.
# - **Not that it is worse on long sentences as such.** It was trained on 16 tokens and
#   asked about 24. Other encodings of positions (chapter 08), or longer training
#   sentences, are another experiment.
# - **One size, one learning rate** chosen from three on a seed of its own. Neither label
#   smoothing nor dropout was tried on the task.
#
# ## Summary
#
# - A **decoder block** looks back (masked), looks across to the memory, and thinks. Two
#   stacks, two tables of words, and positions: that is the transformer, and it is
#   PyTorch's, number for number.
# - In training **all words are learned in one pass**; in use they are written one after
#   the other, from kept keys and values, with the same result.
# - On the task of Part II it keeps up with the GRU with attention as far as training went,
#   for about the same seconds of a CPU, and falls further beyond.
# - Some heads of the cross-attention align words. But what they look at has been mixed
#   before, so a weight on a place is no longer a weight on a word.
# - **Beam search** finds sentences that the model holds for more probable than the greedy
#   one; here it repairs only a few.
#
# The next chapter leaves out the encoder. What remains writes on, and is called GPT.
#
# ## Exercises
#
# The [exercise notebook](../exercises/12_transformer.ipynb) has six questions, graded as
# you go: the decoder's block, its masks, its parameters, label smoothing, the learning
# rate, and one step of beam search. Everything you need is on this page.
#
# ## Further reading
#
# - Vaswani et al. (2017), [Attention is all you need](https://arxiv.org/abs/1706.03762):
#   section 3 is this chapter.
# - Popel and Bojar (2018), [Training tips for the transformer
#   model](https://arxiv.org/abs/1804.00247): what warm-up, batch size and length do on a
#   large corpus.
# - Kasai et al. (2021), [Deep encoder, shallow
#   decoder](https://arxiv.org/abs/2006.10369): the decoder waits for itself, so make it
#   small.
