"""Follows the calls of a model's parts through one forward pass."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from sleuth.adapters.common.inspecting.visits import Open, doors_of, which_place
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.core.contract.inspection import Door, Visit


@dataclass
class Visitor:
    """Hooks on every module of a guest. `spent` tells the operations so far, `shapes` whether doors are looked at."""

    model: nn.Module
    spent: Callable[[], int] = lambda: 0
    shapes: bool = True
    noted: list[Open] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    _calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def visits(self) -> tuple[Visit, ...]:
        return tuple(note.visit() for note in self.noted)

    @contextmanager
    def following(self) -> Iterator[None]:
        paths: dict[nn.Module, list[str]] = defaultdict(list)
        for path, module in self.model.named_modules(remove_duplicate=False):
            paths[module].append(path)
        with ExitStack() as stack:
            for module, known in paths.items():
                before = module.register_forward_pre_hook(self._enter(known), with_kwargs=True)
                after = module.register_forward_hook(self._leave, always_call=True)
                stack.callback(before.remove)
                stack.callback(after.remove)
            yield

    def _enter(self, paths: list[str]) -> Callable[..., None]:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            parent = self.stack[-1] if self.stack else None
            path = paths[0] if len(paths) == 1 else self._which(paths, parent)
            self._calls[path] += 1
            doors = _doors({**dict(enumerate(args)), **kwargs}) if self.shapes else ()
            self.stack.append(len(self.noted))
            self.noted.append(Open(path, parent, doors, flops=-self.spent(), began=_now(module)))

        return enter

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        note = self.noted[self.stack.pop()]
        note.seconds = _now(module) - note.began
        note.flops += self.spent()
        # Where the forward raised, torch calls this with None: a layer that returns None has no outputs either.
        note.finished = output is not None
        note.outputs = _doors(output) if self.shapes and output is not None else ()

    def _which(self, paths: list[str], parent: int | None) -> str:
        return which_place(paths, self.noted[parent].path if parent is not None else "", self._calls)


def _now(module: nn.Module) -> float:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()


def _doors(tree: Any) -> tuple[Door, ...]:
    return doors_of(tree, is_tensor, lambda t: tuple(t.shape), lambda t: str(t.dtype).removeprefix("torch."))
