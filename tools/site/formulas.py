"""Formulas of docstrings: written for a terminal, set as mathematics on the page.

`$C = softmax(Q K^T / sqrt(d_k)) V$` reads well in `help(attention)`; LaTeX does not. So
docstrings keep the plain form between dollars, and the reference makes LaTeX of it.
"""

from __future__ import annotations

import re

MARKED = re.compile(r"(`[^`]*`)|\$([^$]+)\$")
GREEK = r"alpha|beta|gamma|omega|pi"
KNOWN = rf"exp|log|sin|cos|tanh|max|min|sum|{GREEK}"
SIGNS = {
    r" \. ": r" \\cdot ",
    r" \| ": r" \\mid ",
    r"<=": r"\\le ",
    r"!=": r"\\ne ",
    r"<-": r"\\leftarrow ",
    r"~": r"\\sim ",
    r"\*": r"\\odot ",
    r"&": r"\\cap ",
    r"…": r"\\dots ",
    r"\^T\b": r"^{\\top}",
    r"\beps\b": r"\\varepsilon ",
}
# Not part of a longer name, nor below or above another: those are indices.
WORD = re.compile(r"(?<![\\_^\w])[A-Za-z]{2,}")
INDEX = re.compile(r"([_^])(\w+'?)")


def name(found: re.Match[str]) -> str:
    """A word of a formula: a function, or a quantity that has no letter."""
    known = re.fullmatch(KNOWN, found[0])
    return rf"\{found[0]} " if known else rf"\operatorname{{{found[0]}}}"


def index(found: re.Match[str]) -> str:
    """What stands below or above: letters, or from three letters on a word."""
    sign, what = found.groups()
    if re.fullmatch(GREEK, what):
        return rf"{sign}{{\{what}}}"
    word = what.replace("_", " ")
    is_word = len(what) > 2 and what.isidentifier()
    return rf"{sign}{{\text{{{word}}}}}" if is_word else f"{sign}{{{what}}}"


def braced(formula: str, before: str, after: str) -> str:
    """`before(…)` becomes `after{…}`, up to the bracket that belongs to it."""
    while (start := formula.find(f"{before}(")) >= 0:
        inside = start + len(before) + 1
        depth, end = 1, inside
        while depth:
            depth += {"(": 1, ")": -1}.get(formula[end], 0)
            end += 1
        middle = formula[inside : end - 1]
        formula = f"{formula[:start]}{after}{{{middle}}}{formula[end:]}"
    return formula


def latex(plain: str) -> str:
    """A formula as a docstring writes it, in LaTeX."""
    formula = braced(" ".join(plain.split()), "sqrt", r"\sqrt")
    formula = braced(formula, "^", "^")
    for sign, command in SIGNS.items():
        formula = re.sub(sign, command, formula)
    formula = re.sub(r"\bh_dec(?![a-z])", "h^{dec}", formula)
    return INDEX.sub(index, WORD.sub(name, formula))


def with_formulas(text: str) -> str:
    """A docstring as Markdown, its formulas in LaTeX and its code as it is."""
    return MARKED.sub(lambda m: m[1] or f"${latex(m[2])}$", text)
