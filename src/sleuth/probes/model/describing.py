"""Describes the model and its settings, before anything is run."""

from collections.abc import Iterator

from sleuth.core.contract.adapter import Describes
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Architecture, Observation, Settings
from sleuth.core.stage import Stage
from sleuth.probes.lab.probe import Lab, probe


@probe(title="Describing the model", stage=Stage.MODEL, rank=0, emits=(Architecture, Settings))
def describing(lab: Lab) -> Iterator[Observation]:
    if not isinstance(lab.adapter, Describes):
        raise Unsupported(f"the {lab.adapter.name} adapter cannot describe a model")
    architecture = lab.architecture
    lab.facts["parameters"] = sum(p.size for p in architecture.parameters if p.tied_to is None)
    yield architecture
    yield lab.adapter.settings(lab.subject)
