"""nbval's kernel with a watchdog: a lost reply ends the wait.

A kernel that has run its cell says so twice: it replies on one channel and reports
"idle" on another. Now and then a busy machine loses a message, and whoever waits for it
waits for ever. `WatchedKernel` waits as long as the kernel works: after `patience`
seconds in which it was idle or used no processor time, the message counts as lost.
"""

from __future__ import annotations

import os
import time
from collections import deque
from queue import Empty
from typing import Any

import psutil
from nbval.kernel import RunningKernel

LEAST_WORK = 0.01  # of one processor: an idle kernel uses less, a starved one more


class LostReply(Exception):
    """The kernel has stopped working on its cell, and no reply has come."""


class KernelDied(Exception):
    """The kernel's process ended before its cell did."""


def processor_seconds(pid: int) -> float:
    """The processor time of a process and its children, ended children included."""
    total = 0.0
    try:
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            total += sum(each.cpu_times()[:4])  # user, system, both of ended children
    except psutil.NoSuchProcess:
        pass  # it ended just now; its parent has its time at the next look
    return total


class WatchedKernel(RunningKernel):
    """A kernel in the current folder; its cells are awaited while they get on."""

    def __init__(
        self, kernel_name: str, patience: float, startup_timeout: float, **_: Any
    ) -> None:
        self.patience = patience
        self.published: deque[dict[str, Any]] = deque()
        self.starter = os.getppid()
        try:
            super().__init__(kernel_name, os.getcwd(), startup_timeout)
        except RuntimeError as error:
            raise LostReply(f"The kernel did not start: {error}") from error
        self.pid = self.km.provisioner.pid

    def _ensure_iopub_up(self) -> None:
        """Do nothing: jupyter_client's `wait_for_ready` has heard both channels."""

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        """The next message: first what `await_reply` has read already."""
        if stream == "iopub" and self.published:
            return self.published.popleft()
        return super().get_message(stream, timeout)

    def publish(self, message: dict[str, Any]) -> None:
        """Keep a message for nbval; one that replaces an output does so here."""
        content = message["content"]
        if message["msg_type"] != "update_display_data":
            self.published.append(message)
            return
        for earlier in self.published:
            if earlier["content"].get("transient") == content["transient"]:
                earlier["content"]["data"] = content["data"]

    def listen(self, msg_id: str, missing: set[str], seconds: float) -> bool:
        """Read what has come and cross it off `missing`; say whether there was any."""
        heard = False
        for stream in ("shell", "iopub"):
            while stream in missing:
                wait = seconds if stream == "shell" or "shell" not in missing else 0
                try:
                    message = super().get_message(stream, wait)
                except Empty:
                    break
                if message["parent_header"].get("msg_id") != msg_id:
                    continue
                heard = True
                if stream == "iopub":
                    self.publish(message)
                idle = message["content"].get("execution_state") == "idle"
                if stream == "shell" or idle:
                    missing.remove(stream)
        return heard

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """Wait for the cell's reply and for all that it shows.

        Raises `LostReply` or `KernelDied` where nothing more will come, and `Empty`
        after `timeout` seconds, upon which nbval interrupts the cell.
        """
        missing = {"shell", "iopub"}
        begun = progress = time.monotonic()
        used = processor_seconds(self.pid)
        while True:
            heard = self.listen(msg_id, missing, min(1.0, self.patience / 10))
            if not missing:
                return
            if not self.is_alive():
                raise KernelDied(
                    "The kernel died: out of memory, or the cell ended it."
                )
            if os.getppid() != self.starter:
                raise KeyboardInterrupt  # nobody is left to take the result
            now, spent = time.monotonic(), processor_seconds(self.pid)
            running = len(missing) == 2
            at_work = running and spent - used > LEAST_WORK * self.patience
            if heard or at_work:
                progress, used = now, spent
            elif now - progress > self.patience:
                state = "used no processor time" if running else "was idle"
                raise LostReply(
                    f"The kernel {state} for {self.patience:g} s, and the cell's reply "
                    "has not come."
                )
            if timeout and now - begun > timeout:
                raise Empty
