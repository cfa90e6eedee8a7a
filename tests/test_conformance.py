"""Every adapter keeps every rule of the capabilities that it claims."""

import importlib
import pkgutil

import pytest

import sleuth.adapters
from sleuth.core.contract.adapter import Adapter
from sleuth.testing.conformance import Rule, matrix, rules
from sleuth.testing.kit import Kit
from tests.conftest import kits


def adapter_of(name: str) -> Adapter:
    return importlib.import_module(f"sleuth.adapters.{name}").ADAPTER


def pairs() -> list:
    return [
        pytest.param(rule, kit, id=f"{kit.name}-{rule.name}")
        for kit in kits()
        for rule in rules()
        if rule.applies(adapter_of(kit.name))
    ]


@pytest.mark.parametrize(("rule", "kit"), pairs())
def test_an_adapter_keeps_the_rule(rule: Rule, kit: Kit) -> None:
    rule.run(adapter_of(kit.name), kit)


def test_every_adapter_has_a_kit(capsys: pytest.CaptureFixture[str]) -> None:
    names = [module.name for module in pkgutil.iter_modules(sleuth.adapters.__path__)]
    assert sorted(names) == sorted(kit.name for kit in kits())
    with capsys.disabled():
        print(f"\n\nadapter × capability\n{matrix(adapter_of(name) for name in names)}\n")


def test_an_adapter_is_named_after_its_folder() -> None:
    for kit in kits():
        assert adapter_of(kit.name).name == kit.name
