"""Ways of watching a training. Each opens and closes; between the two it may be put to sleep while a plain step runs."""

import contextlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.optim import optimizer as optim

import sleuth
from benchmarks.watching.trainings import Training
from sleuth.adapters.listening.patches import Patch
from sleuth.adapters.torch.watching import patches
from sleuth.adapters.torch.watching.model_calls import Root

# A context that is entered around the whole and yields the step to take.
Way = Callable[[Training], contextlib.AbstractContextManager[Callable[[], Any]]]


@contextlib.contextmanager
def plain(training: Training) -> Iterator[Callable[[], Any]]:
    yield training.step


def watch(**options: Any) -> Way:
    @contextlib.contextmanager
    def way(training: Training) -> Iterator[Callable[[], Any]]:
        model, optimiser = training.model, training.optimiser
        with (
            tempfile.TemporaryDirectory() as folder,
            sleuth.watch(model, optimiser, directory=folder, quiet=True, **options) as w,
        ):
            Sleeping.watch = w
            yield training.step

    return way


class Sleeping:
    """Takes everything out of torch that a watch has put there, and puts it back: a plain step must be plain."""

    watch: Any = None

    def __init__(self, optimiser: torch.optim.Optimizer) -> None:
        self._optimiser = optimiser
        self._module_call = nn.Module.__call__
        self._places: list[tuple[Any, str, Any]] = []
        self._hooks: list[tuple[dict, dict]] = []

    def __enter__(self) -> None:
        self._module_call = nn.Module.__call__
        placed = [patch for patch in (*patches._patches, *Root._patches.values()) if isinstance(patch, Patch)]
        self._places = [(patch._owner, patch._name, vars(patch._owner)[patch._name]) for patch in placed]
        for patch in placed:
            patch.remove()
        nn.Module.__call__ = nn.Module._wrapped_call_impl
        own = (self._optimiser._optimizer_step_pre_hooks, self._optimiser._optimizer_step_post_hooks)
        hooks = (optim._global_optimizer_pre_hooks, optim._global_optimizer_post_hooks, *own)
        self._hooks = [(kept, dict(kept)) for kept in hooks]
        for kept, _ in self._hooks:
            kept.clear()

    def __exit__(self, *rest: object) -> None:
        for holder, name, ours in reversed(self._places):
            setattr(holder, name, ours)
        nn.Module.__call__ = self._module_call
        for kept, copy in self._hooks:
            kept.update(copy)


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


def others() -> dict[str, Way | str]:
    """By name; a text says why one is left out."""
    found: dict[str, Way | str] = {"statistics of the documents": documents, "detect_anomaly": anomaly}
    for name, way, package in (
        ("TensorBoard histograms", tensorboard, "tensorboard"),
        ("wandb.watch(log='all')", wandb, "wandb"),
    ):
        there = importlib.util.find_spec(package) is not None
        found[name] = way if there else f"{package} is not installed (pip install -r requirements/bench.txt)"
    return found
