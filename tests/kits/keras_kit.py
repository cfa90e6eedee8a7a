"""The cases' parts in Keras, on whichever backend Keras was started with."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers, ops

from sleuth.adapters.keras.backend import values
from sleuth.testing import CannotBuild, Kit, Loop, Training
from tests.kits.loops import Loader, batches

LOSSES = {
    "cross-entropy": lambda ignore_index=None: keras.losses.SparseCategoricalCrossentropy(True, ignore_class=ignore_index),
    "bce": keras.losses.BinaryCrossentropy,
    "bce-logits": lambda: keras.losses.BinaryCrossentropy(from_logits=True),
    "mse": keras.losses.MeanSquaredError,
    "l1": keras.losses.MeanAbsoluteError,
}
OPTIMISERS = {"adam": keras.optimizers.Adam, "sgd": keras.optimizers.SGD}
FIRST = "channels_first"  # the cases' images are (samples, channels, height, width)


class Log(layers.Layer):
    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = offset

    def call(self, x: Any) -> Any:
        return ops.log(x + self.offset)


class Mean(layers.Layer):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def call(self, x: Any) -> Any:
        return ops.mean(x, axis=self.axis)


class Standardise(layers.Layer):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def call(self, x: Any) -> Any:
        centred = x - ops.mean(x, axis=self.axis, keepdims=True)
        return centred / ops.sqrt(ops.mean(centred * centred, axis=self.axis, keepdims=True) + 1e-5)


class Offset(layers.Layer):
    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.offset = self.add_weight(shape=shape, initializer="zeros", name="offset")

    def call(self, x: Any) -> Any:
        return x + self.offset


class Waves(layers.Layer):
    def __init__(self, inputs: int, outputs: int, frequency: float) -> None:
        super().__init__()
        spread = keras.initializers.RandomNormal(stddev=frequency)
        self.directions = self.add_weight(shape=(inputs, outputs), initializer=spread, trainable=False, name="directions")

    def call(self, x: Any) -> Any:
        return ops.sin(ops.matmul(x, self.directions))


class LogSoftmax(layers.Layer):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def call(self, x: Any) -> Any:
        return ops.log_softmax(x, axis=self.axis)


class TanhByHand(layers.Layer):
    def __init__(self, right: bool) -> None:
        super().__init__()
        self.right = right

    def call(self, x: Any) -> Any:
        sign = -1.0 if self.right else 1.0

        @ops.custom_gradient
        def tanh(x: Any) -> Any:
            y = ops.tanh(x)

            def backward(*args: Any, upstream: Any = None) -> Any:
                upstream = args[0] if upstream is None else upstream
                return upstream * (1 + sign * y * y)

            return y, backward

        return tanh(x)


class Of:
    """A loss of Keras', called as the cases call a loss: the output first."""

    def __init__(self, loss: keras.losses.Loss) -> None:
        self.loss = loss
        self.__name__ = type(loss).__name__

    def __call__(self, output: Any, target: Any) -> Any:
        return self.loss(target, output)


def nll(output: Any, target: Any) -> Any:
    """Keras has no loss that takes log-probabilities: whoever wants one writes it."""
    return -ops.mean(ops.take_along_axis(output, ops.expand_dims(ops.cast(target, "int32"), 1), axis=1))


OWN_LAYERS = {
    "offset": Offset, "waves": Waves, "mean": Mean, "standardise": Standardise, "log": Log, "log_softmax": LogSoftmax,
    "tanh_by_hand": TanhByHand,
}  # fmt: skip


