"""A framework is listened to as soon as it is there, whoever imports it and however deep inside another import."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sleuth.core.runtime.importing import forget, when_imported

LIBRARY = "import framework_of_a_test\n\n\ndef late():\n    return 'the last line'\n"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "framework_of_a_test.py").write_text("ready = True\n")
    (tmp_path / "library_of_a_test.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    finders = list(sys.meta_path)
    yield tmp_path
    for name in ("framework_of_a_test", "library_of_a_test"):
        sys.modules.pop(name, None)
    assert sys.meta_path == finders


def test_a_library_that_imports_the_framework_first_is_met_when_all_of_it_is_there(modules: Path) -> None:
    met: list[bool] = []

    def library() -> None:
        met.append(hasattr(sys.modules["library_of_a_test"], "late"))

    def framework() -> None:
        when_imported("library_of_a_test", library)
        when_imported("library_of_a_test", library)
        assert not met

    when_imported("framework_of_a_test", framework)
    found = importlib.import_module("library_of_a_test")
    assert met == [True, True]
    assert type(found.__spec__) is importlib.machinery.ModuleSpec
    assert "waiting" not in vars(found.__spec__)


def test_what_is_there_already_is_met_at_once(modules: Path) -> None:
    importlib.import_module("library_of_a_test")
    met: list[int] = []
    assert when_imported("library_of_a_test", lambda: met.append(1)) is None
    assert met == [1]


def test_who_was_forgotten_in_the_midst_of_an_import_is_not_called(modules: Path) -> None:
    met: list[int] = []

    def framework() -> None:
        waiting = when_imported("library_of_a_test", lambda: met.append(1))
        assert waiting is not None
        forget(waiting)
        forget(waiting)

    when_imported("framework_of_a_test", framework)
    importlib.import_module("library_of_a_test")
    assert not met


def test_an_import_that_fails_in_its_midst_calls_nobody(modules: Path) -> None:
    (modules / "library_of_a_test.py").write_text(LIBRARY + "raise ValueError('broken')\n")
    met: list[int] = []
    when_imported("framework_of_a_test", lambda: when_imported("library_of_a_test", lambda: met.append(1)))  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="broken"):
        importlib.import_module("library_of_a_test")
    assert not met
