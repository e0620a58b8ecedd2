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
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.models.eight_bit import to_whole
from course_utils.models.transformer import GPT, Transformer, gpt_sizes_of, sizes_of
from course_utils.shapes import Float, shape_of

FORMAT = "course_utils transformer 1"
GPT_FORMAT = "course_utils gpt 1"
LARGEST = 127  # the largest whole number that a signed byte and its negative hold


def quantise(
    matrix: Float[Tensor, "row column"],
) -> tuple[Tensor, Float[Tensor, "row"]]:
    """Round every row to whole numbers from -127 to 127, and return their scales.

    $q_ij = round(w_ij / s_i)$, $s_i = max_j |w_ij| / 127$: no weight moves by more than
    $s_i / 2$.
    """
    if matrix.dim() != 2 or not torch.isfinite(matrix).all():
        raise ValueError(
            f"quantise got shape {shape_of(matrix)}, expected a matrix (row, column) "
            "of finite numbers; did the training diverge?"
        )
    whole, scales = to_whole(matrix)
    return whole, scales[:, 0]


def dequantise(
    whole: Tensor, scales: Float[Tensor, "row"]
) -> Float[Tensor, "row column"]:
    """Make weights of the whole numbers again: $w_ij = s_i q_ij$."""
    if whole.dim() != 2 or scales.shape != whole.shape[:1]:
        raise ValueError(
            f"dequantise got {shape_of(whole)} and {shape_of(scales)}, expected (row, "
            "column) and one scale for each row, as `quantise` returns them."
        )
    return whole.float() * scales[:, None]


def pack(model: Transformer | GPT) -> dict[str, Any]:
    """Write a model's sizes and 8-bit weights as what JSON can hold.

    Each tensor has its name, its shape and where its numbers start; `bytes` holds all
    of them in base64, 32-bit numbers (vectors and scales) before 8-bit ones. The same
    model gives the same text. Used in `transformer_in_the_page`, chapters 12 and 13.
    """
    sizes: dict[str, Any] = {}
    sizes |= gpt_sizes_of(model) if isinstance(model, GPT) else sizes_of(model)
    tensors: list[dict[str, Any]] = []
    floats: list[np.ndarray] = []
    wholes: list[np.ndarray] = []
    n_floats = n_wholes = 0
    for name, value in model.state_dict().items():
        if name == "head.weight" and sizes.get("tied"):
            continue  # the embedding once more
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
        "format": GPT_FORMAT if isinstance(model, GPT) else FORMAT,
        "sizes": sizes,
        "n_floats": n_floats,
        "tensors": tensors,
        "bytes": base64.b64encode(raw).decode("ascii"),
    }


def unpack(packed: Mapping[str, Any]) -> Transformer | GPT:
    """Build the model that `pack` wrote, with its rounded weights.

    Used in `transformer_in_the_page`.
    """
    kinds: dict[Any, Any] = {FORMAT: Transformer, GPT_FORMAT: GPT}
    if packed.get("format") not in kinds:
        raise ValueError(
            f"the format is {packed.get('format')!r}, expected {FORMAT!r} or "
            f"{GPT_FORMAT!r}; make it anew with `pack(model)`."
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
    if packed["sizes"].get("tied"):
        state["head.weight"] = state["embedding.weight"]
    model = kinds[packed["format"]](**packed["sizes"])
    model.load_state_dict(state)
    return model.eval()


def unpack_transformer(packed: Mapping[str, Any]) -> Transformer:
    """Build a packed model of two stacks, and refuse any other."""
    model = unpack(packed)
    if not isinstance(model, Transformer):
        raise ValueError(
            f"the packed model is a {type(model).__name__}, expected a Transformer."
        )
    return model


def as_text(packed: Mapping[str, Any]) -> str:
    """Write what `pack` returned as one line of JSON.

    Used in `transformer_in_the_page`.
    """
    return json.dumps(packed, separators=(",", ":"))


def javascript(name: str = "") -> str:
    """Return the model in JavaScript, or one of its functions: `javascript("softmax")`.

    A function comes with the comment above it. Used in `transformer_in_the_page`.
    """
    text = (
        files("course_utils.display")
        .joinpath("quantised_export.js")
        .read_text(encoding="utf-8")
    )
    if not name:
        return text
    found = [p for p in text.split("\n\n") if f"function {name}(" in p]
    if not found:
        raise ValueError(
            f"portable.js has no function {name!r}; print `javascript()` to see all."
        )
    return found[0].strip()


def model_in_page() -> str:
    """Return `javascript()` with what interactives share that run it in a page.

    It loads the weights, draws tables of them, and looks inside a head.
    """
    beside = files("course_utils.display").joinpath("model_in_page.js")
    return f"{javascript()}\n{beside.read_text(encoding='utf-8')}"


def gpt_in_page() -> str:
    """Return `model_in_page()` with GPT, its byte pairs and the choice of a token."""
    beside = files("course_utils.display").joinpath("gpt_in_page.js")
    return f"{model_in_page()}\n{beside.read_text(encoding='utf-8')}"
