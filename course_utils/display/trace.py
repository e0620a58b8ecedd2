"""What a forward pass really does: every module and torch call, with its tensors.

A diagram that asserts shapes is wrong the day the model changes. `trace` runs the model
and keeps what went in and came out, so that a picture can look up what it draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, resolve_name


@dataclass(frozen=True)
class Step:
    """One call: the tensors that went into it and those that came out."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @property
    def output(self) -> Tensor:
        """The first result, which for most calls is the only one."""
        return self.outputs[0]


@dataclass
class Trace:
    """The steps of a forward pass, in the order in which they ended.

    A module has its own name (`blocks.0.attention.qkv`), a torch call that of the
    module it ran in and its own (`blocks.0.attention.softmax`); the second call of one
    name ends in `:2`.
    """

    steps: dict[str, Step] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Step:
        if name not in self.steps:
            last = name.rpartition(".")[2].partition(":")[0]
            near = [step for step in self.steps if last in step] or list(self.steps)
            raise KeyError(
                f"no step {name!r} in this forward pass; there is "
                f"{', '.join(near[:8])}{', …' if len(near) > 8 else ''}."
            )
        return self.steps[name]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps.values())

    def __len__(self) -> int:
        return len(self.steps)


def _tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in nested lists, tuples and dicts, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


class _Recorder(TorchFunctionMode):
    """Keeps every call that makes tensors, under the module that it runs in."""

    def __init__(self) -> None:
        super().__init__()
        self.trace, self.inside, self.calls = Trace(), [""], Counter[str]()

    def keep(self, name: str, inputs: Any, outputs: Any) -> None:
        results = tuple(_tensors(outputs))
        if not results:
            return
        self.calls[name] += 1
        name = name if self.calls[name] == 1 else f"{name}:{self.calls[name]}"
        self.trace.steps[name] = Step(name, tuple(_tensors(inputs)), results)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = (resolve_name(func) or func.__name__).removesuffix(".__get__")
        where = f"{self.inside[-1]}." if self.inside[-1] else ""
        self.keep(where + name.rpartition(".")[2], [args, kwargs], result)
        return result

    def watch(self, name: str, module: nn.Module) -> Iterator[Any]:
        """Hooks that say when a module begins and ends."""
        yield module.register_forward_pre_hook(lambda *_: self.inside.append(name))

        def ended(_: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
            self.inside.pop()
            self.keep(name, [args, kwargs], result)

        yield module.register_forward_hook(ended, with_kwargs=True)


def trace(model: Callable[..., Any], *inputs: Any, **options: Any) -> Trace:
    """Run a model (or any function of tensors) once, and keep each of its steps."""
    recorder = _Recorder()
    with ExitStack() as stack:
        if isinstance(model, nn.Module):
            for name, module in model.named_modules():
                if module is not model:
                    for hook in recorder.watch(name, module):
                        stack.callback(hook.remove)
        stack.enter_context(torch.no_grad())
        with recorder:
            model(*inputs, **options)
    return recorder.trace


def spell(shape: tuple[int, ...], sizes: Mapping[str, int]) -> str:
    """Write a shape in names, `n × d_k`, from sizes that all differ.

    An axis whose size has no name is written as its number. The axis `batch`, where it
    comes first, is left out: every entry of a batch goes the same way.
    """
    names: dict[int, str] = {}
    for name, size in sizes.items():
        if size in names:
            raise ValueError(
                f"{names[size]} and {name} are both {size}, so that no one can tell "
                "which axis is which; choose sizes that all differ."
            )
        names[size] = name
    spelled = [names.get(size, str(size)) for size in shape]
    return " × ".join(spelled[1:] if spelled[:1] == ["batch"] else spelled)
