"""A trained transformer made portable: 8-bit weights as text, which a page can load.

Every matrix is rounded to whole numbers from -127 to 127, each row with a scale of its
own; vectors (biases and norms, two percent of the numbers) stay as they are. `pack`
writes this as one text, `unpack` makes a model of it again, and `portable.js` beside
this file computes with it where there is no Python: the same equations once more.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.blocks import EncoderBlock
from course_utils.shapes import Float, shape_of
from course_utils.transformer import Transformer

FORMAT = "course_utils transformer 1"
LARGEST = 127  # the largest whole number that a signed byte and its negative hold


def quantise(
    matrix: Float[Tensor, "row column"],
) -> tuple[Tensor, Float[Tensor, "row"]]:
    """Round every row to whole numbers from -127 to 127, and return their scales.

    q_ij = round(w_ij / s_i), s_i = max_j |w_ij| / 127: no weight moves by more than
    s_i / 2. Used in chapter 12.
    """
    if matrix.dim() != 2 or not torch.isfinite(matrix).all():
        raise ValueError(
            f"quantise got shape {shape_of(matrix)}, expected a matrix (row, column) "
            "of finite numbers; did the training diverge?"
        )
    scales = matrix.abs().amax(dim=1) / LARGEST
    safe = torch.where(scales > 0, scales, torch.ones_like(scales))
    return (matrix / safe[:, None]).round().to(torch.int8), scales


def dequantise(
    whole: Tensor, scales: Float[Tensor, "row"]
) -> Float[Tensor, "row column"]:
    """Make weights of the whole numbers again: w_ij = s_i q_ij. Used in chapter 12."""
    if whole.dim() != 2 or scales.shape != whole.shape[:1]:
        raise ValueError(
            f"dequantise got {shape_of(whole)} and {shape_of(scales)}, expected (row, "
            "column) and one scale for each row, as `quantise` returns them."
        )
    return whole.float() * scales[:, None]


def sizes_of(model: Transformer) -> dict[str, int]:
    """Return the sizes a model was built with: `Transformer(**sizes_of(model))`.

    Used in chapter 12.
    """
    if not isinstance(model, Transformer) or isinstance(
        model.encoder.norm, nn.Identity
    ):
        raise ValueError(
            f"got {type(model).__name__}, expected a `Transformer` with norm='pre': "
            "the one order of norm and sum that the page computes."
        )
    first = cast(EncoderBlock, model.encoder.blocks[0])
    return {
        "n_source": model.source_embedding.num_embeddings,
        "n_target": model.target_embedding.num_embeddings,
        "d_model": model.source_embedding.embedding_dim,
        "n_heads": model.n_heads,
        "d_hidden": first.feed_forward.wide.out_features,
        "n_layers": len(model.encoder.blocks),
        "max_length": model.max_length,
    }


def pack(model: Transformer) -> dict[str, Any]:
    """Write a model's sizes and 8-bit weights as what JSON can hold.

    Each tensor has its name, its shape and where its numbers start; `bytes` holds all
    of them in base64, 32-bit numbers (vectors and scales) before 8-bit ones. The same
    model gives the same text. Used in chapter 12.
    """
    sizes, tensors = sizes_of(model), []
    floats: list[np.ndarray] = []
    wholes: list[np.ndarray] = []
    n_floats = n_wholes = 0
    for name, value in model.state_dict().items():
        entry: dict[str, Any] = {"name": name, "shape": list(value.shape)}
        numbers = value.detach().float().cpu()
        if numbers.dim() == 2:
            whole, numbers = quantise(numbers)
            entry["bytes"] = n_wholes
            n_wholes += whole.numel()
            wholes.append(whole.numpy().ravel())
        entry["floats"] = n_floats
        n_floats += numbers.numel()
        floats.append(numbers.numpy().astype("<f4").ravel())
        tensors.append(entry)
    raw = np.concatenate(floats).tobytes() + np.concatenate(wholes).tobytes()
    return {
        "format": FORMAT,
        "sizes": sizes,
        "n_floats": n_floats,
        "tensors": tensors,
        "bytes": base64.b64encode(raw).decode("ascii"),
    }


def unpack(packed: Mapping[str, Any]) -> Transformer:
    """Build the model that `pack` wrote, with its rounded weights.

    Used in chapter 12.
    """
    if packed.get("format") != FORMAT:
        raise ValueError(
            f"the format is {packed.get('format')!r}, expected {FORMAT!r}; make it "
            "anew with `pack(model)`."
        )
    n_floats = packed["n_floats"]
    n_wholes = sum(np.prod(t["shape"]) for t in packed["tensors"] if "bytes" in t)
    try:
        raw = base64.b64decode(packed["bytes"], validate=True)
    except binascii.Error:
        raw = b""
    expected = 4 * n_floats + n_wholes
    if len(raw) != expected:
        raise ValueError(
            f"the weights are {len(raw):,} bytes, expected {expected:,}; "
            "the text was cut or changed: make it anew with `pack(model)`."
        )
    floats = torch.tensor(np.frombuffer(raw, "<f4", n_floats).astype(np.float32))
    wholes = torch.tensor(np.frombuffer(raw, np.int8, offset=4 * n_floats))
    state = {}
    for entry in packed["tensors"]:
        shape, start = entry["shape"], entry["floats"]
        numbers = floats[start : start + shape[0]]
        if "bytes" in entry:
            inside = wholes[entry["bytes"] : entry["bytes"] + shape[0] * shape[1]]
            numbers = dequantise(inside.reshape(shape), numbers)
        state[entry["name"]] = numbers
    model = Transformer(**packed["sizes"])
    model.load_state_dict(state)
    return model.eval()


def as_text(packed: Mapping[str, Any]) -> str:
    """Write what `pack` returned as one line of JSON. Used in chapter 12."""
    return json.dumps(packed, separators=(",", ":"))


def javascript(name: str = "") -> str:
    """Return the model in JavaScript, or one of its functions: `javascript("softmax")`.

    A function comes with the comment above it. Used in chapter 12.
    """
    text = files("course_utils").joinpath("portable.js").read_text(encoding="utf-8")
    if not name:
        return text
    found = [p for p in text.split("\n\n") if f"function {name}(" in p]
    if not found:
        raise ValueError(
            f"portable.js has no function {name!r}; print `javascript()` to see all."
        )
    return found[0].strip()
