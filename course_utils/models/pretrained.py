"""Read the weights of GPT-2, Llama and nanochat, as Hugging Face names them.

They go into `ModernGPT`. Three tables say which parameter is which. Nothing of Hugging
Face's is imported: a configuration is a dict (`config.to_dict()`, or the file
config.json), and weights are a dict of tensors (a state dict, or the file
model.safetensors).
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_utils.doors import check_arguments
from course_utils.models.choices import LLAMA, NANOCHAT, Choices
from course_utils.models.modern_gpt import ModernGPT
from course_utils.shapes import Float

# Their name and ours; * is the number of a layer. "^T": stored as (in, out), transposed
# here. Three names with "+": their rows stand one below the other.
GPT2_NAMES = {
    "wte.weight": "embedding.weight",
    "wpe.weight": "positions.table",
    "h.*.ln_1.weight": "blocks.*.around_attention.norm.weight",
    "h.*.ln_1.bias": "blocks.*.around_attention.norm.bias",
    "h.*.attn.c_attn.weight^T": "blocks.*.attention.qkv.weight",
    "h.*.attn.c_attn.bias": "blocks.*.attention.qkv.bias",
    "h.*.attn.c_proj.weight^T": "blocks.*.attention.output.weight",
    "h.*.attn.c_proj.bias": "blocks.*.attention.output.bias",
    "h.*.ln_2.weight": "blocks.*.around_feed_forward.norm.weight",
    "h.*.ln_2.bias": "blocks.*.around_feed_forward.norm.bias",
    "h.*.mlp.c_fc.weight^T": "blocks.*.feed_forward.wide.weight",
    "h.*.mlp.c_fc.bias": "blocks.*.feed_forward.wide.bias",
    "h.*.mlp.c_proj.weight^T": "blocks.*.feed_forward.narrow.weight",
    "h.*.mlp.c_proj.bias": "blocks.*.feed_forward.narrow.bias",
    "ln_f.weight": "norm.weight",
    "ln_f.bias": "norm.bias",
    "wte.weight ": "head.weight",  # the table once more
}
_QKV = "+".join(f"layers.*.self_attn.{x}_proj.weight" for x in "qkv")
LLAMA_NAMES = {
    "embed_tokens.weight": "embedding.weight",
    "layers.*.input_layernorm.weight": "blocks.*.around_attention.norm.weight",
    _QKV: "blocks.*.attention.qkv.weight",
    "layers.*.self_attn.o_proj.weight": "blocks.*.attention.output.weight",
    "layers.*.post_attention_layernorm.weight": (
        "blocks.*.around_feed_forward.norm.weight"
    ),
    "layers.*.mlp.gate_proj.weight": "blocks.*.feed_forward.gate.weight",
    "layers.*.mlp.up_proj.weight": "blocks.*.feed_forward.wide.weight",
    "layers.*.mlp.down_proj.weight": "blocks.*.feed_forward.narrow.weight",
    "norm.weight": "norm.weight",
    "lm_head.weight": "head.weight",
}
NANOCHAT_NAMES = {
    "embed_tokens.weight": "embedding.weight",
    _QKV: "blocks.*.attention.qkv.weight",
    "layers.*.self_attn.o_proj.weight": "blocks.*.attention.output.weight",
    "layers.*.mlp.fc1.weight": "blocks.*.feed_forward.wide.weight",
    "layers.*.mlp.fc2.weight": "blocks.*.feed_forward.narrow.weight",
    "lm_head.weight": "head.weight",
}
NAMES = {"gpt2": GPT2_NAMES, "llama": LLAMA_NAMES, "nanochat": NANOCHAT_NAMES}
DTYPES = {  # as safetensors names them
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def sizes_from(config: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a configuration into the arguments of `ModernGPT`."""
    kind = config.get("model_type")
    if kind == "gpt2":
        require_known(config, activation_function=("gelu_new", "gelu"))
        tanh = config["activation_function"] == "gelu_new"
        return {
            "n_tokens": config["vocab_size"],
            "max_length": config["n_positions"],
            "d_model": config["n_embd"],
            "n_heads": config["n_head"],
            "n_layers": config["n_layer"],
            "d_hidden": config.get("n_inner"),
            "choices": Choices(
                eps=config["layer_norm_epsilon"],
                feed_forward="gelu_tanh" if tanh else "gelu",
            ),
        }
    if kind not in ("llama", "nanochat"):
        raise ValueError(f"model_type is {kind!r}, expected one of {sorted(NAMES)}.")
    d_model, n_heads = config["hidden_size"], config["num_attention_heads"]
    turning = config.get("rope_parameters") or config.get("rope_scaling") or {}
    require_known(turning, rope_type=("default", None))
    activation = "silu" if kind == "llama" else "relu2"
    require_known(config, hidden_act=(activation,), attention_bias=(False, None))
    require_known(config, mlp_bias=(False, None), head_dim=(d_model // n_heads, None))
    theta = turning.get("rope_theta", config.get("rope_theta", 10000.0))
    return {
        "n_tokens": config["vocab_size"],
        "max_length": config["max_position_embeddings"],
        "d_model": d_model,
        "n_heads": n_heads,
        "n_layers": config["num_hidden_layers"],
        "d_hidden": config["intermediate_size"],
        "choices": replace(
            LLAMA if kind == "llama" else NANOCHAT,
            n_kv_heads=config.get("num_key_value_heads"),
            eps=config["rms_norm_eps"],
            base=theta,
            tied=bool(config.get("tie_word_embeddings")),
            logit_cap=config.get("final_logit_softcapping"),
        ),
    }


def require_known(config: Mapping[str, Any], **known: tuple[Any, ...]) -> None:
    """Refuse a setting that `ModernGPT` does not have."""
    for name, values in known.items():
        if config.get(name) not in values:
            raise ValueError(
                f"{name} is {config.get(name)!r}, which ModernGPT does not have; "
                f"expected {' or '.join(repr(v) for v in values if v is not None)}."
            )


def rename(state: Mapping[str, Tensor], kind: str) -> dict[str, Tensor]:
    """Give every tensor of a Hugging Face model our name, by the table of its kind."""
    state = {
        re.sub(r"^(transformer|model)\.", "", name): w for name, w in state.items()
    }
    layers = {m[1] for name in state if (m := re.match(r"(?:h|layers)\.(\d+)\.", name))}
    found = {}
    for theirs, ours in NAMES[kind].items():
        for layer in sorted(layers) if "*" in theirs else [""]:
            names = theirs.strip().replace("*", layer).removesuffix("^T").split("+")
            if names == ["lm_head.weight"] and names[0] not in state:
                names = ["embed_tokens.weight"]  # tied
            if missing := [name for name in names if name not in state]:
                raise ValueError(
                    f"the weights have no {missing[0]!r}, which a {kind} model has; "
                    f"they have {', '.join(list(state)[:4])}, …"
                )
            tensor = torch.cat([state[name] for name in names])
            tensor = tensor.T if theirs.endswith("^T") else tensor
            found[ours.replace("*", layer)] = tensor.contiguous()
    return found


def turned_back(
    qkv: Float[Tensor, "all_heads d_model"], n_turned: int, d_head: int
) -> Float[Tensor, "all_heads d_model"]:
    """Change the sign of the second half of each head that is turned.

    nanochat turns queries and keys the other way round, by minus the angle. A pair
    whose second number has the other sign turns as ours do, and every score is as
    there. The first `n_turned` heads are those of queries and keys.
    """
    heads = qkv.unflatten(0, (-1, d_head)).clone()
    heads[:n_turned, d_head // 2 :] *= -1
    return heads.flatten(0, 1)


def from_hugging_face(
    config: Mapping[str, Any], state: Mapping[str, Tensor]
) -> ModernGPT:
    """Build the `ModernGPT` that computes what a GPT-2, Llama or nanochat computes.

    `config` is the model's configuration as a dict, `state` its state dict. Used in
    chapter 16.
    """
    sizes = sizes_from(config)
    with torch.device("meta"):  # no numbers are drawn that nobody needs
        model = ModernGPT(**sizes)
    renamed = rename(state, config["model_type"])
    if config["model_type"] == "nanochat":
        heads = config["num_attention_heads"], config["num_key_value_heads"]
        d_head = sizes["d_model"] // heads[0]
        for name in [name for name in renamed if "qkv" in name]:
            renamed[name] = turned_back(renamed[name], sum(heads), d_head)
    model.load_state_dict(renamed, assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    if sizes["choices"].tied:
        model.head.weight = model.embedding.weight
    return model.eval()


# ------------------------------------------------------------------------ from files


def read_safetensors(path: str | Path) -> dict[str, Tensor]:
    """Read a file of tensors: 8 bytes, a header in JSON, then the numbers.

    The 8 bytes tell the header's length; for each name it says the type, the shape, and
    where the numbers begin and end. They stay on the disk until they are used.
    """
    with open(path, "rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    start = 8 + int.from_bytes(content[:8], "little")
    if start > len(content):
        raise ValueError(f"{path} is cut or is no file of safetensors.")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    if start + max((h["data_offsets"][1] for h in header.values()), default=0) != len(
        content
    ):
        raise ValueError(f"{path} is cut: its header tells of more bytes, or fewer.")
    tensors = {}
    for name, about in header.items():
        dtype, shape = DTYPES[about["dtype"]], about["shape"]
        at = start + about["data_offsets"][0]
        flat = torch.frombuffer(content, dtype=dtype, count=prod(shape), offset=at)
        tensors[name] = flat.view(shape)
    return tensors


def load_gpt2(folder: str | Path) -> ModernGPT:
    """Build the model whose `config.json` and `model.safetensors` a folder holds.

    `course_utils.data.downloads.fetch_gpt2` fetches those of GPT-2.
    """
    folder = Path(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    return from_hugging_face(config, read_safetensors(folder / "model.safetensors"))


check_arguments(__name__)
