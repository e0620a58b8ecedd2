"""The trained transformer itself, in the page: type, translate, take it apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch

from course_utils.data.corpus import BOS, EOS, Vocabulary
from course_utils.data.sequences import SentencePair
from course_utils.display.interactive import (
    Control,
    Widget,
    button,
    script_of,
    select,
    slider,
    text,
    toggle,
    widget,
)
from course_utils.display.quantised_export import (
    as_text,
    model_in_page,
    unpack_transformer,
)
from course_utils.evaluation.ablation import KINDS, mean_contexts
from course_utils.evaluation.decoding import greedy

assert (BOS, EOS) == (1, 2), "quantised_export.js counts on it"
WIDE, NARROW = 742, 1790  # pixels of the drawing, on a desk and on a phone
MOST_WORDS = 26  # of a sentence that the drawing has room for
FOLLOWERS = 12  # words offered after a word
MEANS_OF = 200  # sentences over which the mean of a head is taken
SCALES = (0, 0.25, 0.5, 1, 2, 4)  # factors on the scores; 1 as it was trained
ABLATIONS = ("adds nothing (zero ablation)", "adds its mean (mean ablation)")
CHAIN = (
    '<details class="cw-chain" hidden><summary>The equation, the code and more numbers'
    "</summary><p></p><pre></pre><div class=cw-scroll tabindex=0 role=group "
    'aria-label="The numbers of this part"><table><thead></thead><tbody></tbody>'
    "</table></div></details>"
)
OWN = "my own sentence"  # what the list of examples shows while the reader types


def followers(
    pairs: Sequence[SentencePair], vocabulary: Vocabulary
) -> dict[int, list[int]]:
    """List for every word which words come after it, the most frequent first.

    Ids in place of words; those that begin a sentence stand under `BOS`.
    """
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for pair in pairs:
        ids = vocabulary.encode(pair.source, bos=True)
        for word, after in pairwise(ids):
            counts[word][after] += 1
    return {
        word: sorted(found, key=lambda after: (-found[after], after))[:FOLLOWERS]
        for word, found in sorted(counts.items())
    }


def presets(n_layers: int) -> list[str]:
    """Name the choices of heads that `live_transformer.js` knows how to make."""
    named = ["all on", "my own choice"]
    for kind in KINDS:
        named += [f"{kind}: layer {i + 1} off" for i in range(n_layers)]
        named += [f"{kind}: all off"]
    return [*named, "all off but head 1 of each layer"]


def still(packed: Mapping[str, Any], source: Sequence[int]) -> dict[str, Any]:
    """Translate one sentence beforehand, to be seen before the model is loaded.

    In the form of `greedy` in `quantised_export.js`, to two digits: the weights of the
    encoder [layer][query][head][key], and each word's rows and the likeliest words.
    """
    model = unpack_transformer(packed)
    asked = torch.tensor([list(source)])
    written = greedy(model, asked, 48, BOS, EOS).tokens
    begun = torch.cat([torch.full((1, 1), BOS), written[:, :-1]], dim=1)
    with torch.no_grad():
        logits, maps = model(asked, begun, need_weights=True)
    assert maps is not None
    odds = torch.softmax(logits[0], dim=-1).topk(5)
    encoder, own, cross = (
        m[:, 0].transpose(1, 2).double().round(decimals=2) for m in maps
    )
    steps = []
    for t, token in enumerate(written[0].tolist()):
        best = zip(odds.indices[t].tolist(), odds.values[t].tolist())
        steps.append(
            {
                "token": token,
                "own": own[:, t, :, : t + 1],
                "cross": cross[:, t],
                "best": [list(pair) for pair in best],
            }
        )
    return {"encoder": encoder, "steps": steps}


def means(
    packed: Mapping[str, Any],
    vocabularies: tuple[Vocabulary, Vocabulary],
    pairs: Sequence[SentencePair],
) -> dict[str, Any]:
    """What each layer's heads return on average, for heads that are off."""
    source, target = vocabularies
    sentences = (
        (
            torch.tensor([source.encode(pair.source, eos=True)]),
            torch.tensor([target.encode(pair.target, bos=True)]),
        )
        for pair in pairs
    )
    return dict(mean_contexts(unpack_transformer(packed), sentences))


def weights_element(name: str, packed: Mapping[str, Any]) -> str:
    """Put packed weights where the page can find them when they are asked for.

    The site's build moves them into a file of their own (`tools/site/outputs.py`).
    """
    return (
        f'<script type="application/json" data-weights="{name}">{as_text(packed)}'
        "</script>"
    )


