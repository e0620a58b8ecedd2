"""The shapes in the signatures are true: checked at run time, in a fresh process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course_utils.shapes import shape_of

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "course_utils"


def call_everything(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `shape_calls.py` with the package found in `folder`."""
    return subprocess.run(
        [sys.executable, str(TESTS / "shape_calls.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


@pytest.mark.slow
def test_every_stated_shape_is_called_and_true():
    result = call_everything(PACKAGE.parent)
    assert result.returncode == 0, result.stderr[-3000:]
    checked, missed = result.stdout.splitlines()[-2:]
    assert missed == "not called:", f"add calls to shape_calls.py: {missed}"
    assert "attention.attention " in checked


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "right", "wrong"),
    [
        ("attention", '"*batch query d_v"], Float', '"*batch query d_k"], Float'),
        ("attention", 'memory: Float[Tensor, "batch key', 'memory: Int[Tensor, "batch'),
        ("rnn", '"batch target source"]', '"batch source target"]'),
        ("positions", '-> Int[Tensor, "query key"]', '-> Float[Tensor, "query key"]'),
        ("transformer", '"batch target n_target"]', '"batch source n_target"]'),
    ],
)
def test_a_wrong_shape_in_a_signature_fails(tmp_path, module, right, wrong):
    copy = tmp_path / "course_utils"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    source = (copy / f"{module}.py").read_text()
    assert right in source
    (copy / f"{module}.py").write_text(source.replace(right, wrong))
    result = call_everything(tmp_path)
    assert result.returncode != 0
    assert "jaxtyping.TypeCheckError" in result.stderr


def test_shapes_are_written_as_tuples():
    assert shape_of(torch.zeros(2, 3)) == "(2, 3)"
    assert shape_of(torch.zeros(())) == "()"
