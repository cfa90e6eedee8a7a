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
from sleuth.views.example import Example, example
from sleuth.views.explain import _sheet, as_data, explain
from sleuth.views.page import sections

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
    symptoms=("it is so *steep*",),
    decided_by="the angle of the thing",
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
    assert "How people put it\n  – “it is so *steep*”" in text
    assert "Decided by the angle of the thing." in text
    caused = explain(next(c for c in checks if c.name == "vanishing-gradients"), checks)
    assert "It is explained by" in caused
    assert "steep-thing" in caused.split("It is explained by")[1].split("\n\n")[0]


def test_only_names_with_a_page_are_linked() -> None:
    text = explain(steep_thing, (steep_thing, *all_checks()), markdown=True)
    assert "- [vanishing-gradients](vanishing-gradients.md)" in text
    assert "- not-there-yet" in text


SHOWN = Example(
    story="things on a slope, and on a table",
    sick="def sick(kit: Kit) -> Subject:\n    return training(kit, slope=2)",
    changes="-    return training(kit, slope=2)\n+    return training(kit, slope=0)",
    finding="✗ steep-thing  M299 · error · likely\n  A thing is steep.",
    data={"digits": "1,797 images."},
)


def test_a_page_ends_with_the_cases_and_what_sleuth_says() -> None:
    text = explain(steep_thing, all_checks(), shown=SHOWN)
    assert "Sick case\n  Things on a slope, and on a table.\n    def sick(kit: Kit)" in text
    assert "– digits() gives 1,797 images." in text
    assert "Healthy case\n  The same, except for:\n    -    return training(kit, slope=2)\n    +" in text
    assert text.endswith("What sleuth says of the sick case\n    ✗ steep-thing  M299 · error · likely\n      A thing is steep.")


def test_code_on_a_page_of_the_docs_is_marked_as_what_it_is() -> None:
    text = explain(steep_thing, all_checks(), markdown=True, shown=SHOWN)
    assert "```python\ndef sick(kit: Kit)" in text
    assert "```diff\n-    return training(kit, slope=2)\n+    return training(kit, slope=0)\n```" in text
    assert "```text\n✗ steep-thing" in text


def test_a_check_that_has_no_example_yet_has_a_page_all_the_same() -> None:
    assert example("steep-thing") is None
    assert "Sick case" not in explain(steep_thing, all_checks())
    assert as_data(steep_thing, all_checks())["example"] is None


def test_changes_are_red_and_green_on_a_screen() -> None:
    sheet = _sheet(steep_thing, tuple(sections(steep_thing, all_checks(), SHOWN)), 80)
    styles = {span.text.strip()[:1]: span.style for line in sheet.lines for span in line if "slope=" in span.text}
    assert (styles["-"], styles["+"]) == ("red", "green")


def test_the_list_of_checks_fits_the_screen_and_names_them_all() -> None:
    text = write_catalogue(all_checks(), 80).plain()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert all(c.name in text and c.code in text for c in all_checks())
