"""Several models that are trained together, as one: a GAN's two, an encoder and a decoder, an actor and a critic."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.watching.taps import Root


class Several(nn.Module):
    """Holds models and single tensors by name without registering anything with them. It cannot be called: they are."""

    def __init__(self, models: Mapping[str, nn.Module], tensors: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.__dict__["called"] = None  # the model whose call was heard last
        self._modules.update(models)
        self._parameters.update(tensors)  # type: ignore[arg-type]

    @property
    def training(self) -> bool:
        """The mode of the one that is called; each has its own."""
        called = self.__dict__.get("called")
        return called.training if called is not None else any(m.training for m in self.children())

    @training.setter
    def training(self, mode: bool) -> None:
        """Only torch's own constructor sets it."""


class Door(Root):
    """The call of one of several."""

    def __init__(self, several: Several, model: nn.Module, hear: Callable[..., None], hear_output: Callable[[Any], None]) -> None:
        self._several = several
        super().__init__(model, hear, hear_output)

    # Looked up at each call: to be called itself it would need a frame between the user's and the watcher's.
    @property
    def hear(self) -> Callable[..., None]:
        self._several.__dict__["called"] = self.model
        return self._hear

    @hear.setter
    def hear(self, hear: Callable[..., None]) -> None:
        self._hear = hear


def roots(model: nn.Module, hear: Callable[..., None], hear_output: Callable[[Any], None]) -> list[Root]:
    """What is to be listened to so that every call of the model is heard."""
    if isinstance(model, Several):
        return [Door(model, part, hear, hear_output) for part in model.children()]
    return [Root(model, hear, hear_output)]
