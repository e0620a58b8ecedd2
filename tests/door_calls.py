"""What a learner calls, with arguments that work: the table that `test_doors` varies.

Every definition of the package that names a chapter is here, or among `NOT_VARIED` with
the reason. A class comes with its constructor and with what its models are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.data import batches, bpe, corpus, sequences, texts
from course_utils.evaluation import (
    circuits,
    costs,
    decoding,
    leaks,
    metrics,
    scaling,
    speculative,
    symmetry,
)
from course_utils.models import (
    attention,
    attention_only,
    bert,
    blocks,
    eight_bit,
    lora,
    modern,
    modern_gpt,
    online_softmax,
    positions,
    recurrences,
    residual_variants,
    rnn,
    scores,
    transformer,
    vision,
)
from course_utils.tasks import (
    baselines,
    labels,
    repeats,
    scenes,
    synthetic,
    translation,
)
from course_utils.training import loop, muon, stopping

Call = tuple[Callable[..., Any], dict[str, Any]]

NOT_VARIED = {
    "EarlyStopping": "its own tests try its arguments",
    "plan": "its own tests try its arguments",
    "torchrun_command": "its own tests try its arguments",
    "try_compiling": "its own tests try its arguments",
    "topics": "takes nothing",
    "pydoc_text": "takes nothing",
    "local_translation": "reads files; its arguments are tested in test_corpora",
    "load_translation": "reads files; its arguments are tested in test_corpora",
    "require_scores": "is a door itself",
    "require_places": "is a door itself",
    "KeyValueCache": "made by `start`, never by hand",
    "WindowCache": "made by `start`, never by hand",
    "cache_bytes": "takes a state that `start` made",
    "from_hugging_face": "its own tests try its arguments",
    "Muon": "an optimiser: its own tests try its arguments",
    "HeadProjections": "is tried as MultiHeadAttention, which adds nothing to it",
    "merge_pair": "the inner loop of BytePairEncoder, which checks its text",
    "profile": "takes the model and the examples of one page",
    "cpu_seconds": "measures whatever it is given",
    "peak_bytes": "measures whatever it is given",
    "count_flops": "measures whatever it is given",
    "AttentionDecoder": "is tried as Seq2SeqAttention, which holds one",
    "influence": "is tried as leak_test, which asks it",
    "largest_change": "is tried as leak_test, which asks it",
    "changed_at": "is tried as leak_test, which asks it",
    "extend_beams": "is tried as beam_search, which asks it",
    "by_length": "is tried as score_by_length, which asks it",
    "translation_task": "its arguments are tested in test_translation",
    "train_translator": "trains for seconds; its numbers go to train, which is tried",
    "translate": "takes a trained model and its task",
    "score_by_length": "takes a task",
    "translation_batches": "takes sentence pairs and vocabularies of a task",
    "translation_batch": "takes sentence pairs and vocabularies of a task",
    "heads_of": "takes a Transformer, tested in test_live_transformer",
    "ablate": "takes a Transformer, tested in test_live_transformer",
    "vocabulary": "takes nothing",
    "encode": "takes sentences and the vocabulary of a task",
    "tensors": "takes examples and the vocabulary of a task",
    "labelled_task": "its arguments are tested in test_labels",
    "add_lora": "changes the layers of a model in place, tested in test_bert",
    "merge_lora": "changes the layers of a model in place, tested in test_bert",
    "trainable": "counts whatever model it is given",
    "edit_heads": "is a context manager, tested in test_circuits",
    "hide_from": "is a context manager, tested in test_circuits",
}

BATCH, QUERY, KEY, D_K, D_V, D, HEADS = 2, 3, 5, 4, 6, 12, 3
TWICE = torch.tensor([[1, 2, 3, 1, 2, 3], [4, 0, 6, 4, 0, 6]])


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def drawn() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def qkv() -> dict[str, torch.Tensor]:
    queries, keys = numbers(BATCH, QUERY, D_K), numbers(BATCH, KEY, D_K)
    return {"queries": queries, "keys": keys, "values": numbers(BATCH, KEY, D_V)}


def heads() -> dict[str, torch.Tensor]:
    queries, keys = numbers(BATCH, HEADS, QUERY, D_K), numbers(BATCH, HEADS, KEY, D_K)
    return {"queries": queries, "keys": keys, "values": numbers(BATCH, HEADS, KEY, D_V)}


SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0]])
TARGET = torch.tensor([[1, 3, 4, 5], [1, 6, 7, 0]])
MASK = torch.ones(BATCH, QUERY, KEY, dtype=torch.bool)
LOGITS = numbers(BATCH, 9)
SIZES = {"d_model": D, "n_heads": HEADS, "d_hidden": 10}
STACK = {"n_layers": 1, **SIZES, "norm": "pre", "dropout": 0.0}
GRU = nn.GRUCell(4, 6)
SENTENCES = [["a", "b"], ["c"]]
LINKS = [{(0, 0), (1, 1)}, {(0, 0)}]
TEXT = "\n\n".join(f"paragraph {i} is about number {i}" for i in range(12))


def translators() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {
        "Seq2Seq": rnn.Seq2Seq(11, 13, 5, 6),
        "Seq2SeqAttention": rnn.Seq2SeqAttention(11, 13, 5, 6),
        "Transformer": transformer.Transformer(11, 13, D, HEADS, 10, max_length=16),
    }


def readers() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    kinds = ("learned", "rotary")
    gpts = {f"GPT {k}": transformer.GPT(11, 16, D, HEADS, positions=k) for k in kinds}
    gpts["ModernGPT"] = modern_gpt.ModernGPT(11, 16, D, HEADS)
    return {"GRULanguageModel": rnn.GRULanguageModel(11, 5, 6), **gpts}


def functions() -> dict[str, Call]:
    """The functions of the models' rooms."""
    x, bias = numbers(BATCH, QUERY, D), numbers(HEADS, QUERY, KEY)
    gru = {"weight_x": GRU.weight_ih, "weight_state": GRU.weight_hh}
    gru |= {"bias_x": GRU.bias_ih, "bias_state": GRU.bias_hh}
    gru |= {"x": numbers(BATCH, 4), "state": numbers(BATCH, 6)}
    lengths, pair = torch.tensor([3, 2]), qkv()
    two = {"queries": pair["queries"], "keys": pair["keys"]}
    norm = {"gamma": torch.ones(D), "beta": torch.zeros(D), "eps": 1e-5}
    stream = {
        "decay": numbers(BATCH, KEY, D).sigmoid(),
        "added": numbers(BATCH, KEY, D),
    }
    images, patches = numbers(BATCH, 3, 4, 6), numbers(BATCH, 6, 12)
    turns = positions.rotations(torch.arange(KEY), D_K)
    masked = {"scores": numbers(BATCH, QUERY, KEY), "mask": MASK}
    fused = {**heads(), "mask": None, "causal": False, "bias": bias}
    fused["need_weights"] = True
    length = {"n_queries": QUERY, "n_keys": KEY}
    additive = {"queries": x, "keys": numbers(BATCH, KEY, D), "v": numbers(D)}
    return {
        "masked_softmax": (attention.masked_softmax, masked),
        "attention": (attention.attention, {**qkv(), "mask": MASK}),
        "basic_self_attention": (attention.basic_self_attention, {"x": x}),
        "causal_mask": (attention.causal_mask, length),
        "padding_mask": (attention.padding_mask, {"tokens": SOURCE, "pad": 0}),
        "fused_attention": (attention.fused_attention, fused),
        "split_heads": (attention.split_heads, {"x": x, "n_heads": 2, "parts": 3}),
        "merge_heads": (attention.merge_heads, {"context": heads()["keys"]}),
        "rms_norm": (
            modern.rms_norm,
            {"x": x, "gamma": torch.ones(D), "eps": 1e-5},
        ),
        "soft_cap": (modern.soft_cap, {"scores": LOGITS, "cap": 2.0}),
        "share_heads": (modern.share_heads, {"x": heads()["keys"], "n_heads": 6}),
        "window_mask": (modern.window_mask, {**length, "window": 2}),
        "grouped_attention": (
            modern.grouped_attention,
            {**heads(), "cap": 2.0, "dropout": 0.0},
        ),
        "padding_left": (
            modern_gpt.padding_left,
            {"lengths": lengths, "n_tokens": 4},
        ),
        "orthogonalise": (
            muon.orthogonalise,
            {"matrices": numbers(4, 3), "steps": 5},
        ),
        "block_matrices": (muon.block_matrices, {"blocks": nn.Linear(3, 2)}),
        "to_halves": (positions.to_halves, {"x": pair["keys"]}),
        "to_neighbours": (positions.to_neighbours, {"x": pair["keys"]}),
        "rotate_halves": (
            positions.rotate_halves,
            {"x": pair["keys"], "rotation": turns},
        ),
        "layer_norm": (blocks.layer_norm, {"x": x, **norm}),
        "online_softmax": (online_softmax.online_softmax, {"scores": LOGITS}),
        "chunked_attention": (online_softmax.chunked_attention, {**qkv(), "chunk": 2}),
        "frequencies": (positions.frequencies, {"d_model": D}),
        "sinusoidal": (positions.sinusoidal, {"n_tokens": KEY, "d_model": D}),
        "distances": (positions.distances, length),
        "alibi_slopes": (positions.alibi_slopes, {"n_heads": HEADS}),
        "alibi": (positions.alibi, {"n_heads": HEADS, **length}),
        "rotations": (
            positions.rotations,
            {"positions": torch.arange(KEY), "d_head": D_K},
        ),
        "rotate": (positions.rotate, {"x": pair["keys"], "rotation": turns}),
        "rotary": (
            positions.rotary,
            {"x": pair["keys"], "positions": torch.arange(KEY)},
        ),
        "scan_by_doubling": (recurrences.scan_by_doubling, stream),
        "linear_scan": (recurrences.linear_scan, {**stream, "chunk": 2}),
        "set_gain": (
            residual_variants.set_gain,
            {"module": nn.Linear(3, 2), "gain": 1.0},
        ),
        "gru_step": (rnn.gru_step, gru),
        "additive_scores": (rnn.additive_scores, additive),
        "flip_real": (
            rnn.flip_real,
            {"x": numbers(BATCH, KEY, D), "lengths": lengths},
        ),
        "attend": (scores.attend, {**qkv(), "score": scores.dot_scores, "mask": MASK}),
        "dot_scores": (scores.dot_scores, two),
        "scaled_dot_scores": (scores.scaled_dot_scores, two),
        "xavier": (transformer.xavier, {"model": nn.Linear(3, 2)}),
        "patchify": (vision.patchify, {"images": images, "size": 2}),
        "unpatchify": (
            vision.unpatchify,
            {"patches": patches, "size": 2, "n_rows": 2},
        ),
    }


