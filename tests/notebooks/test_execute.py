"""A notebook runs alone, is compared with what git keeps, and never hangs."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_output
from small_project import SHOWS_FRUIT, build, command, executed, write_notebook

from tools.check import counted
from tools.notebooks.execute import Outcome, execute_and_report, report
from tools.notebooks.io import ROOT

pytestmark = pytest.mark.slow


def test_a_failing_cell_is_named_and_the_others_finish(project: Path) -> None:
    write_notebook(project / "book" / "fruit.ipynb", "1", "1 / 0", "2")
    write_notebook(project / "book" / "good.ipynb", "1")
    with (project / "_toc.yml").open("a") as toc:
        toc.write("- file: book/good\n")
    status, said = build(project, "book")
    assert status == 1
    assert re.search(
        r"book/fruit.ipynb: code cell 2 \([\w-]+\) failed\n\n1 / 0\n", said
    )
    assert "ZeroDivisionError: division by zero" in said
    assert "site: NOT built" in said
    assert (project / "_build" / "executed" / "book" / "good.ipynb").is_file()
    assert not (project / "_build" / "html").exists()


def test_a_cell_that_ends_its_process_is_named(project: Path) -> None:
    write_notebook(project / "book" / "fruit.ipynb", "1", "import os; os._exit(3)")
    status, said = build(project, "execute")
    assert status == 1
    assert "code cell 2" in said
    assert "The kernel died" in said


def interruptible() -> None:
    """Heed Ctrl-C even where the tests run in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_build_goes_on_where_it_was(
    project: Path, number: signal.Signals
) -> None:
    begun, free = project / "begun", project / "free"
    write_notebook(
        project / "book" / "waits.ipynb",
        f"from pathlib import Path; import time; Path({str(begun)!r}).touch()",
        f"while not Path({str(free)!r}).exists(): time.sleep(0.05)",
    )
    with (project / "_toc.yml").open("a") as toc:
        toc.write("- file: book/waits\n")
    done = project / "_build" / "executed" / "book" / "fruit.ipynb"
    running = subprocess.Popen(
        command(project, "execute"), cwd=ROOT, preexec_fn=interruptible
    )
    deadline = time.monotonic() + 300
    while not (begun.exists() and done.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    below = psutil.Process(running.pid).children(recursive=True)
    assert len(below) >= 2  # nbval and its kernel
    running.send_signal(number)
    assert running.wait(60) != 0
    assert not psutil.wait_procs(below, timeout=60)[1], "a process was left behind"
    free.touch()
    status, said = build(project, "execute")
    assert (status, executed(said)) == (0, 1), said
    assert re.search(r"book/fruit.ipynb +unchanged", said)


def test_a_result_is_not_kept_if_the_package_changed_while_it_was_made(
    project: Path,
) -> None:
    basket = project / "course_utils" / "basket.py"
    write_notebook(
        project / "book" / "fruit.ipynb",
        SHOWS_FRUIT,
        f"open({str(basket)!r}, 'a').write('# edited\\n')",
    )
    status, said = build(project, "execute")
    assert status == 1
    assert "course_utils/basket.py changed while it ran" in said
    assert not (project / "_build" / "executed" / "book" / "fruit.ipynb").exists()


def test_a_result_that_is_cut_short_is_made_again(project: Path) -> None:
    assert build(project, "execute")[0] == 0
    result = project / "_build" / "executed" / "book" / "fruit.ipynb"
    result.write_text(result.read_text()[:-40])
    status, said = build(project, "execute")
    assert (status, executed(said)) == (0, 1), said


def test_a_notebook_that_needs_the_network_fails(project: Path) -> None:
    write_notebook(
        project / "book" / "fruit.ipynb",
        "import socket\n"
        "here = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(here.getsockname())",
        "import urllib.request\nurllib.request.urlopen('http://192.0.2.1/')",
    )
    status, said = build(project, "execute")
    assert status == 1
    assert "code cell 2" in said
    assert "a connection to '192.0.2.1' was refused" in said


def test_a_notebook_runs_in_an_empty_folder_on_one_thread(project: Path) -> None:
    write_notebook(
        project / "book" / "fruit.ipynb",
        "import os\nassert os.listdir() == []",
        "import torch\nassert torch.get_num_threads() == 1",
    )
    status, said = build(project, "execute", OMP_NUM_THREADS="2", MPLBACKEND="pdf")
    assert status == 0, said


def test_other_seeds_are_tried_and_the_one_that_fails_is_named(project: Path) -> None:
    write_notebook(
        project / "book" / "fruit.ipynb",
        "import os\nassert os.environ['COURSE_SEED'] != '2'",
    )
    status, said = build(project, "seeds", "1", "2", "3")
    assert status == 1
    assert "failed with seeds 2" in said
    assert not (project / "_build" / "executed").exists()


def test_what_takes_too_long_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    report([Outcome("a.ipynb", {"3": 61.0, "4": 1.0}, seconds=190.0)], 2, 190.0)
    said = capsys.readouterr().out
    assert "warning: a.ipynb, code cell 3 took 61 s, its budget is 60 s" in said
    assert "warning: a.ipynb took 190 s, its budget is 180 s" in said


# ------------------------------------------------------------------ what is compared


def tag_last_cell(path: Path, tag: str, stored: str = "") -> None:
    """Tag the notebook's last cell, and store an output with it."""
    notebook = nbformat.read(path, as_version=4)
    cell = notebook.cells[-1]
    cell.metadata.tags = [tag]
    if stored:
        cell.outputs = [new_output("stream", name="stdout", text=stored)]
        cell.execution_count = 1
    nbformat.write(notebook, path)


def test_a_wrong_stored_output_fails_both_commands(project: Path) -> None:
    path, junit = project / "book" / "fruit.ipynb", project / "junit.xml"
    as_in_make_test = ("execute", str(path.parent), "--junitxml", str(junit))
    write_notebook(path, SHOWS_FRUIT, "print(6 * 7)")
    tag_last_cell(path, "nbval-check-output", "42\n")
    assert build(project, *as_in_make_test)[0] == 0
    assert counted(junit) == (2, 0, 0)
    tag_last_cell(path, "nbval-check-output", "43\n")
    for arguments in (("book",), as_in_make_test):
        status, said = build(project, *arguments)
        assert status == 1, said
        assert re.search(r"code cell 2 .* failed\n\nprint\(6 \* 7\)\n", said)
        assert "Cell outputs differ" in said
        assert "'43\\n' == '42\\n'" in said
    assert counted(junit) == (1, 1, 0)
    # an output that is stored belongs to the course's own seed
    assert build(project, "seeds", "1")[0] == 0


def test_the_site_takes_over_the_run_that_was_compared(project: Path) -> None:
    junit = project / "junit.xml"
    once_more = ("execute", str(project / "book"), "--junitxml", str(junit))
    assert executed(build(project, *once_more)[1]) == 1
    result = project / "_build" / "executed" / "book" / "fruit.ipynb"
    (shown,) = nbformat.read(result, as_version=4).cells[1].outputs
    assert shown.data == {"text/plain": "'pomegranate'"}
    status, said = build(project, *once_more)
    assert status == 0, said
    assert "0 executed, 1 unchanged" in said
    assert counted(junit) == (1, 0, 0)  # a cell whose run is still right has passed
    (project / "course_utils" / "basket.py").write_text('NAME = "quince"\n')
    assert executed(build(project, *once_more)[1]) == 1
    assert "quince" in result.read_text()


def test_a_cell_that_the_site_leaves_out_is_not_run(project: Path) -> None:
    path = project / "book" / "fruit.ipynb"
    write_notebook(path, SHOWS_FRUIT, "raise SystemError('the live kernel')")
    tag_last_cell(path, "remove-cell")
    status, said = build(project, "execute")
    assert status == 0, said
    result = project / "_build" / "executed" / "book" / "fruit.ipynb"
    ran, left_out = nbformat.read(result, as_version=4).cells[1:]
    assert "pomegranate" in str(ran.outputs)
    assert left_out.outputs == []


# ------------------------------------------------------------------ a kernel that hangs

LOSES = """
session = get_ipython().kernel.session
send = session.send

def lose(stream, kind, content=None, parent=None, *rest, **more):
    if kind != {kind!r} or content.get("execution_state", "idle") != "idle":
        return send(stream, kind, content, parent, *rest, **more)
    session.send = send
    return session.msg(kind, content, parent)

from pathlib import Path
seen = Path({seen!r})
if {times} > len(seen.read_text() if seen.exists() else ""):
    seen.open("a").write(".")
    session.send = lose
"""
HANGS = "import threading; threading.Event().wait()"
BUSY_CHILD = (
    "import subprocess, sys\n"
    "work = 'import time; end = time.time() + 7\\nwhile time.time() < end: pass'\n"
    "subprocess.run([sys.executable, '-c', work], check=True)"
)


def run(project: Path, *cells: str) -> bool:
    """Execute a notebook of these cells with two seconds of patience."""
    path = project / "book" / "fruit.ipynb"
    write_notebook(path, *cells)
    return execute_and_report([path], project, project / "_build", 1, patience=2)


def loses(project: Path, kind: str, times: int) -> str:
    """A cell that loses a message of this kind this many times."""
    return LOSES.format(kind=kind, times=times, seen=str(project / "seen"))


@pytest.mark.parametrize("kind", ["execute_reply", "status"])
def test_a_notebook_runs_once_more_after_a_lost_message(
    project: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "x = 1", loses(project, kind, times=1), "print(x + 1)")
    assert "fruit.ipynb: its kernel stopped answering; once more" in (
        capsys.readouterr().out
    )
    result = project / "_build" / "book" / "fruit.ipynb"
    assert nbformat.read(result, as_version=4).cells[3].outputs[0].text == "2\n"


def test_a_reply_that_is_lost_twice_is_an_error_that_names_the_cell(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not run(project, "1", loses(project, "execute_reply", times=2), "2")
    said = capsys.readouterr().out
    assert re.search(r"book/fruit.ipynb: code cell 2 \([\w-]+\) failed", said)
    assert "The kernel was idle for 2 s, and the cell's reply has not come." in said
    assert not (project / "_build" / "book").exists()


def test_a_cell_that_does_nothing_is_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not run(project, "1", HANGS)
    said = capsys.readouterr().out
    assert "code cell 2" in said
    assert "The kernel used no processor time for 2 s" in said


def test_a_cell_whose_child_works_is_awaited(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, BUSY_CHILD)
    assert "once more" not in capsys.readouterr().out
