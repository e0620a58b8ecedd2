"""An interactive with a control of every kind, and a notebook to show it in."""

from __future__ import annotations

from typing import Any

import nbformat
from nbformat.v4 import new_notebook

from course_utils.display.interactive import button, select, slider, widget

SCRIPT = """
const dot = ui.circle(state.at || 40, 60, 12, {});
ui.active(dot, {key: "dot", label: "a dot", at: [state.at || 40, 60], step: 10,
  drag: (x) => { state.at = Math.round(x); }});
const bar = ui.rect(200, 50, 30, 20, {});
ui.active(bar, {key: "bar", label: "a bar", press: () => { state.pressed = "yes"; }});
ui.say(`p ${state.p}, ${state.colour}, ${state.count}, ${state.at}, ${state.pressed}`);
"""
COIN = widget(
    "coin",
    "A coin",
    [
        slider("p", "probability", [0.1, 0.5, 0.9]),
        select("colour", "colour", ["blue", "red"]),
        button("count", "throw"),
    ],
    script=SCRIPT,
    alt="A dot to drag and a bar to press, and what was done with them.",
)


def notebook(*cells: Any) -> nbformat.NotebookNode:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=list(cells), metadata={"kernelspec": kernel})
