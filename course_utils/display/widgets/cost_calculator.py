"""Choose the sizes of a model, and see what each kind of layer costs as n grows."""

from __future__ import annotations

from course_utils.display.interactive import Widget, script_of, select, slider, widget
from course_utils.evaluation.costs import LAYERS

QUANTITIES = {
    "memory to train": "training",
    "operations": "flops",
    "memory to generate": "generation",
}


def cost_calculator(name: str = "cost-calculator", longest: int = 2**20) -> Widget:
    """Choose n, width, heads, layers and number format; see five layers' costs.

    The polynomials of `evaluation.costs.LAYERS` against n, the values at the chosen
    n, and where one layer overtakes another. Used in chapter 15.
    """
    if longest < 1024:
        raise ValueError(
            f"cost_calculator got longest = {longest}, expected 1024 or more: shorter "
            "texts show no difference."
        )
    lengths = [2**power for power in range(7, longest.bit_length())]
    return widget(
        name,
        "What does a layer cost? Choose the sizes",
        [
            select("quantity", "Show", list(QUANTITIES)),
            slider("n", "tokens n", lengths, value=1024),
            slider("d", "width d", [64, 128, 256, 512, 1024, 2048, 4096], value=512),
            slider("heads", "heads", [1, 2, 4, 8, 16, 32], value=8),
            slider("layers", "layers", [1, 2, 4, 8, 16, 32, 64], value=8),
            select("numbers", "Numbers", ["32 bits", "16 bits"]),
        ],
        data={
            "layers": {label: c._asdict() for label, c in LAYERS.items()},
            "quantities": QUANTITIES,
            "lengths": lengths,
        },
        script=script_of(__name__),
        alt="Cost of five kinds of layers against the number of tokens, on logarithmic "
        "axes. Memory to train grows in proportion to the tokens for all but naive "
        "attention, where it grows with their square. Operations grow with the square "
        "for both attentions. Memory to generate grows for attention only.",
        height=360,
    )
