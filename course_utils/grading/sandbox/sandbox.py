"""A bubblewrap sandbox for one submission, and the messages that come out of it.

Inside: the system and Python read-only, a small /tmp, no network, no other process, no
/proc, no home, no grader. The questions' module is hidden too. A seccomp filter refuses
new processes, sockets and whatever could hold memory outside the limits. Nothing that
comes out is trusted: it is counted, cut off, and read as JSON.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import secrets
import selectors
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from course_utils.grading.sandbox.absent import covers
from course_utils.grading.sandbox.excess import Usage, usage_of
from course_utils.grading.sandbox.system_calls import SYSTEM_CALLS, seccomp_filter
from course_utils.grading.sandbox.wire_format import is_much

PACKAGE = Path(__file__).parents[2]
MEGABYTE = 1 << 20
BUBBLEWRAP = shutil.which("bwrap")
NOBODY = 65534
LOOK = 0.25  # seconds between two looks at a worker's threads and files
# bubblewrap; or another user, in a container that holds this one submission; or nothing
Isolation = Literal["bubblewrap", "user", "none"]


NOTHING: dict[str, Any] = {"cells": [], "skip": [], "questions": {}}


class SandboxError(RuntimeError):
    """The sandbox itself does not work; no fault of a submission."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use; `seconds` of processor time per cell or question."""

    seconds: float = 10.0
    memory: int = 4096 * MEGABYTE
    files: int = 64 * MEGABYTE
    output: int = 32 * MEGABYTE
    threads: int = 128
    names: int = 4096  # of files

    @property
    def patience(self) -> float:
        """Seconds of the clock after which a silent worker is ended, once it runs."""
        return 2 * self.seconds + 4

    @property
    def total(self) -> float:
        """Seconds for a submission, all its workers together.

        So many of the clock, and no more of the processor, by however many threads.
        """
        return 6 * self.seconds + 40

    def alone(self) -> Limits:
        """The limits of a second try, when nothing else is running."""
        return replace(self, seconds=2 * self.seconds)

    def resources(self) -> dict[str, int]:
        return {
            "RLIMIT_AS": self.memory,
            "RLIMIT_FSIZE": self.files,
            "RLIMIT_CPU": int(self.total),
            "RLIMIT_NOFILE": 256,
            "RLIMIT_CORE": 0,
        }


@dataclass
class Allowance:
    """What is left to a submission, all its workers together."""

    until: float = math.inf  # the time of the clock when it must be over
    seconds: float = math.inf  # of the processor
    output: float = math.inf  # bytes

    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return time.monotonic() > self.until or self.seconds <= 0

    def excess(self, usage: Usage, limits: Limits) -> str:
        """Say of what a worker has too much: "threads", "files", "time", or nothing."""
        if usage.threads > limits.threads:
            return "threads"
        if usage.names > limits.names:
            return "files"
        return "time" if self.seconds <= 0 else ""


# --------------------------------------------------------------------------- bubblewrap


def library_path() -> list[str]:
    """Where Python finds its packages, and where this one lies.

    A virtual environment may look into another's, or into the user's own.
    """
    usual = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    more = [x for x in sys.path if Path(x).name in ("site-packages", "dist-packages")]
    return [*dict.fromkeys([*usual, *more]), str(PACKAGE.parent)]


def worker_command() -> list[str]:
    """The command that starts a worker, with no site of its own."""
    python = os.path.realpath(sys.executable)
    return [python, "-S", "-s", "-B", str(PACKAGE / "grading" / "sandbox" / "main.py")]


def in_memory(content: bytes) -> int:
    """A file that no disk holds, ready to be read by bubblewrap."""
    made = os.memfd_create("course")
    os.write(made, content)
    os.lseek(made, 0, os.SEEK_SET)
    return made


