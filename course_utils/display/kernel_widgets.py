"""Ask a live kernel: type something, and the model that was just trained answers.

What can be computed beforehand is drawn by `interactive`, which needs no kernel and
works on the site. This is for the rest: sentences that nobody has thought of. Cells
that call it carry the tag `remove-cell`: the site has no kernel, and leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def ask(
    answer: Callable[..., None], label: str, value: str, **choices: Sequence[Any]
) -> Any:
    """Show a text box and, below it, what `answer(text)` prints and draws.

    Each of `choices` becomes a menu whose entry is handed to `answer` by its name. What
    `answer` refuses with a ValueError is shown as a sentence. Used in chapters 03, 12
    and 13.
    """
    import ipywidgets

    for name, options in choices.items():
        if not options:
            raise ValueError(f"{name} offers nothing to choose; give some values.")
    wide = {"description_width": "initial"}
    box = ipywidgets.Text(
        value=value,
        description=label,
        continuous_update=False,  # answers at Enter, not at every letter
        style=wide,
        layout=ipywidgets.Layout(width="95%"),
    )
    menus = {
        name: ipywidgets.Dropdown(options=list(options), description=name, style=wide)
        for name, options in choices.items()
    }
    said = ipywidgets.Output()

    problems: list[Exception] = []

    def respond(change: Any = None) -> None:
        said.clear_output(wait=True)
        with said:  # which shows an error and goes on, so that the first is kept
            try:
                answer(box.value, **{name: menu.value for name, menu in menus.items()})
            except Exception as error:
                problems.append(error)
                if isinstance(error, ValueError) and change is not None:
                    print(error)
                else:
                    raise

    for control in (box, *menus.values()):
        control.observe(respond, names="value")
    respond()
    if problems:  # the first example is the author's, and has to be answered
        raise problems[0]
    return ipywidgets.VBox([box, *menus.values(), said])
