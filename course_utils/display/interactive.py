"""Interactives that need no kernel: HTML, SVG and some JavaScript in a cell's output.

They work on the built page, in Colab, in JupyterLab and from a file, by mouse, touch
and keyboard; what they show is also said in words below the drawing. A chapter writes
one as a list of controls and a JavaScript body `(state, data, ui)` that draws it:

    widget(
        "coin", "A coin", [slider("p", "probability", [0.1, 0.5, 0.9])],
        script="ui.bars([state.p], {x: 0, y: 0, w: ui.width, h: ui.height});"
               "ui.say(`The coin shows heads with probability ${state.p}.`);",
        alt="One bar as high as the probability of heads.",
    )

`ui` has width, height, line, rect, circle, text, curve, path, bars, heatmap, tokens,
active (an element to press or drag), label (of a button), suggest (words below a text
box), say, set, softmax and normals: see `interactive.js`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from course_utils.display.drawing import Drawing
from course_utils.display.figures import (
    COLOURS,
    COLOURS_DARK,
    dark_css,
    palette_css,
)

# --------------------------------------------------------------------------- controls


_NAME = "\0"  # stands for the widget's name until the control is put into one


@dataclass(frozen=True)
class Control:
    """One native form element, bound to `state[key]` in the page."""

    key: str
    html: str


def _attribute(value: Any) -> str:
    return html.escape(value if isinstance(value, str) else json.dumps(value))


def _bound(key: str, kind: str) -> str:
    if not re.fullmatch(r"[a-z][A-Za-z0-9_]*", key):
        raise ValueError(
            f"control key {key!r} is not a JavaScript name; use letters, digits and _."
        )
    return f'data-control="{key}" data-kind="{kind}"'


def _position(value: Any, among: Sequence[Any], key: str) -> int:
    if not among:
        raise ValueError(
            f"control {key!r} has nothing to choose from; give some values."
        )
    if value is not None and value not in among:
        raise ValueError(
            f"control {key!r} starts at {value!r}, expected one of {list(among)}."
        )
    return 0 if value is None else list(among).index(value)


def slider(
    key: str, label: str, values: Sequence[float], value: float | None = None
) -> Control:
    """A slider over a list of numbers, in any steps; `state[key]` is the number."""
    at = _position(value, values, key)
    return Control(
        key,
        f"<label>{html.escape(label)} <input type=range {_bound(key, 'slider')} "
        f"min=0 max={len(values) - 1} value={at} step=1 autocomplete=off "
        f'data-values="{_attribute(list(values))}"> '
        f"<output>{values[at]}</output></label>",
    )


def toggle(key: str, label: str, value: bool = False) -> Control:
    """A checkbox; `state[key]` is true or false."""
    checked = " checked" if value else ""
    return Control(
        key,
        f"<label><input type=checkbox {_bound(key, 'toggle')} autocomplete=off"
        f"{checked}> {html.escape(label)}</label>",
    )


def select(
    key: str, label: str, options: Sequence[str], value: str | None = None
) -> Control:
    """A list to choose from; `state[key]` is the chosen text."""
    at = _position(value, options, key)
    inside = "".join(
        f'<option value="{_attribute(option)}"{" selected" if i == at else ""}>'
        f"{html.escape(option)}</option>"
        for i, option in enumerate(options)
    )
    return Control(
        key,
        f"<label>{html.escape(label)} <select {_bound(key, 'select')} autocomplete=off>"
        f"{inside}</select></label>",
    )


def text(key: str, label: str, value: str = "", suggestions: str = "") -> Control:
    """A line to type into; `state[key]` is what stands there.

    `suggestions` says what the words are that `ui.suggest` puts below it.
    """
    return Control(
        key,
        f"<div class=cw-text><label>{html.escape(label)} <input type=text "
        f'{_bound(key, "text")} value="{_attribute(value)}" autocomplete=off '
        f"autocapitalize=off spellcheck=false></label>"
        f'<div class=cw-suggest role=group aria-label="'
        f'{_attribute(suggestions or label)}"></div></div>',
    )


def button(key: str, label: str) -> Control:
    """A button; `state[key]` counts how often it was pressed."""
    return Control(
        key,
        f"<button type=button {_bound(key, 'button')}>{html.escape(label)}</button>",
    )


def tokens(key: str, label: str, options: Sequence[str], value: int = 0) -> Control:
    """Words to choose one from; `state[key]` is its position."""
    at = _position(value, range(len(options)), key)
    inside = "".join(
        f'<label><input type=radio name="{_NAME}-{key}" autocomplete=off'
        f"{' checked' if i == at else ''}>{html.escape(option)}</label>"
        for i, option in enumerate(options)
    )
    return Control(
        key,
        f"<fieldset {_bound(key, 'tokens')}><legend>{html.escape(label)}</legend>"
        f"{inside}</fieldset>",
    )


# -------------------------------------------------------------------------- the frame


@dataclass(frozen=True)
class Widget:
    """An interactive: shown by being a cell's last value."""

    html: str
    alt: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.alt


