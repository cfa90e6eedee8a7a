"""Layers written by hand: forward keeps what backward needs, backward leaves gradients beside the weights and passes one on."""

import numpy as np


def uniform(fan_in: int, *shape: int) -> np.ndarray:
    bound = 1 / np.sqrt(fan_in)
    return np.random.uniform(-bound, bound, shape).astype(np.float32)


class Layer:
    names: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.training = True
        self.gradients: dict[str, np.ndarray] = {}


class Linear(Layer):
    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__()
        self.names = ("weight", "bias") if bias else ("weight",)
        self.weight = uniform(inputs, inputs, outputs)
        self.bias = uniform(inputs, outputs) if bias else None

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        out = x @ self.weight
        return out if self.bias is None else out + self.bias

    def backward(self, grad: np.ndarray) -> np.ndarray:
        rows, flat = self.x.reshape(-1, self.x.shape[-1]), grad.reshape(-1, grad.shape[-1])
        self.gradients["weight"] = rows.T @ flat
        if self.bias is not None:
            self.gradients["bias"] = flat.sum(0)
        return grad @ self.weight.T


class ReLU(Layer):
    def forward(self, x: np.ndarray) -> np.ndarray:
        self.on = x > 0
        return x * self.on

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad * self.on


class Sigmoid(Layer):
    def forward(self, x: np.ndarray) -> np.ndarray:
        self.y = (0.5 * (1 + np.tanh(x / 2))).astype(x.dtype)
        return self.y

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad * self.y * (1 - self.y)


class Tanh(Layer):
    def forward(self, x: np.ndarray) -> np.ndarray:
        self.y = np.tanh(x)
        return self.y

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad * (1 - self.y**2)


class GELU(Layer):
    """In the form with tanh."""

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        self.t = np.tanh(np.sqrt(2 / np.pi).astype(x.dtype) * (x + 0.044715 * x**3))
        return x * (1 + self.t) / 2

    def backward(self, grad: np.ndarray) -> np.ndarray:
        inner = np.sqrt(2 / np.pi).astype(self.x.dtype) * (1 + 3 * 0.044715 * self.x**2)
        return grad * ((1 + self.t) / 2 + self.x * (1 - self.t**2) * inner / 2)


class TanhByHand(Tanh):
    """All of these are written by hand; this one may have the sign wrong."""

    def __init__(self, right: bool) -> None:
        super().__init__()
        self.right = right

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad * (1 - self.y**2 if self.right else 1 + self.y**2)


class Log(Layer):
    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = offset

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x + x.dtype.type(self.offset)
        return np.log(self.x)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad / self.x


class Mean(Layer):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.shape = x.shape
        return x.mean(self.axis)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        spread = np.broadcast_to(np.expand_dims(grad, self.axis), self.shape)
        return spread / self.shape[self.axis]


class Standardise(Layer):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(self.axis, keepdims=True)
        self.scale = 1 / np.sqrt((centred**2).mean(self.axis, keepdims=True) + x.dtype.type(1e-5))
        self.y = centred * self.scale
        return self.y

    def backward(self, grad: np.ndarray) -> np.ndarray:
        along = (grad * self.y).mean(self.axis, keepdims=True)
        return self.scale * (grad - grad.mean(self.axis, keepdims=True) - self.y * along)


class Offset(Layer):
    names = ("offset",)

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.offset = np.zeros(shape, np.float32)

    def forward(self, x: np.ndarray) -> np.ndarray:
        return x + self.offset

    def backward(self, grad: np.ndarray) -> np.ndarray:
        extra = tuple(range(grad.ndim - self.offset.ndim))
        self.gradients["offset"] = grad.sum(extra)
        return grad


class Waves(Layer):
    def __init__(self, inputs: int, outputs: int, frequency: float) -> None:
        super().__init__()
        self.directions = (np.random.standard_normal((inputs, outputs)) * frequency).astype(np.float32)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.angles = x @ self.directions
        return np.sin(self.angles)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return (grad * np.cos(self.angles)) @ self.directions.T


