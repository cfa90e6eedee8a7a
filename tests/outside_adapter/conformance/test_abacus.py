"""What an author of an adapter writes once: every rule of sleuth's that applies, on this adapter and this kit."""

import abacus  # noqa: F401 - an adapter is found when its framework was imported
import pytest
from kit import AbacusKit

from sleuth.adapters import adapter_named, available
from sleuth.core.contract.adapter import Adapter
from sleuth.testing.conformance import Rule, rules
from sleuth.testing.injection import broken_promises, first_and_later_calls, reference

ADAPTER: Adapter = adapter_named("abacus")


def test_it_is_found_by_its_entry_point() -> None:
    assert ADAPTER in list(available())


@pytest.mark.parametrize("rule", [rule for rule in rules() if rule.applies(ADAPTER)], ids=lambda rule: rule.name)
def test_the_adapter_keeps_the_rule(rule: Rule) -> None:
    rule.run(ADAPTER, AbacusKit())


def test_an_error_in_any_part_of_sleuths_stays_with_it() -> None:
    kit = AbacusKit()
    known = reference(ADAPTER, kit)
    assert known.parts
    broken = broken_promises(ADAPTER, kit, known, first_and_later_calls(known.parts))
    assert not broken, "\n".join(broken)
