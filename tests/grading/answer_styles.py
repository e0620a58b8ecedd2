"""The same right answer to 06.1, attention, in the styles that people write."""

from __future__ import annotations

STYLES = {
    "printing": """
def attention(queries, keys, values):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    print("scores", scores, scores.shape)
    weights = scores.softmax(dim=-1)
    print(f"{weights}", f"{weights.mean():.3f}")
    return weights @ values, weights
""",
    "plotting": """
import matplotlib.pyplot as plt
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    plt.figure()
    plt.imshow(weights.reshape(-1, weights.shape[-1]).numpy())
    plt.show()
    return weights @ values, weights
""",
    "display": """
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    display(weights.shape)
    return weights @ values, weights
""",
    "type hints": """
from torch import Tensor
def attention(queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    d_k: int = queries.size(-1)
    weights: Tensor = torch.softmax(queries @ keys.transpose(-2, -1) / d_k**0.5, dim=-1)
    return weights @ values, weights
""",
    "dataclass": """
from dataclasses import dataclass
@dataclass
class Scale:
    d_k: int
    def __call__(self, scores):
        return scores / self.d_k ** 0.5
def attention(queries, keys, values):
    weights = Scale(queries.shape[-1])(queries @ keys.mT).softmax(-1)
    return weights @ values, weights
""",
    "lambda": """
exp = lambda s: (s - s.amax(-1, keepdim=True)).exp()
soft = lambda s: (lambda e: e / e.sum(-1, keepdim=True))(exp(s))
attention = lambda q, k, v: (lambda w: (w @ v, w))(soft(q @ k.mT / q.shape[-1] ** 0.5))
""",
    "nested functions": """
def attention(queries, keys, values):
    def score(q, k):
        def scale(s):
            return s / math.sqrt(q.shape[-1])
        return scale(q @ k.mT)
    def normalise(s):
        return torch.exp(s) / torch.exp(s).sum(-1, keepdim=True)
    weights = normalise(score(queries, keys))
    return weights @ values, weights
""",
    "globals": """
scale_of = {}
last = None
def attention(queries, keys, values):
    global last
    scale_of["d_k"] = queries.shape[-1]
    last = torch.softmax(queries @ keys.mT / scale_of["d_k"] ** 0.5, dim=-1)
    return last @ values, last
""",
    "comments in other languages": """
def attention(queries, keys, values):
    # 注意力: 先算分数 — exec(这里), eval(там)
    # Les poids somment à un; сумма весов равна единице
    größe = queries.shape[-1]
    poids = torch.softmax(queries @ keys.mT / größe ** 0.5, dim=-1)
    return poids @ values, poids
""",
    "try and except": """
def attention(queries, keys, values):
    try:
        scores = queries @ keys.T / math.sqrt(queries.shape[-1])
    except RuntimeError:
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    try:
        weights = scores.softmax(dim=-1)
    finally:
        pass
    return weights @ values, weights
""",
    "recursion": """
def attention(queries, keys, values, depth=2):
    if depth:
        return attention(queries, keys, values, depth - 1)
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1)
    return weights @ values, weights
""",
    "caching": """
from functools import lru_cache, partial
@lru_cache(maxsize=None)
def root(n):
    return math.sqrt(n)
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / root(queries.shape[-1]), dim=-1)
    return weights @ values, weights
""",
    "context managers": """
from contextlib import contextmanager, nullcontext
@contextmanager
def quiet():
    yield
def attention(queries, keys, values):
    with torch.no_grad(), quiet(), nullcontext():
        weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1)
        return weights @ values, weights
""",
    "einsum": """
def attention(queries, keys, values):
    scores = torch.einsum("...qd,...kd->...qk", queries, keys)
    weights = torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1)
    return torch.einsum("...qk,...kd->...qd", weights, values), weights
""",
    "einops": """
from einops import einsum, rearrange
def attention(queries, keys, values):
    scores = queries @ rearrange(keys, "... k d -> ... d k") / queries.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    return einsum(weights, values, "... q k, ... k d -> ... q d"), weights
""",
    "functional": """
import torch.nn.functional as F
def attention(queries, keys, values):
    scores = torch.matmul(queries, keys.transpose(-1, -2)).div(queries.size(-1) ** 0.5)
    weights = F.softmax(scores, dim=-1)
    return torch.matmul(weights, values), weights
""",
    "a class with a method": """
class Attention:
    def __init__(self):
        self.weights = None
    def __call__(self, queries, keys, values):
        self.weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
        return self.weights @ values, self.weights
attention = Attention()
""",
    "a module": """
from torch import nn
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)
    def forward(self, queries, keys, values):
        weights = self.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5)
        return weights @ values, weights
attention = Attention()
""",
    "dropout that is off": """
class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.1)
    def forward(self, queries, keys, values):
        weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
        return self.dropout(weights) @ values, weights
attention = Attention().eval()
""",
    "a decorator that times": """
import functools, time
def timed(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        began = time.perf_counter()
        result = f(*args, **kwargs)
        print(f"{time.perf_counter() - began:.4f} s")
        return result
    return inner
@timed
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
""",
    "assertions on shapes": """
def attention(queries, keys, values):
    *batch, n, d = queries.shape
    assert keys.shape[-1] == d, f"{keys.shape}"
    weights = torch.softmax(queries @ keys.mT / d ** 0.5, -1)
    assert weights.shape[-2:] == (n, keys.shape[-2])
    assert torch.allclose(weights.sum(-1), torch.ones(n))
    assert not weights.isnan().any()
    return weights @ values, weights
""",
    "in place": """
def attention(queries, keys, values):
    scores = queries @ keys.mT
    scores /= queries.shape[-1] ** 0.5
    scores -= scores.max(dim=-1, keepdim=True).values
    scores.exp_()
    scores /= scores.sum(-1, keepdim=True)
    return scores @ values, scores
""",
    "gradients on": """
def attention(queries, keys, values):
    queries = queries.clone().requires_grad_()
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return (weights @ values).detach(), weights.detach()
""",
    "another device by name": """
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
def attention(queries, keys, values):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    queries, keys, values = queries.to(device), keys.to(device), values.to(device)
    root = torch.tensor(queries.shape[-1], device=device).sqrt()
    weights = torch.softmax(queries @ keys.mT / root, -1)
    return weights @ values, weights
""",
    "logging": """
import logging, warnings
log = logging.getLogger("mine")
def attention(queries, keys, values):
    log.warning("shapes %s", queries.shape)
    warnings.warn("careful")
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
""",
    "keywords and defaults": """
def attention(queries, keys, values, *, dim=-1, scale=None, mask=None, **more):
    scale = scale or 1 / queries.shape[-1] ** 0.5
    scores = queries @ keys.mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=dim)
    return weights @ values, weights
""",
    "match and walrus": """
def attention(queries, keys, values):
    match queries.ndim:
        case 2 | 3 | 4:
            pass
        case _:
            raise ValueError
    if (d := queries.shape[-1]) > 0:
        weights = torch.softmax(queries @ keys.mT / d ** 0.5, -1)
    return (weights @ values, weights)
""",
    "a star call": """
def both(weights, values):
    return weights @ values, weights
def attention(*given, **named):
    q, k, v = given
    return both(*(torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1), v))
""",
    "numpy's root": """
import numpy as np
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / np.sqrt(queries.shape[-1]), -1)
    return weights @ values, weights
""",
    "a dispatch mode left on": """
from torch.utils.flop_counter import FlopCounterMode
counter = FlopCounterMode(display=False)
counter.__enter__()
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
""",
    "a mode left on inside": """
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
class Named(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
class Counted(TorchDispatchMode):
    count = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))
def attention(queries, keys, values):
    Named().__enter__()
    Counted().__enter__()
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
""",
    "a profiler left on": """
import cProfile
profiler = cProfile.Profile()
profiler.enable()
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
""",
    "numpy": """
import numpy as np
def attention(queries, keys, values):
    scores = queries.numpy() @ np.swapaxes(keys.numpy(), -1, -2)
    scores = scores / np.sqrt(queries.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return torch.from_numpy(weights @ values.numpy()), torch.from_numpy(weights)
""",
    "a loop": """
def attention(queries, keys, values):
    if queries.ndim > 2:
        pairs = [attention(*rows) for rows in zip(queries, keys, values)]
        return tuple(torch.stack(both) for both in zip(*pairs))
    rows = [torch.softmax(keys @ q / q.shape[-1] ** 0.5, -1) for q in queries]
    weights = torch.stack(rows)
    return weights @ values, weights
""",
    "a profiler inside": """
def attention(queries, keys, values):
    with torch.autograd.profiler.record_function("attention"), torch.inference_mode():
        weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
        return weights @ values, weights
""",
    "await inside": """
import asyncio
async def slowly(x):
    await asyncio.sleep(0)
    return x
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
await slowly(attention(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4, 1)))
""",
    "the shell inside": """
def attention(queries, keys, values):
    get_ipython().run_line_magic("who", "")
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
""",
    "a command inside": """
def attention(queries, keys, values):
    here = !pwd
    %time seen = queries.mean() + keys.mean()
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
""",
    "torch.compile": """
@torch.compile
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
""",
    "jit script": """
@torch.jit.script
def attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor):
    scores = queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5
    weights = torch.softmax(scores, -1)
    return weights @ values, weights
""",
    "vmap": """
def one(q, k, v):
    w = torch.softmax(k @ q / q.shape[-1] ** 0.5, -1)
    return w @ v, w
def attention(queries, keys, values):
    if queries.ndim > 2:
        return torch.vmap(attention)(queries, keys, values)
    return torch.vmap(one, in_dims=(0, None, None))(queries, keys, values)
""",
    "float64 inside": """
def attention(queries, keys, values):
    q, k, v = queries.double(), keys.double(), values.double()
    weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
    return (weights @ v).float(), weights.float()
""",
    "generator": """
def steps(q, k, v):
    s = q @ k.mT / q.shape[-1] ** 0.5
    yield s
    w = s.softmax(-1)
    yield w
    yield w @ v
def attention(queries, keys, values):
    _, weights, context = steps(queries, keys, values)
    return context, weights
""",
    "named tuple": """
from typing import NamedTuple
class Out(NamedTuple):
    context: object
    weights: object
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return Out(weights @ values, weights)
""",
    "mean in a print of a loop": """
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    for i, row in enumerate(weights.reshape(-1, weights.shape[-1])[:2]):
        print(i, row.argmax().item())
    return weights @ values, weights
""",
    "a pool of threads": """
from concurrent.futures import ThreadPoolExecutor
def attention(queries, keys, values):
    with ThreadPoolExecutor(2) as pool:
        print(list(pool.map(len, (queries, keys))))
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
""",
    "a bar that starts a thread": """
from tqdm import tqdm
def attention(queries, keys, values):
    for _ in tqdm(range(2), bar_format="{n}"):
        weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return weights @ values, weights
""",
    "a list": """
def attention(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)
    return [weights @ values, weights]
""",
}
# what a recorded program can't show: right, and a person is told
UNSEEN = {
    "a loop",
    "a profiler inside",
    "jit script",
    "numpy",
    "vmap",
}
POINTS = {"a loop": 3}  # and 4 for all others
