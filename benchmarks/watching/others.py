"""What else people put around a training of PyTorch, to compare with. Each is a context that gives the step to take."""

import contextlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.watching.training import Training


@contextlib.contextmanager
def documents(training: Training) -> Iterator[Callable[[], Any]]:
    """What tutorials tell people to do: hooks with .item() on every layer's output, every gradient and every weight."""
    numbers: dict[str, dict[str, float]] = {}

    def note(name: str, t: torch.Tensor) -> None:
        t = t.detach()
        numbers[name] = {
            "mean": t.mean().item(),
            "std": t.std().item(),
            "min": t.min().item(),
            "max": t.max().item(),
            "norm": t.norm().item(),
            "nan": torch.isnan(t).any().item(),
        }

    handles: list[Any] = []
    for name, module in training.model.named_modules():
        if not module._modules:
            handles.append(
                module.register_forward_hook(lambda m, i, o, n=name: note(n, o) if isinstance(o, torch.Tensor) else None)
            )
    for name, parameter in training.model.named_parameters():
        handles.append(parameter.register_hook(lambda g, n=name: note(f"gradient {n}", g)))

    def step() -> None:
        training.step()
        for name, parameter in training.model.named_parameters():
            note(f"weight {name}", parameter)

    yield step
    for handle in handles:
        handle.remove()


@contextlib.contextmanager
def anomaly(training: Training) -> Iterator[Callable[[], Any]]:
    def step() -> None:
        with torch.autograd.detect_anomaly(check_nan=True):
            training.step()

    yield step


@contextlib.contextmanager
def tensorboard(training: Training) -> Iterator[Callable[[], Any]]:
    from torch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        count = 0

        def step() -> None:
            nonlocal count
            writer.add_scalar("loss", training.step().item(), count)
            for name, parameter in training.model.named_parameters():
                writer.add_histogram(name, parameter, count)
                writer.add_histogram(f"{name}.grad", parameter.grad, count)
            count += 1

        yield step


@contextlib.contextmanager
def wandb(training: Training) -> Iterator[Callable[[], Any]]:
    os.environ.setdefault("WANDB_SILENT", "true")
    import wandb as library

    with tempfile.TemporaryDirectory() as folder:
        run = library.init(mode="offline", dir=folder)
        library.watch(training.model, log="all", log_freq=1)

        def step() -> None:
            run.log({"loss": training.step().item()})

        yield step
        library.unwatch(training.model)
        run.finish()


OTHERS = {
    "statistics of the documents": documents,
    "detect_anomaly": anomaly,
    "TensorBoard histograms": tensorboard,
    "wandb.watch(log='all')": wandb,
}
PACKAGES = {"TensorBoard histograms": "tensorboard", "wandb.watch(log='all')": "wandb"}


def missing(name: str) -> str:
    """Why one is left out; empty: it is not."""
    package = PACKAGES.get(name)
    if package is None or importlib.util.find_spec(package) is not None:
        return ""
    return f"{package} is not installed (pip install -r requirements/bench.txt)"
