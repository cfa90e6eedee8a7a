"""Objects of the frameworks that have the private attributes which adapters read, by the class that the lists name."""

from collections.abc import Callable
from typing import Any

import equinox
import flax.nnx
import jax
import keras
import mithril
import mlx.nn
import mlx.optimizers
import numpy as np
import torch
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.trainers.compile_utils import CompileLoss
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.trainers.data_adapters.torch_data_loader_adapter import TorchDataLoaderAdapter
from torch import nn
from torch.utils.data import DataLoader

ROWS = torch.ones(4, 2)


def node(function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    return function(torch.ones(2, requires_grad=True)).grad_fn


def stepped() -> torch.optim.Optimizer:
    optimiser = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimiser, 1)
    optimiser.step()
    scheduler.step()
    return optimiser


def workers() -> Any:
    iterator = iter(DataLoader(ROWS, num_workers=1))
    iterator._shutdown_workers()
    return iterator


def tracer() -> Any:
    held = []
    jax.make_jaxpr(lambda x: held.append(x) or x + 1)(1.0)
    return held[0]


def fitted() -> Any:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(), loss=keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def validated() -> Any:
    """While it is fitted a model holds the iterator of its validation, and lets go of it at the end."""
    model, held = fitted(), []
    keep = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: held.append(model._eval_epoch_iterator))
    data = np.ones((2, 2), np.float32), np.ones((2, 1), np.float32)
    model.fit(*data, validation_data=data, callbacks=[keep], verbose=0)
    model._eval_epoch_iterator = held[0]
    return model


def compiled_loss() -> Any:
    loss = CompileLoss(keras.losses.MeanSquaredError())
    loss.build(np.ones((2, 1), np.float32), np.ones((2, 1), np.float32))
    return loss


EXAMPLES: dict[str, dict[str, Callable[[], Any]]] = {
    "torch": {
        "torch.Tensor": lambda: ROWS,
        "torch.autograd.graph.Node": lambda: node(lambda x: x * 2),
        "MulBackward0": lambda: node(lambda x: x * 2),
        "PowBackward0": lambda: node(lambda x: x**2),
        "ExpBackward0": lambda: node(torch.exp),
        "SoftmaxBackward0": lambda: node(lambda x: torch.softmax(x, 0)),
        "HardtanhBackward0": lambda: node(nn.functional.hardtanh),
        "torch.nn.Module": nn.Module,
        "OptimizedModule": lambda: torch.compile(nn.Linear(1, 1), backend="eager"),
        "torch.utils.data.DataLoader": lambda: DataLoader(ROWS),
        "_BaseDataLoaderIter": lambda: iter(DataLoader(ROWS)),
        "_MultiProcessingDataLoaderIter": workers,
        "torch.optim.Optimizer": stepped,
        "torch.optim.lr_scheduler.LRScheduler": lambda: torch.optim.lr_scheduler.StepLR(stepped(), 1),
    },
    "jax": {
        "PjitFunction": lambda: jax.jit(lambda x: x),
        "_JitWrapper": lambda: equinox.filter_jit(lambda x: x),
        "JitWrapped": lambda: flax.nnx.jit(lambda x: x),
        "DynamicJaxprTracer": tracer,
    },
    "keras": {
        "Layer": fitted,
        "Trainer": validated,
        "Sequential": fitted,
        "Function": lambda: fitted()._functional,
        "KerasTensor": lambda: KerasTensor((2,)),
        "Variable": lambda: keras.Variable(1.0),
        "Loss": keras.losses.MeanSquaredError,
        "LossFunctionWrapper": keras.losses.MeanSquaredError,
        "CompileLoss": compiled_loss,
        "BaseOptimizer": lambda: fitted().optimizer,
        "ArrayDataAdapter": lambda: ArrayDataAdapter(np.ones((4, 2))),
        "TorchDataLoaderAdapter": lambda: TorchDataLoaderAdapter(DataLoader(ROWS)),
        "CallbackList": lambda: keras.callbacks.CallbackList(model=fitted()),
        "torch.Tensor": lambda: ROWS,
    },
    "mlx": {
        "mlx.nn.Module": lambda: mlx.nn.Linear(2, 2),
        "mlx.nn.Dropout": mlx.nn.Dropout,
        "mlx.optimizers.Optimizer": lambda: mlx.optimizers.SGD(learning_rate=0.1),
    },
    "mithril": {"TrainModel": lambda: mithril.models.TrainModel(mithril.models.Linear(1))},
}
# The trainer of another backend than the tests run on; its own tests run it in a process of its own.
ELSEWHERE = {"JAXTrainer"}
