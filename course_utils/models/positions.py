"""Positions: five ways to tell attention, which sees a set, where each token stands.

Absolute positions are added to the tokens (`sinusoidal`, `LearnedPositions`); relative
ones act on the scores, as a bias (`RelativeBias`, `alibi`) or by turning queries and
keys (`rotary`). Where there are more keys than queries the last query stands at the
last key, as in `causal_mask`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.shapes import Float, Int, Shaped, require_sizes, shape_of


def require_even(d_model: int, name: str = "d_model") -> None:
    """Refuse a width whose features do not come in pairs."""
    if d_model < 2 or d_model % 2:
        raise ValueError(
            f"{name} = {d_model}, expected an even number: the features come in pairs "
            "(sine, cosine); add or drop one."
        )


def frequencies(
    d_model: int, device: torch.device | None = None, base: float = 10000.0
) -> Float[Tensor, "pair"]:
    """Return how far each pair of features turns per position, from fast to slow.

    $omega_i = base^(-2i / d_model)$, $i = 0, …, d_model / 2 - 1$: wavelengths from $2
    pi$ towards $2 pi base$. Taught in chapter 08.
    """
    require_even(d_model)
    return base ** (-torch.arange(0, d_model, 2, device=device) / d_model)


def sinusoidal(
    n_tokens: int,
    d_model: int,
    device: torch.device | None = None,
    base: float = 10000.0,
) -> Float[Tensor, "token d_model"]:
    """Give every position a pattern of waves, fixed and without end.

    $PE[t, 2i] = sin(t omega_i)$, $PE[t, 2i + 1] = cos(t omega_i)$ with the angles of
    `frequencies`: sines and cosines take turns. Taught in chapter 08.
    """
    require_sizes(n_tokens=n_tokens)
    positions = torch.arange(n_tokens, device=device)
    angles = positions[:, None] * frequencies(d_model, device, base)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class LearnedPositions(nn.Module):
    """A table with one learned vector per position, up to `max_length` of them.

    $PE[t]$ is row $t$ of the table. Taught in chapter 08.
    """

    def __init__(self, max_length: int, d_model: int, std: float = 0.02):
        super().__init__()
        require_sizes(max_length=max_length, d_model=d_model)
        self.table = nn.Parameter(torch.randn(max_length, d_model) * std)

    def forward(self, n_tokens: int, first: int = 0) -> Float[Tensor, "token d_model"]:
        """Return the rows of `n_tokens` positions, counted from `first`."""
        max_length = len(self.table)
        if min(first, n_tokens) < 0 or first + n_tokens > max_length:
            raise ValueError(
                f"{first + n_tokens} tokens, but the table of positions was built for "
                f"{max_length}, counted from 0 (first = {first}); shorten the sequence "
                "or build it with a larger max_length."
            )
        return self.table[first : first + n_tokens]


def distances(
    n_queries: int, n_keys: int, device: torch.device | None = None
) -> Int[Tensor, "query key"]:
    """Return how far behind each query a key stands: $D_ij = i - j$, below 0 if ahead.

    Taught in chapter 08.
    """
    if n_queries < 1 or n_keys < n_queries:
        raise ValueError(
            f"{n_queries} queries and {n_keys} keys, expected at least one query and "
            "no fewer keys than queries: the last query stands at the last key."
        )
    keys = torch.arange(n_keys, device=device)
    return keys[n_keys - n_queries :, None] - keys


class RelativeBias(nn.Module):
    """One learned number per head and distance, added to the scores (as in T5).

    $S_ij + b[h, i - j]$, distances clipped at plus and minus `max_distance`: far tokens
    share the last entry, so that there is one for any length. A `scale` above 1 speeds
    up its learning. Taught in chapter 08.
    """

    def __init__(self, n_heads: int, max_distance: int, scale: float = 1.0):
        super().__init__()
        require_sizes(n_heads=n_heads, max_distance=max_distance)
        self.max_distance, self.scale = max_distance, scale
        self.table = nn.Parameter(torch.zeros(n_heads, 2 * max_distance + 1))

    def forward(
        self, n_queries: int, n_keys: int | None = None
    ) -> Float[Tensor, "head query key"]:
        """Return the bias of every pair of query and key."""
        n_keys = n_queries if n_keys is None else n_keys
        apart = distances(n_queries, n_keys, self.table.device)
        entry = apart.clamp(-self.max_distance, self.max_distance) + self.max_distance
        return self.scale * self.table[:, entry]


def alibi_slopes(
    n_heads: int, device: torch.device | None = None
) -> Float[Tensor, "head"]:
    """Return each head's rate, by the rule of those who published ALiBi.

    $m_h = 2^(-8h/H)$, $h = 1, …, H$, for a power of two. For any other number the
    largest power of two below it, then every second slope of twice as many: 1st, 3rd,
    5th, … Taught in chapter 08.
    """
    require_sizes(n_heads=n_heads)
    power = 2 ** (n_heads.bit_length() - 1)  # the largest power of two up to n_heads
    heads = torch.arange(1, power + 1, device=device)
    slopes = 2.0 ** (-8.0 * heads / power)
    between = 2.0 ** (-8.0 * (2 * heads - 1) / (2 * power))
    return torch.cat([slopes, between[: n_heads - power]])


def alibi(
    n_heads: int,
    n_queries: int,
    n_keys: int | None = None,
    symmetric: bool = False,
    device: torch.device | None = None,
) -> Float[Tensor, "head query key"]:
    """Penalise distance, each head at its own rate, with nothing learned.

    $B[h, i, j] = -m_h max(i - j, 0)$, $m_h$ from `alibi_slopes`: the past fades, the
    future is left to the causal mask. With `symmetric=True` it is $|i - j|$, which
    cannot tell a sequence from its mirror image. Taught in chapter 08.
    """
    slopes = alibi_slopes(n_heads, device)
    n_keys = n_queries if n_keys is None else n_keys
    apart = distances(n_queries, n_keys, device)
    apart = apart.abs() if symmetric else apart.clamp(min=0)
    return -slopes[:, None, None] * apart


def rotations(
    positions: Int[Tensor, "token"], d_head: int, base: float = 10000.0
) -> Shaped[Tensor, "token pair"]:
    """Return the turn of every position and pair as a complex number $e^(i t omega_i)$.

    Taught in chapter 08.
    """
    angles = positions[:, None] * frequencies(d_head, positions.device, base)
    return torch.polar(torch.ones_like(angles), angles)


def rotate(
    x: Float[Tensor, "*batch token d_head"], rotation: Shaped[Tensor, "token pair"]
) -> Float[Tensor, "*batch token d_head"]:
    """Turn each pair of features in its plane: a complex product.

    $(x_2i + i x_{2i+1}) e^(i t omega_i)$, read as two real features again.
    Taught in chapter 08.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))  # no complex bf16
    pairs = torch.view_as_complex(wide.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * rotation).flatten(-2).type_as(x)


