"""Layers that carry a state instead of looking back, and a convolution beside them.

All take a stream `(batch, token, d_model)` and give back one of the same shape; none
sees a later token. A recurrence that is *linear* in its state need not be computed one
token after the other: `linear_scan` does it in few, large steps.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.shapes import Float, require_sequence, require_sizes, shape_of


def scan_by_doubling(
    decay: Float[Tensor, "*batch token d"], added: Float[Tensor, "*batch token d"]
) -> tuple[Float[Tensor, "*batch token d"], Float[Tensor, "*batch token d"]]:
    """Take all steps $h_t = decay_t h_{t-1} + z_t$ of a linear recurrence at once.

    Two steps in a row are one step again, with the decay $decay_t decay_{t-1}$ and
    $decay_t z_{t-1} + z_t$ added: after round $r$ every token has joined $2^r$ steps.
    Starts from $h_0 = 0$. Returns the products of the decays and the states. Taught in
    chapter 15.
    """
    n_tokens, reach = added.shape[-2], 1
    while reach < n_tokens:
        past = F.pad(added, (0, 0, reach, 0))[..., :n_tokens, :]
        past_decay = F.pad(decay, (0, 0, reach, 0), value=1.0)[..., :n_tokens, :]
        added, decay = added + decay * past, decay * past_decay
        reach *= 2
    return decay, added


def linear_scan(
    decay: Float[Tensor, "batch token d"],
    added: Float[Tensor, "batch token d"],
    chunk: int = 64,
) -> Float[Tensor, "batch token d"]:
    """Compute $h_t = decay_t h_{t-1} + z_t$ for all $t$, with $h_0 = 0$.

    Doubling inside chunks, all of them at once, then one step from chunk to chunk:
    $log_2(chunk) + n / chunk$ steps one after the other. Taught in chapter 15.
    """
    require_scan(decay, added, chunk)
    n_tokens = added.shape[1]
    chunk = min(chunk, n_tokens)
    missing = -n_tokens % chunk
    parts = [F.pad(x, (0, 0, 0, missing)) for x in (decay, added)]
    decays, states = scan_by_doubling(*(x.unflatten(1, (-1, chunk)) for x in parts))
    last, joined = torch.zeros_like(added[:, 0]), []
    for chunk_decay, chunk_states in zip(decays.unbind(1), states.unbind(1)):
        joined.append(chunk_states + chunk_decay * last[:, None])
        last = joined[-1][:, -1]
    return torch.cat(joined, dim=1)[:, :n_tokens]


def require_scan(decay: Tensor, added: Tensor, chunk: int) -> None:
    """Refuse what is not two equal streams of at least one token, naming what came."""
    if added.dim() != 3 or decay.shape != added.shape or added.shape[1] == 0:
        raise ValueError(
            f"linear_scan got decay {shape_of(decay)} and added {shape_of(added)}, "
            "expected two tensors of one shape (batch, token, d) with at least one "
            "token; a decay that is the same for all needs `.expand_as(added)`."
        )
    if chunk < 1:
        raise ValueError(f"chunk is {chunk}, expected 1 or more (64 is a good size).")


class StateSpace(nn.Module):
    """A minimal state-space layer: every channel keeps a running average of its input.

    $h_t = decay_t * h_{t-1} + (1 - decay_t) * u_t$ with $u_t = x_t W_u$, and $y_t =
    (h_t * silu(x_t W_g)) W_o$. The decay is a learned constant of the channel, or,
    `selective`, depends on the token: $decay_t = sigmoid(x_t W + b)$. Taught in chapter
    15.
    """

    def __init__(self, d_model: int, selective: bool = True):
        super().__init__()
        require_sizes(d_model=d_model)
        self.input = nn.Linear(d_model, d_model)
        self.gate = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        renewed = torch.logspace(-9, -1, d_model, base=2)  # from 1/512 to 1/2 a step
        self.bias = nn.Parameter(torch.log((1 - renewed) / renewed))
        self.decay = nn.Linear(d_model, d_model, bias=False) if selective else None

    def coefficients(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the decay and what is added, (1 - decay_t) u_t, of every token."""
        chosen = 0.0 if self.decay is None else self.decay(x)
        decay = torch.sigmoid(chosen + self.bias).expand_as(x)
        return decay, (1 - decay) * self.input(x)

    def forward(
        self, x: Float[Tensor, "batch token d_model"]
    ) -> Float[Tensor, "batch token d_model"]:
        require_sequence(x, self.output.in_features)
        return self.output(linear_scan(*self.coefficients(x)) * F.silu(self.gate(x)))

    def step(
        self,
        x: Float[Tensor, "batch d_model"],
        state: Float[Tensor, "batch d_model"],
    ) -> tuple[Float[Tensor, "batch d_model"], Float[Tensor, "batch d_model"]]:
        """Read one token: return its output and the new state, all that is kept."""
        decay, added = self.coefficients(x)
        state = decay * state + added
        return self.output(state * F.silu(self.gate(x))), state


class CausalConvolution(nn.Module):
    """Residual causal convolutions, each reaching twice as far back as the one before.

    $x_t <- x_t + relu(sum_i W_i x_{t - i 2^l})$ in layer $l$: token $t$ sees the
    `reach` tokens that end with it, and no other. Used in chapter 15.
    """

    def __init__(self, d_model: int, kernel: int = 3, n_layers: int = 3):
        super().__init__()
        require_sizes(d_model=d_model, kernel=kernel, n_layers=n_layers)
        self.d_model, self.kernel = d_model, kernel
        self.layers = nn.ModuleList(
            nn.Conv1d(d_model, d_model, kernel, dilation=2**layer)
            for layer in range(n_layers)
        )
        self.reach = 1 + (kernel - 1) * (2**n_layers - 1)

    def forward(
        self, x: Float[Tensor, "batch token d_model"]
    ) -> Float[Tensor, "batch token d_model"]:
        require_sequence(x, self.d_model)
        channels = x.transpose(1, 2)
        for number, layer in enumerate(self.layers):
            before = (self.kernel - 1) * 2**number
            channels = channels + F.relu(layer(F.pad(channels, (before, 0))))
        return channels.transpose(1, 2)


check_arguments(__name__)
