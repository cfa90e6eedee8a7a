"""Nothing of sleuth's ever raises into the user's call: an error in any part of ours leaves the training as it was."""

import random

import pytest

from sleuth.adapters import adapter_named
from sleuth.testing import Kit
from sleuth.testing.injection import broken_promises, first_and_later_calls, reference
from tests.conftest import kits

SAMPLE = 12


def _kits() -> list:
    return [pytest.param(kit, id=kit.name) for kit in kits()]


@pytest.mark.parametrize("kit", _kits())
def test_an_error_in_some_parts_stays_with_them(kit: Kit) -> None:
    adapter = adapter_named(kit.name)
    known = reference(adapter, kit)
    chosen = random.Random(5).sample(first_and_later_calls(known.parts), SAMPLE)
    broken = broken_promises(adapter, kit, known, chosen)
    assert not broken, "\n".join(["", *broken])


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kit", _kits())
def test_an_error_in_any_part_stays_with_it(kit: Kit) -> None:
    adapter = adapter_named(kit.name)
    known = reference(adapter, kit)
    assert len(known.parts) > SAMPLE, "hardly anything of ours ran inside the training"
    chosen = first_and_later_calls(known.parts)
    broken = broken_promises(adapter, kit, known, chosen)
    assert not broken, "\n".join([f"{len(broken)} of {len(chosen)}", *broken])
