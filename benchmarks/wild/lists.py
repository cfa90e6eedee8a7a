"""The lists: which public scripts are run, with which small changes, and which faults are planted in them."""

import shlex
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


class Unfit(Exception):
    """A list or a checkout is not as it must be; the text says what."""


@dataclass(frozen=True)
class Repository:
    folder: str  # below the folder of checkouts
    github: str
    commit: str


@dataclass(frozen=True)
class Edit:
    """`pattern` is plain text and stands in the file exactly once, or as often as `times` says."""

    file: str
    pattern: str
    replacement: str
    why: str
    times: int = 1


@dataclass(frozen=True)
class Script:
    name: str
    repository: Repository
    path: str
    kind: str  # torch, numpy, jax, keras, mlx
    root: str = ""  # only this folder of the repository is copied
    run_in: str | None = None  # the current folder of the run; else the script's own
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    modules: tuple[str, ...] = ()  # folders of the repository that Python must find modules in
    data: tuple[str, ...] = ()  # "maker path": benchmarks/wild/data.py makes it
    before: tuple[str, ...] = ()  # scripts of the repository that prepare data, run plainly
    edits: tuple[Edit, ...] = ()
    torchvision: bool = True  # whether the stand-in is there; libraries that look for it by themselves need more of it
    arguable: tuple[str, ...] = ()  # alarms that are not plainly wrong here, with the reason beside them in the list

    def run_of(self) -> str:
        """What decides how it runs; what only decides how it is judged is left out."""
        return repr(replace(self, arguable=()))


@dataclass(frozen=True)
class Fault:
    name: str
    script: Script
    family: str
    edit: Edit
    illness: str
    also: tuple[str, ...]
    line: str  # a part of one line of the planted file; empty: no line is expected

    def run_of(self) -> str:
        return repr((self.script.run_of(), self.edit, self.line))


def read_scripts(text: str | None = None) -> dict[str, Script]:
    table = tomllib.loads(text or (FOLDER / "scripts.toml").read_text())
    repositories = {folder: Repository(folder, **about) for folder, about in table["repositories"].items()}
    entries: dict[str, dict[str, Any]] = {}
    for entry in table["script"]:
        merged = {**entries[entry["like"]], **entry} if "like" in entry else dict(entry)
        merged.pop("like", None)
        # What is added stands apart from what is inherited, so that a variant need not repeat the whole list.
        merged["edits"] = [*merged.get("edits", []), *merged.pop("more_edits", [])]
        if entry["name"] in entries:
            raise Unfit(f"two scripts are called {entry['name']}")
        entries[entry["name"]] = merged
    return {name: _script(entry, repositories) for name, entry in entries.items()}


def _script(entry: dict[str, Any], repositories: dict[str, Repository]) -> Script:
    entry = dict(entry)
    entry["repository"] = repositories[entry["repository"]]
    entry["arguments"] = tuple(shlex.split(entry.get("arguments", "")))
    entry["environment"] = tuple(sorted(entry.get("environment", {}).items()))
    entry["edits"] = tuple(_edit(edit, entry["path"]) for edit in entry["edits"])
    for key in ("modules", "data", "before", "arguable"):
        entry[key] = tuple(entry.get(key, ()))
    return Script(**entry)


def _edit(edit: dict[str, Any], path: str) -> Edit:
    return Edit(**{"file": path, **edit})


def read_faults(scripts: dict[str, Script], text: str | None = None) -> list[Fault]:
    table = tomllib.loads(text or (FOLDER / "faults.toml").read_text())
    return [_fault(entry, scripts[entry["script"]]) for entry in table["fault"]]


def _fault(entry: dict[str, Any], script: Script) -> Fault:
    edit = Edit(entry.get("file", script.path), entry["pattern"], entry["replacement"], entry["name"], entry.get("times", 1))
    also = tuple(entry.get("also", ()))
    return Fault(f"{script.name}/{entry['name']}", script, entry["family"], edit, entry["illness"], also, entry["line"])


def apply(edits: Iterable[Edit], folder: Path) -> None:
    for edit in edits:
        path = folder / edit.file
        if not path.exists():
            raise Unfit(f"{edit.file} is not there ({edit.why})")
        text = path.read_text()
        if text.count(edit.pattern) != edit.times:
            raise Unfit(f"{edit.file} has {edit.pattern!r} {text.count(edit.pattern)} times, not {edit.times} ({edit.why})")
        path.write_text(text.replace(edit.pattern, edit.replacement))


def line_of(fault: Fault, folder: Path) -> int | None:
    """Where the fault stands in the planted file; None: it has no line."""
    if not fault.line:
        return None
    lines = (folder / fault.edit.file).read_text().splitlines()
    places = [number for number, line in enumerate(lines, 1) if fault.line in line]
    if len(places) != 1:
        raise Unfit(f"{fault.edit.file} has {fault.line!r} in {len(places)} lines, not in one ({fault.name})")
    return places[0]
