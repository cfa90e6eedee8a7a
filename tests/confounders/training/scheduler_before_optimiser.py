"""The schedule moves on before the step that it is meant for has been taken."""

import warnings

from torch import nn, optim
from torch.optim import lr_scheduler

from sleuth.testing import Loop
from tests.confounders.bodies import Tagger, cnn, mlp, per_position
from tests.confounders.material import plane, tagged
from tests.material import digit_images
from tests.zoo.data import loader


def cnn_in_the_order_of_old_tutorials() -> Loop:
    """The schedule moves at the head of each epoch, the first one included."""
    model = cnn()
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = lr_scheduler.StepLR(optimiser, step_size=3, gamma=0.5)
    batches = loader(*digit_images(), batch_size=64)

    def run(w: object) -> None:
        warnings.simplefilter("ignore")
        for _ in range(12):
            schedule.step()
            for images, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()

    return Loop(model, [optimiser], _with_own_filters(run))


def tagger_on_one_cycle_a_step_ahead() -> Loop:
    ids, tags = tagged()
    model = Tagger(tags=3)
    optimiser = optim.AdamW(model.parameters(), lr=1e-3)
    batches = loader(ids, tags - 1)
    schedule = lr_scheduler.OneCycleLR(optimiser, max_lr=1e-2, total_steps=15 * len(batches) + 1)

    def run(w: object) -> None:
        warnings.simplefilter("ignore")
        model.train()
        for _ in range(15):
            for x, y in batches:
                optimiser.zero_grad(set_to_none=True)
                loss = per_position(model(x), y)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                schedule.step()
                optimiser.step()

    return Loop(model, [optimiser], _with_own_filters(run))


class Regression:
    """The two calls at the end of a step have changed places."""

    def __init__(self) -> None:
        self.model = mlp(12, 32, 32, 3, activation=nn.Tanh)
        self.optimiser = optim.RMSprop(self.model.parameters(), lr=5e-3)
        self.schedule = lr_scheduler.CosineAnnealingLR(self.optimiser, T_max=400)

    def advance(self) -> None:
        self.schedule.step()
        self.optimiser.step()
        self.optimiser.zero_grad()

    def fit(self, w: object) -> None:
        warnings.simplefilter("ignore")
        for _ in range(16):
            for x, y in loader(*plane()):
                nn.functional.mse_loss(self.model(x), y).backward()
                self.advance()


def regression_that_advances_the_wrong_way_round() -> Loop:
    regression = Regression()
    return Loop(regression.model, [regression.optimiser], _with_own_filters(regression.fit))


def _with_own_filters(run):
    """torch says it in a warning, which these authors have silenced."""

    def quietly(w: object) -> None:
        with warnings.catch_warnings():
            run(w)

    return quietly
