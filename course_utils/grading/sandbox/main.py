"""The program inside the sandbox: it runs one submission, and ends.

It reads one request from standard input, holds nothing that is secret (no expected
value, no seed), and writes one JSON message per line. Started as a script by `sandbox`,
once for each submission; another replays programs. Whatever it says after the first
cell has run may have been written by the submission itself; the reader checks it.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import importlib.abc
import json
import os
import resource
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any

DEFERRED = "torch._meta_registrations"
APART = ("course_utils", "json")
BUILTINS = vars(builtins).copy()
NEEDING = (
    "torch._decomp",
    "torch._dynamo",
    "torch._inductor",
    "torch._prims",
    "torch._refs",
)


class Loaded(importlib.abc.Loader):
    """Hand out a module that is already there."""

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return sys.modules[spec.name]

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class LoadDeferred(importlib.abc.MetaPathFinder):
    """Load what was left out as soon as something that needs it is imported."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        if name not in NEEDING:
            return None
        sys.meta_path.remove(self)
        importlib.import_module(DEFERRED)
        if name not in sys.modules:
            return None
        sys.modules[name].__spec__ = ModuleSpec(name, Loaded())
        return sys.modules[name].__spec__


class Apart(SourceFileLoader):
    """Run a module with built-in functions that no submission can replace."""

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module)["__builtins__"] = BUILTINS
        super().exec_module(module)


class FindApart(importlib.abc.MetaPathFinder):
    """Find our own modules, and those that they trust."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path)
        if name.partition(".")[0] in APART and spec and spec.origin:
            spec.loader = Apart(name, spec.origin)
            return spec
        return None


@contextmanager
def imports_apart() -> Iterator[None]:
    """Import copies: what a submission imports and patches is another one."""
    finder = FindApart()
    before = {name: sys.modules[name] for name in loaded(APART)}
    for name in before:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    yield
    sys.meta_path.remove(finder)
    for name in loaded(APART):
        del sys.modules[name]
    sys.modules.update(before)


def loaded(packages: tuple[str, ...]) -> list[str]:
    """List the modules of some packages that are loaded."""
    return [name for name in sys.modules if name.partition(".")[0] in packages]


def import_torch_quickly() -> None:
    """Import PyTorch without the kernels of its meta device: two thirds of the time."""
    gc.disable()
    sys.modules[DEFERRED] = types.ModuleType(DEFERRED)
    import torch

    del sys.modules[DEFERRED]
    vars(torch).pop(DEFERRED.removeprefix("torch."), None)
    sys.meta_path.insert(0, LoadDeferred())
    usual = torch.__getattr__

    def deferred_attribute(name: str) -> Any:
        if f"torch.{name}" in (DEFERRED, *NEEDING):
            return importlib.import_module(f"torch.{name}")
        return usual(name)

    vars(torch)["__getattr__"] = deferred_attribute
    if hasattr(torch._C, "_set_generator_metaclass"):  # what else was left out with it
        base = importlib.import_module("torch._opaque_base")
        torch._C._set_generator_metaclass(base.OpaqueBaseMeta)
    torch.set_num_threads(1)
    vars(torch)["compile"] = not_compiled
    gc.freeze()
    gc.enable()


def not_compiled(function: Any = None, **_: Any) -> Any:
    """Stand in for `torch.compile`, since no compiler runs here: slower, and right."""
    return not_compiled if function is None else function


def install_filter(program: bytes) -> None:
    """Refuse system calls from now on, as a filter says, where no bubblewrap does."""
    import ctypes

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))

    control = ctypes.CDLL(None, use_errno=True).prctl
    whole = Filter(len(program) // 8, program)
    no_new_rights, set_filter, by_program = 38, 22, 2
    if control(no_new_rights, 1, 0, 0, 0) or control(
        set_filter, by_program, ctypes.byref(whole)
    ):
        raise OSError(ctypes.get_errno(), "no filter on system calls")


def main() -> None:
    """Read the request, close every way out, limit the process, serve."""
    request = json.loads(sys.stdin.buffer.readline())
    channel = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1,) if "replay" in request else (0, 1):
        os.dup2(nothing, descriptor)
    here = os.path.dirname(__file__)
    sys.path[:] = [path for path in sys.path if path != here] + request["path"]
    for name, most in request["limits"].items():
        resource.setrlimit(getattr(resource, name), (most, most))
    import_torch_quickly()
    if "filter" in request:
        install_filter(bytes.fromhex(request["filter"]))
    with imports_apart():
        cells = importlib.import_module("course_utils.grading.sandbox.notebook_runner")
    os.dup2(nothing, 2)  # so far it could say why it does not start
    os.close(nothing)
    cells.begin(request, channel)
    os._exit(0)


if __name__ == "__main__":
    main()
