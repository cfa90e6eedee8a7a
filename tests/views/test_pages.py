"""The generated pages of the docs."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from sleuth.checks import all_checks

SCRIPT = Path(__file__).parents[2] / "docs" / "generate.py"


@pytest.fixture
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_check_has_a_page_and_a_row_in_the_index(generate: ModuleType) -> None:
    pages = generate.pages()
    for check in all_checks():
        assert f"{check.name}.md" in pages
        assert f"[{check.name}]({check.name}.md)" in pages["index.md"]


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
