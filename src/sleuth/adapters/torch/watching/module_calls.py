"""Calls of any module, heard only while an optimiser waits for its training to begin, or until that one's first backward."""

from typing import Any, Protocol

import torch
from torch import nn

from sleuth.adapters.listening.patches import Told, tell
from sleuth.adapters.torch.watching import activity


class HearsModules(Told, Protocol):
    watches: int  # that it has opened

    def hear_module(self, module: nn.Module) -> None: ...


class ModuleCalls:
    def __init__(self, listener: HearsModules) -> None:
        self._listener = listener
        self._plain: Any = None
        self._ours: Any = None

    def listen(self) -> None:
        if self._ours is not None or activity.RECORDING:
            return
        plain = self._plain = nn.Module.__call__

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or self._ours is not call:
                return plain(module, *args, **kwargs)
            before = self._listener.watches
            tell((self._listener,), "hear_module", module)
            # A watch that has just been opened patches the module's own class. Otherwise whoever records calls by now would come
            # by here again, and again.
            again = plain if self._listener.watches == before else type(module).__call__
            return again(module, *args, **kwargs)

        self._ours = call
        nn.Module.__call__ = call  # type: ignore[method-assign]

    def stop(self) -> None:
        ours, self._ours = self._ours, None
        # Whoever records calls has begun after us.
        if ours is None or activity.replace_beneath(ours, self._plain):
            return
        if nn.Module.__call__ is ours:
            nn.Module.__call__ = self._plain  # type: ignore[method-assign]
