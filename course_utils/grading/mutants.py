"""What a small slip makes of the solution: mutants, to recognise answers by.

A mutant is a question's reference with one change of the kind that people make: another
axis, operator or function, a sign, an order, one too many, a scale left out. An answer
that gives a mutant's values in every case made that slip, or one that can't be told
from it. A mutant is described by what it does, not by what would be right.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Any

import torch

from course_utils.grading.questions.model import Question
from course_utils.grading.slips import (
    COMPARISONS,
    LEFT_OUT,
    OPERATORS,
    SCALED,
    SIMILAR,
    WRAPPED,
)

Change = tuple[ast.AST, str]  # what stands there, and how to say it
LIBRARIES = (builtins, math, torch, torch.Tensor, torch.nn.functional)


def expression(text: str) -> ast.expr:
    """Parse an expression."""
    return ast.parse(text, mode="eval").body


def binary(node: ast.BinOp) -> Iterator[Change]:
    """Another operator, an operand left out, the two exchanged."""
    kind = type(node.op)
    one = kind in (ast.Add, ast.Sub) and any(
        isinstance(x, ast.Constant) and x.value == 1 for x in sides(node)
    )
    for other, words in OPERATORS.get(kind, []):
        if not (one and other is ast.Mult):  # times 1 is the term left out
            yield ast.BinOp(node.left, other(), node.right), words
    if kind in LEFT_OUT:
        for kept, lost in (sides(node), sides(node)[::-1]):
            number = written(node, lost) if isinstance(lost, ast.Constant) else ""
            yield kept, f"{number or LEFT_OUT[kind]} is left out"
    if kind in (ast.Sub, ast.Div, ast.MatMult, ast.FloorDiv):
        swapped = ast.BinOp(node.right, node.op, node.left)
        yield swapped, f"the two sides of a `{symbol(kind)}` are exchanged"
    if kind is ast.MatMult:
        turned = ast.Attribute(node.right, "mT", ast.Load())
        yield ast.BinOp(node.left, node.op, turned), "a matrix is transposed"


def sides(node: ast.BinOp) -> tuple[ast.expr, ast.expr]:
    """What stands on the two sides of an operator."""
    return node.left, node.right


def written(node: ast.BinOp, lost: ast.Constant) -> str:
    """Name an operand that is a number as it stands there: "a term (`1 -`)"."""
    kind, number = type(node.op), ast.unparse(lost)
    if kind not in (ast.Add, ast.Sub):
        return f"{LEFT_OUT[kind]} {number}"
    parts = (number, symbol(kind))
    return f"a term (`{' '.join(parts if lost is node.left else parts[::-1])}`)"


def symbol(kind: type[ast.operator]) -> str:
    """Write an operator."""
    text = ast.unparse(ast.BinOp(ast.Name("a"), kind(), ast.Name("b")))
    return text[1:-1].strip()


def call(node: ast.Call) -> Iterator[Change]:
    """Another function, none at all, two arguments exchanged, one changed first."""
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    on_module = isinstance(getattr(function, "value", None), ast.Name) and (
        function.value.id in ("torch", "math", "F")  # type: ignore[attr-defined]
    )
    if isinstance(function, ast.Attribute):
        for group in SIMILAR:
            for other in group if name in group else ():
                if other != name:
                    made = copy.deepcopy(node)
                    made.func.attr = other  # type: ignore[attr-defined]
                    yield made, f"`{other}` stands where another function belongs"
        if name == "softmax":
            first = node.args[0] if on_module else function.value
            yield (
                expression(f"torch.sigmoid({ast.unparse(first)})"),
                ("`sigmoid` stands where another function belongs"),
            )
    inner = (
        node.args[0]
        if node.args and (on_module or not isinstance(function, ast.Attribute))
        else getattr(function, "value", None)
    )
    if isinstance(inner, ast.expr) and not isinstance(inner, ast.Starred):
        of_library = any(hasattr(place, name) for place in LIBRARIES)
        yield inner, "a step is left out" + f" (`{name}`)" * of_library
    plain = [
        arg for arg in node.args if not isinstance(arg, ast.Starred | ast.Constant)
    ]
    if len(plain) == len(node.args) and len(plain) > 1:
        for i in range(len(plain) - 1):
            made = copy.deepcopy(node)
            made.args[i], made.args[i + 1] = made.args[i + 1], made.args[i]
            yield made, "two quantities are exchanged"
    if name in ("softmax", "log_softmax", "sigmoid", "tanh") and isinstance(
        inner, ast.expr
    ):
        for form, words in SCALED:
            made = copy.deepcopy(node)
            new = expression(form.format(ast.unparse(inner)))
            if on_module:
                made.args[0] = new
            else:
                made.func.value = new  # type: ignore[attr-defined]
            yield made, f"`{name}` gets {words}"
    for i, keyword in enumerate(node.keywords):
        for value, words in changed_constant(keyword.value):
            made = copy.deepcopy(node)
            made.keywords[i].value = value  # type: ignore[assignment]
            if keyword.arg in ("dim", "axis"):
                words = f"`{name}` runs over axis {ast.unparse(value)}"
            yield made, words


def changed_constant(node: ast.expr) -> Iterator[Change]:
    """Another number, another truth."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return
    if value is True or value is False:
        yield ast.Constant(not value), f"{not value} stands where the other belongs"
    elif isinstance(value, int | float):
        others = [value + 1, value - 1, value * 2, value / 2, 0]
        if isinstance(value, int):
            others = [value + 1, value - 1, -value, 2 * value, value // 2, 0, 1, -2]
        else:
            others += [value / 10, 1.0]
        for other in dict.fromkeys(others):
            if other != value:
                yield (
                    expression(repr(other)),
                    f"{other} stands where another number belongs",
                )


def conditional(node: ast.IfExp) -> Iterator[Change]:
    """Exchange the two cases of `a if test else b`, or treat them alike."""
    yield ast.IfExp(node.test, node.orelse, node.body), "two cases are exchanged"
    yield node.body, "two cases are treated alike"
    yield node.orelse, "two cases are treated alike"


def changes(
    node: ast.AST, names: list[str], known: Collection[str] = ()
) -> Iterator[Change]:
    """The slips that can be made at one place of a program.

    Only `known` names are said: others of the solution mean nothing to a learner.
    """
    if isinstance(node, ast.BinOp):
        yield from binary(node)
    elif isinstance(node, ast.Call):
        yield from call(node)
    elif isinstance(node, ast.IfExp):
        yield from conditional(node)
    elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("shape"):
        for new, _ in changed_constant(node.slice):
            words = f"a size is taken from axis {ast.unparse(new)}"
            yield ast.Subscript(node.value, new, node.ctx), words  # type: ignore[arg-type]
    elif isinstance(node, ast.Compare):
        for turned, words in COMPARISONS.get(type(node.ops[0]), []):
            yield ast.Compare(node.left, [turned()], node.comparators), words
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if isinstance(node.operand, ast.Constant):
            yield from changed_constant(node)
        else:
            yield node.operand, "a minus sign is missing"
    elif isinstance(node, ast.UnaryOp):
        yield node.operand, "a condition is not turned round"
    elif isinstance(node, ast.Attribute) and node.attr in ("mT", "T"):
        yield node.value, "a transposition is missing"
    elif isinstance(node, ast.Constant):
        yield from changed_constant(node)
    elif isinstance(node, ast.Name) and node.id in names:
        for other in names:
            if other != node.id:
                what = f"`{other}`" if other in known else "one quantity"
                yield (
                    ast.Name(other, ast.Load()),
                    f"{what} stands where another belongs",
                )
    elif isinstance(node, ast.Return) and node.value:
        many = isinstance(node.value, ast.Tuple)
        parts = node.value.elts if many else [node.value]  # type: ignore[attr-defined]
        for i, part in enumerate(parts):
            for form, words in WRAPPED:
                made = [*parts]
                made[i] = expression(form.format(ast.unparse(part)))
                value = ast.Tuple(made, ast.Load()) if many else made[0]
                yield ast.Return(value), words
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        for i in range(len(node.elts) - 1):
            turn = copy.deepcopy(node)
            turn.elts[i], turn.elts[i + 1] = turn.elts[i + 1], turn.elts[i]
            yield turn, "two things are exchanged"


class Replace(ast.NodeTransformer):
    """Put another node in the place of one."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def program_of(question: Question) -> tuple[list[ast.stmt], dict[str, Any]]:
    """The functions that make up a reference, in order, and where their names live.

    The last statement binds the reference itself to `reference_`.
    """
    module = inspect.getmodule(question.reference) or sys.modules[__name__]
    tree = ast.parse(textwrap.dedent(inspect.getsource(module)))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "reference":
            last = ast.Assign([ast.Name("reference_", ast.Store())], node.value)
            break
    else:
        return [], {}
    defined: dict[str, ast.stmt] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            defined[statement.name] = statement
        elif isinstance(statement, ast.Assign) and isinstance(
            statement.value, ast.Call
        ):
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id != "QUESTION":
                defined[target.id] = statement
    needed, todo = set(), [last]
    while todo:
        for node in ast.walk(todo.pop()):
            name = node.id if isinstance(node, ast.Name) else ""
            if name in defined and name not in needed:
                needed.add(name)
                todo.append(defined[name])  # type: ignore[arg-type]
    statements = [defined[name] for name in defined if name in needed]
    return [*statements, last], vars(module)


def local_names(function: ast.AST) -> list[str]:
    """The arguments and variables of a function."""
    found = [node.arg for node in ast.walk(function) if isinstance(node, ast.arg)]
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append(node.id)
    return list(dict.fromkeys(found))


def mutants(question: Question) -> Iterator[tuple[str, Callable[..., Any]]]:
    """All mutants of a question's reference, each with its description.

    What was made once is kept.
    """
    made, more = started(question)
    yield from made
    for mutant in more:
        made.append(mutant)
        yield mutant


@lru_cache(maxsize=32)
def started(question: Question) -> tuple[list[Any], Iterator[Any]]:
    """The mutants that are made already, and those still to make."""
    return [], made_from(question)


COMMON = (  # slips that come in pairs
    *("a step is left out", "a term", "a factor", "a division", "a power"),
    *("a minus sign", "a transposition", "two quantities", "something is"),
    *("its sign", "True stands", "False stands", "1 stands", "0 stands"),
)


def made_from(question: Question) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Make the mutants one by one: those with one slip, then some with two."""
    try:
        statements, space = program_of(question)
    except (OSError, TypeError, SyntaxError):  # no source to be had
        return
    pairs = []
    for i, statement in enumerate(statements):
        if any(isinstance(node, ast.While) for node in ast.walk(statement)):
            continue  # it might never end
        for words, whole in changed_statements(statement, question.arguments):
            body = [*statements[:i], whole, *statements[i + 1 :]]
            answer = built(body, space)
            if answer:
                yield words, answer
                if words.startswith(COMMON):
                    pairs.append((i, words, body))
    for i, words, body in pairs:
        for j in range(i, len(body)):
            for others, whole in changed_statements(body[j], question.arguments):
                if others.startswith(COMMON):
                    answer = built([*body[:j], whole, *body[j + 1 :]], space)
                    if answer:
                        yield both(words, others), answer


def both(words: str, others: str) -> str:
    """Say two slips in one sentence."""
    return f"{words} twice" if words == others else f"{words} and {others}"


def changed_statements(
    statement: ast.stmt, known: Collection[str]
) -> Iterator[tuple[str, ast.stmt]]:
    """A statement with one slip in it, for each slip there is."""
    names, skipped = local_names(statement), not_code(statement)
    for node in ast.walk(statement):
        if id(node) in skipped:
            continue
        for new, words in changes(node, names, known):
            memo: dict[int, Any] = {}
            whole = copy.deepcopy(statement, memo)
            whole = Replace(memo[id(node)], copy.deepcopy(new)).visit(whole)
            yield words, whole


def not_code(statement: ast.AST) -> set[int]:
    """The ids of the nodes that are no steps: types, and numbers behind a minus."""
    found: set[int] = set()
    idle = {name for name, value in defaults_of(statement) if value == 0}
    for node in ast.walk(statement):
        if isinstance(node, ast.arguments):
            defaults = node_defaults(node)
            found |= {id(x) for x in ast.walk(node) if x not in defaults}
        elif isinstance(node, ast.FunctionDef) and node.returns:
            found |= {id(x) for x in ast.walk(node.returns)}
        elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            found.add(id(node.operand))
        elif (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Add | ast.Sub)
            and any(isinstance(x, ast.Name) and x.id in idle for x in sides(node))
        ):
            found.add(id(node))  # nothing is added there in the solution
    return found


def defaults_of(statement: ast.AST) -> Iterator[tuple[str, Any]]:
    """The arguments of a statement's functions that have a plain default, with it."""
    for node in ast.walk(statement):
        if isinstance(node, ast.arguments):
            last = [*node.posonlyargs, *node.args][-len(node.defaults) or None :]
            pairs = [*zip(last, node.defaults), *zip(node.kwonlyargs, node.kw_defaults)]
            for argument, default in pairs:
                if isinstance(default, ast.Constant):
                    yield argument.arg, default.value


def node_defaults(node: ast.AST) -> list[ast.AST]:
    """What of a function's head is code and not a name: its defaults."""
    if not isinstance(node, ast.arguments):
        return []
    defaults = [*node.defaults, *(x for x in node.kw_defaults if x)]
    return [x for default in defaults for x in ast.walk(default)]


def built(body: list[ast.stmt], space: dict[str, Any]) -> Callable[..., Any] | None:
    """Make a function of a changed program."""
    tree = ast.fix_missing_locations(ast.Module(body, []))
    own = dict(space)
    try:
        exec(compile(tree, "<mutant>", "exec"), own)
    except Exception:  # a change may break a program
        return None
    return own["reference_"]
