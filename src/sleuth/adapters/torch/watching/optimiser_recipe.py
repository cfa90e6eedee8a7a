"""An optimiser as it was at its first step, to be made again for a copy of the model."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn
from torch.optim import Optimizer


class Recipe(NamedTuple):
    """How an optimiser was made, as far as its groups tell. It may be gone when the training is over."""

    kind: Callable[..., Optimizer]
    groups: list[tuple[list[str], dict[str, Any]]]

    def made_for(self, model: nn.Module) -> Optimizer | None:
        named = dict(model.named_parameters())
        try:
            return self.kind([{"params": [named[n] for n in names], **settings} for names, settings in self.groups])
        except Exception:  # a class of the user's own may want more, or other names by now
            return None


def recipe_of(optimiser: Optimizer, model: nn.Module) -> Recipe:
    names = {id(p): name for name, p in model.named_parameters()}
    groups = []
    for group in optimiser.param_groups:
        settings = {key: value for key, value in group.items() if key != "params" and key != "initial_lr"}
        groups.append(([names[id(p)] for p in group["params"] if id(p) in names], copy.deepcopy(settings)))
    # Of code that writes the weights by hand only the rate is known.
    return Recipe(getattr(optimiser, "same_as", None) or type(optimiser), groups)
