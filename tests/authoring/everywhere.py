"""Which trainings a check is tried on: its own case in every kit, and every other training that is at hand."""

import pkgutil

from tests.authoring.runs import Run

# In the words of this kit nearly every case can be built.
OTHERS_IN = "torch"


def kit_names() -> list[str]:
    from tests.conftest import kits

    return [kit.name for kit in kits()]


def own_case(name: str, kits: list[str]) -> list[Run]:
    return [Run(kind, name, kit) for kit in kits for kind in ("sick", "healthy")]


def all_others(name: str) -> list[Run]:
    """First those that are well, which it must not accuse: the zoo, the other healthy cases, the look-alikes."""
    import tests.zoo
    from tests.confounders import healthy
    from tests.grid import CASES

    zoo = [module.name for module in pkgutil.iter_modules(tests.zoo.__path__) if module.name != "data"]
    lookalikes = [f"{topic}/{variant}" for topic, variant, _ in healthy()]
    cases = [case.name for case in CASES if case.name != name]
    return [
        *(Run("zoo", model) for model in zoo),
        *(Run("healthy", case, OTHERS_IN) for case in cases),
        *(Run("look-alike", lookalike) for lookalike in lookalikes),
        *(Run("live zoo", model) for model in zoo),
        *(Run("sick", case, OTHERS_IN) for case in cases),
    ]
