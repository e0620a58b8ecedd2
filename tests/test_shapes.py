"""The shapes in the signatures are true: checked at run time, in a fresh process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course_utils.shapes import broadcast, shape_of

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "course_utils"


def make_calls(folder: Path, *groups: str) -> subprocess.CompletedProcess[str]:
    """Run `shape_calls.py` with the package found in `folder`."""
    return subprocess.run(
        [sys.executable, str(TESTS / "shape_calls.py"), *groups],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


@pytest.mark.slow
def test_every_stated_shape_is_called_and_true():
    result = make_calls(PACKAGE.parent)
    assert result.returncode == 0, result.stderr[-3000:]
    checked, missed = result.stdout.splitlines()[-2:]
    assert missed == "not called:", f"add calls to shape_calls.py: {missed}"
    assert "attention.attention " in checked


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "module", "right", "wrong"),
    [
        ("attention", "attention", '"*batch query d_v"], F', '"*batch query d_k"], F'),
        ("positions", "positions", '-> Int[Tensor, "query', '-> Float[Tensor, "query'),
        ("models", "rnn", '"batch target source"]', '"batch source target"]'),
    ],
)
def test_a_wrong_shape_in_a_signature_fails(tmp_path, group, module, right, wrong):
    copy = tmp_path / "course_utils"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    source = (copy / "models" / f"{module}.py").read_text()
    assert right in source
    (copy / "models" / f"{module}.py").write_text(source.replace(right, wrong))
    result = make_calls(tmp_path, group)
    assert result.returncode != 0
    assert "jaxtyping.TypeCheckError" in result.stderr


@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3), (2, 3)],
        [(2, 3), (2, 3), (2, 3)],
        [(), (4, 1)],
        [(1, 5), (4, 1), (3, 1, 1)],
        [(2, 1), (2, 0)],
        [(2, 3), (2, 4)],
        [(2,), (3, 1), (4, 2)],
        [(5,), (2, 1), (2, 6)],
        [(0,), (2,)],
    ],
)
def test_shapes_broadcast_as_pytorch_says(shapes):
    try:
        expected = tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        expected = None
    assert broadcast(*shapes) == expected


def test_shapes_are_written_as_tuples():
    assert shape_of(torch.zeros(2, 3)) == "(2, 3)"
    assert shape_of(torch.zeros(())) == "()"
