"""One model in every framework that there is, in one table."""

import sleuth
from sleuth.testing import Kit
from tests.compare.models import X, Y
from tests.conftest import kits


def built(kit: Kit) -> sleuth.Subject:
    model = kit.mlp(8, 16, 4)
    return sleuth.Subject(model, None, kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=0.1))


def test_one_model_in_every_framework_is_the_same_everywhere() -> None:
    first, *others = kits()
    subjects = {kit.name: built(kit) for kit in others}
    names = list(subjects)
    found = sleuth.compare(built(first), subjects[names[0]], (X, Y), **{name: subjects[name] for name in names[1:]})
    assert {b.framework for b in found.backends} == {kit.name for kit in kits()}
    assert {b.name: b.status for b in found.backends} == {b.name: "same" for b in found.backends}, str(found)
    assert len({round(b.loss, 4) for b in found.backends}) == 1
    for pair in found.pairs:
        assert pair.carried == pair.parameters == 4
        assert {row.stage for row in pair.rows} >= {"layer", "output", "loss", "gradient", "step"}, pair.other
