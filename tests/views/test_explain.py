"""The page of a check, in the terminal and in the docs."""

import tomllib
from collections.abc import Iterator

import pytest

from sleuth.checks import all_checks
from sleuth.core.check import Check, Evidence, Seen, check
from sleuth.core.observation import Architecture, Role
from sleuth.core.settings import parse_configuration
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Overlap
from sleuth.views.catalogue import write as write_catalogue
from sleuth.views.explain import explain

# Chosen for this test.
STEEP = 2.5


@check(
    code="M299",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    reads=(Role.GRADIENT, (Architecture, Overlap)),
    explains=("vanishing-gradients", "not-there-yet"),
    title="A thing is steep",
    why="Because.",
    fix="Flatten it.",
)
def steep_thing(seen: Seen, *, steep: float = STEEP, bare: int = 3) -> Iterator[Evidence]:
    yield from ()


def names(checks: tuple[Check, ...]) -> list[str]:
    return [c.name for c in checks]


@pytest.mark.parametrize("check", all_checks(), ids=names(all_checks()))
def test_every_check_has_a_page_that_fits_the_screen(check: Check) -> None:
    text = explain(check, all_checks())
    assert check.code in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert explain(check, all_checks(), markdown=True).startswith(f"# {check.name}\n")


@pytest.mark.parametrize("check", all_checks(), ids=names(all_checks()))
def test_the_settings_on_every_page_can_be_pasted(check: Check) -> None:
    for block in explain(check, all_checks(), markdown=True).split("```toml\n")[1:]:
        table = tomllib.loads(block.split("```")[0])["tool"]["sleuth"]
        parse_configuration(table, all_checks(), "the page")


def test_a_page_says_what_is_read_explained_and_set() -> None:
    checks = (steep_thing, *all_checks())
    text = explain(steep_thing, checks)
    assert "– the gradient of each parameter" in text
    assert "– the layers and parameters of the model, or an experiment: validation" in text
    assert "steep = 2.5" in text
    assert "– steep: Chosen for this test." in text
    assert "bare = 3" in text
    caused = explain(next(c for c in checks if c.name == "vanishing-gradients"), checks)
    assert "It is explained by" in caused
    assert "– steep-thing" in caused


def test_only_names_with_a_page_are_linked() -> None:
    text = explain(steep_thing, (steep_thing, *all_checks()), markdown=True)
    assert "- [vanishing-gradients](vanishing-gradients.md)" in text
    assert "- not-there-yet" in text


def test_the_list_of_checks_fits_the_screen_and_names_them_all() -> None:
    text = write_catalogue(all_checks(), 80).plain()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert all(c.name in text and c.code in text for c in all_checks())
