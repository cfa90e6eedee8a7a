"""Values inside a model while a bench runs it: what layers put out, and the gradients that come back to them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from sleuth.adapters.torch.architecture import ACTIVATIONS, family_of
from sleuth.adapters.torch.bench import TorchBench
from sleuth.adapters.torch.pass_listener import FUNCTIONAL_ACTIVATIONS, is_tensor, name_of
from sleuth.core.contract.adapter import Bench, LayerValues
from sleuth.core.contract.workload import Hear, Heard, Wanted
from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves


class TorchLayerValues(LayerValues):
    def held_gradients(self, model: Any) -> Mapping[str, Any]:
        return {name: p.grad for name, p in model.named_parameters() if p.requires_grad}

    @contextmanager
    def layer_values(
        self, bench: Bench, wanted: Wanted, value: Hear, gradient: Hear | None = None, *, operations: bool = False
    ) -> Iterator[None]:
        if not isinstance(bench, TorchBench):
            raise Unsupported("this bench does not hold a torch model")
        with Overhearing(bench.model, wanted, value, gradient, operations).listening():
            yield


class Overhearing:
    def __init__(self, model: nn.Module, wanted: Wanted, value: Hear, gradient: Hear | None, operations: bool) -> None:
        self._model = model
        self._wanted, self._value, self._gradient = wanted, value, gradient
        self._operations = operations
        self._stack: list[tuple[str, bool]] = []  # layers at work, and whether they have no parts
        self._calls: Counter[str] = Counter()
        self._convolves = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        with ExitStack() as stack:
            for path, module in self._model.named_modules():
                stack.callback(module.register_forward_pre_hook(self._enter(path)).remove)
                stack.callback(module.register_forward_hook(self._leave(path), always_call=True).remove)
            stack.enter_context(Operations(self._operation))
            yield

    def _enter(self, path: str) -> Callable[..., None]:
        def enter(module: nn.Module, inputs: Any) -> None:
            if not self._stack and not path:
                self._calls.clear()  # another pass begins
            self._stack.append((path, not module._modules))

        return enter

    def _leave(self, path: str) -> Callable[..., None]:
        def leave(module: nn.Module, inputs: Any, output: Any) -> None:
            if self._stack:
                self._stack.pop()
            plain = not module._modules
            family = family_of(module)
            if plain and family in ("linear", "conv"):
                self._convolves = family == "conv"
            if path and output is not None and self._wanted(path, plain):
                self._tell(path, type(module).__name__, ACTIVATIONS.get(type(module), ""), output)

        return leave

    def _operation(self, name: str, output: Any) -> None:
        layer, alone = self._stack[-1] if self._stack else ("", False)
        activation = name.rstrip("_") if name in FUNCTIONAL_ACTIVATIONS else ""
        if (not self._stack and not self._operations) or (alone and activation) or not (activation or self._operations):
            return
        path = f"{layer}.{name}" if layer else name
        if self._wanted(path, bool(activation)):
            self._tell(path, name, activation, output)

    def _tell(self, path: str, kind: str, activation: str, output: Any) -> None:
        if torch._C._current_graph_task_id() != -1:  # computed again for the backward, by a checkpoint
            return
        self._calls[path] += 1
        name = path if self._calls[path] == 1 else f"{path}#{self._calls[path]}"
        for part, tensor in leaves(output, is_tensor):
            if tensor.dim() and not tensor.is_meta:
                self._tell_tensor(Heard(f"{name}[{part}]" if part else name, kind, activation, self._axis(tensor)), tensor)

    def _tell_tensor(self, heard: Heard, tensor: torch.Tensor) -> None:
        listen = self._gradient
        with torch._C.DisableTorchFunction():
            self._value(heard, tensor.detach())
            if listen is not None and tensor.requires_grad:
                tensor.register_hook(lambda gradient: listen(heard, gradient.detach()))

    def _axis(self, tensor: torch.Tensor) -> int:
        images = tensor.dim() >= 4 or (tensor.dim() == 3 and self._convolves)
        return 1 if images else tensor.dim() - 1


class Operations(TorchFunctionMode):
    def __init__(self, heard: Callable[[str, Any], None]) -> None:
        super().__init__()
        self._heard = heard

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if output is not None:
            self._heard(name_of(func), output)
        return output
