"""What today's models chose differently from 2017's: a list of switches.

`LLAMA` and `NANOCHAT` are two settings that are in use; `dataclasses.replace` changes
one switch of either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.models.blocks import activation_named

NORMS = ("layer", "rms", "plain")  # plain: RMSNorm with no weights
GATED = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu"}  # and their activations
LAYOUTS = ("neighbours", "halves")


@dataclass(frozen=True)
class Choices:
    """What may differ between today's blocks and chapter 11's, which has the defaults.

    `windows` is repeated over the layers: (64, None) lets every second layer see all.
    """

    norm: str = "layer"
    eps: float = 1e-5
    feed_forward: str = "gelu"
    bias: bool = True
    n_kv_heads: int | None = None  # None: as many as heads
    qk_norm: bool = False
    soft_cap: float | None = None  # of the scores
    windows: Sequence[int | None] = (None,)
    positions: str = "learned"
    base: float = 10000.0
    layout: str = "neighbours"
    norm_embedding: bool = False
    tied: bool = True
    logit_cap: float | None = None
    zero_start: bool = False
    dropout: float = 0.0
    attention_dropout: float = 0.0

    def __post_init__(self) -> None:
        places = ("learned", "rotary", "alibi", "none")
        for name, known in (
            ("norm", NORMS),
            ("layout", LAYOUTS),
            ("positions", places),
        ):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}, expected one of {known}."
                )
        activation_named(GATED.get(self.feed_forward, self.feed_forward))


LLAMA = Choices(
    norm="rms",
    feed_forward="swiglu",
    bias=False,
    positions="rotary",
    layout="halves",
    tied=False,
)
NANOCHAT = Choices(
    norm="plain",
    feed_forward="relu2",
    bias=False,
    qk_norm=True,
    positions="rotary",
    layout="halves",
    norm_embedding=True,
    tied=False,
    logit_cap=15.0,
    zero_start=True,
)