def constructors() -> dict[str, Call]:
    """The classes, each built."""
    tokens = {"n_tokens": 11, "d_embedding": 5, "d_hidden": 6}
    pair = {"n_source": 11, "n_target": 13}
    widths = {"d_query": 4, "d_key": 4, "d_score": 7}
    gpt = {"n_tokens": 11, "max_length": 9, "d_model": D, "n_heads": HEADS}
    gpt |= {"n_layers": 1, "d_hidden": 10, "positions": "learned", "dropout": 0.0}
    gpt["activation"] = "relu"
    vit = {"n_patches": 6, "d_patch": 12, "n_classes": 5, "d_model": D}
    sorter = {"kind": "pre-norm", "n_layers": 1, "gain": 1.0, "d_model": D}
    sorter |= {"n_tokens": 6, "n_symbols": 8}
    reader = {"n_words": 11, "n_answers": 5, "n_patches": 6, "d_patch": 12, "d": D}
    block = {k: v for k, v in STACK.items() if k != "n_layers"}
    return {
        "SelfAttention": (
            attention.SelfAttention,
            {"d_model": D, "d_k": D_K, "d_v": D_V},
        ),
        "CrossAttention": (
            attention.CrossAttention,
            {"d_model": D, "d_memory": 7, "d_k": D_K, "d_v": D_V},
        ),
        "MultiHeadAttention": (
            attention.MultiHeadAttention,
            {"d_model": D, "n_heads": HEADS},
        ),
        "FeedForward": (
            blocks.FeedForward,
            {"d_model": D, "d_hidden": 10, "activation": "relu"},
        ),
        "GatedFeedForward": (
            modern.GatedFeedForward,
            {"d_model": D, "d_hidden": 10, "activation": "silu"},
        ),
        "GroupedQueryAttention": (
            modern.GroupedQueryAttention,
            {"d_model": D, "n_heads": 6, "n_kv_heads": 2, "qk_norm": "rms"}
            | {"cap": 2.0, "dropout": 0.0, "eps": 1e-5},
        ),
        "ModernBlock": (modern.ModernBlock, SIZES),
        "ModernGPT": (
            modern_gpt.ModernGPT,
            {"n_tokens": 11, "max_length": 9, **SIZES, "n_layers": 1},
        ),
        "Residual": (blocks.Residual, {"d_model": D, "order": "pre", "dropout": 0.0}),
        "EncoderBlock": (blocks.EncoderBlock, block),
        "DecoderBlock": (blocks.DecoderBlock, block),
        "Encoder": (blocks.Encoder, STACK),
        "Decoder": (blocks.Decoder, STACK),
        "LearnedPositions": (
            positions.LearnedPositions,
            {"max_length": 7, "d_model": D, "std": 0.02},
        ),
        "RelativeBias": (
            positions.RelativeBias,
            {"n_heads": HEADS, "max_distance": 2, "scale": 1.0},
        ),
        "StateSpace": (recurrences.StateSpace, {"d_model": D}),
        "CausalConvolution": (
            recurrences.CausalConvolution,
            {"d_model": D, "kernel": 3, "n_layers": 2},
        ),
        "Wiring": (residual_variants.Wiring, {"d_model": D, "kind": "residual"}),
        "Sorter": (residual_variants.Sorter, sorter),
        "GRUEncoder": (rnn.GRUEncoder, {**tokens, "pad": 0}),
        "Seq2Seq": (
            rnn.Seq2Seq,
            {**pair, "d_embedding": 5, "d_hidden": 6, "pad": 0},
        ),
        "AdditiveAttention": (rnn.AdditiveAttention, widths),
        "FirstState": (rnn.FirstState, {"d_hidden": 6, "kind": "projection"}),
        "Seq2SeqAttention": (
            rnn.Seq2SeqAttention,
            {**pair, "d_embedding": 5, "d_hidden": 6, "first_state": "zeros"},
        ),
        "GRULanguageModel": (rnn.GRULanguageModel, {**tokens, "n_layers": 1}),
        "LocationScore": (scores.LocationScore, {"d_query": 4, "n_places": 5}),
        "GeneralScore": (scores.GeneralScore, {"d_query": 4, "d_key": 5}),
        "AdditiveScore": (scores.AdditiveScore, widths),
        "Transformer": (
            transformer.Transformer,
            {**pair, **STACK, "max_length": 16, "pad": 0},
        ),
        "GPT": (transformer.GPT, gpt),
        "VisionTransformer": (
            vision.VisionTransformer,
            {**vit, "n_heads": HEADS, "n_layers": 1},
        ),
        "SpatialAttention": (vision.SpatialAttention, {"channels": 3}),
        "SqueezeExcite": (vision.SqueezeExcite, {"channels": 3, "d_hidden": 2}),
        "PatchEncoder": (
            vision.PatchEncoder,
            {"n_patches": 6, "d_patch": 12, "d_model": D, "d_hidden": 10},
        ),
        "QuestionBlock": (vision.QuestionBlock, {"d_model": D, "n_heads": HEADS}),
        "AttentionBlock": (
            attention_only.AttentionBlock,
            {"d_model": D, "n_heads": HEADS},
        ),
        "AttentionOnly": (
            attention_only.AttentionOnly,
            {"n_tokens": 11, "d_model": D, "n_heads": HEADS, "n_layers": 2},
        ),
        "CrossReader": (vision.CrossReader, reader),
    }


