"""Move the model's distribution and the draft's, and see what is accepted."""

from __future__ import annotations

from course_utils.display.interactive import Widget, script_of, slider, widget


def accepted_mass(name: str = "accepted-mass", n_tokens: int = 14) -> Widget:
    """Move p and q: accepted, rejected and left-over mass, and tokens a pass.

    Both are bells over `n_tokens` tokens. Used in chapter 19.
    """
    if not 6 <= n_tokens <= 30:
        raise ValueError(f"n_tokens is {n_tokens}, expected 6 to 30.")
    places = [round(0.5 * i, 1) for i in range(2, 2 * n_tokens - 1)]
    spreads = [0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5]
    middle = n_tokens // 2
    return widget(
        name,
        "Which drafted tokens are accepted?",
        [
            slider("p", "Model: centre", places, value=float(middle)),
            slider("pWide", "Model: spread", spreads, value=1.5),
            slider("q", "Draft: centre", places, value=float(middle + 2)),
            slider("qWide", "Draft: spread", spreads, value=2),
            slider("k", "Drafted tokens", list(range(1, 11)), value=4),
        ],
        data={"n": n_tokens},
        script=script_of(__name__),
        alt="Bars of two distributions over the same tokens, laid over each other. "
        "Where both have mass it is accepted, green. Where the draft has more it is "
        "rejected, red; where the model has more it is drawn afterwards, blue. Red and "
        "blue are always equally large. With equal distributions all is green.",
        height=270,
    )
