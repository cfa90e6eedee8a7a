"""The calls of the models that are watched."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import nn

from sleuth.adapters.listening.patches import Function, Patch, tell
from sleuth.adapters.torch.watching.events import TorchEvents
from sleuth.adapters.torch.watching.joint_models import Several


class Root(TorchEvents):
    """The call of one model, through its class: told apart from others of the class by identity."""

    _patches: ClassVar[dict[type, Patch]] = {}
    open: ClassVar[list["Root"]] = []

    def __init__(self, model: nn.Module, listener: TorchEvents) -> None:
        self.model, self.listener = model, listener
        if type(model) not in self._patches:
            # On nn.Module itself there is nothing above that could be looked up.
            make = _root_call if type(model) is not nn.Module else _bare_root_call
            self._patches[type(model)] = Patch(type(model), "__call__", make)
        self.open.append(self)

    def hear_forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.listener.hear_forward(args, kwargs)

    def hear_output(self, output: Any) -> None:
        self.listener.hear_output(output)

    def give_up(self, error: Exception) -> None:
        self.listener.give_up(error)

    def leave(self) -> None:
        self.open.remove(self)
        cls = type(self.model)
        if not any(type(root.model) is cls for root in self.open):
            self._patches.pop(cls).remove()
        self.model = nn.Module()


class PartRoot(Root):
    """The call of one of several models: whoever is told asks `Several` which one it was."""

    def __init__(self, several: Several, model: nn.Module, listener: TorchEvents) -> None:
        self._several = several
        super().__init__(model, listener)

    def hear_forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._several.__dict__["called"] = self.model
        super().hear_forward(args, kwargs)

    def hear_output(self, output: Any) -> None:
        self._several.__dict__["called"] = self.model
        super().hear_output(output)


def roots_of(model: nn.Module, listener: TorchEvents) -> list[Root]:
    """What is to be listened to so that every call of the model is heard."""
    if isinstance(model, Several):
        return [PartRoot(model, part, listener) for part in model.children()]
    return [Root(model, listener)]


def _bare_root_call(original: Function) -> Function:
    return _root_call(original, inherited=False)


def _root_call(original: Function, inherited: bool | None = None) -> Function:
    inherited = original is nn.Module.__call__ if inherited is None else inherited

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            # What is read here is guarded: it must be the same on every step, or torch compiles anew.
            return module._wrapped_call_impl(*args, **kwargs) if inherited else original(module, *args, **kwargs)
        for root in Root.open:
            if root.model is module:
                tell((root,), "hear_forward", args, kwargs)
        # Looked up anew: on some steps nn.Module's own is replaced.
        output = nn.Module.__call__(module, *args, **kwargs) if inherited else original(module, *args, **kwargs)
        for root in Root.open:
            if root.model is module:
                tell((root,), "hear_output", output)
        return output

    return call


def forget() -> None:
    """In a child process: nobody listens here."""
    Root.open.clear()
