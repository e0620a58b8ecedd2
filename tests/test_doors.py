"""What a learner can type wrongly is answered by a sentence, not from inside PyTorch.

Every call of `door_calls` is repeated with one argument replaced by something odd. It
must come to a finite result, or be refused with a ValueError or TypeError that one of
our own `raise` statements made. A wrong kind of number (a negative size, a fraction,
NaN, text) must be refused: a result would be silent nonsense.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from door_calls import GROUPS, NOT_VARIED
from torch import Tensor, nn

from course_utils.evaluation import metrics
from course_utils.models import attention, positions, rnn, transformer
from course_utils.training import loop

PACKAGE = Path(__file__).resolve().parents[1] / "course_utils"
ROOMS = ("models", "data", "training", "evaluation", "tasks")
NAN = float("nan")

# Whole numbers that may be negative, and why nothing is wrong then.
ANY_NUMBER = {
    "pad": "an id that never occurs marks nothing as padding",
    "eos": "an id that never occurs lets no sentence end early",
    "offset": "the cycle goes round in both directions",
    "nats_per_token": "densities may have a negative loss",
    "length_penalty": "a negative one prefers short sentences",
}


def odd_values(value: Any, name: str, none_is_fine: bool) -> Iterator[tuple[Any, bool]]:
    """Yield what may be given instead of a value, and whether it must be refused."""
    if isinstance(value, bool) or value is None:
        return
    if not none_is_fine:
        yield None, True
    if isinstance(value, int):
        yield -1, name not in ANY_NUMBER
        yield from ((odd, True) for odd in (1.5, NAN, "3", [2]))
        yield 0, False
    elif isinstance(value, float):
        yield from ((odd, True) for odd in (NAN, "0.5", [0.5]))
        yield from ((odd, False) for odd in (-1.0, 0.0, 1e-45, 2.0, math.inf))
    elif isinstance(value, str):
        yield 3, True
        yield from ((odd, False) for odd in ("", "nonsense"))
    elif isinstance(value, Tensor):
        yield from ((odd, True) for odd in ("x", 3, [[1.0]]))
        yield from ((odd, False) for odd in odd_tensors(value))
    elif isinstance(value, torch.Generator):
        yield from ((odd, True) for odd in (3, "seed"))
    elif isinstance(value, nn.Module) or callable(value):
        yield from ((odd, True) for odd in (3, "model"))
    elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        yield 3, True
        yield [], False


def odd_tensors(x: Tensor) -> Iterator[Tensor]:
    """Tensors of another rank, size or type."""
    yield x.new_zeros(())
    yield x[None]
    yield torch.cat([x, x[..., :1]], dim=-1)
    yield x[..., :0]
    if x.dim():
        yield x[0]
        yield x[:0]
        yield torch.cat([x, x[:1]])
    if x.dim() > 2:
        yield x.transpose(1, 2)
        yield torch.cat([x, x[:, :1]], dim=1)
    if x.is_floating_point():
        yield x.long()
        yield x.double()
        yield x > 0
    elif x.dtype == torch.bool:
        yield x.float()
        yield ~x
    elif not x.is_complex():
        yield x.float()
        yield x + 1000
        yield x - 1000
        yield x > 0


@lru_cache
def raises(path: str) -> list[range]:
    """The lines of a file's `raise` statements."""
    tree = ast.parse(Path(path).read_text("utf-8"))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Raise))
    return [range(node.lineno, (node.end_lineno or 0) + 1) for node in found]


def is_ours(error: Exception) -> bool:
    """Whether one of the package's own `raise` statements made an error."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    mine = PACKAGE in Path(frame.filename).parents
    at = frame.lineno or 0
    return mine and any(at in lines for lines in raises(frame.filename))


def holds_nan(result: Any) -> bool:
    """Whether NaN is anywhere in a result."""
    if isinstance(result, Tensor):
        return bool(result.is_floating_point() and result.isnan().any())
    if isinstance(result, float):
        return math.isnan(result)
    if isinstance(result, nn.Module):
        return any(map(holds_nan, result.parameters()))
    if isinstance(result, (tuple, list)):
        return any(map(holds_nan, result))
    return False


def complaint(
    call: Callable[..., Any], given: dict[str, Any], must_refuse: bool
) -> str:
    """What is wrong with how a call answers; empty if nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(**given)
    except (ValueError, TypeError) as error:
        if is_ours(error):
            return "" if len(str(error)) > 20 else f"says no more than {error}"
        return f"raw {type(error).__name__}: {str(error)[:90]}"
    except Exception as error:
        return f"raw {type(error).__name__}: {str(error)[:90]}"
    if must_refuse:
        return "silently accepted"
    return "made NaN" if holds_nan(result) else ""


