"""The GPU sections of chapters 12, 13 and 18, cell by cell, at a tiny size on the CPU.

As a reader with a GPU would run them: the large model is trained, too. Then once more
with what may go wrong: too little memory, a full disk, a killed process, an interrupt.
"""

from __future__ import annotations

import ast
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from course_utils import runtime
from course_utils.training import checkpoints, loop
from course_utils.training.history import TrainingInterrupted
from tools.notebooks.dependencies import code_cells
from tools.notebooks.io import ROOT, parse, read, tags

SECTIONS = {
    "12": "book/12_transformer.ipynb",
    "13": "book/13_decoder_only.ipynb",
    "18": "book/18_pretrain_and_adapt.ipynb",
}
LARGE = {"12": "transformer, large", "13": "GPT, large", "18": "BERT, large"}
FILES = {
    "12": ("translator-grammar.pt", "translator-8bit.json"),
    "13": ("gpt-help.pt", "gpt-8bit.json"),
    "18": ("bert-help.pt",),
}
TRAINS = "planned.compare"  # the cell in which the large model learns
EACH = pytest.mark.parametrize("chapter", LARGE)


def parts(chapter: str) -> tuple[list[Any], list[Any]]:
    """The code cells before the section, and those of the section."""
    notebook = read(ROOT / SECTIONS[chapter])
    cells = notebook.cells
    (first,) = [i for i, c in enumerate(cells) if "## On a GPU" in c.source]
    after = [i for i, c in enumerate(cells) if "## What this page does not" in c.source]
    known = [c.id for c in code_cells(notebook)]
    chosen = [c for c in cells if c.id in known and "remove-cell" not in tags(c)]
    where = {c.id: i for i, c in enumerate(cells)}
    return (
        [c for c in chosen if where[c.id] < first],
        [c for c in chosen if first < where[c.id] < after[0]],
    )


def is_plain(statement: ast.stmt) -> bool:
    """Whether it imports, defines, or names a constant: nothing that is computed."""
    kinds = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
    if isinstance(statement, kinds):
        return True
    try:
        ast.literal_eval(getattr(statement, "value", None))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False
    return isinstance(statement, ast.Assign) and not any(
        isinstance(node, ast.Subscript) for node in ast.walk(statement)
    )


def run_section(chapter: str, until: str = "", before: str = "") -> dict[str, Any]:
    """Execute the section's cells: all, up to one, or those before one."""
    earlier, section = parts(chapter)
    names: dict[str, Any] = {}
    for cell in earlier:
        for statement in parse(cell.source).body:
            if is_plain(statement):
                exec(ast.unparse(statement), names)
    names["generator"] = runtime.seed()
    for cell in section:
        if before and before in cell.source:
            break
        exec(compile(parse(cell.source), cell.id, "exec"), names)
        if until and until in cell.source:
            break
    return names


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("COURSE_PRESET", "tiny")
    monkeypatch.setenv("COURSE_PROGRESS", "0")
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    return tmp_path


def reached(chapter: str, names: dict[str, Any]) -> Any:
    return names["watched"][LARGE[chapter]].history


