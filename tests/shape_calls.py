"""Call every function of the package that states shapes, with the shapes checked.

Run by `test_shapes.py` in a process of its own, because the checks are installed when
the package is imported. Prints the functions that state shapes and were not called.
With arguments (`shape_calls.py attention models`) only those calls are made.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, ModuleType

from jaxtyping import install_import_hook

HERE = Path(find_spec("course_utils").origin).parent
# `sequences` has a Protocol that can't be checked at run time; its own tests look at
# the shapes.
STATING = [
    path
    for path in sorted(HERE.rglob("*.py"))
    if "[Tensor, " in path.read_text("utf-8")
    if path.stem not in ("sequences", "shapes") and path.parent.name != "widgets"
]
names = [
    ".".join(path.relative_to(HERE.parent).with_suffix("").parts) for path in STATING
]
with install_import_hook(names, "beartype.beartype"):
    import torch
    import torch.nn.functional as F

    from course_utils.data import batches
    from course_utils.display import quantised_export
    from course_utils.evaluation import (
        ablation,
        circuits,
        decoding,
        leaks,
        metrics,
        speculative,
        symmetry,
    )
    from course_utils.models import (
        attention,
        attention_only,
        bert,
        blocks,
        choices,
        eight_bit,
        lora,
        modern,
        modern_gpt,
        online_softmax,
        positions,
        pretrained,
        recurrences,
        residual_variants,
        rnn,
        scores,
        transformer,
        vision,
    )
    from course_utils.tasks import labels, repeats, scenes, synthetic, translation
    from course_utils.training import loop, muon

BATCH, QUERY, KEY, D_K, D_V, D_MODEL, HEADS = 2, 3, 5, 4, 6, 12, 3
SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0]])
TARGET = torch.tensor([[1, 3, 4, 5], [1, 6, 7, 0]])
generator = torch.Generator().manual_seed(0)


def stating_shapes() -> set[str]:
    """Return `module.function` for every public one with a shape in its signature."""
    found = set()
    for path in STATING:
        scopes = [("", ast.parse(path.read_text()))]
        for prefix, scope in scopes:
            for node in scope.body:
                if isinstance(node, ast.ClassDef):
                    scopes.append((f"{node.name}.", node))
                if not isinstance(node, ast.FunctionDef):
                    continue
                annotations = [a.annotation for a in ast.walk(node.args) if is_arg(a)]
                stated = [ast.unparse(a) for a in [*annotations, node.returns] if a]
                private = node.name.startswith("_") and node.name != "__init__"
                if not private and any("[Tensor, '" in text for text in stated):
                    found.add(f"{path.stem}.{prefix}{node.name}")
    return found


def is_arg(node: ast.AST) -> bool:
    return isinstance(node, ast.arg)


def call_attention() -> None:
    queries, keys = torch.randn(BATCH, QUERY, D_K), torch.randn(BATCH, KEY, D_K)
    values, mask = torch.randn(BATCH, KEY, D_V), torch.ones(QUERY, KEY).bool()
    attention.attention(queries, keys, values, mask)
    attention.attention(queries[0], keys[0], values[0])
    attention.basic_self_attention(keys)
    for score in (
        scores.dot_scores,
        scores.scaled_dot_scores,
        scores.LocationScore(D_K, KEY),
        scores.GeneralScore(D_K, D_K),
        scores.AdditiveScore(D_K, D_K, 7),
    ):
        scores.attend(queries, keys, values, score, mask)
    x, memory = torch.randn(BATCH, QUERY, D_MODEL), torch.randn(BATCH, KEY, D_MODEL)
    attention.SelfAttention(D_MODEL, D_K, D_V)(x, attention.causal_mask(QUERY))
    mask = attention.padding_mask(SOURCE)
    attention.CrossAttention(D_MODEL, D_MODEL, D_K, D_V)(x, memory, mask)
    symmetry.permutation_matrix([1, 2, 0])
    symmetry.equivariance_gap(attention.basic_self_attention, x, [1, 2, 0])
    symmetry.invariance_gap(lambda tokens: tokens.mean(-2), x, [1, 2, 0])
    leaks.leak_test(attention.basic_self_attention, x).moved.any()
    leaks.leak_test(lambda tokens: tokens.cumsum(-1), SOURCE)
    module = attention.MultiHeadAttention(D_MODEL, HEADS)
    for need_weights in (False, True):
        module(x, causal=True, need_weights=need_weights)
        module(x, memory, mask, need_weights=need_weights)
        module(x, module.project_memory(memory), mask, need_weights=need_weights)


def call_positions() -> None:
    positions.sinusoidal(5, 6)
    positions.LearnedPositions(7, 6)(3, first=2)
    positions.RelativeBias(3, 2)(3, 5)
    positions.alibi(3, 4)
    positions.rotary(torch.randn(2, 3, 5, 4), torch.arange(5))
    positions.rotary(torch.randn(5, 4), torch.arange(5))
    x = positions.to_neighbours(positions.to_halves(torch.randn(2, 5, 4)))
    positions.rotate_halves(x, positions.rotations(torch.arange(5), 4))


def call_models() -> None:
    cell = torch.nn.GRUCell(4, 6)
    weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    rnn.gru_step(torch.randn(2, 4), torch.randn(2, 6), *weights)
    blocks.layer_norm(torch.randn(2, 3, 4), torch.ones(4), torch.zeros(4))
    examples = synthetic.sort_tokens(4, generator, n_tokens=6, n_symbols=8)
    residual_variants.profile(residual_variants.Sorter("post-norm", 2), *examples)
    translators = [
        rnn.Seq2Seq(11, 13, 5, 6),
        *(rnn.Seq2SeqAttention(11, 13, 5, 6, s) for s in ("zeros", "last")),
        rnn.Seq2SeqAttention(11, 13, 5, 6),
        transformer.Transformer(11, 13, D_MODEL, HEADS, 10),
        transformer.Transformer(11, 13, D_MODEL, HEADS, 10, norm="post"),
    ]
    for model in translators:
        model(SOURCE, TARGET)
        translation.translation_loss(model, SOURCE, TARGET)
        decoding.greedy(model, SOURCE, 2, 1, 2)
        decoding.beam_search(model, SOURCE, 2, 1, 2, n_beams=3)
    translators[-1](SOURCE, TARGET, need_weights=True)
    readers = [rnn.GRULanguageModel(11, 5, 6, 2)]
    for kind in ("learned", "rotary", "none"):
        readers.append(transformer.GPT(11, 9, D_MODEL, HEADS, positions=kind))
    for model in readers:
        model(TARGET)
        decoding.generate(model, TARGET, 2, top_k=3, top_p=0.9)
    readers[-1](TARGET, need_weights=True)
    flat = torch.full((11,), 1 / 11)
    speculative.speculate(readers[-1], lambda text: flat, TARGET[0], 3, 2)
    speculative.rest_of(flat, flat.flip(-1))
    eight_bit.round_weights(readers[-1], by_row=False)
    caches = eight_bit.eight_bit_caches(readers[-1], BATCH)
    readers[-1].read(TARGET, caches)
    decoding.select_rows(caches, torch.tensor([1, 0]))
    modern.rms_norm(torch.randn(2, 3, 4), torch.ones(4))
    modern.window_mask(3, 5, 2)
    pretrained.turned_back(torch.randn(3 * D_MODEL, D_MODEL), 2 * HEADS, 4)
    muon.orthogonalise(torch.randn(2, 3, 4))
    padding = modern_gpt.padding_left(torch.tensor([4, 3]), 4)
    capped = choices.Choices(soft_cap=2.0, windows=(2, None))
    for chosen in (choices.Choices(), choices.LLAMA, choices.NANOCHAT, capped):
        model = modern_gpt.ModernGPT(11, 9, D_MODEL, HEADS, choices=chosen)
        model(TARGET, padding=padding, need_weights=True)
        state = model.start(TARGET, padding)
        model.step(TARGET[:, 0], decoding.select_rows(state, torch.tensor([1, 0])))
        decoding.generate(model, TARGET, 2)
    metrics.strongest_links(torch.rand(3, 5))


def call_vision() -> None:
    images = torch.randn(BATCH, 3, 4, 6)
    patches = vision.patchify(images, 2)  # six patches of twelve numbers
    vision.unpatchify(patches, 2, n_rows=2)
    for need_weights in (False, True):
        vision.VisionTransformer(6, 12, 5, D_MODEL, HEADS)(patches, need_weights)
    vision.SpatialAttention(3)(images)
    vision.SqueezeExcite(3, 2)(images)
    reader = vision.CrossReader(11, 5, 6, 12, D_MODEL)
    seen = torch.ones(BATCH, 1, 6).bool()
    reader(patches, torch.tensor([[1, 2], [3, 4]]), seen)
    reader(patches, torch.tensor([[1, 2], [3, 4]]))


def call_recurrences() -> None:
    """Call the scans, the layers beside attention, and the online softmax."""
    x = torch.randn(BATCH, KEY, D_MODEL)
    recurrences.scan_by_doubling(x, x)
    recurrences.linear_scan(x, x)
    recurrences.CausalConvolution(D_MODEL)(x)
    for selective in (True, False):
        layer = recurrences.StateSpace(D_MODEL, selective)
        layer(x)
        layer.step(x[:, 0], x[:, 1])
    online_softmax.online_softmax(x)
    online_softmax.chunked_attention(x[:, :QUERY], x, x[..., :D_V], chunk=2)


def call_portable() -> None:
    """Call what carries a model elsewhere, and what takes it apart."""
    quantised_export.dequantise(*quantised_export.quantise(torch.randn(QUERY, KEY)))
    small = transformer.Transformer(11, 13, D_MODEL, HEADS, 10)
    ablation.ablate(small, no_positions=["source"])(SOURCE, TARGET)
    ablation.mean_contexts(small, [(SOURCE, TARGET)])
    heads = attention_only.AttentionOnly(64, D_MODEL, HEADS)
    tokens = repeats.repeated(BATCH, generator, QUERY)
    logits, weights = heads(tokens, need_weights=True)
    repeats.second_copy(logits, tokens)
    circuits.prefix_matching(weights, tokens)
    circuits.previous_token(weights)
    circuits.logit_lens(heads, tokens)
    first = circuits.logit_terms(heads, tokens)[0]
    write = circuits.stream_terms(heads, tokens)[1]
    with (
        circuits.edit_heads(heads, {(0, 1): 0.0}),
        circuits.hide_from(heads, 1, "keys", write),
    ):
        assert heads(tokens)[0].shape == first.shape


def call_adapted() -> None:
    words = labels.vocabulary()
    model = bert.BERT(len(words), labels.LONGEST + 2, D_MODEL, HEADS)
    examples = [(("he", "was", "singing", "."), 1), (("he", "were", "singing", "."), 0)]
    tokens, truth = labels.tensors(examples, words)
    read = bert.mask_tokens(tokens, words.ids[labels.MASK], len(words), generator, 0.5)
    bert.masked_loss(model, *read)
    assert bert.SentenceClassifier(model, 2)(tokens).shape == (2, 2)
    with contextlib.suppress(ValueError):
        model.start(tokens)
    layer = lora.LoRALinear(torch.nn.Linear(D_MODEL, D_V), 2)
    assert layer.merge()(torch.randn(BATCH, D_MODEL)).shape == (BATCH, D_V)
    layer(torch.randn(BATCH, D_MODEL))
    table, *_ = labels.tf_idf_tables([s for s, _ in examples], [], 2)
    labels.logistic_regression(table, truth, 1.0)


def call_data() -> None:
    """Call every task and scene with a batch of 4, and what trains."""
    world = synthetic.slot_world(generator, width=8, n_slots=8)
    synthetic.reverse(4, generator, 5)
    synthetic.slots(4, generator, world)
    for module in (synthetic, scenes):
        for function in takes_batch_and_generator(module):
            function(4, generator)
    batches.epochs(7, 3)(0)
    loop.train(
        torch.nn.Linear(3, 2),
        lambda step, generator: (torch.randn(4, 3, generator=generator),),
        lambda model, x: F.mse_loss(model(x), x[:, :2]),
        steps=2,
        progress=False,
    )


def takes_batch_and_generator(module: ModuleType) -> list:
    """Return the functions that need nothing but a batch size and a generator."""
    chosen = []
    for _, function in inspect.getmembers(module, inspect.isfunction):
        parameters = inspect.signature(function).parameters.values()
        needed = [p.name for p in parameters if p.default is p.empty]
        if needed == ["batch", "generator"] and function.__module__ == module.__name__:
            chosen.append(function)
    return chosen


def main() -> None:
    codes = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        codes.add(frame.f_code)

    groups = {
        "attention": call_attention,
        "positions": call_positions,
        "models": call_models,
        "vision": call_vision,
        "recurrences": call_recurrences,
        "portable": call_portable,
        "adapted": call_adapted,
        "data": call_data,
    }
    sys.setprofile(note)
    for name in sys.argv[1:] or groups:
        groups[name]()
    sys.setprofile(None)
    paths = {code: Path(code.co_filename) for code in codes}
    ours = [code for code in codes if HERE in paths[code].parents]
    called = {f"{paths[code].stem}.{code.co_qualname}" for code in ours}
    print("checked:", *sorted(stating_shapes() & called))
    print("not called:", *sorted(stating_shapes() - called))


if __name__ == "__main__":
    main()