def parameters(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    asked = call.forward if isinstance(call, nn.Module) else call
    return dict(inspect.signature(asked).parameters)


def complaints(name: str, call: Callable[..., Any], given: dict[str, Any]) -> list[str]:
    """Repeat a call with each argument replaced by odd values in turn."""
    found = []
    for argument, value in given.items():
        known = parameters(call)[argument]
        none_is_fine = known.default is None or "None" in str(known.annotation)
        for odd, must_refuse in odd_values(value, argument, none_is_fine):
            wrong = complaint(call, given | {argument: odd}, must_refuse)
            if wrong:
                shown = tuple(odd.shape) if isinstance(odd, Tensor) else repr(odd)
                kind = f" {odd.dtype}" if isinstance(odd, Tensor) else ""
                found.append(f"{name}({argument}={shown}{kind}): {wrong}")
    return found


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny tensors: threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_odd_arguments_are_refused_in_a_sentence_or_taken(group):
    found = []
    for name, (call, given) in group().items():
        assert complaint(call, given, must_refuse=False) == "", name
        found += complaints(name, call, given)
    assert not found, f"{len(found)} calls:\n" + "\n".join(found)


def test_every_definition_that_names_a_chapter_is_tried():
    named = re.compile(r"(Taught|Used)\s+in")
    defined = {
        node.name
        for room in ROOMS
        for path in (PACKAGE / room).glob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        if named.search(ast.get_docstring(node) or "")
    }
    tried = {re.split(r"[ .]", name)[0] for group in GROUPS for name in group()}
    untried = sorted(defined - tried - NOT_VARIED.keys())
    assert untried == [], "add calls with wrong arguments to tests/door_calls.py"
    assert sorted(NOT_VARIED.keys() & tried) == []
    assert sorted(NOT_VARIED.keys() - defined) == []


# ----------------------------------------------------------------- the doors themselves


def test_what_a_function_says_itself_comes_first():
    with pytest.raises(ValueError, match="expected an even number"):
        positions.frequencies(-3)
    with pytest.raises(ValueError, match=r"^d_model is None, expected a whole number"):
        positions.frequencies(None)


def test_a_shape_that_does_not_fit_is_named_with_the_one_that_would():
    cell = nn.GRUCell(4, 6)
    weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    with pytest.raises(ValueError, match=r"x .*expected .*\(batch, d_in\)") as caught:
        rnn.gru_step(torch.randn(4), torch.randn(2, 6), *weights[1:], weights[0])
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(ValueError, match=r"differ in batch \(3 against 2\)"):
        rnn.gru_step(torch.randn(3, 4), torch.randn(2, 6), *weights)


def test_ids_of_another_vocabulary_are_named():
    model = transformer.GPT(11, 9, 12, 3)
    with pytest.raises(ValueError, match="ids from 1 to 50, expected them from 0 to"):
        model(torch.tensor([[1, 50]]))


def test_the_error_of_a_callers_own_function_is_left_as_it_is():
    def loss(model: nn.Module, x: Tensor) -> Tensor:
        return model(x @ x).mean()

    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        loop.train(
            nn.Linear(3, 2),
            lambda step, generator: (torch.ones(4, 3),),
            loss,
            steps=1,
            progress=False,
        )


def test_an_array_does_where_the_function_can_work_with_it():
    weights = np.array([[0.1, 0.9], [0.7, 0.3]])
    assert metrics.strongest_links(weights) == {(1, 0), (0, 1)}
    with pytest.raises(ValueError, match="x = array"):
        attention.basic_self_attention(weights)


def test_a_call_with_an_argument_missing_is_pythons_to_refuse():
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        rnn.additive_scores(torch.ones(2, 3, 4), torch.ones(2, 5, 4))


def test_after_an_error_inside_a_layer_the_doors_ask_again():
    layer = nn.Sequential(transformer.GPT(11, 9, 12, 3))
    with pytest.raises(ValueError, match="ids from"):
        layer(torch.tensor([[50]]))
    with pytest.raises(ValueError, match="n_heads is -1"):
        positions.alibi_slopes(-1)


def test_a_wrapped_function_keeps_its_name_and_signature():
    assert positions.alibi.__name__ == "alibi"
    assert next(iter(inspect.signature(positions.alibi).parameters)) == "n_heads"
    assert "Penalise distance" in (positions.alibi.__doc__ or "")
