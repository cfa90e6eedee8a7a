"""Several models that are trained together, as one: a GAN's two, an encoder and a decoder, an actor and a critic."""

from collections.abc import Mapping

import torch
from torch import nn


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