def forward_passes() -> dict[str, Call]:
    """What the layers and models are asked."""
    torch.manual_seed(0)
    x, memory = numbers(BATCH, QUERY, D), numbers(BATCH, KEY, D)
    images, patches = numbers(BATCH, 3, 4, 6), numbers(BATCH, 6, 12)
    square = torch.ones(BATCH, QUERY, QUERY, dtype=torch.bool)
    cross = {"x": x, "memory": memory, "mask": MASK}
    two = {"queries": numbers(BATCH, QUERY, 4), "keys": numbers(BATCH, KEY, 4)}
    asked = torch.tensor([[1, 2], [3, 4]])
    found: dict[str, Call] = {
        "SelfAttention": (
            attention.SelfAttention(D, D_K, D_V),
            {"x": x, "mask": square},
        ),
        "CrossAttention": (attention.CrossAttention(D, D, D_K, D_V), cross),
        "MultiHeadAttention": (attention.MultiHeadAttention(D, HEADS), cross),
        "AttentionBlock": (attention_only.AttentionBlock(D, HEADS), {"x": x}),
        "FeedForward": (blocks.FeedForward(D, 10), {"x": x}),
        "EncoderBlock": (
            blocks.EncoderBlock(D, HEADS, 10),
            {"x": x, "mask": square},
        ),
        "GatedFeedForward": (modern.GatedFeedForward(D, 10), {"x": x}),
        "GroupedQueryAttention": (
            modern.GroupedQueryAttention(D, 6, 2),
            {"x": x, "mask": square},
        ),
        "ModernBlock": (modern.ModernBlock(D, HEADS), {"x": x, "mask": square}),
        "ModernGPT padded": (
            modern_gpt.ModernGPT(11, 16, D, HEADS).eval(),
            {"tokens": TARGET, "padding": torch.tensor([0, 2])},
        ),
        "DecoderBlock": (
            blocks.DecoderBlock(D, HEADS, 10),
            {"x": x, "memory": memory, "memory_mask": MASK},
        ),
        "Encoder": (blocks.Encoder(1, D, HEADS, 10), {"x": x, "mask": square}),
        "Decoder": (
            blocks.Decoder(1, D, HEADS, 10),
            {"x": x, "memory": memory, "memory_mask": MASK},
        ),
        "LearnedPositions": (
            positions.LearnedPositions(7, D),
            {"n_tokens": 3, "first": 1},
        ),
        "RelativeBias": (
            positions.RelativeBias(HEADS, 2),
            {"n_queries": 3, "n_keys": 5},
        ),
        "StateSpace": (recurrences.StateSpace(D), {"x": x}),
        "CausalConvolution": (recurrences.CausalConvolution(D), {"x": x}),
        "Sorter": (
            residual_variants.Sorter("pre-norm", 1),
            {"tokens": torch.tensor([[1, 2, 3], [4, 5, 6]])},
        ),
        "GRUEncoder": (rnn.GRUEncoder(11, 5, 6), {"source": SOURCE}),
        "LocationScore": (scores.LocationScore(4, 5), two),
        "GeneralScore": (scores.GeneralScore(4, 4), two),
        "AdditiveScore": (scores.AdditiveScore(4, 4, 7), two),
        "VisionTransformer": (
            vision.VisionTransformer(6, 12, 5, D, HEADS),
            {"patches": patches},
        ),
        "SpatialAttention": (vision.SpatialAttention(3), {"features": images}),
        "SqueezeExcite": (vision.SqueezeExcite(3, 2).eval(), {"features": images}),
        "PatchEncoder": (vision.PatchEncoder(6, 12, D), {"patches": patches}),
        "QuestionBlock": (
            vision.QuestionBlock(D),
            {"words": numbers(BATCH, 2, D), "patches": numbers(BATCH, 6, D)},
        ),
        "CrossReader": (
            vision.CrossReader(11, 5, 6, 12, D),
            {"patches": patches, "question": asked},
        ),
    }
    for name, model in translators().items():
        found[name] = (model, {"source": SOURCE, "target_in": TARGET})
    for name, model in readers().items():
        found[name] = (model, {"tokens": TARGET})
    return {f"{name}.forward": call for name, call in found.items()}