@cache
def _own(file: str) -> str:
    return files("course_utils.display").joinpath(file).read_text(encoding="utf-8")


def script_of(module: str) -> str:
    """The JavaScript beside a module of `widgets`: `script_of(__name__)`."""
    return _own(f"widgets/{module.rpartition('.')[2]}.js")


def style() -> str:
    """The style of every interactive, with the palette, dark on a dark page."""
    dark = f"color-scheme:dark;{palette_css(COLOURS_DARK)}"
    return (
        f".course-widget{{{palette_css(COLOURS)}}}"
        f"{dark_css('.course-widget', dark)}{_own('interactive.css')}"
    )


def plain(data: Any) -> Any:
    """Tensors and arrays as lists, numbers to four digits, to keep pages small."""
    if hasattr(data, "tolist"):
        data = data.tolist()
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    return float(f"{data:.4g}") if isinstance(data, float) else data


def _script_json(data: Any) -> str:
    """JSON that can stand inside a script element whatever text it holds."""
    try:
        text = json.dumps(plain(data), allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise ValueError(
            "the data of a widget holds NaN or infinity, which a page can't show; "
            "replace them first, as in `torch.nan_to_num(x)`."
        ) from None
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


# The script takes it away: whoever reads it has a page that runs no scripts.
ASLEEP = (
    "This interactive is asleep, because the notebook may not run scripts. In "
    "JupyterLab, choose File, then Trust Notebook; elsewhere, run the cell."
)


def widget(
    name: str,
    title: str,
    controls: Sequence[Control],
    *,
    script: str,
    alt: str,
    data: Any = None,
    height: int = 240,
    still: Drawing | None = None,
    asleep: str = ASLEEP,
) -> Widget:
    """Make an interactive of `controls` and a `script` that draws their state.

    `name` is its id on the page; `height` is the drawing's in CSS pixels, fixed so that
    the page does not jump. Where scripts don't run, `alt` stands for it, with a `still`
    drawing if there is one, and the sentence `asleep`.
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(
            f"widget name {name!r} can't be an id; use a-z, 0-9 and -: 'my-widget'."
        )
    if len(alt.strip()) < 20:
        raise ValueError(
            f"widget {name!r} got alt = {alt!r}, expected a sentence of 20 characters "
            "or more; say what there is to find to a reader who can't see it."
        )
    if len({control.key for control in controls}) < len(controls):
        raise ValueError(
            f"widget {name!r} has two controls of one key; give each its own."
        )
    if "</script" in script.lower():
        raise ValueError(f"the script of widget {name!r} holds '</script'; split it.")
    said = html.escape(" ".join(alt.split()))
    heading = html.escape(title)
    box = f' viewBox="0 0 {still.width} {still.height}"' if still else ""
    inner = "".join(still.parts) if still else ""
    inside = "".join(control.html for control in controls).replace(_NAME, name)
    return Widget(
        f'<div class="course-widget tex2jax_ignore" id="{name}" role="group" '
        f'aria-label="{heading}"><style>{style()}</style>'
        f'<p class="cw-title">{heading}</p>'
        f'<p class="cw-asleep">{html.escape(asleep)}</p>'
        f'<div class="cw-controls">{inside}</div>'
        f'<div class="cw-strip"></div><svg role="img" aria-label="{said}" '
        f'height="{height}" style="height:{height}px"{box}>{inner}</svg>'
        f'<p class="cw-says" role="status">{said}</p>'
        f"<script>(function(){{\n{_own('interactive.js')}\n"
        f"const data={_script_json(data)};\n"
        f"const script=function(state,data,ui){{\n{script}\n}};\n"
        f"document.querySelectorAll('[id=\"{name}\"]').forEach("
        f"(root)=>courseWidget(root,data,script));\n}})();</script></div>",
        " ".join(alt.split()),
    )
