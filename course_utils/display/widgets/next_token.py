"""A GPT that writes in the page, token by token, with the bars that it draws from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.data.bpe import BytePairEncoder
from course_utils.display.interactive import (
    Widget,
    button,
    script_of,
    slider,
    text,
    widget,
)
from course_utils.display.quantised_export import gpt_in_page, unpack
from course_utils.display.widgets.live_transformer import weights_element
from course_utils.models.transformer import GPT

ROWS, ROW = 10, 24  # tokens that have a bar, the most probable first; pixels of each
MORE, ROOM = 40, 24  # tokens that are written, and that are read of a prompt
WIDE, STRIP = 316, 224  # pixels of the drawing, and of the text alone on a phone
NARROW = STRIP + WIDE + 4


def visible(piece: str) -> str:
    """Write a piece so that spaces and line ends can be seen."""
    shown = piece.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")
    return "".join(letter if letter.isprintable() else "·" for letter in shown) or "·"


def next_token(
    name: str,
    packed: Mapping[str, Any],
    encoder: BytePairEncoder,
    prompts: Sequence[str],
    seen: Tensor,
) -> Widget:
    """Let a GPT continue a prompt, and see at each position what might stand there.

    `packed` is the model as `quantised_export.pack` writes it, `seen` the ids that it
    was trained on. Each token is drawn from softmax(logits / temperature) after top-k
    and top-p, as `course_utils.evaluation.decoding.sample` does; a number chooses the
    sample, so that the same settings write the same text. Used in chapter 13.
    """
    model = require_fit(name, packed, encoder, prompts)
    n, more = len(encoder), min(MORE, model.max_length - 8)
    room = min(ROOM, model.max_length - more)
    first = torch.tensor([encoder.encode(prompts[0])[-room:]])
    with torch.no_grad():
        logits = model(first)[0][0]
    sizes = [k for k in (1, 2, 5, 10, 20, 50, 100) if k < n]
    made = widget(
        name,
        "A GPT in this page: let it write",
        [
            text("prompt", "Prompt", prompts[0], "Prompts to choose from"),
            slider(
                "heat", "temperature", [0.1, 0.3, 0.5, 0.7, 0.85, 1, 1.5, 2, 4], value=1
            ),
            slider("k", "top-k", [*sizes, n], value=n),
            slider("p", "top-p", [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1], value=1),
            button("write", f"Write {more} tokens"),
            button("again", "Another sample"),
        ],
        data={
            "name": name,
            "prompts": list(prompts),
            "pieces": [visible(encoder.decode([i])) for i in range(n)],
            "merges": encoder.merges,
            "unseen": sorted({*range(n)} - {*seen.unique().tolist()}),
            "still": {
                "tokens": first[0],
                "logits": (logits - logits.amax(-1, keepdim=True)).round(decimals=3),
            },
            "more": more,
            "room": room,
            "rows": ROWS,
            "row": ROW,
            "strip": STRIP,
        },
        script=f"{gpt_in_page()}\n{script_of(__name__)}",
        alt="A text that a GPT continues in the browser, token by token, and "
        "bars of the most probable tokens at the one that is pressed. A low "
        "temperature gives nearly all of the probability to the first, a high one "
        "spreads it over the whole vocabulary; top-k keeps a fixed number of tokens, "
        "top-p as many as are needed to reach a share. Tokens that were cut off are "
        "grey and are never drawn.",
        height=WIDE,
    )
    css = (
        f"<style>#{name}{{container-type:inline-size}}"
        f"#{name} .cw-says{{min-height:6em;overflow-wrap:anywhere}}"
        f"@container(max-width:590px){{#{name} svg{{height:{NARROW}px!important}}}}"
        "</style>"
    )
    return Widget(css + made.html + weights_element(name, packed), made.alt)


def require_fit(
    name: str,
    packed: Mapping[str, Any],
    encoder: BytePairEncoder,
    prompts: Sequence[str],
) -> GPT:
    """Unpack the model, and refuse what the page can't compute with."""
    model = unpack(packed)
    if not isinstance(model, GPT) or model.embedding.num_embeddings != len(encoder):
        raise ValueError(
            f"widget {name!r} got a {type(model).__name__} of "
            f"{packed['sizes']} for {len(encoder)} pieces, expected a GPT with one "
            "token for each piece; give the encoder that it was trained with."
        )
    plain = encoder.pieces[:256] == [bytes([byte]) for byte in range(256)]
    if encoder.chunks != "words" or encoder.special or not plain:
        raise ValueError(
            f"widget {name!r} got an encoder with chunks={encoder.chunks!r} and "
            f"special={encoder.special}, expected one that cuts at words, begins with "
            "the bytes in their order and has no special tokens."
        )
    if not prompts or not all(prompts):
        raise ValueError(
            f"widget {name!r} got the prompts {list(prompts)}, expected at least one, "
            "and none of them empty."
        )
    return model