def taken_apart() -> dict[str, Call]:
    """What looks inside a model, and the model it looks into."""
    torch.manual_seed(0)
    model = attention_only.AttentionOnly(7, D, HEADS)
    whole: dict[str, Any] = {"model": model, "tokens": TWICE}
    weights = numbers(2, BATCH, HEADS, 6, 6).softmax(dim=-1)
    return {
        "AttentionOnly": (model, {"tokens": TWICE}),
        "head_contexts": (circuits.head_contexts, whole),
        "stream_terms": (circuits.stream_terms, whole),
        "logit_terms": (circuits.logit_terms, whole),
        "logit_lens": (circuits.logit_lens, whole),
        "after_same": (circuits.after_same, {"tokens": TWICE}),
        "prefix_matching": (
            circuits.prefix_matching,
            {"weights": weights, "tokens": TWICE},
        ),
        "previous_token": (circuits.previous_token, {"weights": weights}),
    }


def adapted() -> dict[str, Call]:
    """What fills blanks, and what adapts it."""
    torch.manual_seed(0)
    model = bert.BERT(7, 6, D, HEADS)
    targets = torch.where(TWICE > 2, TWICE, -100)
    return {
        "BERT": (model, {"tokens": TWICE}),
        "SentenceClassifier": (bert.SentenceClassifier(model, 3), {"tokens": TWICE}),
        "mask_tokens": (
            bert.mask_tokens,
            {"tokens": TWICE, "mask": 6, "n_tokens": 7, "generator": drawn()},
        ),
        "masked_loss": (
            bert.masked_loss,
            {"model": model, "inputs": TWICE, "targets": targets},
        ),
        "LoRALinear": (lora.LoRALinear(nn.Linear(D, 5), 2), {"x": numbers(BATCH, D)}),
        "logistic_regression": (
            labels.logistic_regression,
            {
                "x": numbers(6, 3),
                "labels": torch.tensor([0, 1, 0, 1, 1, 0]),
                "strength": 1.0,
            },
        ),
    }


