"""The formulas of docstrings: plain in a terminal, mathematics on the page."""

from __future__ import annotations

import ast
import re

import pytest

from tools.notebooks.io import ROOT
from tools.site.formulas import MARKED, latex, with_formulas
from tools.site.mathematics import typeset

# What only a formula has: an index of one or two letters, a power, a root.
INDEX = r"\b[A-Za-z]+_(?:[a-z]{1,2}\b|[A-Z0-9{](?![A-Z]))"
LOOKS_LIKE_ONE = re.compile(INDEX + r"|\w\^|sqrt\(")


def docstrings() -> dict[str, str]:
    """Every docstring that the reference shows, by module and name."""
    found = {}
    api = (ROOT / "book" / "api.md").read_text("utf-8")
    for module in re.findall(r"\{reference\} ([\w.]+)", api):
        path = ROOT / module.replace(".", "/")
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        tree = ast.parse(source.read_text("utf-8"))
        kinds = (ast.FunctionDef, ast.ClassDef)
        for node in [tree, *(x for x in tree.body if isinstance(x, kinds))]:
            name = getattr(node, "name", "the module")
            if not name.startswith("_"):
                found[f"{module} {name}"] = ast.get_docstring(node) or ""
    return found


@pytest.mark.parametrize(
    ("plain", "written"),
    [
        ("Q K^T / sqrt(d_k)", r"Q K^{\top} / \sqrt{d_{k}}"),
        ("sum_j' exp(S_ij')", r"\sum _{j'} \exp (S_{ij'})"),
        ("base^(-2i / d_model)", r"\operatorname{base}^{-2i / d_{\text{model}}}"),
        ("sqrt(mean(x^2) + 1)", r"\sqrt{\operatorname{mean}(x^{2}) + 1}"),
        ("h_dec_{t-1} . v", r"h^{\operatorname{dec}}_{t-1} \cdot v"),
        ("p(y | x_1, …)\n    = 1", r"p(y \mid x_{1}, \dots ) = 1"),
        ("E + A / N^alpha", r"E + A / N^{\alpha}"),
    ],
)
def test_a_formula_as_one_types_it_becomes_latex(plain, written):
    assert latex(plain) == written


def test_code_and_words_around_a_formula_stay_as_they_are():
    text = "A `$HOME` stays, $M_ij = 1$ is set."
    assert with_formulas(text) == "A `$HOME` stays, $M_{ij} = 1$ is set."


def test_the_formulas_of_the_reference_can_be_typeset():
    found = [m[2] for text in docstrings().values() for m in MARKED.finditer(text)]
    formulas = [plain for plain in found if plain]
    assert len(formulas) > 150
    for plain in formulas:
        assert "<svg" in typeset(latex(plain), False)


def test_no_formula_of_the_reference_is_left_as_it_was_typed():
    left = {}
    for name, text in docstrings().items():
        prose = re.sub(r"^ {4}.*$", "", MARKED.sub("", text), flags=re.M)  # no code
        if found := LOOKS_LIKE_ONE.findall(prose):
            left[name] = found
    assert left == {}


def test_a_formula_without_its_dollars_would_be_noticed():
    for plain in ("A_ij = 1", "x W_Q", "d_k", "n^2", "1 / sqrt(n)", "y_{t-1}"):
        assert LOOKS_LIKE_ONE.search(plain)
    assert not LOOKS_LIKE_ONE.search("n_letters of max_length, at COURSE_SEED")
