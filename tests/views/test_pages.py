"""The generated pages of the docs, and the examples that ship with the package."""

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from sleuth.checks import all_checks
from sleuth.testing import Case, discover
from sleuth.views.example import Example, example

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "generate.py"
CASES = [case for case in discover(ROOT / "tests" / "cases") if case.name in {c.name for c in all_checks()}]
NAMES = [case.name for case in CASES]

MATERIAL = '''
def numbers():
    """Ten
    numbers."""

def letters():
    """Not used."""
'''
CASE = '''"""Numbers that are doubled, or not."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import numbers

UNUSED = 3
# Why two.
TWICE = 2


def training(kit: Kit, times: int) -> Subject:
    kit.require("torch")
    model = kit.mlp(64, 32, 10)
    return Subject(model, kit.loader(*double(numbers(), times)), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, times=TWICE)


def healthy(kit: Kit) -> Subject:
    return training(kit, times=once())


def once() -> int:
    return 1


def double(x: np.ndarray, times: int) -> np.ndarray:
    return x * times
'''


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    spec = importlib.util.spec_from_file_location("generate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_check_has_a_page_and_a_row_in_the_index(generate: ModuleType) -> None:
    pages = generate.pages({})
    for check in all_checks():
        assert f"{check.name}.md" in pages
        assert f"[{check.name}]({check.name}.md)" in pages["index.md"]


@pytest.mark.parametrize("name", NAMES)
def test_every_page_that_ships_shows_both_cases_and_a_finding_of_its_name(name: str) -> None:
    shown = example(name)
    assert shown is not None, "run ./dev docs"
    assert "def sick(kit: Kit)" in shown.sick
    assert all(line[0] in "-+…" for line in shown.changes.splitlines())
    assert "-" in {line[0] for line in shown.changes.splitlines()}
    check = next(c for c in all_checks() if c.name == name)
    if not shown.finding.startswith("(What sleuth says is not shown: it needs an accelerator"):
        assert shown.finding[2:].startswith(f"{name}  {check.code} · "), "run ./dev docs --findings"
        assert "Do:" in shown.finding
    page = (ROOT / "docs" / "checks" / f"{name}.md").read_text(encoding="utf-8")
    assert all(part in page for part in (shown.sick, shown.changes, shown.finding))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_machine_is_on_a_page(name: str) -> None:
    text = (ROOT / "src" / "sleuth" / "views" / "examples" / f"{name}.toml").read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert str(Path.home()) not in text
    assert "site-packages" not in text


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_finding_that_is_shown_is_what_sleuth_says_today(generate: ModuleType, case: Case) -> None:
    """Name, code, severity, confidence and place. Numbers may differ a little from machine to machine."""
    from finding import finding

    now, then = finding(case, ROOT).splitlines(), example(case.name).finding.splitlines()
    assert now[0] == then[0], "run ./dev docs --findings"
    assert places(now, case) == places(then, case), "run ./dev docs --findings"


def places(lines: list[str], case: Case) -> list[str]:
    """A line number counts in the case's own file; what moved within a kit is no news."""
    shown = [line for line in lines if line.strip().startswith(("At:", "tests/"))]
    return [line if case.file.name in line else re.sub(r"(\.py):\d+", r"\1", line) for line in shown]


def test_the_code_of_a_case_is_what_its_sick_training_needs(generate: ModuleType, tmp_path: Path) -> None:
    from case_code import COLUMNS, case_code

    (tmp_path / "case.py").write_text(CASE)
    (tmp_path / "material.py").write_text(MATERIAL)
    code = case_code(tmp_path / "case.py", tmp_path / "material.py")
    assert code.story == "Numbers that are doubled, or not."
    assert code.data == {"numbers": "Ten numbers."}
    assert code.sick.startswith(
        "# Why two.\nTWICE = 2\n\ndef sick(kit: Kit) -> Subject:\n    return training(kit, times=TWICE)\n"
    )
    assert "def training" in code.sick
    assert "def double" in code.sick
    assert all(word not in code.sick for word in ("UNUSED", "once", "healthy", "require", "import"))
    assert all(len(line) <= COLUMNS for line in code.sick.splitlines())
    assert code.changes.splitlines() == [
        "-# Why two.",
        "-TWICE = 2",
        "…",
        "-    return training(kit, times=TWICE)",
        "+    return training(kit, times=once())",
        "…",
        "+def once() -> int:",
        "+    return 1",
    ]


def test_an_example_is_read_as_it_was_written(generate: ModuleType, tmp_path: Path) -> None:
    shown = Example('a "story" with a \\ in it – ✗', "def f():\n    return '\\n'", "-a\n+b", "✗ it", {"digits": 'the "digits"'})
    (tmp_path / "it.toml").write_text(generate.as_toml(shown), encoding="utf-8")
    assert generate.read(tmp_path / "it.toml") == shown
    assert generate.read(tmp_path / "other.toml") is None


def test_a_finding_is_kept_until_the_code_of_its_case_changes(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "EXAMPLES", tmp_path)
    case = CASES[0]
    first = generate.current(case)
    assert first.finding == ""
    stored = Example(first.story, first.sick, first.changes, "✗ as it was", first.data)
    (tmp_path / f"{case.name}.toml").write_text(generate.as_toml(stored), encoding="utf-8")
    assert generate.current(case) == stored
    other = Example(first.story, first.sick + "\n    # another", first.changes, "✗ as it was", first.data)
    (tmp_path / f"{case.name}.toml").write_text(generate.as_toml(other), encoding="utf-8")
    assert generate.current(case) == first


def test_examples_are_package_data() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["package-data"]["sleuth.views"] == ["examples/*.toml"]


def test_pages_that_are_missing_changed_or_left_over_are_out_of_date(generate: ModuleType, tmp_path: Path) -> None:
    wanted = {"index.md": "all", "one.md": "1", "two.md": "2"}
    generate.write(tmp_path / "checks", wanted)
    assert generate.out_of_date(tmp_path / "checks", wanted) == []
    (tmp_path / "checks" / "one.md").write_text("changed")
    (tmp_path / "checks" / "two.md").unlink()
    (tmp_path / "checks" / "gone.md").write_text("no such check")
    assert generate.out_of_date(tmp_path / "checks", wanted) == ["gone.md", "one.md", "two.md"]
    generate.write(tmp_path / "checks", wanted)
    assert generate.out_of_date(tmp_path / "checks", wanted) == []