def rotary(
    x: Float[Tensor, "*batch token d_head"], positions: Int[Tensor, "token"]
) -> Float[Tensor, "*batch token d_head"]:
    """Turn queries and keys by their position, so that scores see only distance (RoPE).

    $(x_2i, x_{2i+1})$ turned by the angle $t omega_i$: norms stay, and $R_s q . R_t k$
    depends on $q$, $k$ and $s - t$ alone. Taught in chapter 08.
    """
    if positions.dim() != 1 or len(positions) != x.shape[-2]:
        raise ValueError(
            f"positions has shape {shape_of(positions)}, expected one number for each "
            f"of the {x.shape[-2]} tokens of x {shape_of(x)}: "
            "`torch.arange(x.shape[-2])`."
        )
    return rotate(x, rotations(positions, x.shape[-1]))


def to_halves(x: Float[Tensor, "*batch d_head"]) -> Float[Tensor, "*batch d_head"]:
    """Put the first feature of every pair into the first half, the second behind.

    $(x_0, x_1, x_2, x_3)$ becomes $(x_0, x_2, x_1, x_3)$: from RoPE's layout of 2021,
    pairs of neighbours, to that of GPT-NeoX and Llama, pairs of halves.
    Taught in chapter 16.
    """
    require_even(x.shape[-1], "d_head")
    return x.unflatten(-1, (-1, 2)).transpose(-2, -1).flatten(-2)


def to_neighbours(x: Float[Tensor, "*batch d_head"]) -> Float[Tensor, "*batch d_head"]:
    """Undo `to_halves`: $(x_0, x_2, x_1, x_3)$ becomes $(x_0, x_1, x_2, x_3)$.

    Taught in chapter 16.
    """
    require_even(x.shape[-1], "d_head")
    return x.unflatten(-1, (2, -1)).transpose(-2, -1).flatten(-2)


def rotate_halves(
    x: Float[Tensor, "*batch token d_head"], rotation: Shaped[Tensor, "..."]
) -> Float[Tensor, "*batch token d_head"]:
    """Turn feature $i$ with feature $i + d_head / 2$, as Llama's RoPE does.

    The same as `to_halves(rotate(to_neighbours(x)))`, with nothing moved.
    Taught in chapter 16.
    """
    require_even(x.shape[-1], "d_head")
    first, second = x.chunk(2, dim=-1)
    cos, sin = rotation.real, rotation.imag
    turned = [first * cos - second * sin, second * cos + first * sin]
    return torch.cat(turned, dim=-1).type_as(x)


check_arguments(__name__)
