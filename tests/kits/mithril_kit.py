"""The cases' parts in Mithril, on the stand-in: the real library wants Python 3.12, where this same kit was tried on it."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.testing import CannotBuild, Kit, Loop, Training
from tests.kits.loops import Loader, batches

STAND_INS = Path(__file__).parents[1] / "stand_ins"
if importlib.util.find_spec("mithril") is None:
    sys.path.append(str(STAND_INS))

import mithril as ml  # noqa: E402
from mithril import models  # noqa: E402

ACTIVATIONS = {"relu": models.Relu, "sigmoid": models.Sigmoid, "tanh": models.Tanh, "gelu": models.Gelu}
MISSING = {
    "dropout": "Mithril has no Dropout",
    "batchnorm": "Mithril has BatchNorm2D for images, and none for rows of features",
    "batchnorm2d": "Mithril's BatchNorm2D takes its running statistics as states, which the stand-in has not",
    "conv2d": "the stand-in has no Convolution2D",
    "max_pool": "the stand-in has no MaxPool2D",
}
BACKENDS = {"float32": ml.NumpyBackend(), "float64": ml.NumpyBackend(dtype=ml.float64)}


@dataclass
class Piece:
    """A layer before it is compiled. Parameters and constants go by the keys that its models are connected by."""

    make: Callable[[dict[str, str]], list[Any]]  # names of the keys → models to be added in a row
    params: dict[str, np.ndarray] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)


class Built(tuple):
    """(physical model, params), which remembers what it was made of."""

    pieces: list[Piece]


def plain(model: Any) -> Piece:
    return Piece(lambda names: [model()])


def linear(inputs: int, outputs: int, bias: bool) -> Piece:
    reach = 1 / np.sqrt(inputs)
    params = {"weight": np.random.uniform(-reach, reach, (outputs, inputs)).astype(np.float32)}
    if bias:
        params["bias"] = np.random.uniform(-reach, reach, outputs).astype(np.float32)
    return Piece(lambda names: [models.Linear(outputs, use_bias=bias).connect(**names)], params)


def embedding(count: int, width: int) -> Piece:
    return Piece(
        lambda names: [models.Embedding(count, width).connect(**names)],
        {"weight": np.random.randn(count, width).astype(np.float32)},
    )


def layernorm(width: int) -> Piece:
    params = {"weight": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}
    return Piece(lambda names: [models.LayerNorm().connect(**names)], params)


def offset(*shape: int) -> Piece:
    return Piece(lambda names: [models.Add().connect(right=names["offset"])], {"offset": np.zeros(shape, np.float32)})


def waves(inputs: int, outputs: int, frequency: float) -> Piece:
    directions = (np.random.randn(inputs, outputs) * frequency).astype(np.float32)
    return Piece(
        lambda names: [models.MatrixMultiply().connect(right=names["directions"]), models.Sine()],
        constants={"directions": directions},
    )


def shifted_log(shift: float) -> Piece:
    return Piece(
        lambda names: [models.Add().connect(right=names["shift"]), models.Log()],
        constants={"shift": np.array(shift, np.float32)},
    )


def right_tanh(input: np.ndarray, cache: Any = None) -> np.ndarray:
    return np.tanh(input)


def right_tanh_grad(output_gradient: np.ndarray, cache: dict[str, Any], idx: int, *inputs: Any) -> np.ndarray:
    return output_gradient * (1 - cache["output"] ** 2)


def wrong_tanh(input: np.ndarray, cache: Any = None) -> np.ndarray:
    return np.tanh(input)


def wrong_tanh_grad(output_gradient: np.ndarray, cache: dict[str, Any], idx: int, *inputs: Any) -> np.ndarray:
    return output_gradient * (1 + cache["output"] ** 2)


ml.NumpyBackend.register_primitive(right_tanh, right_tanh_grad)
ml.NumpyBackend.register_primitive(wrong_tanh, wrong_tanh_grad)


def tanh_by_hand(right: bool) -> Piece:
    any_shape = models.BaseKey(shape=[("Var", ...)], type=ml.Tensor)
    keys = {"input": any_shape, "output": models.BaseKey(shape=[("Var", ...)], type=ml.Tensor)}
    return plain(lambda: models.CustomPrimitiveModel(formula_key="right_tanh" if right else "wrong_tanh", **keys))


def log_softmax(axis: int) -> Piece:
    return Piece(lambda names: [models.Softmax(axis=axis), models.Log()])


def standardise(axis: int) -> Piece:
    def whole(names: dict[str, str]) -> list[Any]:
        model = models.Model()
        model |= models.Mean(axis=axis, keepdim=True).connect(input="input", output="mean")
        model |= models.Variance(axis=axis, keepdim=True).connect(input="input", output="variance")
        model |= models.Add().connect(left="variance", right="least", output="safe")
        model |= models.Sqrt().connect(input="safe", output="spread")
        model |= models.Subtract().connect(left="input", right="mean", output="centred")
        model |= models.Divide().connect(numerator="centred", denominator="spread", output="output")
        model.expose_keys("output")
        model.set_cin("input")
        model.set_cout("output")
        return [model.connect(least=names["least"])]

    return Piece(whole, constants={"least": np.array(1e-5, np.float32)})


LAYERS: dict[str, Callable[..., Piece]] = {
    "embedding": embedding,
    "flatten": lambda: plain(lambda: models.Flatten(start_dim=1)),
    "softmax": lambda axis: plain(lambda: models.Softmax(axis=axis)),
    "log_softmax": log_softmax,
    "reshape": lambda *shape: plain(lambda: models.Reshape(shape=shape)),
    "offset": offset,
    "waves": waves,
    "log": shifted_log,
    "mean": lambda axis: plain(lambda: models.Mean(axis=axis)),
    "standardise": standardise,
    "layernorm": layernorm,
    "tanh_by_hand": tanh_by_hand,
}


def compiled(pieces: list[Piece]) -> Built:
    model, params, constants, trained = models.Model(), {}, {}, set()
    for i, piece in enumerate(pieces):
        names = {key: f"{key}_{i}" for key in (*piece.params, *piece.constants)}
        for part in piece.make(names):
            first = not model.dag
            info = part if hasattr(part, "connections") else part.connect()
            if first:
                key = "input" if "input" in info.model.input_keys else "left"
                info = info.model.connect(**{**_given(info), key: "input"})
                model |= info
            else:
                model += info
        params |= {names[key]: array for key, array in piece.params.items()}
        constants |= {names[key]: array for key, array in piece.constants.items()}
        trained |= {names[key] for key in piece.params if key == "offset"}
    physical = ml.compile(model, BACKENDS["float32"], constant_keys=constants, trainable_keys=trained, jit=False)
    built = Built((physical, params))
    built.pieces = pieces
    return built


def _given(info: Any) -> dict[str, Any]:
    return {key: value for key, value in info.connections.items() if isinstance(value, str)}


class Loss:
    """A Mithril loss, compiled by itself: returns its mean and the gradient by the output."""

    def __init__(self, name: str, make: Callable[[bool], Any]) -> None:
        self.__name__ = name.replace("-", "_")
        self._make = make
        self._compiled: dict[tuple[bool, str], Any] = {}

    def __call__(self, output: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        indices = target.ndim < output.ndim
        at = indices, "float64" if output.dtype == np.float64 else "float32"
        if at not in self._compiled:
            whole = models.Model()
            whole |= self._make(indices).connect(input="input", target="target")
            whole += models.Mean().connect(output="loss")
            whole.expose_keys("loss")
            keys = {"data_keys": {"target"}, "trainable_keys": {"input"}}
            self._compiled[at] = ml.compile(whole, BACKENDS[at[1]], jit=False, **keys)
        outputs, gradients = self._compiled[at].evaluate({"input": output}, {"target": target}, output_gradients=True)
        return outputs["loss"], gradients["input"]


LOSSES: dict[str, Callable[[bool], Any]] = {
    "cross-entropy": lambda indices: models.CrossEntropy(input_type="logits", categorical=indices),
    "nll": lambda indices: models.CrossEntropy(input_type="log_probs", categorical=indices),
    "bce": lambda _: models.BinaryCrossEntropy(input_type="probs"),
    "bce-logits": lambda _: models.BinaryCrossEntropy(input_type="logits"),
    "mse": lambda _: models.SquaredError(),
    "l1": lambda _: models.AbsoluteError(),
}


class SGD:
    """In the form of the optimisers in Mithril's examples: dicts in, dicts out."""

    def __init__(self, lr: float, momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay

    def init(self, backend: Any, parameters: dict[str, Any]) -> dict[str, Any]:
        return {key: backend.zeros_like(value) for key, value in parameters.items()}

    def update_params(self, parameters: dict[str, Any], gradients: dict[str, Any], state: dict[str, Any]) -> Any:
        for key, gradient in gradients.items():
            state[key] = self.momentum * state[key] + gradient + self.weight_decay * parameters[key]
            parameters[key] = parameters[key] - self.lr * state[key]
        return parameters, state


class Adam:
    def __init__(
        self, lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0
    ) -> None:
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay

    def init(self, backend: Any, parameters: dict[str, Any]) -> dict[str, Any]:
        zeros = {key: backend.zeros_like(value) for key, value in parameters.items()}
        return {"m": dict(zeros), "v": dict(zeros), "it": 0}

    def update_params(self, parameters: dict[str, Any], gradients: dict[str, Any], state: dict[str, Any]) -> Any:
        state["it"] += 1
        one, two = self.betas
        for key, gradient in gradients.items():
            gradient = gradient + self.weight_decay * parameters[key]
            state["m"][key] = one * state["m"][key] + (1 - one) * gradient
            state["v"][key] = two * state["v"][key] + (1 - two) * gradient**2
            mean, square = state["m"][key] / (1 - one ** state["it"]), state["v"][key] / (1 - two ** state["it"])
            parameters[key] = parameters[key] - self.lr * mean / (square**0.5 + self.eps)
        return parameters, state


OPTIMISERS: dict[str, Any] = {"adam": Adam, "sgd": SGD}

ONE_MODE = "a compiled model has one mode: it has neither train() nor eval(), and inference=True is another compilation"
PURE = "evaluate() is a function of two dicts: it returns gradients and keeps none that could be cleared or clipped too late"
NO_GRAPH = "evaluate() returns plain arrays: nothing of a step is recorded that could be kept"
KEYS = "the compiler names every weight by its key, and evaluate() refuses a dict that lacks one"
ABSENT = {
    "double-precision": "the precision of a backend is asked for by name, NumpyBackend(dtype=float64): it is no slip",
    "frozen-parameters": "what is learned is what the loop hands to its optimiser: a weight that is left out of the dict is data",
    "future-leaks": "the stand-in, on which the cases are built, has no attention",
    "input-dtype": "the NumPy backend, on which the cases are built, computes with two precisions at once without a word",
    "out-of-memory": "the stand-in, on which the cases are built, has no operation that makes more of its input",
    "precision-lost": "the stand-in, on which the cases are built, computes in float32 and float64 only",
    "slow-layer": "evaluate() is one call: a layer has no time of its own in it",
    "gradients-erased": PURE,
    "clipping-misplaced": PURE,
    "training-in-eval-mode": ONE_MODE,
    "validating-in-train-mode": ONE_MODE,
    "train-eval-disagree": ONE_MODE,
    "graph-retained": NO_GRAPH,
    "hidden-state-not-detached": NO_GRAPH,
    "validation-builds-graph": "evaluate() differentiates only where output_gradients= asks for it",
    "unregistered-layers": KEYS,
    "parameters-not-optimised": "an optimiser is given the whole dict of weights at every step and holds none itself",
    "optimiser-rebuilt": "an optimiser's state is a dict that only the user's loop holds: a new one cannot be told from the old",
    "backward-fails": "the backward pass is generated by the compiler for the graph that it has checked",
    "host-synchronises": "the NumPy backend, on which the cases are built, computes on the host",
    "workers-repeat-augmentation": "Mithril has no loaders: batches come from arrays and generators",
    "scheduler-before-optimiser": "Mithril has no schedulers: a rate is a number that the loop changes where it stands",
}


class MithrilKit(Kit):
    name = "mithril"
    absent = ABSENT

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> Piece:
        return linear(inputs, outputs, bias)

    def activation(self, name: str) -> Piece:
        return plain(ACTIVATIONS[name])

    def layer(self, name: str, *args: Any, **options: Any) -> Piece:
        if name not in LAYERS:
            raise CannotBuild(MISSING.get(name, f"the Mithril kit has no layer {name}"))
        try:
            return LAYERS[name](*args, **options)
        except TypeError as error:
            raise CannotBuild(f"the Mithril kit's {name} lacks an option: {error}") from None

    def sequential(self, *layers: Any) -> Built:
        return compiled(list(_flat(layers)))

    def weights(self, layer: Piece) -> np.ndarray:
        return layer.params["weight"].copy()

    def set_weights(self, layer: Piece, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        layer.params["weight"][...] = weight
        if bias is not None:
            layer.params["bias"][...] = bias

    def loader(self, x: np.ndarray, y: np.ndarray, batch_size: int = 32, shuffle: bool = True) -> Loader:
        return Loader(x, y, batch_size, shuffle)

    def loss(self, name: str, **options: Any) -> Loss:
        if options:
            raise CannotBuild(f"a Mithril loss has no {', '.join(options)}")
        if name not in LOSSES:
            raise CannotBuild(f"Mithril has no loss {name}")
        return Loss(name, LOSSES[name])

    def optimiser(self, model: Any, name: str = "adam", lr: float = 1e-3, **options: Any) -> Any:
        try:
            return OPTIMISERS[name](lr=lr, **options)
        except TypeError as error:
            raise CannotBuild(f"the Mithril kit's {name} lacks an option: {error}") from None

    def loop(self, training: Training) -> Loop:
        subject = training.subject
        (physical, params), loss, optimiser = subject.model, subject.loss, subject.optimizer
        (output,) = physical.output_keys

        def run(w: object) -> None:
            weights = params
            state = optimiser.init(physical.backend, weights)
            for x, y in batches(subject, training.steps):
                data = {"input": x}
                _, gradient = loss(physical.evaluate(weights, data)[output], y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                weights, state = optimiser.update_params(weights, gradients, state)
            params.update(weights)

        return Loop(subject.model, [optimiser], run, training.options)


def _flat(layers: Any) -> Iterator[Piece]:
    for layer in layers:
        if isinstance(layer, Built):
            yield from layer.pieces
        else:
            yield layer
