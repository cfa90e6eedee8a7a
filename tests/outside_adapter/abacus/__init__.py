"""A framework of one file: arrays that remember how they were made, layers, losses and optimisers."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Back = Callable[[np.ndarray], None]


class Array:
    """`grad` is filled in by `backward` of whatever was made of it."""

    def __init__(self, data: Any, parents: tuple["Array", ...] = (), back: Back | None = None) -> None:
        self.data = np.asarray(data)
        self.grad: np.ndarray | None = None
        self._parents, self._back = parents, back

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, key: Any) -> "Array":
        return Array(self.data[key])

    def __add__(self, other: "Array") -> "Array":
        def back(gradient: np.ndarray) -> None:
            for side in (self, other):
                side.receive(gradient if side.shape == gradient.shape else gradient.sum(0))

        return Array(self.data + other.data, (self, other), back)

    def __matmul__(self, other: "Array") -> "Array":
        def back(gradient: np.ndarray) -> None:
            self.receive(gradient @ other.data.T)
            other.receive(self.data.T @ gradient)

        return Array(self.data @ other.data, (self, other), back)

    def relu(self) -> "Array":
        on = self.data > 0
        return Array(self.data * on, (self,), lambda gradient: self.receive(gradient * on))

    def receive(self, gradient: np.ndarray) -> None:
        self.grad = gradient if self.grad is None else self.grad + gradient

    def item(self) -> float:
        return float(self.data)

    def backward(self) -> None:
        """From a loss, which is one number, to everything that it was made of."""
        order: list[Array] = []
        _sort(self, order, set())
        self.grad = np.ones_like(self.data)
        for array in reversed(order):
            if array._back is not None and array.grad is not None:
                array._back(array.grad)
                array.grad = None


def _sort(array: Array, order: list[Array], seen: set[int]) -> None:
    if id(array) not in seen:
        seen.add(id(array))
        for parent in array._parents:
            _sort(parent, order, seen)
        order.append(array)


class Module:
    def __init__(self) -> None:
        self.training = True

    def __call__(self, x: Array) -> Array:
        return self.forward(x)

    def forward(self, x: Array) -> Array:
        raise NotImplementedError

    def modules(self, path: str = "") -> Iterator[tuple[str, "Module"]]:
        yield path, self
        for name, part in vars(self).items():
            for key, inner in [(name, part)] if isinstance(part, Module) else []:
                yield from inner.modules(f"{path}.{key}" if path else key)

    def parameters(self) -> dict[str, Array]:
        """By path, in the order of definition."""
        return {
            f"{path}.{name}" if path else name: value
            for path, module in self.modules()
            for name, value in vars(module).items()
            if isinstance(value, Array)
        }

    def train(self, on: bool = True) -> "Module":
        for _, module in self.modules():
            module.training = on
        return self

    def eval(self) -> "Module":
        return self.train(False)


class Linear(Module):
    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__()
        bound = 1 / np.sqrt(inputs)
        self.weight = Array(np.random.uniform(-bound, bound, (inputs, outputs)).astype(np.float32))
        self.bias = Array(np.random.uniform(-bound, bound, outputs).astype(np.float32)) if bias else None

    def forward(self, x: Array) -> Array:
        out = x @ self.weight
        return out if self.bias is None else out + self.bias


class ReLU(Module):
    def forward(self, x: Array) -> Array:
        return x.relu()


class Sequential(Module):
    def __init__(self, *layers: Module) -> None:
        super().__init__()
        self.count = len(layers)
        for number, layer in enumerate(layers):
            setattr(self, str(number), layer)

    def forward(self, x: Array) -> Array:
        for number in range(self.count):
            x = getattr(self, str(number))(x)
        return x


def cross_entropy(scores: Array, target: Array) -> Array:
    """Of scores, with class indices; the mean over the samples."""
    top = scores.data - scores.data.max(1, keepdims=True)
    logs = top - np.log(np.exp(top).sum(1, keepdims=True))
    rows = np.arange(len(target))

    def back(gradient: np.ndarray) -> None:
        shares = np.exp(logs)
        shares[rows, target.data] -= 1
        scores.receive(gradient * shares / np.asarray(len(target), scores.dtype))

    return Array(-logs[rows, target.data].mean(), (scores,), back)


def mse(output: Array, target: Array) -> Array:
    apart = output.data - target.data
    scale = np.asarray(2 / apart.size, apart.dtype)
    return Array((apart**2).mean(), (output,), lambda gradient: output.receive(gradient * scale * apart))


class Optimiser:
    def __init__(self, parameters: dict[str, Array], lr: float, weight_decay: float = 0.0) -> None:
        self.parameters, self.lr, self.weight_decay = parameters, lr, weight_decay

    def zero_grad(self) -> None:
        for array in self.parameters.values():
            array.grad = None

    def step(self) -> None:
        for name, array in self.parameters.items():
            if array.grad is not None:
                moved = self.move(name, array.grad + self.weight_decay * array.data)
                array.data -= (self.lr * moved).astype(array.dtype)

    def move(self, name: str, gradient: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class SGD(Optimiser):
    def move(self, name: str, gradient: np.ndarray) -> np.ndarray:
        return gradient


class Adam(Optimiser):
    def __init__(self, parameters: dict[str, Array], lr: float = 1e-3, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, lr, weight_decay)
        self.counts: dict[str, int] = {}
        self.means: dict[str, np.ndarray] = {}
        self.squares: dict[str, np.ndarray] = {}

    def move(self, name: str, gradient: np.ndarray) -> np.ndarray:
        count = self.counts[name] = self.counts.get(name, 0) + 1
        mean = self.means[name] = 0.9 * self.means.get(name, 0.0) + 0.1 * gradient
        square = self.squares[name] = 0.999 * self.squares.get(name, 0.0) + 0.001 * gradient**2
        return (mean / (1 - 0.9**count)) / (np.sqrt(square / (1 - 0.999**count)) + 1e-8)


class Loader:
    """Batches of (inputs, target); shuffles anew at each pass."""

    def __init__(self, x: np.ndarray, y: np.ndarray, batch_size: int = 32, shuffle: bool = True) -> None:
        self.x, self.y, self.batch_size, self.shuffle = x, y, batch_size, shuffle
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return -(-len(self.x) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        order = self.rng.permutation(len(self.x)) if self.shuffle else np.arange(len(self.x))
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            yield Array(self.x[rows]), Array(self.y[rows])
