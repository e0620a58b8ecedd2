"""The progress bar: seen while work goes on, gone from what is kept."""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import IPython
import IPython.display
import nbformat
import pytest

from course_utils.training import progress
from course_utils.training.progress import Progress, duration, place
from tools.notebooks.execute import THIS_PYTHON, kernel_environment, run_notebook
from tools.notebooks.io import ROOT


class Terminal(io.StringIO):
    """A stderr that says it is a terminal, and shows what would stand in its lines."""

    def isatty(self) -> bool:
        return True

    def seen(self) -> str:
        """The text of the current line: what was written later covers the earlier."""
        line = ""
        for text in self.getvalue().split("\r"):
            line = text + line[len(text) :]
        return line.rstrip()


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redraw at every update, and let no setting of the machine decide."""
    monkeypatch.setattr(progress, "REFRESH", 0.0)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.delenv("COURSE_PROGRESS", raising=False)


@pytest.fixture
def terminal(eager: None, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    fake = Terminal()
    system = SimpleNamespace(stderr=fake, modules=sys.modules)
    monkeypatch.setattr(progress, "sys", system)
    return fake


class Events:
    """The events of IPython's shell, of which the end of a cell matters here."""

    def __init__(self) -> None:
        self.waiting: list[Any] = []

    def register(self, name: str, call: Any) -> None:
        assert name == "post_run_cell"
        self.waiting.append(call)

    def unregister(self, name: str, call: Any) -> None:
        self.waiting.remove(call)

    def end_cell(self) -> None:
        for call in list(self.waiting):
            call(None)


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def notebook(
    events: Events, eager: None, monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, str]]:
    """Pretend to be in a kernel; the list holds all that its one output has shown."""
    shown: list[dict[str, str]] = []

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        assert not shown, "a second output was made"
        shown.append(data)
        return SimpleNamespace(update=lambda data, raw: shown.append(data))

    shell = SimpleNamespace(kernel=object(), events=events)
    monkeypatch.setattr(progress.CellOutput, "current", None)
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    monkeypatch.setattr(IPython.display, "display", display)
    return shown