def decoded() -> dict[str, Call]:
    """Decoding, by every model, and what is drawn from logits."""
    found: dict[str, Call] = {
        "keep_top_k": (decoding.keep_top_k, {"logits": LOGITS, "k": 2}),
        "keep_top_p": (decoding.keep_top_p, {"logits": LOGITS, "p": 0.5}),
        "sample": (
            decoding.sample,
            {"logits": LOGITS, "temperature": 0.5, "top_k": 3, "top_p": 0.9}
            | {"generator": drawn()},
        ),
    }
    ends = {"max_length": 3, "bos": 1, "eos": 2, "pad": 0}
    beams = {"n_beams": 2, "length_penalty": 0.5, "n_best": 2}
    for name, model in translators().items():
        given = {"model": model, "source": SOURCE, **ends}
        found[f"greedy {name}"] = (decoding.greedy, given)
        found[f"beam_search {name}"] = (decoding.beam_search, given | beams)
    for name, model in readers().items():
        given = {"model": model, "prompt": TARGET, "n_tokens": 2, "temperature": 1.0}
        given |= {"top_k": 3, "top_p": 0.9, "generator": drawn()}
        found[f"generate {name}"] = (decoding.generate, given)
    writer, chances = transformer.GPT(7, 9, D, HEADS), numbers(3, 7).softmax(dim=-1)
    found |= {
        "rest_of": (speculative.rest_of, {"p": chances[0], "q": chances[1]}),
        "accept_drafts": (
            speculative.accept_drafts,
            {"p": chances, "q": chances[:2], "drafted": TWICE[0, :2]}
            | {"generator": drawn()},
        ),
        "speculate": (
            speculative.speculate,
            {"model": writer, "draft": lambda text: torch.full((7,), 1 / 7)}
            | {"prompt": TWICE[0, :2], "n_tokens": 5, "n_drafted": 2}
            | {"generator": drawn()},
        ),
        "expected_tokens": (
            speculative.expected_tokens,
            {"accepted": 0.5, "n_drafted": 4},
        ),
        "to_whole": (eight_bit.to_whole, {"x": numbers(3, 5), "bits": 4}),
        "round_weights": (
            eight_bit.round_weights,
            {"model": writer, "bits": 4, "by_row": True},
        ),
        "eight_bit_caches": (
            eight_bit.eight_bit_caches,
            {"model": writer, "batch": 2, "bits": 8},
        ),
    }
    return found


