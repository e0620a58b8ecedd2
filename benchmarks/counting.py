"""A network that weighs what counting models think, raced against counting itself.

log p = log_softmax(h W + sum_i a_i(h) log p_i): the package's GPT reads 64 characters
and returns h; p_i are Kneser-Ney and, if allowed, Kneser-Ney with a cache. Chapter 13
tells the story. The clock is the processor's and runs while the text is counted, too.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.recipes import WINDOW, linear
from course_utils.data.sequences import consecutive_windows
from course_utils.models.transformer import GPT
from course_utils.tasks import counting
from course_utils.training.muon import Muon, block_matrices

ORDERS = (7, 12, 20)  # of Kneser-Ney, for the opponent; chosen on the validation part
ORDER = 12  # of the counts that the network is told


class Weigher(nn.Module):
    """Add a network's own logits to the counts' opinions, each weighed by its state."""

    def __init__(self, n_tokens: int, experts: int, width: int = 64):
        super().__init__()
        shape = {"d_model": width, "n_heads": 2, "n_layers": 2, "tied": False}
        how = {"positions": "rotary", "activation": "relu2"}
        self.gpt = GPT(n_tokens, WINDOW, **shape, **how)  # type: ignore[arg-type]
        self.trust = nn.Linear(width, experts)
        nn.init.zeros_(self.gpt.head.weight)  # it starts as the last expert alone
        nn.init.zeros_(self.trust.weight)
        with torch.no_grad():
            self.trust.bias.copy_(torch.eye(experts)[-1])

    def forward(self, tokens: Tensor, log_p: Tensor) -> Tensor:
        """Logits of the next token, from tokens and the experts' log-probabilities."""
        h, _ = self.gpt.read(tokens)
        weighed = (self.trust(h)[..., None, :] @ log_p)[..., 0, :]
        return self.gpt.head(h) + weighed  # type: ignore[no-any-return]


def experts(part: str, cache: bool) -> tuple[Tensor, Tensor]:
    """A part of the text as ids, and (token, expert, character) log-probabilities."""
    ids, log_p = counting.counted_pydoc(ORDER)[part]
    some = log_p if cache else log_p[:1]
    return torch.from_numpy(ids), torch.from_numpy(some).transpose(0, 1)


def trained(seconds: float, seed: int, cache: bool) -> Weigher:
    """A weigher after so much processor time, counting included."""
    counting.counted_pydoc.cache_clear()
    began = time.process_time()
    ids, log_p = experts("train", cache)
    counted = time.process_time() - began
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Weigher(counting.counted_pydoc(ORDER)["n_tokens"], log_p.shape[1])
    fused, single = block_matrices(model.gpt.blocks)
    taken = {id(p) for p in fused + single}
    rest = [p for p in model.parameters() if id(p) not in taken]
    groups: list[dict[str, Any]] = [{"params": fused, "parts": 3}, {"params": single}]
    matrices = Muon(groups, lr=0.01)
    others = torch.optim.AdamW(rest, lr=8e-3, betas=(0.9, 0.99), weight_decay=0.0)
    while (spent := time.process_time() - began) < seconds:
        factor = linear((spent - counted) / max(seconds - counted, 1e-9))
        for optimiser, peak in ((matrices, 0.01), (others, 8e-3)):
            for group in optimiser.param_groups:
                group["lr"] = peak * factor
        at = torch.randint(len(ids) - WINDOW, (16, 1), generator=generator)
        at = at + torch.arange(WINDOW)
        logits = model(ids[at], log_p[at])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[at + 1].flatten())
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        matrices.step()
        others.step()
    return model


@torch.inference_mode()
def bits(model: Weigher, part: str, cache: bool) -> float:
    """Bits a character that the network needs for a part of the text."""
    ids, log_p = experts(part, cache)
    read, following = consecutive_windows(ids, WINDOW)
    total = 0.0
    for i in range(0, len(read), 50):
        x, y = read[i : i + 50], following[i : i + 50]
        told = log_p[i * WINDOW : i * WINDOW + x.numel()].unflatten(0, x.shape)
        logits = model(x, told).flatten(0, 1)
        total += F.cross_entropy(logits, y.flatten(), reduction="sum").item()
    return total / following.numel() / float(np.log(2))


def counted_bits(part: str, cache: bool) -> float:
    """Bits a character of the best counting model, its order chosen on validation."""

    def of(order: int, part: str) -> float:
        ids, log_p = counting.counted_pydoc(order)[part]
        return counting.bits(ids, log_p[int(cache)])

    return of(min(ORDERS, key=lambda order: of(order, "validation")), part)
