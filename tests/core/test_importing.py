"""A framework is listened to as soon as it is there, whoever imports it and however deep inside another import."""

import importlib
import importlib.machinery
import importlib.util
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sleuth.core.runtime.importing import Waiting, forget, when_imported

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
    waiting: list[Waiting | None] = []
    when_imported("framework_of_a_test", lambda: waiting.append(when_imported("library_of_a_test", lambda: met.append(1))))
    with pytest.raises(ValueError, match="broken"):
        importlib.import_module("library_of_a_test")
    assert not met
    (left,) = waiting
    assert left is not None, "somebody may import it again"
    forget(left)


def test_questions_whether_the_framework_exists_are_no_import(modules: Path) -> None:
    met: list[bool] = []
    when_imported("framework_of_a_test", lambda: met.append(hasattr(sys.modules["framework_of_a_test"], "ready")))
    for _ in range(3):
        assert importlib.util.find_spec("framework_of_a_test") is not None
    assert not met
    importlib.import_module("framework_of_a_test")
    assert met == [True]


def test_a_spec_that_is_asked_for_is_as_without_us(modules: Path) -> None:
    plain = importlib.util.find_spec("framework_of_a_test")
    waiting = when_imported("framework_of_a_test", lambda: None)
    assert waiting is not None
    heard = importlib.util.find_spec("framework_of_a_test")
    assert plain is not None
    assert heard is not None
    assert heard == plain
    assert repr(heard) == repr(plain)
    assert vars(heard.loader) == vars(plain.loader)
    assert type(heard) is importlib.machinery.ModuleSpec
    assert vars(heard).keys() == vars(plain).keys()
    forget(waiting)


def test_all_who_wait_for_a_module_are_met_once_and_a_second_execution_meets_nobody(modules: Path) -> None:
    met: list[str] = []
    when_imported("framework_of_a_test", lambda: met.append("first"))
    when_imported("framework_of_a_test", lambda: met.append("second"))
    module = importlib.import_module("framework_of_a_test")
    importlib.reload(module)
    assert type(module.__spec__) is importlib.machinery.ModuleSpec
    assert met == ["first", "second"]


def test_an_import_that_fails_is_waited_for_again(modules: Path) -> None:
    file = modules / "framework_of_a_test.py"
    file.write_text("raise ValueError('not today')\n")
    met: list[int] = []
    when_imported("framework_of_a_test", lambda: met.append(1))
    with pytest.raises(ValueError, match="not today"):
        importlib.import_module("framework_of_a_test")
    assert not met
    file.write_text("ready = 'at last, and longer'\n")
    importlib.invalidate_caches()
    importlib.import_module("framework_of_a_test")
    assert met == [1]


def test_a_folder_without_code_is_there_when_the_outermost_module_in_it_is(modules: Path) -> None:
    folder = modules / "folder_of_a_test"
    folder.mkdir()
    (folder / "core.py").write_text("")
    (folder / "nn.py").write_text("import folder_of_a_test.core\nlate = True\n")
    met: list[bool] = []
    when_imported("folder_of_a_test", lambda: met.append(hasattr(sys.modules["folder_of_a_test.nn"], "late")))
    try:
        importlib.import_module("folder_of_a_test")
        assert importlib.util.find_spec("folder_of_a_test.core") is not None
        assert not met
        importlib.import_module("folder_of_a_test.nn")
        assert met == [True]
    finally:
        for name in [name for name in sys.modules if name.startswith("folder_of_a_test")]:
            del sys.modules[name]


def test_a_module_that_is_executed_by_hand_or_lazily_is_met_at_the_next_import(modules: Path) -> None:
    met: list[bool] = []
    when_imported("framework_of_a_test", lambda: met.append(True))
    spec = importlib.util.find_spec("framework_of_a_test")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)  # type: ignore[arg-type]
    module = sys.modules["framework_of_a_test"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    importlib.import_module("library_of_a_test")
    assert not met
    assert module.ready
    with pytest.raises(ImportError):
        importlib.import_module("nobody_has_this_of_a_test")
    assert met == [True]


def test_threads_that_import_at_once_have_it_only_when_it_is_listened_to(modules: Path) -> None:
    (modules / "framework_of_a_test.py").write_text("import time\ntime.sleep(0.05)\nready = True\n")
    listened: list[bool] = []
    seen: list[bool] = []

    def act() -> None:
        time.sleep(0.05)
        listened.append(True)

    def user() -> None:
        importlib.import_module("framework_of_a_test")
        seen.append(bool(listened))

    when_imported("framework_of_a_test", act)
    threads = [threading.Thread(target=user) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert seen == [True] * 4
    assert listened == [True]
