"""Keep an empty sandbox at hand in which recorded programs are replayed."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import threading
import time
from contextlib import ExitStack
from typing import Any

from course_utils.grading.sandbox.sandbox import (
    Isolation,
    Limits,
    SandboxError,
    read_message,
    request_of,
    started,
)
from course_utils.grading.sandbox.wire_format import decode, encode

DOES_NOT_END, DIES = "it does not end", "it dies"
NO_MEMORY = "no memory is left"  # as `replay` says
SECONDS, STARTING = 8.0, 120.0  # of the clock: for a program, and for PyTorch to load


class NotReplayedError(Exception):
    """A program could not be replayed, and why."""


class Replayer:
    """A sandbox that replays programs; one that hangs or dies is replaced."""

    def __init__(self, limits: Limits, isolation: Isolation) -> None:
        self.limits, self.isolation = limits, isolation
        self.process: Any = None
        self.stack = ExitStack()
        self.number = 0

    def start(self) -> None:
        """Start a fresh one."""
        self.stop()
        self.mark, self.rest = secrets.token_hex(), b""
        self.process = self.stack.enter_context(started(self.limits, self.isolation))
        request = request_of(self.limits, self.isolation, self.mark)
        self.send({**request, "replay": True})
        if self.receive(STARTING) != {"ready": True}:
            raise SandboxError("the sandbox for replays does not start")

    def stop(self) -> None:
        """End it, with all it holds."""
        self.process = None
        self.stack.close()

    def send(self, message: dict[str, Any]) -> None:
        """Write one line."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self, seconds: float) -> dict[str, Any]:
        """Read one line, for so long and no longer."""
        ends, descriptor = time.monotonic() + seconds, self.process.stdout.fileno()
        pieces = [self.rest]
        size = 0
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in pieces[-1]:
                left = ends - time.monotonic()
                data = b""
                if left > 0 and selector.select(left):
                    data = os.read(descriptor, 1 << 16)
                size += len(data)
                if not data or size > self.limits.output:
                    hangs = time.monotonic() >= ends
                    raise NotReplayedError(DOES_NOT_END if hangs else DIES)
                pieces.append(data)
        line, _, self.rest = b"".join(pieces).partition(b"\n")
        return read_message(line, self.mark)

    def ask(self, program: Any, inputs: Any) -> Any:
        """Replay a program on inputs and return its result, a plain value.

        The submissions before it may have used up the sandbox's memory or its time:
        then it is tried again in a fresh one.
        """
        if self.process is not None and self.process.poll() is None:
            try:
                return self.ask_once(program, inputs)
            except NotReplayedError as error:
                if str(error) not in (DIES, NO_MEMORY):
                    raise
        self.start()
        return self.ask_once(program, inputs)

    def ask_once(self, program: Any, inputs: Any) -> Any:
        """Replay a program in the sandbox that there is."""
        self.number += 1
        try:
            encoded = encode(inputs)
            self.send({"number": self.number, "program": program, "inputs": encoded})
            reply = self.receive(SECONDS)
            if reply.get("number") != self.number:
                raise NotReplayedError(DIES)
        except (NotReplayedError, OSError) as error:
            self.stop()
            raise NotReplayedError(str(error)) from error
        if "value" not in reply:
            raise NotReplayedError(str(reply.get("problem"))[:40])
        return decode(reply["value"])


AT_HAND = threading.local()


def replayer(limits: Limits, isolation: Isolation) -> Replayer:
    """The replayer of this thread."""
    found = vars(AT_HAND).get("one")
    if found is None or (found.limits, found.isolation) != (limits, isolation):
        if found is not None:
            found.stop()
        found = AT_HAND.one = Replayer(limits, isolation)
    return found