def bubblewrap_command(
    limits: Limits, seccomp: int, covered: dict[str, int | None]
) -> list[str]:
    """The command line that shows the worker what it needs and nothing else.

    A file of the package that is `covered` has another content, or none.
    """
    command = [
        BUBBLEWRAP or "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
    ]
    command += ["--clearenv", "--cap-drop", "ALL", "--hostname", "sandbox"]
    command += ["--uid", "65534", "--gid", "65534"]
    for place in ("/usr", "/bin", "/lib", "/lib64", "/sbin"):
        if os.path.islink(place):
            command += ["--symlink", os.readlink(place), place]
        elif os.path.isdir(place):
            command += ["--ro-bind", place, place]
    command += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    command += ["--size", str(limits.files), "--tmpfs", "/tmp", "--chdir", "/tmp"]
    for place in dict.fromkeys([sys.base_prefix, *library_path()[:-1], str(PACKAGE)]):
        if not place.startswith("/usr/"):
            command += ["--ro-bind", place, place]
        if (other := Path(place, PACKAGE.name)).is_dir() and other != PACKAGE:
            command += ["--tmpfs", str(other)]  # an installed copy, with all questions
    command += ["--tmpfs", str(PACKAGE / "grading" / "questions")]
    for place, content in covered.items():
        instead = ["--ro-bind", "/dev/null"]
        if content is not None:
            instead = ["--ro-bind-data", str(content)]
        command += [*instead, place]
    for place in ("/proc/cpuinfo", "/sys/devices/system/cpu"):  # for half precision
        command += ["--ro-bind-try", place, place]
    for device in ("null", "zero", "urandom", "random"):
        command += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    command += ["--remount-ro", "/", "--seccomp", str(seccomp)]
    for name, value in worker_environment().items():
        command += ["--setenv", name, value]
    return [*command, "--", *worker_command()]


def worker_environment() -> dict[str, str]:
    """All that a worker sees of the environment."""
    return {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
    }