@EACH
def test_the_section_trains_watches_exports_and_explores(
    chapter: str, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run_section(chapter)
    assert len(reached(chapter, names)) == names["LARGE_STEPS"]
    assert [sample.text for sample in names["watched"][LARGE[chapter]].samples]
    assert sorted(path.name for path in tiny.iterdir()) == sorted(FILES[chapter])
    said = capsys.readouterr().out
    for part in (
        "operations a second",
        "at least",
        "the data are read",
        "of the product",
    ):
        assert part in said
    assert "needs a GPU" not in said
    assert LARGE[chapter] in said
    assert ("torchrun" in said) == (chapter == "13")


@pytest.mark.slow
@pytest.mark.parametrize("chapter", SECTIONS)
def test_without_a_gpu_the_large_model_is_planned_and_not_trained(
    chapter: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COURSE_PRESET", "cpu")
    names = run_section(chapter, until="print(planned)")
    assert next(names["large"].parameters()).device.type == "meta"
    assert names["planned"].n_parameters > 5e6
    assert " h at least" in capsys.readouterr().out


@EACH
def test_in_bfloat16(chapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "chosen_precision", lambda precision, device: "bf16")
    names = run_section(chapter, until=TRAINS)
    assert torch.tensor(reached(chapter, names)["loss"]).isfinite().all()


@pytest.mark.slow
@EACH
def test_when_memory_runs_out_the_batch_is_halved(
    chapter: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual: Any = F.cross_entropy

    def short_of_memory(logits: Any, *rest: Any, **options: Any) -> Any:
        n_tokens = names.get("LONG", 16)
        if logits.requires_grad and logits.is_cpu and len(logits) > 2 * n_tokens:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return usual(logits, *rest, **options)

    names = run_section(chapter, before="try_compiling(")
    monkeypatch.setattr(F, "cross_entropy", short_of_memory)
    _, section = parts(chapter)
    texts = [cell.source for cell in section]
    (first,) = [i for i, text in enumerate(texts) if "try_compiling(" in text]
    (last,) = [i for i, text in enumerate(texts) if TRAINS in text]
    for text in texts[first : last + 1]:
        exec(compile(parse(text), "section", "exec"), names)
    assert len(reached(chapter, names)) == names["LARGE_STEPS"]
    said = capsys.readouterr().out
    assert "not compiled: memory has no room for a whole batch" in said
    assert re.search(r"Memory ran out: going on with [12] of", said)


@EACH
def test_on_a_full_disk_the_run_goes_on(
    chapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.warns(UserWarning, match="the disk is full"):
        names = run_section(chapter, until=TRAINS)
    assert len(reached(chapter, names)) == names["LARGE_STEPS"]


@EACH
def test_an_interrupt_keeps_what_was_trained_and_no_later_cell_trains(
    chapter: str, monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    usual, names = loop.seed_dropout, run_section(chapter, before=TRAINS)
    calls = []

    def press_at_the_third(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        usual(*given)

    monkeypatch.setattr(loop, "seed_dropout", press_at_the_third)
    texts = [cell.source for cell in parts(chapter)[1]]
    (large,) = [i for i, text in enumerate(texts) if TRAINS in text]
    try:
        with pytest.raises(TrainingInterrupted, match="run the cell again"):
            exec(compile(parse(texts[large]), "section", "exec"), names)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(reached(chapter, names)) == 3
    for text in texts[large + 1 :]:
        exec(compile(parse(text), "section", "exec"), names)
    assert len(calls) == 3  # no step more
    exec(compile(parse(texts[large]), "section", "exec"), names)
    assert len(reached(chapter, names)) == names["LARGE_STEPS"]
    assert len(calls) == names["LARGE_STEPS"]  # the first three were not made again


@EACH
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no SIGKILL")
def test_a_killed_process_leaves_a_checkpoint_to_go_on_from(
    chapter: str, monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    torch.set_num_threads(1)
    names = run_section(chapter, before=TRAINS)
    (large,) = [c.source for c in parts(chapter)[1] if TRAINS in c.source]
    large = large.replace("dict(lr=", "dict(every=2, lr=").replace(
        "dict(steps=LARGE_STEPS, lr=", "dict(every=2, steps=LARGE_STEPS, lr="
    )
    assert "every=2" in large
    pid = os.fork()
    if pid == 0:
        saved = checkpoints.save_or_warn

        def die_after(*given: Any, **state: Any) -> None:
            saved(*given, **state)
            os.kill(os.getpid(), signal.SIGKILL)

        checkpoints.save_or_warn = die_after
        exec(compile(parse(large), "section", "exec"), names)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    assert (tiny / FILES[chapter][0]).exists()
    made: list[Any] = []
    usual = loop.seed_dropout
    monkeypatch.setattr(loop, "seed_dropout", lambda *a: (made.append(a), usual(*a)))
    exec(compile(parse(large), "section", "exec"), names)
    assert len(reached(chapter, names)) == names["LARGE_STEPS"]
    assert len(made) == names["LARGE_STEPS"] - 2
