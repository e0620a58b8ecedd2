"""Doors: what a learner types wrongly gets a sentence, and the taught code stays short.

A module ends with `check_arguments(__name__)`. From then on its public functions and
methods refuse arguments that can't be meant (a negative size, a fraction, NaN, text, no
tensor), and where PyTorch or Python fails inside one of them, the error says which
argument does not fit what the signature states. What a function says in its own words
comes first. Of a tensor only its class is asked unless something failed: a door costs
microseconds, lost in a training step, some five percent of a token that a tiny model
writes.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_utils.shapes import shape_of

# Whole numbers that may be negative; every other one counts something.
SIGNED = ("pad", "bos", "eos", "offset")
PROBABILITIES = ("dropout",)
NOT_NEGATIVE = ("eps", "noise")

STATED = re.compile(r"(Float|Int|Bool|Shaped)\[Tensor, ['\"]([^'\"]*)['\"]\]")
KINDS = {"Float": "real numbers", "Int": "whole numbers", "Bool": "True and False"}
# What an annotation begins with, the class it asks for, and how to say so.
CLASSES: tuple[tuple[str, Any, str], ...] = (
    ("str", str, "text, in quotes"),
    ("Generator", torch.Generator, "a generator: `torch.Generator().manual_seed(0)`"),
    ("nn.Module", nn.Module, "a model, an `nn.Module`"),
    ("Callable", Callable, "a function"),
    ("Batch", Callable, "a function: `batch(step, generator)`"),
    *((kind, Iterable, "a list") for kind in ("Sequence[", "Collection[", "Iterable[")),
    *((kind, Tensor, "a tensor") for kind in ("Tensor", "Float[", "Int[", "Bool[")),
    ("Shaped[", Tensor, "a tensor"),
)
RAW = (TypeError, ValueError, RuntimeError, LookupError, AttributeError)
STATE = {"inside a layer": False}
PACKAGE = str(Path(__file__).parent)
LIBRARIES = (
    PACKAGE,
    str(Path(torch.__file__).parents[1]),
    sysconfig.get_paths()["stdlib"],
    "<frozen",
)


class Argument(NamedTuple):
    """A parameter of a function: what its signature says of it."""

    position: int
    name: str
    annotation: str
    may_be_none: bool


# --------------------------------------------------------------------------- the doors


def check_arguments(module: str) -> None:
    """Put a door before every public function and every layer of a module.

    A layer has four: where it is made, asked, and (a model) started and continued.
    """
    scope = vars(sys.modules[module])
    for name, item in list(scope.items()):
        ours = getattr(item, "__module__", "") == module
        if not ours or name.startswith(("_", "require_")):
            continue
        if isinstance(item, FunctionType):
            scope[name] = door(item)
        elif isinstance(item, type) and issubclass(item, nn.Module):
            for method in ("__init__", "forward", "start", "step"):
                if method in vars(item):
                    made = method == "__init__"
                    setattr(item, method, door(vars(item)[method], made, not made))


def door(
    function: Callable[..., Any], least: int = 0, layer: bool = False
) -> Callable[..., Any]:
    """Wrap a function: odd arguments are refused, raw errors put into words.

    `least` is the smallest whole number it takes: 1 where a model is built. What a
    `layer` calls inside was typed by nobody, and is asked nothing.
    """
    every = arguments_of(function)
    checks = [(argument, *check_of(argument, least)) for argument in every]
    asked = [
        (a.position, a.name, class_, check) for a, class_, check in checks if check
    ]

    @functools.wraps(function)
    def entered(*args: Any, **kwargs: Any) -> Any:
        if STATE["inside a layer"] or torch.compiler.is_compiling():
            return function(*args, **kwargs)
        n_args, odd = len(args), None
        for position, name, kind, check in asked:
            if position < n_args:
                value = args[position]
            elif name in kwargs:
                value = kwargs[name]
            else:
                continue
            if not isinstance(value, kind) and odd is None:
                odd = check(value)
        STATE["inside a layer"] = layer
        try:
            result = function(*args, **kwargs)
        except RAW as error:
            if not is_raw(error):
                raise
            given = dict(zip((argument.name for argument in every), args)) | kwargs
            sentence = odd or explain(function.__qualname__, every, given, error)
            raise ValueError(sentence) from error
        finally:
            STATE["inside a layer"] = False
        if odd is not None:
            raise ValueError(odd)
        return result

    return entered


def arguments_of(function: Callable[..., Any]) -> list[Argument]:
    """List the parameters of a function that can be given by name."""
    return [
        Argument(
            position,
            known.name,
            str(known.annotation).removeprefix("torch."),
            known.default is None or "None" in str(known.annotation),
        )
        for position, known in enumerate(
            inspect.signature(function).parameters.values()
        )
        if known.kind in (known.POSITIONAL_OR_KEYWORD, known.KEYWORD_ONLY)
    ]


# ------------------------------------------------------------ what a value can't mean

Check = Callable[[Any], str | None]


def check_of(argument: Argument, least: int) -> tuple[Any, Check | None]:
    """Choose by an annotation: a class that is always fine, what is asked of others."""
    kind = argument.annotation.removesuffix(" | None")
    if kind == "int":
        smallest = None if argument.name in SIGNED else least
        return (), functools.partial(odd_whole, argument, smallest)
    if kind == "float":
        return (), functools.partial(odd_number, argument)
    for beginning, class_, expected in CLASSES:
        if kind == beginning or (len(beginning) > 3 and kind.startswith(beginning)):
            several = (class_, tuple) if "tuple[" in kind else class_
            said = in_words(argument) if STATED.search(kind) else expected
            return several, functools.partial(odd_class, argument, said)
    return (), None


def odd_class(argument: Argument, expected: str, value: Any) -> str | None:
    """Refuse what is not of the class that was expected.

    An array of NumPy's may do for a tensor: it is left to the function.
    """
    if hasattr(value, "shape") or (value is None and argument.may_be_none):
        return None
    return f"{argument.name} is {value!r:.60}, expected {expected}."


def odd_whole(argument: Argument, least: int | None, value: Any) -> str | None:
    """Refuse what is no whole number, or a smaller one than can be meant.

    A length that `torch.export` or a trace leaves open is neither: it passes.
    """
    if type(value) is int:
        odd = least is not None and value < least
    elif value is None:
        odd = not argument.may_be_none
    else:
        odd = isinstance(value, (float, str, list, tuple, dict))
    if not odd:
        return None
    from_least = "" if least is None else f" from {least}"
    return f"{argument.name} is {value!r:.60}, expected a whole number{from_least}."


def odd_number(argument: Argument, value: Any) -> str | None:
    """Refuse what is no number, NaN, and what a number of this name can't be."""
    if value is None and argument.may_be_none:
        return None
    expected = None
    if value is None or isinstance(value, (str, list, tuple, dict)) or value != value:
        expected = "a number"
    elif argument.name in PROBABILITIES and not 0 <= value <= 1:
        expected = "a probability from 0 to 1"
    elif argument.name in NOT_NEGATIVE and value < 0:
        expected = "0 or a number above it"
    return expected and f"{argument.name} is {value!r:.60}, expected {expected}."


