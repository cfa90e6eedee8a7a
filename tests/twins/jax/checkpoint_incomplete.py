"""A training with Adam that saves its weights alone, against one that saves the optimiser's state as well."""

from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, whole=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, whole=True)


def _training(kit: Kit, whole: bool) -> Subject:
    def save(model, optimiser):
        saved = {"model": nnx.state(model)}
        return {**saved, "optimiser": nnx.state(optimiser)} if whole else saved

    def load(saved, model, optimiser):
        nnx.update(model, saved["model"])
        if "optimiser" in saved:
            nnx.update(optimiser, saved["optimiser"])

    model = kit.mlp(64, 32, 10)
    optimiser = nnx.Optimizer(model, kit.optimiser(model, "adam", lr=3e-3), wrt=nnx.Param)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), optimiser, checkpoint=(save, load))
