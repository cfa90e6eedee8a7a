"""A script cannot tell whether Python runs it or sleuth, except by what comes after its end."""

from pathlib import Path

import pytest

from tests.script.ways import plain, report_of, watched


@pytest.mark.parametrize("end", ["0", "3", "words"])
def test_a_script_sees_what_it_would_see_and_ends_as_it_would(end: str) -> None:
    same = plain("surroundings.py", end, "--own", "-x")
    assert same.code == {"0": 0, "3": 3, "words": 1}[end]
    assert "at exit Thing" in same.errors
    added = report_of(watched("surroundings.py", end, "--own", "-x"), same)
    assert added.count("\n") == 2, "one line is enough where nothing was trained"
    assert "torch was imported, and nothing else can be listened to" in added


@pytest.mark.parametrize("words", [("-m", "package.module"), ("-m", "package.module", "interrupt"), ("-m", "package.nowhere")])
def test_a_module_is_run_as_by_python_m(words: tuple[str, ...]) -> None:
    same = plain(*words)
    assert same.code == (-2 if "interrupt" in words else 1)
    report_of(watched(*words), same)


@pytest.mark.parametrize(
    "text",
    [
        "def broken(:\n",
        "import sys\nsys.excepthook = lambda kind, *_: print('own hook', kind, file=sys.stderr)\n1 / 0\n",
        "def f(): raise ExceptionGroup('several', [ValueError('one'), KeyError('two')])\nf()\n",
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n",
        "import sys\nsys.exit()\n",
    ],
    ids=["syntax", "hook", "group", "interrupt", "exit"],
)
def test_an_exception_is_shown_and_ends_the_process_as_python_does_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(text)
    report_of(watched("script.py", folder=tmp_path), plain("script.py", folder=tmp_path))


def test_a_folder_and_a_link_are_run_as_by_python(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    text = "import sys; print(__name__, __file__, sys.argv, sys.path)\n"
    (tmp_path / "folder" / "__main__.py").write_text(text)
    (tmp_path / "link.py").symlink_to(tmp_path / "folder" / "__main__.py")
    for script in ("folder", "link.py"):
        report_of(watched(script, folder=tmp_path), plain(script, folder=tmp_path))


def test_what_cannot_be_run_is_said_in_words(tmp_path: Path) -> None:
    for words, said in (
        (("train",), "there is no file train. Did you mean train.py?"),
        (("package.train",), "For a module write: sleuth run -m package.train"),
        ((), "nothing to run"),
        (("--steps", "0", "train.py"), "--steps 0 leaves nothing to look at"),
        (("--select", "no-such-check", "train.py"), "there is no check 'no-such-check'"),
    ):
        (tmp_path / "train.py").write_text("print('ran')\n")
        ended = watched(*words, folder=tmp_path)
        assert ended.code == 2
        assert said in ended.errors
        assert ended.out == ""
