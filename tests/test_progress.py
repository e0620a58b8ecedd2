"""The progress bar: seen while work goes on, gone from what is kept."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import IPython
import IPython.display
import pytest

from course_utils import progress
from course_utils.progress import Progress, duration, place


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
    monkeypatch.delenv("COURSE_PROGRESS", raising=False)


@pytest.fixture
def terminal(eager: None, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    fake = Terminal()
    system = SimpleNamespace(stderr=fake, modules=sys.modules)
    monkeypatch.setattr(progress, "sys", system)
    return fake


@pytest.fixture
def notebook(eager: None, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Pretend to be in a kernel; the list holds all that its one output has shown."""
    shown: list[dict[str, str]] = []

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        assert not shown, "a second output was made"
        shown.append(data)
        return SimpleNamespace(update=lambda data, raw: shown.append(data))

    shell = SimpleNamespace(kernel=object())
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
    notebook: list[dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    bar = Progress(total=40)
    bar.update(10, "loss 0.5")
    bar.update(20, "loss 0.4")
    assert '<progress max="40" value="20"' in notebook[-1]["text/html"]
    assert "20/40 loss 0.4" in notebook[-1]["text/plain"]
    bar.close("40 steps in 2.0 s")
    assert notebook[-1] == {"text/plain": "40 steps in 2.0 s"}
    assert capsys.readouterr().out == ""


def test_quick_work_shows_no_bar(
    notebook: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "REFRESH", 60.0)
    bar = Progress(total=2)
    bar.update(1)
    bar.close("2 steps")
    assert notebook == []
    assert capsys.readouterr().out == "2 steps\n"


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
from course_utils.training import train

def batch(step, generator):
    time.sleep(0.02)
    return (torch.randn(4, 3, generator=generator),)

history = train(torch.nn.Linear(3, 2), batch, lambda model, x: model(x).square().mean(),
                steps={steps}, device="cpu")
"""


@pytest.mark.slow
def test_an_executed_notebook_holds_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.delenv("COURSE_PROGRESS", raising=False)
    cell = nbformat.v4.new_code_cell(TRAINING.format(steps=40))
    book = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(book, kernel_name="python3", timeout=120).execute()
    (output,) = book.cells[0].outputs
    assert output.output_type == "display_data"  # there was a bar, and it was replaced
    assert list(output.data) == ["text/plain"]
    assert output.data["text/plain"].startswith("40 steps in ")


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
        code = TRAINING.format(steps=100_000) + "print(history.interrupted)"
        reply = client.execute_interactive(code, output_hook=receive, timeout=120)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok"
    texts = [m["content"].get("text", "") for m in messages]
    assert "True\n" in texts
    last = [m for m in messages if m["msg_type"] == "update_display_data"][-1]
    assert "Stopped by Ctrl-C" in last["content"]["data"]["text/plain"]
