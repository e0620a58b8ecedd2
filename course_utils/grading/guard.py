"""Run a learner's answer in the notebook without harm to the notebook.

It may take so long and no longer (also on Windows), use so much memory and no more
(where the system can tell), and what it prints or draws is kept, to be shown once.
"""

from __future__ import annotations

import builtins
import ctypes
import io
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import (
    ExitStack,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from typing import Any

import torch

SECONDS = 10.0  # for all cases of a question together
MAX_PRINTED = 4_000
MAX_MEMORY = 4 * 1024**3  # bytes that an answer may add to what is in use


class TimeUpError(BaseException):
    """An answer used up its time."""


class InterruptedCheck(KeyboardInterrupt):
    """A person stopped the check; a notebook shows these lines and no others."""

    def __init__(self, answer: str) -> None:
        super().__init__(f"check stopped while `{answer}` was running.")

    def _render_traceback_(self) -> list[str]:
        return [
            str(self),
            "Nothing was judged, and your progress is as it was.",
            "If it ran too long, look for a loop that never ends.",
        ]


class AskedError(Exception):
    """An answer asked the keyboard."""


def refuse_input(*_: Any) -> str:
    """Stand in for `input` while an answer runs: nobody is there to type."""
    raise AskedError("everything an answer needs comes as its arguments")


def waited(thread: int) -> float:
    """The seconds that a thread stood in line for a processor, where Linux tells."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeUpError in this thread when the time is up, and again if need be.

    Processor time counts, so that a busy machine costs nobody a point; thrice that of
    the clock is the end in any case, without the time of standing in line for a
    processor.
    """
    native = threading.get_native_id()
    thread = ctypes.c_ulong(threading.get_ident())
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    lock, ended = threading.Lock(), threading.Event()
    clock, processor = time.monotonic() - waited(native), time.process_time()

    def is_up() -> bool:
        passed = time.monotonic() - waited(native) - clock
        worked = time.process_time() - processor
        return passed > 3 * seconds or min(passed, worked) > seconds

    def watch() -> None:
        pause = 0.1
        while not ended.wait(pause):
            with lock:
                if is_up() and not ended.is_set():
                    raise_in(thread, ctypes.py_object(TimeUpError))
                    pause = 1.0  # for it to clean up

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        with suppress(TimeUpError), lock:  # one that was on its way arrives here
            for _ in range(100):
                pass


@contextmanager
def memory_limit(extra: int = MAX_MEMORY) -> Iterator[None]:
    """Let an allocation fail before the machine has no memory left, on Linux.

    A GPU's driver reserves more addresses than there is memory, so not beside one.
    """
    try:
        import resource

        if torch.cuda.is_available():
            raise OSError("no limit beside a GPU")

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        unlimited = resource.RLIM_INFINITY
        most = min([used + extra, *(x for x in (soft, hard) if x != unlimited)])
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class Printed(io.StringIO):
    """Keep what is printed, up to a limit."""

    def write(self, text: str) -> int:
        super().write(text[: max(MAX_PRINTED - self.tell(), 0)])
        return len(text)


class Heard:
    """What an answer printed and drew in its first call."""

    def __init__(self) -> None:
        self.text, self.pictures = "", []  # type: ignore[var-annotated]

    @contextmanager
    def call(self, first: bool) -> Iterator[None]:
        """Keep what the first call says; throw away what the others repeat."""
        printed = Printed()
        shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
        plots = sys.modules.get("matplotlib.pyplot")
        figures = plots.get_fignums() if plots else []
        usual, builtins.input = builtins.input, refuse_input
        shown: Any = None
        try:
            with ExitStack() as stack:
                stack.enter_context(redirect_stdout(printed))
                stack.enter_context(redirect_stderr(printed))
                if shell and hasattr(shell, "display_pub"):
                    from IPython.utils.capture import capture_output

                    quiet = capture_output(stdout=False, stderr=False)
                    shown = stack.enter_context(quiet)
                yield
        finally:
            builtins.input = usual
            if first:
                self.text = printed.getvalue()
                self.pictures = list(shown.outputs) if shown else []
            elif plots:
                for number in set(plots.get_fignums()).difference(figures):
                    plots.close(number)

    def show(self) -> None:
        """Show it, once."""
        if self.text:
            print("your answer printed (in the first of several calls):")
            print(self.text.rstrip("\n"))
            if len(self.text) >= MAX_PRINTED:
                print("…")
        for picture in self.pictures:
            picture.display()