def test_a_terminal_shows_a_bar_and_keeps_one_line(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    bar = Progress(total=40)
    bar.update(10, "loss 0.5")
    assert terminal.seen().startswith("[######..................] 10/40 loss 0.5, ")
    bar.update(40, "loss 0.25")
    assert terminal.seen().startswith("[########################] 40/40 loss 0.25, ")
    bar.close("40 steps in 2.0 s")
    assert terminal.seen() == ""
    assert terminal.getvalue().endswith("\r")
    assert capsys.readouterr().out == "40 steps in 2.0 s\n"


def test_a_notebook_keeps_one_output_that_ends_as_the_closing_line(
    notebook: list[dict[str, str]], events: Events, capsys: pytest.CaptureFixture[str]
) -> None:
    bar = Progress(total=40)
    bar.update(10, "loss 0.5")
    bar.update(20, "loss 0.4")
    assert '<progress max="40" value="20"' in notebook[-1]["text/html"]
    assert "20/40 loss 0.4" in notebook[-1]["text/plain"]
    bar.close("40 steps in 2.0 s")
    events.end_cell()
    assert notebook[-1] == {"text/plain": "40 steps in 2.0 s"}
    assert capsys.readouterr().out == ""


def test_the_trainings_of_a_cell_share_one_output_and_one_line(
    notebook: list[dict[str, str]], events: Events
) -> None:
    for number in range(3):
        bar = Progress(total=40)
        bar.update(40, "loss 0.5")
        bar.close(f"40 steps, number {number}")
    assert notebook[-1]["text/plain"].startswith("training 3: 40/40")
    events.end_cell()
    line = notebook[-1]["text/plain"]
    assert line.startswith("3 trainings, 120 steps in ")
    assert line.endswith("last: 40 steps, number 2")
    assert not events.waiting
    assert progress.CellOutput.current is None  # the next cell begins anew


def test_quick_work_shows_no_bar_and_leaves_no_line(
    notebook: list[dict[str, str]],
    events: Events,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    bar = Progress(total=2)
    bar.update(1)
    bar.close("2 steps")
    events.end_cell()
    assert notebook == []
    assert capsys.readouterr().out == ""


def test_a_built_page_gets_the_line_and_no_bar(
    notebook: list[dict[str, str]],
    events: Events,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COURSE_PROGRESS", "0")
    monkeypatch.setattr(progress, "WORTH_A_LINE", 0.0)
    for _ in range(2):
        bar = Progress(total=4)
        bar.update(4, "loss 0.5")
        bar.close("4 steps")
    assert capsys.readouterr().out == ""
    events.end_cell()
    assert notebook == []
    assert capsys.readouterr().out.startswith("2 trainings, 8 steps in ")


def test_a_pipe_gets_the_closing_line_alone(
    eager: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place() == "nowhere"
    bar = Progress(total=2)
    bar.update(1, "loss 0.5")
    bar.close("2 steps")
    assert capsys.readouterr() == ("2 steps\n", "")


def test_course_progress_0_forbids_the_bar(
    terminal: Terminal,
    notebook: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert place() == "notebook"
    monkeypatch.setenv("COURSE_PROGRESS", "0")
    assert place() == "nowhere"
    Progress(total=2).update(1)
    assert notebook == []
    assert terminal.getvalue() == ""


def test_a_line_before_the_bar_is_said_where_there_is_one(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    Progress(5).say("Going on.")
    Progress(5, show=False).say("Nobody asked.")
    assert capsys.readouterr().out == "Going on.\n"


def test_without_show_there_is_no_bar(terminal: Terminal) -> None:
    Progress(total=2, show=False).update(1)
    assert terminal.getvalue() == ""


def test_an_error_takes_the_bar_away(terminal: Terminal) -> None:
    def work() -> None:
        with Progress(total=2) as bar:
            bar.update(1, "loss 0.5")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert "loss 0.5" in terminal.getvalue()
    assert terminal.seen() == ""


def test_the_time_left_counts_from_where_it_was_resumed(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 30.0])
    monkeypatch.setattr(progress, "kernel_shell", lambda: None)
    watch = SimpleNamespace(monotonic=lambda: next(clock))
    monkeypatch.setattr(progress, "time", watch)
    Progress(total=100, start=50).update(60)  # 10 steps in 30 s, 40 to go
    assert terminal.seen().endswith("2 min 00 s left")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185.0, "3 min 05 s"),
    ],
)
def test_times_read_as_a_person_would_write_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# ------------------------------------------------------------------------ real kernels

TRAINING = """
import time, torch
from course_utils.training.loop import train

def batch(step, generator):
    time.sleep(0.02)
    return (torch.randn(4, 3, generator=generator),)

history = train(torch.nn.Linear(3, 2), batch, lambda model, x: model(x).square().mean(),
                steps={steps}, device="cpu")
"""


@pytest.mark.slow
def test_an_executed_notebook_holds_no_bar(tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell(TRAINING.format(steps=80))
    path = tmp_path / "trains.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    environment = kernel_environment(ROOT) | {"COURSE_PROGRESS": ""}
    run = run_notebook(path, environment, THIS_PYTHON)
    outcome = asyncio.run(run)
    assert outcome.notebook, outcome.error
    (output,) = outcome.notebook.cells[0].outputs
    assert output.output_type == "display_data"  # there was a bar, and it was replaced
    assert list(output.data) == ["text/plain"]
    assert output.data["text/plain"].startswith("80 steps in ")


@pytest.mark.slow
def test_interrupting_a_kernel_keeps_what_was_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from jupyter_client.manager import start_new_kernel

    monkeypatch.delenv("COURSE_PROGRESS", raising=False)
    manager, client = start_new_kernel(kernel_name="python3")
    messages: list[dict[str, Any]] = []

    def receive(message: dict[str, Any]) -> None:
        messages.append(message)
        if message["msg_type"] == "display_data":  # the bar: training is under way
            manager.interrupt_kernel()

    try:
        code = TRAINING.format(steps=100_000) + "print('later')"
        reply = client.execute_interactive(code, output_hook=receive, timeout=120)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "error"
    texts = [m["content"].get("text", "") for m in messages]
    assert "later\n" not in texts, "what stands after the training was run"
    (error,) = [m["content"] for m in messages if m["msg_type"] == "error"]
    first, second = error["traceback"]  # two sentences, none of our frames
    assert first.startswith("Stopped after ")
    assert "The model keeps what it learned" in second
