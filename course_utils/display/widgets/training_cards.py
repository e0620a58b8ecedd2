"""A network that learns in the page: two questions about every card."""

from __future__ import annotations

from importlib.resources import files

from course_utils.display.interactive import (
    Widget,
    button,
    script_of,
    slider,
    toggle,
    widget,
)

HEADS = [1, 2, 4]
RATES = [0.001, 0.003, 0.01, 0.03, 0.1]
SEEDS = range(10)
MOST_STEPS = 600
TALL = 426  # pixels of the drawing


def javascript(name: str = "") -> str:
    """Return all of the network's JavaScript, or one function: `javascript("add")`.

    A function comes with the comment above it. Used in `training_in_the_page`.
    """
    folder = files("course_utils.display")
    parts = ("autograd.js", "cards_network.js")
    text = "\n".join(folder.joinpath(part).read_text("utf-8") for part in parts)
    if not name:
        return text
    found = [p for p in text.split("\n\n") if f"function {name}(" in p]
    if not found:
        raise ValueError(
            f"the network in the page has no function {name!r}; print `javascript()` "
            "to see all of it."
        )
    return found[0].strip()


def training_cards(name: str = "training") -> Widget:
    """Train the network of chapter 10 on its cards, in the page and without a kernel.

    Every switch starts the training anew, so that two curves differ by one change.
    Used in `training_in_the_page`.
    """
    made = widget(
        name,
        "A network that learns in this page: two questions about every card",
        [
            slider("heads", "heads", HEADS, value=1),
            slider("rate", "learning rate", RATES, value=0.01),
            slider("seed", "seed", SEEDS, value=0),
            toggle("scaled", "divide the scores by √dₖ", value=True),
            toggle("positions", "positions", value=True),
            toggle("causal", "causal mask"),
            button("train", "Train"),
            button("step", "One step"),
            button("again", "Start again"),
            button("copy", "Copy link"),
        ],
        data={"name": name, "engine": javascript(), "most": MOST_STEPS},
        script=script_of(__name__),
        alt="A row of twelve coloured cards with letters, two curves of the share of "
        "right answers against the steps of the training, and one table of weights "
        "for each head, which change while the network learns. With one head one "
        "question is learned and the other is not; with two heads both are. Every "
        "state is said in words here.",
        height=TALL,
    )
    css = (
        f"<style>#{name}{{container-type:inline-size}}"
        f"#{name} .cw-says{{min-height:6em}}"
        # the one button to begin with
        f"#{name} [data-control=train]{{min-width:7.5rem;background:var(--course-blue);"
        "border-color:var(--course-blue);color:var(--course-surface);font-weight:650}"
        f"@container(max-width:560px){{#{name} .cw-says{{"
        "min-height:12em!important;overflow-wrap:anywhere}}"
        "</style>"
    )
    return Widget(css + made.html, made.alt)
