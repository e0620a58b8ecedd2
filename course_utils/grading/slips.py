"""The slips that people make in a line of code, and how to say each of them."""

from __future__ import annotations

import ast

SIMILAR = (
    ("sum", "mean", "amax", "amin", "prod", "norm", "std", "median"),
    ("tanh", "sigmoid", "relu", "sin", "exp"),
    ("sin", "cos", "tan"),
    ("softmax", "log_softmax"),
    ("log", "log2", "log10", "log1p"),
    ("argmax", "argmin"),
    ("max", "min", "mean", "sum"),
    ("maximum", "minimum", "add"),
    ("tril", "triu"),
    ("cumsum", "cumprod"),
    ("ceil", "floor"),
    ("abs", "square"),
)
OPERATORS: dict[type[ast.operator], list[tuple[type[ast.operator], str]]] = {
    ast.Add: [
        (ast.Sub, "a term is subtracted"),
        (ast.Mult, "two terms are multiplied"),
    ],
    ast.Sub: [(ast.Add, "a term is added"), (ast.Mult, "two terms are multiplied")],
    ast.Mult: [
        (ast.Div, "something is divided by what should multiply it"),
        (ast.Add, "a factor is added"),
    ],
    ast.Div: [
        (ast.Mult, "something is multiplied by what should divide it"),
        (ast.FloorDiv, "a division gives whole numbers (`//`)"),
        (ast.Sub, "something is subtracted where a division belongs"),
    ],
    ast.FloorDiv: [(ast.Div, "a division keeps its fraction (`/`)")],
    ast.Mod: [(ast.FloorDiv, "`//` stands where a remainder belongs")],
    ast.BitAnd: [(ast.BitOr, "`|` joins two conditions")],
    ast.BitOr: [(ast.BitAnd, "`&` joins two conditions")],
}
LEFT_OUT: dict[type[ast.operator], str] = {
    ast.Add: "a term",
    ast.Sub: "a term that is subtracted",
    ast.Mult: "a factor",
    ast.Div: "a division",
    ast.Pow: "a power or root",
    ast.MatMult: "a matrix product",
    ast.BitAnd: "a condition",
}
COMPARISONS: dict[type[ast.cmpop], list[tuple[type[ast.cmpop], str]]] = {
    ast.Lt: [(ast.LtE, "a limit is included"), (ast.Gt, "a comparison is reversed")],
    ast.LtE: [(ast.Lt, "a limit is excluded"), (ast.Gt, "a comparison is reversed")],
    ast.Gt: [(ast.GtE, "a limit is included"), (ast.Lt, "a comparison is reversed")],
    ast.GtE: [(ast.Gt, "a limit is excluded"), (ast.Lt, "a comparison is reversed")],
    ast.Eq: [(ast.NotEq, "a comparison is reversed")],
    ast.NotEq: [(ast.Eq, "a comparison is reversed")],
}
WRAPPED = (
    ("-({})", "its sign is the opposite"),
    ("({}) ** 2", "it is squared"),
    ("({}) ** 0.5", "its root is taken"),
    ("({}) * 2", "it is doubled"),
    ("({}) / 2", "it is halved"),
    ("({}).exp()", "it goes through `exp`"),
    ("({}).softmax(-1)", "it goes through a softmax"),
    ("({}).tanh()", "it goes through `tanh`"),
    ("({}).mT", "it is transposed"),
)
SCALED = (
    (
        "({0}) / ({0}).shape[-1] ** 0.5",
        "something divided by the root of its last size",
    ),
    ("({0}) / ({0}).shape[-1]", "something divided by its last size"),
    ("({0}) / ({0}).shape[-2] ** 0.5", "something divided by the root of another size"),
    ("-({0})", "the opposite sign"),
    ("({0}).tanh()", "something that went through `tanh`"),
)
