# %% [markdown]
# # Exercises: the transformer
#
# Six questions on the chapter *Two stacks of blocks translate, and learn every word at
# once*: about an hour. Everything you need stands in the chapter; each question says
# where.
#
# Write your answer where it says `YOUR CODE HERE`, run the cell, then run the `check`
# below it. It tells you at once how many points you have and, if something is wrong, what
# it looks like you were thinking. You can check as often as you like; nothing is sent
# anywhere. Your progress is kept beside this notebook.
#
# **Time** about 60 minutes. No GPU needed.

# %%
import math

import torch
import torch.nn.functional as F

from course_utils.checks import check, progress

# %% [markdown]
# ## 12.1 The decoder's block (4 points)
#
# Three layers are given, and a norm: `attend(asking, asked, w, causal)`, in which the
# tokens of the first argument look at those of the second, and `think(x, w)`. Build the
# decoder's block of them, in the **pre-norm** order. `w[0]` belongs to the look back,
# `w[1]` to the look across, `w[2]` to the thinking. (See *The decoder's block*.)

# %%
def norm(x):
    return F.layer_norm(x, x.shape[-1:])


def attend(asking, asked, w, causal=False):
    scores = asking @ w @ asked.mT / asked.shape[-1] ** 0.5
    if causal:
        future = torch.ones(scores.shape[-2:]).triu(1).bool()
        scores = scores.masked_fill(future, -torch.inf)
    return torch.softmax(scores, dim=-1) @ asked


def think(x, w):
    return torch.relu(x @ w)


# %% [markdown]
# Your block:

# %%
def decoder_block(x, memory, w):
    """Look back, look across, think, each added to the stream.

    x (…, target, d_model), memory (…, source, d_model), w (3, d_model, d_model)
    returns (…, target, d_model)
    """
    ### BEGIN SOLUTION
    read = norm(x)
    x = x + attend(read, read, w[0], causal=True)
    x = x + attend(norm(x), memory, w[1])
    return x + think(norm(x), w[2])
    ### END SOLUTION


# %%
check("12.1", decoder_block)


# %% [markdown] tags=["solution"]
# Only the look back is masked: the source is known as a whole. The memory is not normed
# again, since the encoder's stack ends with a norm of its own.

# %% [markdown]
# ## 12.2 Two masks (4 points)
#
# A batch of sources, filled up with padding to `n_source` places; `lengths` says how many
# real tokens each has. Return the target's own mask, `(target, key)`, and the mask of the
# cross-attention, `(batch, target, source)`. Both are of booleans, **True where looking is
# allowed**. (See the table in *What is missing*, and chapter 09.)

# %%
def masks(lengths, n_source, n_target):
    """Return the masks of self- and cross-attention of a decoder.

    lengths (batch,) of whole numbers; returns own (target, target) and
    cross (batch, target, source), both of booleans
    """
    ### BEGIN SOLUTION
    own = torch.ones(n_target, n_target).tril().bool()
    real = torch.arange(n_source) < lengths[:, None]  # (batch, source)
    return own, real[:, None].expand(-1, n_target, -1)
    ### END SOLUTION


# %%
check("12.2", masks)


# %% [markdown] tags=["solution"]
# The padding of the *target* needs no mask: it stands at the end, and no real word looks
# that far ahead. What padding itself finds is thrown away by the loss.

# %% [markdown]
# ## 12.3 How many parameters has a block? (3 points)
#
# Count the parameters of a block of the encoder and of a block of the decoder, for any
# `d_model` and `d_hidden`. Attention has projections for queries, keys, values and the
# output, all with biases; the feed-forward layer has two matrices with biases; every
# layer has a norm with a scale and a shift for each feature. (See *The decoder's block*
# and chapters 10 and 11. The number of heads does not matter.)

# %%
def count(d_model, d_hidden):
    """Return the numbers of parameters of an encoder's and of a decoder's block."""
    ### BEGIN SOLUTION
    attention = 4 * d_model**2 + 4 * d_model
    feed_forward = 2 * d_model * d_hidden + d_hidden + d_model
    norm = 2 * d_model
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    return encoder, decoder
    ### END SOLUTION


# %%
check("12.3", count)


# %% [markdown] tags=["solution"]
# For the model of 2017 ($d_{model} = 512$, $d_{hidden} = 2048$) that is about 3.2 and 4.2
# million; six of each make 44 million, and the table of words comes on top.

# %% [markdown]
# ## 12.4 Label smoothing (3 points)
#
# The loss of a sentence with smoothed labels: for every token
#
# $$(1 - \varepsilon)\,(-\log p_{right}) + \varepsilon\, \frac1V \sum_v (-\log p_v),$$
#
# and the mean over the tokens. Write it from the scores. (See *Three habits of training*.)

# %%
def smoothed_loss(logits, right, epsilon):
    """Return the mean smoothed cross-entropy.

    logits (token, word), right (token,) the ids of the right words, epsilon a number
    """
    ### BEGIN SOLUTION
    log_p = torch.log_softmax(logits, dim=-1)
    chosen = log_p.gather(-1, right[:, None])[:, 0]
    return -((1 - epsilon) * chosen + epsilon * log_p.mean(dim=-1)).mean()
    ### END SOLUTION


# %%
check("12.4", smoothed_loss)


# %% [markdown] tags=["solution"]
# With $\varepsilon = 0$ it is the cross-entropy. The smallest possible loss is no longer
# 0, so losses with different $\varepsilon$ can't be compared.

# %% [markdown]
# ## 12.5 Warm-up and cosine (3 points)
#
# The learning rate of a step, counted from 0: it rises in a line and reaches `lr` with
# the last step of the warm-up; after it, it falls from `lr` to 0 along half a wave of the
# cosine, while $t$, the done fraction of the *rest*, goes from 0 to 1. (See *Three habits
# of training*.)

# %%
def rate(step, steps, lr, warmup):
    """Return the learning rate of a step, for 0 <= step < steps and warmup < steps."""
    ### BEGIN SOLUTION
    if step < warmup:
        return lr * (step + 1) / warmup
    t = (step - warmup) / (steps - warmup)
    return lr * (1 + math.cos(math.pi * t)) / 2
    ### END SOLUTION


# %%
check("12.5", rate)


# %% [markdown] tags=["solution"]
# `step + 1`: with `step` alone the first step would be wasted.

# %% [markdown]
# ## 12.6 One step of beam search (4 points)
#
# Some beams stand at `log_p`, their log-probabilities so far. `gain[i, v]` is the
# log-probability of word $v$ after beam $i$. Keep as many continuations as there are
# beams, the most probable of **all**, best first. Return for each the number of the beam
# it continues, its word, and its new log-probability. (See *Look further than the next
# word*. No beam has ended yet, and there is no length penalty.)

# %%
def extend(log_p, gain):
    """Return parent, word and log-probability of the best continuations.

    log_p (beam,), gain (beam, word); returns three tensors (beam,)
    """
    ### BEGIN SOLUTION
    total = log_p[:, None] + gain
    best = total.flatten().topk(len(log_p))
    n_words = gain.shape[1]
    return best.indices // n_words, best.indices % n_words, best.values
    ### END SOLUTION


# %%
check("12.6", extend)

# %% [markdown] tags=["solution"]
# A good beam may have several children, and a bad one none: that is the difference to
# letting each beam go on by itself.

# %% [markdown]
# ## How far you are

# %%
progress()