@contextmanager
def started(
    limits: Limits, isolation: Isolation, absent: frozenset[str] = frozenset()
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker, and leave nothing of it behind."""
    streams: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    if isolation != "bubblewrap":
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        streams |= nobody if isolation == "user" else {}
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            environment = {**worker_environment(), "HOME": folder, "TMPDIR": folder}
            process = subprocess.Popen(
                worker_command(),
                cwd=folder,
                env=environment,
                start_new_session=True,
                **streams,
            )
            try:
                yield process
            finally:
                end(process, group=True)
        return
    covered = {
        place: None if text is None else in_memory(text.encode())
        for place, text in covers(absent)
    }
    seccomp = in_memory(seccomp_filter(platform.machine()))
    files = [seccomp, *(x for x in covered.values() if x is not None)]
    try:
        command = bubblewrap_command(limits, seccomp, covered)
        process = subprocess.Popen(command, pass_fds=files, env={}, **streams)
    finally:
        for file in files:
            os.close(file)
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes], group: bool = False) -> None:
    """Kill a worker with all it started."""
    if group:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


# --------------------------------------------------------------------------- messages


def sandbox_problem() -> str | None:
    """Say in a sentence why submissions cannot be run safely here, or None."""
    advice = "or pass --unsafe to grade submissions that you trust with no sandbox."
    if BUBBLEWRAP is None:
        return (
            "bubblewrap is not installed, and untrusted code needs its sandbox: "
            f"install it (Debian, Ubuntu: `apt install bubblewrap`), {advice}"
        )
    if platform.machine() not in SYSTEM_CALLS:
        known = " and ".join(SYSTEM_CALLS)
        machine = platform.machine()
        return f"the sandbox knows {known}, not {machine}; grade there, {advice}"
    try:
        *_, last = converse(NOTHING, Limits())
    except SandboxError as error:
        return f"{error}; run where bubblewrap may make user namespaces, {advice}"
    return None if last["end"] == "done" else "the sandbox ends its worker early"


def counts_by_namespace() -> bool:
    """Whether the kernel counts a sandbox's threads apart from the user's others.

    Since Linux 5.14 it does; never those of root.
    """
    return [int(x) for x in re.findall(r"\d+", platform.release())[:2]] >= [5, 14]


def request_of(limits: Limits, isolation: Isolation, mark: str) -> dict[str, Any]:
    """What every worker has to know."""
    own = isolation == "bubblewrap"  # a temporary folder, that is
    settings: dict[str, Any] = {
        "limits": limits.resources(),
        "path": library_path(),
        "mark": mark,
        "seconds": limits.seconds,
        "threads": limits.threads,
        "names": limits.names if own else sys.maxsize,
    }
    if isolation == "user" or (own and os.geteuid() and counts_by_namespace()):
        settings["limits"]["RLIMIT_NPROC"] = limits.threads
    if isolation == "user":  # bubblewrap brings its own
        settings["filter"] = seccomp_filter(platform.machine()).hex()
    return settings


def converse(
    request: dict[str, Any],
    limits: Limits,
    isolation: Isolation = "bubblewrap",
    left: Allowance | None = None,
    absent: frozenset[str] = frozenset(),
) -> Iterator[dict[str, Any]]:
    """Send a worker its request and yield its messages, the last of them its `end`.

    The end is "done", "time", "output" (too much), "threads" or "files" (too many),
    "unreadable" or "died". What it used is taken from what is `left`.
    """
    mark = secrets.token_hex()
    content = json.dumps({**request, **request_of(limits, isolation, mark)}).encode()
    began = False
    with started(limits, isolation, absent) as process:
        assert process.stdin
        assert process.stderr
        with suppress(BrokenPipeError):
            process.stdin.write(content)
            process.stdin.close()
        for message in messages_of(process, limits, mark, left or Allowance()):
            began = began or "ready" in message or message == {"end": "output"}
            if "end" in message and not began:
                said = process.stderr.read(8000).decode("utf-8", "replace").strip()
                why = said.splitlines()[-1] if said else message
                raise SandboxError(f"the sandbox does not start ({why})")
            yield message


def messages_of(
    process: subprocess.Popen[bytes], limits: Limits, mark: str, left: Allowance
) -> Iterator[dict[str, Any]]:
    """Read lines of JSON until the worker is done, dead, silent or too talkative."""
    assert process.stdout
    descriptor, received = process.stdout.fileno(), 0
    pieces: list[bytes] = []
    total = min(left.until, time.monotonic() + limits.total)
    usage, seconds = Usage(), left.seconds
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        look = 0.0
        deadline = total  # until the first message: PyTorch may load slowly
        while True:
            waiting = min(deadline, total) - time.monotonic()
            ready = selector.select(min(max(waiting, 0), LOOK))
            too_much = ""
            if time.monotonic() >= look:
                look = time.monotonic() + LOOK
                usage = usage_of(process.pid)
                left.seconds = seconds - usage.seconds
                too_much = left.excess(usage, limits)
            if too_much or (waiting <= 0 and not ready):
                yield {"end": too_much or "time"}
                return
            if not ready:
                continue
            data = os.read(descriptor, 1 << 16)
            received += len(data)
            left.output -= len(data)
            if not data or received > limits.output or left.output < 0:
                yield {"end": "output" if data else "died"}
                return
            pieces.append(data)
            if b"\n" not in data:
                continue
            *lines, rest = b"".join(pieces).split(b"\n")
            pieces = [rest]
            for line in lines:
                deadline = time.monotonic() + limits.patience
                message = read_message(line, mark)
                yield message
                if "end" in message:
                    return


def read_message(line: bytes, mark: str) -> dict[str, Any]:
    """Read one line; whatever is not a JSON object with our mark ends the talk."""
    if is_much(line):
        return {"end": "unreadable"}
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if type(message) is not dict or message.pop("mark", "") != mark:
        return {"end": "unreadable"}
    if "end" in message:
        return {"end": "unreadable"}
    if message.keys() == {"done"}:
        return {"end": "done", "processor": message["done"]}
    return message