def live_transformer(
    name: str,
    packed: Mapping[str, Any],
    vocabularies: tuple[Vocabulary, Vocabulary],
    examples: Mapping[str, str],
    seen: Sequence[SentencePair],
    tested: Sequence[SentencePair],
) -> Widget:
    """Type a sentence, see it translated word by word, and take the model apart.

    `packed` is the model as `quantised_export.pack` writes it, `examples` are sentences
    to choose from with their right translations, `seen` the pairs that tell which word
    may follow which, `tested` those that the test button translates. Used in
    `transformer_in_the_page`.
    """
    source, target = vocabularies
    require_fit(name, packed, vocabularies, examples)
    sizes, (first, *_) = packed["sizes"], examples
    data: dict[str, Any] = {
        "name": name,
        "source": list(source.tokens),
        "target": list(target.tokens),
        "follows": followers(seen, source),
        "tested": [
            [source.encode(p.source, eos=True), target.encode(p.target, eos=True)]
            for p in tested
        ],
        "still": still(packed, source.encode(first.split(), eos=True)),
        "stillOf": first,
        "gold": dict(examples),
        "own": OWN,
        "longest": max(len(pair.source) for pair in seen),
        "sizes": {key: sizes[key] for key in ("n_layers", "n_heads")},
        "most": MOST_WORDS,
        "ablations": ABLATIONS,
        "scales": SCALES,
        "means": means(packed, vocabularies, seen[:MEANS_OF]),
    }
    goal = -(-4 * len(tested) // 5)  # as in the script
    root = (sizes["d_model"] // sizes["n_heads"]) ** 0.5
    made = widget(
        name,
        "A transformer in this page: type, translate, take it apart",
        [
            text("sentence", "English", first, "Words that may come next"),
            button("play", "Play"),
            button("next", "Next word"),
            button("copy", "Copy link"),
            select("example", "Examples", [OWN, *examples], value=first),
            *folded(
                "Leave parts out, test it, play a game",
                select("heads", "Heads", presets(sizes["n_layers"])),
                select("ablation", "A head that is off", ABLATIONS),
                toggle("source", "no positions in the source"),
                toggle("target", "no positions in the translation"),
                slider("scale", f"scores times (√dₖ is {root:.3g})", SCALES, 1),
                button("test", f"Test on {len(tested)} sentences"),
                toggle("game", f"game: fewest heads, {goal} of {len(tested)} right"),
            ),
        ],
        data=data,
        script=f"{model_in_page()}\n{script_of(__name__)}",
        alt="A transformer that translates English into French in the browser. The "
        "source and its translation stand on top. Below them is the model as a "
        "diagram: encoder and decoder as stacks of boxes, in each attention a table of "
        "weights for every head, with a switch. At the right are the likeliest next "
        "words, and one head's table or the numbers of a box. Every step is said in "
        "words here.",
        height=WIDE,
    )
    css = (
        f"<style>#{name}{{container-type:inline-size}}"
        f"#{name} .cw-says{{min-height:7.5em}}"
        f"#{name} .cw-chain{{margin-top:.6rem}}#{name} .cw-scroll{{overflow-x:auto}}"
        f"#{name} summary{{cursor:pointer}}#{name} .cw-fold{{flex:1 1 100%}}"
        f"#{name} .cw-fold div{{display:flex;flex-wrap:wrap;align-items:center;"
        "gap:.5rem 1.2rem;margin-top:.5rem}"
        f"#{name} label:has([data-control=example]){{flex:1 1 16rem}}"
        f"#{name} [data-control=example]{{flex:1}}"
        # as wide as its longest word: nothing may jump when it changes
        f"#{name} [data-control=play]{{min-width:5rem;background:var(--course-blue);"
        "border-color:var(--course-blue);color:var(--course-surface);font-weight:650}"
        f"#{name} .cw-chain pre{{margin:.3rem 0;padding:.4rem .6rem;overflow-x:auto;"
        "background:none;border:1px solid var(--course-grid);color:inherit}"
        f"#{name} table{{font:inherit;font-variant-numeric:tabular-nums;margin:0}}"
        f"#{name} :is(th,td){{text-align:right;padding:.1rem .8rem .1rem 0;"
        "white-space:pre;font-weight:400}"
        f"#{name} :is(label,select){{min-width:0;max-width:100%}}"
        # what scrolls sideways by itself would hold on to what should stay in view
        f":is(.cell,.cell_output,.output):has(#{name}){{overflow:visible!important}}"
        f"@container(max-width:560px){{#{name} svg{{height:{NARROW}px!important}}"
        # on a phone the sentence stays above the drawing, what is said below it
        f"#{name} .cw-controls{{display:contents}}"
        f"#{name} :is(.cw-text,.cw-says){{position:sticky;z-index:2;"
        "background:var(--course-surface)}"
        f"#{name} .cw-text{{top:3rem;padding-top:.4rem}}"
        f"#{name} .cw-says{{bottom:0;min-height:0!important;max-height:8.7em;"
        "overflow-y:auto;padding:.4rem 0;border-top:1px solid var(--course-grid)}"
        f"#{name} :is(label:has(input[type=checkbox]),button[data-control],"
        "label:has(select)){margin:.25rem .5rem .25rem 0}}</style>"
    )
    # below the drawing, filled by the script: the chosen head for the chosen word
    says = '<p class="cw-says"'
    html = made.html.replace(says, CHAIN + says, 1)
    return Widget(css + html + weights_element(name, packed), made.alt)


def folded(title: str, *controls: Control) -> list[Control]:
    """Put controls behind a line that opens, so that what they change is seen first."""
    first, *between, last = controls
    begin = f"<details class=cw-fold><summary>{title}</summary><div>"
    return [
        replace(first, html=begin + first.html),
        *between,
        replace(last, html=last.html + "</div></details>"),
    ]


def require_fit(
    name: str,
    packed: Mapping[str, Any],
    vocabularies: tuple[Vocabulary, Vocabulary],
    examples: Mapping[str, str],
) -> None:
    """Refuse weights of another vocabulary, and examples outside the vocabularies."""
    sizes = packed["sizes"]
    built, given = (sizes["n_source"], sizes["n_target"]), tuple(map(len, vocabularies))
    if built != given:
        raise ValueError(
            f"widget {name!r} got weights for {built} words and vocabularies of "
            f"{given}; give the vocabularies that the model was trained with."
        )
    if not examples:
        raise ValueError(f"widget {name!r} got no example, expected at least one.")
    for example, right in examples.items():
        unknown = [word for word in example.split() if word not in vocabularies[0]]
        unknown += [word for word in right.split() if word not in vocabularies[1]]
        if unknown or not 0 < len(example.split()) <= MOST_WORDS or not right:
            raise ValueError(
                f"widget {name!r} got the example {example!r}: {right!r}, expected 1 "
                f"to {MOST_WORDS} known words parted by spaces and their translation; "
                f"unknown: {unknown}."
            )