class KerasKit(Kit):
    name = "keras"
    absent: ClassVar[Mapping[str, str]] = {
        "precision-lost": "Adam adds 1e-7, which float16 still holds: a model in float16 learned as well as one in float32",
        "accumulation-not-scaled": "gradient_accumulation_steps of an optimiser divides by itself; in a loop of one's own "
        "sleuth does not hear which loss each backward was given",
        "clipping-misplaced": "clipping is a setting of the optimiser (clipnorm, clipvalue): it has no place of its own",
        "gradients-erased": "an optimiser refuses to step without gradients: ValueError, No gradients provided for any variable",
        "graph-retained": "fit keeps numbers, not losses with their graph; in a loop of one's own sleuth does not follow graphs",
        "hidden-state-not-detached": "stateful=True keeps the state in a variable, which holds no history",
        "host-synchronises": "fit itself reads the metrics of every batch; which calls wait for a device is not heard",
        "input-dtype": "a layer casts its input to its own dtype (autocast)",
        "scheduler-before-optimiser": "a LearningRateSchedule is a function of optimizer.iterations: nobody steps it",
        "unregistered-layers": "Keras tracks layers in attributes, lists, tuples and dicts by itself",
        "workers-repeat-augmentation": "PyDataset has no public way to start its workers apart from fit",
    }

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> layers.Layer:
        layer = layers.Dense(outputs, use_bias=bias)
        layer.build((None, inputs))
        return layer

    def activation(self, name: str) -> layers.Layer:
        return layers.ReLU() if name == "relu" else layers.Activation(name)

    def layer(self, name: str, *args: Any, **options: Any) -> layers.Layer:
        if name in OWN_LAYERS:
            return OWN_LAYERS[name](*args)
        match name:
            case "conv2d":
                padding = {0: "valid", args[2] // 2: "same"}[options.pop("padding", 0)]  # Keras takes words
                layer = layers.Conv2D(args[1], args[2], data_format=FIRST, padding=padding, **options)
                layer.build((None, args[0], None, None))
                return layer
            case "batchnorm" | "batchnorm2d":
                layer = layers.BatchNormalization(axis=1)
                layer.build((None, args[0], *([None, None] if name == "batchnorm2d" else [])))
                return layer
            case "layernorm":
                layer = layers.LayerNormalization()
                layer.build((None, args[0]))
                return layer
            case "dropout":
                return layers.Dropout(*args)
            case "embedding":
                layer = layers.Embedding(*args)
                layer.build((None,))
                return layer
            case "flatten":
                return layers.Flatten()
            case "softmax":
                return layers.Softmax(axis=args[0])
            case "max_pool":
                return layers.MaxPooling2D(args[0], data_format=FIRST)
            case "reshape":
                return layers.Reshape(args[1:])
        raise CannotBuild(f"the keras kit has no layer {name}")

    def sequential(self, *parts: layers.Layer) -> keras.Model:
        return keras.Sequential(list(parts))

    def weights(self, layer: layers.Layer) -> np.ndarray:
        kernel = np.array(values(layer.kernel))
        return kernel.T if kernel.ndim == 2 else np.moveaxis(kernel, (-1, -2), (0, 1))

    def set_weights(self, layer: layers.Layer, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
        layer.kernel.assign(weight.T if weight.ndim == 2 else np.moveaxis(weight, (0, 1), (-1, -2)))
        if bias is not None:
            layer.bias.assign(bias)

    def loader(self, x: np.ndarray, y: np.ndarray, batch_size: int = 32, shuffle: bool = True) -> Loader:
        return Loader(x, y, batch_size, shuffle)

    def loss(self, name: str, **options: Any) -> Any:
        return nll if name == "nll" else Of(LOSSES[name](**options))

    def optimiser(self, model: keras.Model, name: str = "adam", lr: float = 1e-3, **options: Any) -> Any:
        made = OPTIMISERS[name](learning_rate=float(lr), **options)
        made.build(model.trainable_variables)
        return made

    def loop(self, training: Training) -> Loop:
        subject, model = training.subject, training.subject.model
        if subject.step is not None:
            raise CannotBuild("a step of one's own is a train_step in Keras: it has a twin")
        model.compile(optimizer=subject.optimizer, loss=_compiled(subject.loss))

        def run(w: object) -> None:
            stream = (batch for batch in batches(subject, training.steps))  # Keras takes generators, no other iterators
            model.fit(stream, steps_per_epoch=training.steps, shuffle=False, verbose=0)

        return Loop(model, [subject.optimizer], run, training.options)


def _compiled(loss: Any) -> Any:
    """As `compile` takes it: the target first."""
    return loss.loss if isinstance(loss, Of) else lambda target, output: loss(output, target)