class Softmax(Layer):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: np.ndarray) -> np.ndarray:
        e = np.exp(x - x.max(self.axis, keepdims=True))
        self.y = e / e.sum(self.axis, keepdims=True)
        return self.y

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return self.y * (grad - (grad * self.y).sum(self.axis, keepdims=True))


class LogSoftmax(Layer):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: np.ndarray) -> np.ndarray:
        top = x - x.max(self.axis, keepdims=True)
        self.y = top - np.log(np.exp(top).sum(self.axis, keepdims=True))
        return self.y

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad - np.exp(self.y) * grad.sum(self.axis, keepdims=True)


class Dropout(Layer):
    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: np.ndarray) -> np.ndarray:
        keep = np.random.random(x.shape) >= self.p if self.training else np.ones(x.shape, bool)
        self.scale = (keep / (1 - self.p if self.training else 1)).astype(x.dtype)
        return x * self.scale

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad * self.scale


class Embedding(Layer):
    names = ("weight",)

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.weight = np.random.standard_normal((rows, width)).astype(np.float32)

    def forward(self, ids: np.ndarray) -> np.ndarray:
        self.ids = ids
        return self.weight[ids]

    def backward(self, grad: np.ndarray) -> np.ndarray:
        self.gradients["weight"] = np.zeros_like(self.weight)
        np.add.at(self.gradients["weight"], self.ids, grad)
        return np.zeros(self.ids.shape, grad.dtype)


class Normalised(Layer):
    """What batch-norm and layer-norm share: centre, scale, then a learned scale and shift."""

    names = ("weight", "bias")
    eps = 1e-5

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = np.ones(width, np.float32)
        self.bias = np.zeros(width, np.float32)

    def normalise(self, x: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        self.inverse = 1 / np.sqrt(variance + x.dtype.type(self.eps))
        self.x_hat = (x - mean) * self.inverse
        return self.x_hat * self.weight + self.bias

    def backward_over(self, grad: np.ndarray, axes: tuple[int, ...], frozen: bool) -> np.ndarray:
        others = tuple(range(grad.ndim - 1))
        self.gradients = {"weight": (grad * self.x_hat).sum(others), "bias": grad.sum(others)}
        inner = grad * self.weight
        if frozen:
            return inner * self.inverse
        spread = (inner * self.x_hat).mean(axes, keepdims=True)
        return self.inverse * (inner - inner.mean(axes, keepdims=True) - self.x_hat * spread)


class LayerNorm(Normalised):
    def forward(self, x: np.ndarray) -> np.ndarray:
        return self.normalise(x, x.mean(-1, keepdims=True), x.var(-1, keepdims=True))

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return self.backward_over(grad, (-1,), frozen=False)


class BatchNorm(Normalised):
    """Over everything but the last axis; images are turned so that their channels are last."""

    momentum = 0.1

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.running_mean = np.zeros(width, np.float32)
        self.running_var = np.ones(width, np.float32)

    def forward(self, x: np.ndarray) -> np.ndarray:
        x = self.turned(x)
        self.axes = tuple(range(x.ndim - 1))
        self.fixed = not self.training
        if self.fixed:
            return self.turned_back(self.normalise(x, self.running_mean, self.running_var))
        mean, variance = x.mean(self.axes), x.var(self.axes)
        count = x.size // x.shape[-1]
        self.running_mean += self.momentum * (mean - self.running_mean)
        self.running_var += self.momentum * (variance * count / max(count - 1, 1) - self.running_var)
        return self.turned_back(self.normalise(x, mean, variance))

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return self.turned_back(self.backward_over(self.turned(grad), self.axes, self.fixed))

    def turned(self, x: np.ndarray) -> np.ndarray:
        return np.moveaxis(x, 1, -1) if x.ndim == 4 else x

    def turned_back(self, x: np.ndarray) -> np.ndarray:
        return np.moveaxis(x, -1, 1) if x.ndim == 4 else x


class BatchNorm2d(BatchNorm):
    pass


class Flatten(Layer):
    def forward(self, x: np.ndarray) -> np.ndarray:
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad.reshape(self.shape)


class Reshape(Layer):
    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.to = shape

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.shape = x.shape
        return x.reshape(self.to)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad.reshape(self.shape)


class Conv2d(Layer):
    """Channels first, stride one; the weight is (outputs, inputs, kernel, kernel)."""

    def __init__(self, inputs: int, outputs: int, kernel: int, padding: int = 0, bias: bool = True) -> None:
        super().__init__()
        self.names = ("weight", "bias") if bias else ("weight",)
        fan_in = inputs * kernel * kernel
        self.weight = uniform(fan_in, outputs, inputs, kernel, kernel)
        self.bias = uniform(fan_in, outputs) if bias else None
        self.kernel, self.padding = kernel, padding

    def forward(self, x: np.ndarray) -> np.ndarray:
        if x.shape[1] != self.weight.shape[1]:
            raise ValueError(f"Conv2d expects {self.weight.shape[1]} channels, the input of shape {x.shape} has {x.shape[1]}")
        self.shape = x.shape
        pad = self.padding
        padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (self.kernel, self.kernel), axis=(2, 3))
        n, _, h, w = windows.shape[:4]
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, -1)
        out = (self.columns @ self.weight.reshape(len(self.weight), -1).T).reshape(n, h, w, -1)
        return (out if self.bias is None else out + self.bias).transpose(0, 3, 1, 2)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        n, o, h, w = grad.shape
        flat = grad.transpose(0, 2, 3, 1).reshape(-1, o)
        self.gradients["weight"] = (flat.T @ self.columns).reshape(self.weight.shape)
        if self.bias is not None:
            self.gradients["bias"] = flat.sum(0)
        patches = (flat @ self.weight.reshape(o, -1)).reshape(n, h, w, self.shape[1], self.kernel, self.kernel)
        pad = self.padding
        passed = np.zeros((n, self.shape[1], self.shape[2] + 2 * pad, self.shape[3] + 2 * pad), grad.dtype)
        for i in range(self.kernel):
            for j in range(self.kernel):
                passed[:, :, i : i + h, j : j + w] += patches[..., i, j].transpose(0, 3, 1, 2)
        return passed[:, :, pad : passed.shape[2] - pad, pad : passed.shape[3] - pad]


