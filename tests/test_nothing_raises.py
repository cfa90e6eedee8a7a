"""Nothing of sleuth's ever raises into the user's call: an error in any part of ours leaves the training as it was."""

import random
import subprocess
import sys
from pathlib import Path

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
    """In a process of its own: thousands of errors may leave something behind that other tests would meet."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.test_nothing_raises", kit.name]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _all_parts(name: str) -> list[str]:
    kit, adapter = next(kit for kit in kits() if kit.name == name), adapter_named(name)
    known = reference(adapter, kit)
    assert len(known.parts) > SAMPLE, "hardly anything of ours ran inside the training"
    chosen = first_and_later_calls(known.parts)
    broken = broken_promises(adapter, kit, known, chosen)
    return [f"{len(broken)} of {len(chosen)}", *broken] if broken else []


if __name__ == "__main__":
    found = _all_parts(sys.argv[1])
    print("\n".join(found))
    sys.exit(bool(found))
