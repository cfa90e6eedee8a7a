"""Executes a script in this process as `python` would: its `__main__`, its arguments, its path, its way out."""

import builtins
import importlib.machinery
import io
import os
import runpy
import sys
import threading
from collections.abc import Callable
from types import CodeType, ModuleType

from sleuth.script.target import Target

Compile = Callable[[bytes, str], CodeType | None]


def launch(target: Target, compiled: Compile | None = None) -> BaseException | None:
    """Returns what ended the script: None at its last line. Afterwards `__main__` stays, as exit handlers expect it.
    `compiled`: of source and file; None where Python is to compile it.

    Whoever else is still at work in the script's threads is waited for, as Python does before it exits."""
    run = _prepare(target, compiled)
    try:
        run()
    except BaseException as error:
        return error
    return None


def wait_for_threads() -> BaseException | None:
    """The script is over when its last thread is, other than those it called daemons."""
    try:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
    except KeyboardInterrupt as error:
        return error
    return None


def _prepare(target: Target, compiled: Compile | None) -> Callable[[], None]:
    main = _fresh_main()
    sys.orig_argv = [*sys.orig_argv[:1], *target.words]
    if target.is_module:
        sys.argv = ["-m", *target.arguments]
        _lead_path_with(os.getcwd())
        return lambda: runpy._run_module_as_main(target.name)  # type: ignore[attr-defined]
    sys.argv = [target.name, *target.arguments]
    if _is_package(target.name):
        _lead_path_with(os.path.join(os.getcwd(), target.name))
        return lambda: runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]
    # A link to a script finds its modules beside the script.
    _lead_path_with(os.path.dirname(os.path.realpath(target.name)))
    file = os.path.abspath(target.name)
    main.__file__ = file
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    main.__dict__["__cached__"] = None
    return lambda: _execute(file, main, compiled)


def _execute(file: str, main: ModuleType, compiled: Compile | None) -> None:
    with io.open_code(file) as opened:
        source = opened.read()
    code = None if compiled is None else compiled(source, file)
    exec(compile(source, file, "exec", dont_inherit=True) if code is None else code, main.__dict__)


def _fresh_main() -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__.update(__annotations__={}, __builtins__=builtins)
    # Ours is held: whatever is running from it goes on.
    _held.append(sys.modules["__main__"])
    sys.modules["__main__"] = main
    return main


_held: list[ModuleType] = []


def _is_package(name: str) -> bool:
    if os.path.isdir(name):
        return True
    with open(name, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _lead_path_with(folder: str) -> None:
    """The first entry is the place that sleuth itself was started from."""
    if sys.flags.safe_path:
        return
    sys.path[:1] = [folder]