class MaxPool2d(Layer):
    def __init__(self, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x: np.ndarray) -> np.ndarray:
        n, c, h, w = x.shape
        k = self.kernel
        self.shape = x.shape
        blocks = x[:, :, : h // k * k, : w // k * k].reshape(n, c, h // k, k, w // k, k)
        out = blocks.max((3, 5), keepdims=True)
        first = blocks == out
        self.share = first / first.sum((3, 5), keepdims=True).astype(x.dtype)
        return out[:, :, :, 0, :, 0]

    def backward(self, grad: np.ndarray) -> np.ndarray:
        passed = np.zeros(self.shape, grad.dtype)
        blocks = self.share * grad[:, :, :, None, :, None]
        n, c, h, k, w, _ = blocks.shape
        passed[:, :, : h * k, : w * k] = blocks.reshape(n, c, h * k, w * k)
        return passed


class Sequential(Layer):
    def __init__(self, *layers: Layer) -> None:
        super().__init__()
        self.layers = list(layers)

    def forward(self, x: np.ndarray) -> np.ndarray:
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, grad: np.ndarray) -> dict[str, np.ndarray]:
        self.pass_back(grad)
        return {name: layer.gradients[key] for name, layer, key in self.named()}

    def pass_back(self, grad: np.ndarray) -> np.ndarray:
        for layer in reversed(self.layers):
            grad = layer.pass_back(grad) if isinstance(layer, Sequential) else layer.backward(grad)
        return grad

    def parameters(self) -> list[tuple[str, np.ndarray]]:
        return [(name, getattr(layer, key)) for name, layer, key in self.named()]

    def named(self) -> list[tuple[str, Layer, str]]:
        found: list[tuple[str, Layer, str]] = []
        for i, layer in enumerate(self.layers):
            if isinstance(layer, Sequential):
                found += [(f"layers.{i}.{name}", inner, key) for name, inner, key in layer.named()]
            else:
                found += [(f"layers.{i}.{key}", layer, key) for key in layer.names]
        return found
