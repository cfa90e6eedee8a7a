"""The description of a model is complete and speaks the common words."""

from sleuth.core.contract.adapter import Adapter, Describes
from sleuth.testing.conformance.rule import CLASSES, FEATURES, HIDDEN, rule, subject
from sleuth.testing.kit import Kit


@rule(Describes)
def the_description_has_every_parameter_and_layer(adapter: Adapter, kit: Kit) -> None:
    architecture = adapter.architecture(subject(kit))  # type: ignore[attr-defined]
    wanted = sum(a * b + b for a, b in ((FEATURES, HIDDEN), (HIDDEN, CLASSES)))
    assert sum(p.size for p in architecture.parameters) == wanted
    assert len({p.path for p in architecture.parameters}) == len(architecture.parameters)
    assert all(p.trainable and p.dtype == "float32" for p in architecture.parameters)
    linear = [(x.settings.get("in"), x.settings.get("out")) for x in architecture.layers if x.family == "linear"]
    assert linear == [(FEATURES, HIDDEN), (HIDDEN, CLASSES)]
    assert [x.settings.get("activation") for x in architecture.layers if x.family == "activation"] == ["relu"]
    families = {p.family for p in architecture.parameters if len(p.shape) == 2}
    assert families == {"linear"}


@rule(Describes)
def the_settings_name_rate_loss_and_optimiser(adapter: Adapter, kit: Kit) -> None:
    settings = adapter.settings(subject(kit, lr=0.25))  # type: ignore[attr-defined]
    assert settings.framework == adapter.name
    assert settings.lr == 0.25
    assert settings.loss
    assert settings.optimiser
    assert settings.parameter_dtype == "float32"