# ---------------------------------------------------------- why a function failed


def is_raw(error: BaseException) -> bool:
    """Whether an error comes from PyTorch or Python, and not from our own words.

    What a function of the caller's raised (a loss, a layer) is left as it is, and so
    is a lack of memory, and a call that Python refused for its number of arguments.
    """
    ours = type(error).__module__.startswith("course_utils")
    if ours or isinstance(error, torch.OutOfMemoryError):
        return False
    frames = list(traceback.walk_tb(error.__traceback__))
    files = [frame.f_code.co_filename for frame, _ in frames]
    if len(files) < 2 or not all(file.startswith(LIBRARIES) for file in files):
        return False
    line = linecache.getline(files[-1], frames[-1][1])
    return not (files[-1].startswith(PACKAGE) and line.strip().startswith("raise"))


def explain(
    name: str, every: list[Argument], given: dict[str, Any], error: Exception
) -> str:
    """Say what was wrong, as far as it can be told, and what was expected."""
    stated = [(a, given[a.name]) for a in every if a.name in given]
    for sentence in (*misfits(stated), *clashes(stated), *strange_ids(given, error)):
        return sentence
    plain = (bool, int, float, str, type(None), torch.Generator)
    shown = [(a, x) for a, x in stated if a.name != "self" and not isinstance(x, plain)]
    shown = shown or stated
    came = ", ".join(f"{a.name} = {described(x)}" for a, x in shown)
    wanted = "; ".join(f"{a.name}: {in_words(a)}" for a, _ in shown if in_words(a))
    cause = str(error).strip().split("\n")[0].removesuffix(".")
    return f"{name} failed: {cause}. It got {came}; expected {wanted}."


