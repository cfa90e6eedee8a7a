"""Every adapter keeps every rule of the capabilities that it claims."""

import tomllib
from pathlib import Path

import pytest

from sleuth.adapters import adapter_named
from sleuth.adapters.entries import GROUP, OWN
from sleuth.testing.conformance import Rule, matrix, rules
from sleuth.testing.kit import Kit
from tests.conftest import kits


def pairs() -> list:
    return [
        pytest.param(rule, kit, id=f"{kit.name}-{rule.name}")
        for kit in kits()
        for rule in rules()
        if rule.applies(adapter_named(kit.name))
    ]


@pytest.mark.parametrize(("rule", "kit"), pairs())
def test_an_adapter_keeps_the_rule(rule: Rule, kit: Kit) -> None:
    rule.run(adapter_named(kit.name), kit)


def test_every_adapter_has_a_kit(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(OWN) == sorted(kit.name for kit in kits())
    with capsys.disabled():
        print(f"\n\nadapter × capability\n{matrix(adapter_named(name) for name in sorted(OWN))}\n")


def test_the_entry_points_of_the_project_are_those_that_a_checkout_knows() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"][GROUP] == dict(OWN)