def data() -> dict[str, Call]:
    """Texts, batches, tasks and scenes."""
    text = torch.arange(20)
    batch: dict[str, Any] = {"batch": 4, "generator": drawn()}
    world = synthetic.slot_world(drawn(), 8, 8)
    found: dict[str, Call] = {
        "words": (corpus.words, {"text": TEXT}),
        "split_blocks": (
            corpus.split_blocks,
            {"text": TEXT, "validation": 0.2, "test": 0.1, "n_blocks": 6, "seed": 0},
        ),
        "load_text": (texts.load_text, {"name": "help", "n_characters": 2000}),
        "split_documents": (
            texts.split_documents,
            {"documents": [*"abcdef"], "validation": 0.2, "test": 0.2, "seed": 0},
        ),
        "leaked_share": (corpus.leaked_share, {"train": TEXT, "validation": TEXT}),
        "docstrings": (corpus.docstrings, {"modules": ["bisect"]}),
        "module_docstrings": (
            corpus.module_docstrings,
            {"min_words": 30, "max_words": 40},
        ),
        "Vocabulary": (corpus.Vocabulary, {"sequences": SENTENCES, "min_count": 1}),
        "Vocabulary.encode": (
            corpus.Vocabulary(SENTENCES).encode,
            {"sequence": ["a", "b"]},
        ),
        "Vocabulary.decode": (corpus.Vocabulary(SENTENCES).decode, {"ids": [4, 5]}),
        "BytePairEncoder": (
            bpe.BytePairEncoder.train,
            {"text": "low lower lowest", "n_pieces": 258},
        ),
        "BytePairEncoder.encode": (bpe.BytePairEncoder().encode, {"text": "low"}),
        "BytePairEncoder.decode": (bpe.BytePairEncoder().decode, {"ids": [97, 98]}),
        "pad_batch": (sequences.pad_batch, {"sequences": [[1, 2], [3]], "pad": 0}),
        "random_windows": (
            sequences.random_windows,
            {"ids": text, "length": 4, "batch": 3, "generator": drawn()},
        ),
        "consecutive_windows": (
            sequences.consecutive_windows,
            {"ids": text, "length": 4},
        ),
        "minibatches": (
            lambda x, batch_size, seed: batches.minibatches(
                x, batch_size=batch_size, seed=seed
            )(0, drawn()),
            {"x": numbers(6, 3), "batch_size": 2, "seed": 0},
        ),
        "repeated": (
            repeats.repeated,
            {"batch": 4, "generator": drawn(), "length": 3, "n_tokens": 7},
        ),
        "second_copy": (
            repeats.second_copy,
            {"logits": numbers(BATCH, 6, 7), "tokens": TWICE},
        ),
        "unseen_chance": (repeats.unseen_chance, {"length": 5}),
        "majority_chance": (baselines.majority_chance, {"n_tokens": 4, "n_values": 3}),
        "sorting_chance": (baselines.sorting_chance, {"n_tokens": 4, "n_symbols": 3}),
        "digits": (scenes.digits, {"split": "test"}),
        "slot_world": (
            synthetic.slot_world,
            {"generator": drawn(), "width": 8, "n_slots": 8},
        ),
        "slots": (
            synthetic.slots,
            batch | {"world": world, "query": "same", "n_slots": 4, "noise": 0.1},
        ),
        "typed": (
            translation.typed,
            {"text": "a b", "vocabulary": corpus.Vocabulary(SENTENCES)},
        ),
        "translation_loss": (
            translation.translation_loss,
            {"model": rnn.Seq2Seq(11, 13, 5, 6), "source": SOURCE, "target": TARGET},
        ),
    }
    tasks: dict[Callable[..., Any], dict[str, Any]] = {
        synthetic.reverse: {"length": 3, "n_letters": 5},
        synthetic.keyword_sentences: {"n_words": 5, "n_fillers": 7, "per_class": 2},
        synthetic.marked_token: {"n_tokens": 5, "n_values": 4},
        synthetic.cycle: {"n_letters": 3, "n_contents": 4, "offset": 1},
        synthetic.associative_recall: {"n_pairs": 3, "n_keys": 5, "n_values": 4},
        synthetic.order_pairs: {"n_tokens": 5, "n_fillers": 4},
        synthetic.last_marked: {"n_tokens": 5, "n_symbols": 4, "rate": 0.2},
        synthetic.previous_token: {"n_tokens": 5, "n_symbols": 4},
        synthetic.two_relations: {"n_colours": 3, "n_letters": 4},
        synthetic.sort_tokens: {"n_tokens": 5, "n_symbols": 4},
        scenes.caption_scenes: {"max_digits": 3, "min_digits": 1, "noise": 0.1},
        scenes.marked_scenes: {"split": "test", "noise": 0.1},
        scenes.channel_scenes: {"split": "test", "noise": 0.1},
        scenes.question_scenes: {"split": "test", "n_objects": 2, "noise": 0.1},
    }
    return found | {f.__name__: (f, batch | given) for f, given in tasks.items()}