def in_words(argument: Argument) -> str:
    """Write a stated type and shape in words; empty where none is stated."""
    found = STATED.search(argument.annotation)
    if found is None:
        return argument.annotation if argument.annotation != "Any" else ""
    axes = found[2].replace("*batch", "…").split()
    comma = "," if len(axes) == 1 else ""
    shape = "" if axes == ["..."] else f" of shape ({', '.join(axes)}{comma})"
    return f"a tensor of {KINDS.get(found[1], 'numbers')}{shape}"


def described(value: Any) -> str:
    """Name what came: a tensor by shape and type, anything else by itself."""
    if isinstance(value, Tensor):
        return (
            f"a tensor {shape_of(value)} of {str(value.dtype).removeprefix('torch.')}"
        )
    return f"a {type(value).__name__}" if callable(value) else f"{value!r:.40}"


def misfits(stated: list[tuple[Argument, Any]]) -> Iterator[str]:
    """Name the tensors that are not of the stated type or rank."""
    for argument, x in stated:
        found = STATED.search(argument.annotation)
        if found is None or not isinstance(x, Tensor):
            continue
        if not (fits_type(x, found[1]) and fits_rank(x, found[2])):
            expected = in_words(argument)
            yield f"{argument.name} is {described(x)}, expected {expected}."


def fits_type(x: Tensor, kind: str) -> bool:
    """Whether a tensor's numbers are of a stated kind."""
    truth = x.dtype == torch.bool
    whole = not (truth or x.is_floating_point() or x.is_complex())
    return {"Float": x.is_floating_point(), "Int": whole, "Bool": truth}.get(kind, True)


def fits_rank(x: Tensor, axes: str) -> bool:
    """Whether a tensor has as many axes as stated."""
    names = axes.split()
    if axes.startswith("*"):
        return x.dim() >= len(names) - 1
    return axes == "..." or x.dim() == len(names)


def clashes(stated: list[tuple[Argument, Any]]) -> Iterator[str]:
    """Name the pairs of tensors whose axes of one name differ in size."""
    sizes: dict[str, tuple[str, Tensor, int]] = {}
    for argument, x in stated:
        found = STATED.search(argument.annotation)
        if found is None or not isinstance(x, Tensor):
            continue
        for axis, size in zip(reversed(found[2].split()), reversed(x.shape)):
            if not axis.isidentifier():
                break
            name, other, first = sizes.setdefault(axis, (argument.name, x, size))
            if first != size:
                yield (
                    f"{name} {shape_of(other)} and {argument.name} {shape_of(x)} "
                    f"differ in {axis} ({first} against {size}), expected them equal: "
                    f"{argument.name} is {in_words(argument)}."
                )


def strange_ids(given: dict[str, Any], error: Exception) -> Iterator[str]:
    """Name the ids that no row of a model's tables belongs to."""
    model = given.get("self", given.get("model"))
    if not isinstance(error, IndexError) or not isinstance(model, nn.Module):
        return
    tables = [m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding)]
    for name, x in given.items():
        if isinstance(x, Tensor) and x.numel() and fits_type(x, "Int") and tables:
            low, high = int(x.min()), int(x.max())
            if low < 0 or high >= min(tables):
                rows = " or ".join(map(str, dict.fromkeys(tables)))
                yield (
                    f"{name} holds ids from {low} to {high}, expected them from 0 to "
                    f"below {rows}, the model's vocabulary; was it made with another?"
                )
