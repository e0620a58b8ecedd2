"""A bubblewrap sandbox for one submission, and the messages that come out of it.

Inside: the system and Python read-only, a small /tmp, no network, no other process, no
/proc, no home, no grader. The questions' module is hidden too. A seccomp filter refuses
new processes, sockets and whatever could hold memory outside the limits. Nothing that
comes out is trusted: it is counted, cut off, and read as JSON.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import selectors
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

PACKAGE = Path(__file__).parents[2]
MEGABYTE = 1 << 20
BUBBLEWRAP = shutil.which("bwrap")
NOBODY = 65534
# bubblewrap; or another user, in a container that holds this one submission; or nothing
Isolation = Literal["bubblewrap", "user", "none"]


class SandboxError(RuntimeError):
    """The sandbox itself does not work; no fault of a submission."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use; `seconds` of processor time per cell or question."""

    seconds: float = 10.0
    memory: int = 4096 * MEGABYTE
    files: int = 64 * MEGABYTE
    output: int = 32 * MEGABYTE

    @property
    def patience(self) -> float:
        """Seconds of the clock after which a silent worker is ended, once it runs."""
        return 4 * self.seconds + 2

    @property
    def total(self) -> float:
        """Seconds of the clock for one worker from start to end."""
        return 12 * self.seconds + 60

    def resources(self) -> dict[str, int]:
        return {
            "RLIMIT_AS": self.memory,
            "RLIMIT_FSIZE": self.files,
            "RLIMIT_CPU": int(12 * self.seconds + 30),
            "RLIMIT_NOFILE": 256,
            "RLIMIT_CORE": 0,
        }


# ---------------------------------------------------------------------- system calls

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, CLONE_THREAD = 1, 38, 0x00010000
# machine: (audit architecture, clone, clone3, refused calls)
SYSTEM_CALLS = {
    "x86_64": (
        0xC000003E,
        56,
        435,
        # fork vfork socket socketpair shmget semget msgget ptrace mq_open
        # pivot_root mount umount2 unshare setns, keys, process_vm_*, perf, memfd, bpf
        # userfaultfd, io_uring, the new mount calls, pidfd_getfd
        (
            *(57, 58, 41, 53, 29, 64, 68, 101, 240, 155, 165, 166, 272, 308, 248),
            *(249, 250, 310, 311, 298, 319, 447, 321, 323),
            *(425, 426, 427, 428, 429, 430, 432, 442, 438),
        ),
    ),
    "aarch64": (
        0xC00000B7,
        220,
        435,
        (
            *(198, 199, 194, 190, 186, 117, 180, 41, 40, 39, 97, 268, 217),
            *(218, 219, 270, 271, 241, 279, 447, 280, 282),
            *(425, 426, 427, 428, 429, 430, 432, 442, 438),
        ),
    ),
}


def seccomp_filter(machine: str) -> bytes:
    """Write the filter: threads yes; processes, sockets and hidden memory no."""
    architecture, clone, clone3, refused = SYSTEM_CALLS[machine]
    load, equal, at_least, has_bits, give = 0x20, 0x15, 0x35, 0x45, 0x06
    program = [
        (load, 0, 0, 4),
        (equal, 1, 0, architecture),
        (give, 0, 0, KILL),
        (load, 0, 0, 0),
        (at_least, 0, 1, 0x40000000),
        (give, 0, 0, KILL),
        (equal, 0, 1, clone3),
        (give, 0, 0, REFUSE | ENOSYS),
    ]
    for number in refused:
        program += [(equal, 0, 1, number), (give, 0, 0, REFUSE | EPERM)]
    program += [
        (equal, 1, 0, clone),
        (give, 0, 0, ALLOW),
        (load, 0, 0, 16),  # the flags of clone
        (has_bits, 1, 0, CLONE_THREAD),
        (give, 0, 0, REFUSE | EPERM),
        (give, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in program)


# --------------------------------------------------------------------------- bubblewrap


def library_path() -> list[str]:
    """Where Python finds its packages, and where this one lies."""
    names = ("purelib", "platlib")
    return [*dict.fromkeys(map(sysconfig.get_path, names)), str(PACKAGE.parent)]


def worker_command() -> list[str]:
    """The command that starts a worker, with no site of its own."""
    python = os.path.realpath(sys.executable)
    return [python, "-S", "-s", "-B", str(PACKAGE / "grading" / "sandbox" / "main.py")]


def bubblewrap_command(limits: Limits, seccomp: int) -> list[str]:
    """The command line that shows the worker what it needs and nothing else."""
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
    command += ["--tmpfs", str(PACKAGE / "grading" / "questions")]
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
def started(limits: Limits, isolation: Isolation) -> Iterator[subprocess.Popen[bytes]]:
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
    read, write = os.pipe()
    try:
        os.write(write, seccomp_filter(platform.machine()))
        os.close(write)
        process = subprocess.Popen(
            bubblewrap_command(limits, read), pass_fds=[read], env={}, **streams
        )
    finally:
        os.close(read)
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
        *_, last = converse({"cells": [], "skip": [], "questions": {}}, Limits())
    except SandboxError as error:
        return f"{error}; run where bubblewrap may make user namespaces, {advice}"
    return None if last["end"] == "done" else "the sandbox ends its worker early"


def converse(
    request: dict[str, Any], limits: Limits, isolation: Isolation = "bubblewrap"
) -> Iterator[dict[str, Any]]:
    """Send a worker its request and yield its messages, the last of them its `end`.

    The end is "done", "time", "output" (too much), "unreadable" or "died".
    """
    mark = secrets.token_hex()
    settings = {"limits": limits.resources(), "path": library_path(), "mark": mark}
    content = json.dumps({**request, **settings, "seconds": limits.seconds}).encode()
    began = False
    with started(limits, isolation) as process:
        assert process.stdin
        assert process.stderr
        with suppress(BrokenPipeError):
            process.stdin.write(content)
            process.stdin.close()
        for message in messages_of(process, limits, mark):
            began = began or "ready" in message
            if "end" in message and not began:
                said = process.stderr.read(2000).decode("utf-8", "replace").strip()
                raise SandboxError(f"the sandbox does not start ({said or message})")
            yield message


def messages_of(
    process: subprocess.Popen[bytes], limits: Limits, mark: str
) -> Iterator[dict[str, Any]]:
    """Read lines of JSON until the worker is done, dead, silent or too talkative."""
    assert process.stdout
    descriptor, received = process.stdout.fileno(), 0
    pieces: list[bytes] = []
    total = time.monotonic() + limits.total
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        deadline = total  # until the first message: PyTorch may load slowly
        while True:
            left = min(deadline, total) - time.monotonic()
            if left <= 0 or not selector.select(left):
                yield {"end": "time"}
                return
            data = os.read(descriptor, 1 << 16)
            received += len(data)
            if not data or received > limits.output:
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