def measured() -> dict[str, Call]:
    """Metrics, symmetries, leaks, costs and the training."""
    x, order = numbers(BATCH, QUERY, D), [2, 0, 1]
    layer = attention.basic_self_attention
    pairs = {"hypotheses": SENTENCES, "references": SENTENCES}
    gap = {"layer": layer, "x": x, "order": order}
    steps = {"step": 3, "steps": 10, "lr": 0.1, "warmup": 2, "schedule": "cosine"}
    training = {"model": nn.Linear(3, 2), "steps": 1, "lr": 0.1, "warmup": 0}
    training |= {"schedule": "cosine", "clip": 1.0, "weight_decay": 0.0, "seed": 0}
    training |= {"every": 1, "precision": "fp32", "progress": False, "device": "cpu"}
    training["batch"] = lambda step, generator: (numbers(4, 3),)
    training["loss"] = lambda model, x: model(x).square().mean()
    cost = {"layer": "GRU", "n_tokens": 5, "d_model": 4, "n_heads": 2}
    return {
        "bleu": (metrics.bleu, pairs),
        "exact_match": (metrics.exact_match, pairs),
        "token_accuracy": (metrics.token_accuracy, pairs),
        "strongest_links": (metrics.strongest_links, {"weights": numbers(3, 5)}),
        "alignment_error_rate": (
            metrics.alignment_error_rate,
            {"sure": LINKS, "possible": LINKS, "predicted": LINKS},
        ),
        "alignment_accuracy": (
            metrics.alignment_accuracy,
            {"gold": LINKS, "predicted": LINKS},
        ),
        "bits_per_character": (
            metrics.bits_per_character,
            {"nats_per_token": 1.5, "n_tokens": 10, "n_characters": 40},
        ),
        "permutation_matrix": (symmetry.permutation_matrix, {"order": order}),
        "equivariance_gap": (symmetry.equivariance_gap, gap),
        "invariance_gap": (symmetry.invariance_gap, gap),
        "leak_test": (
            leaks.leak_test,
            {"module": layer, "x": x, "tries": 1, "tolerance": 0.1, "seed": 0},
        ),
        "fitted_exponent": (
            costs.fitted_exponent,
            {"sizes": [1.0, 2.0, 4.0], "costs": [1.0, 2.0, 4.0]},
        ),
        "layer_cost": (costs.layer_cost, cost),
        "lr_at": (loop.lr_at, steps),
        "train": (loop.train, training),
        "held_out_loss": (
            stopping.held_out_loss,
            {"loss": training["loss"], "batches": [(numbers(4, 3),)]},
        ),
        "fit_power_law": (
            scaling.fit_power_law,
            {"n": [10.0, 20.0, 40.0], "loss": [3.0, 2.5, 2.2], "floor": True},
        ),
        "fit_scaling_law": (
            scaling.fit_scaling_law,
            {"n": [10.0, 20.0, 40.0, 80.0], "d": [10.0, 30.0, 20.0, 50.0]}
            | {"loss": [3.0, 2.5, 2.2, 1.9]},
        ),
    }


GROUPS = (functions, constructors, forward_passes, decoded, taken_apart)
GROUPS += (data, measured, adapted)
