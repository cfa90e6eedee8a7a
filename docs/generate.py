"""Writes docs/checks, the page of every check, and the examples that ship with the package.

An example is the code of a check's two cases and what sleuth really said of the sick one. The code is read anew each time; a
finding is kept until the code of its case changes, or until --findings asks for it.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from case_code import case_code

from sleuth.checks import all_checks
from sleuth.testing import Case, discover
from sleuth.views.catalogue import index
from sleuth.views.example import Example, read
from sleuth.views.explain import explain

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the cases import their data from tests/
PAGES = ROOT / "docs" / "checks"
EXAMPLES = ROOT / "src" / "sleuth" / "views" / "examples"


def pages(examples: dict[str, Example]) -> dict[str, str]:
    checks = all_checks()
    texts = {f"{c.name}.md": explain(c, checks, markdown=True, shown=examples.get(c.name)) for c in checks}
    return {"index.md": index(checks), **texts}


def cases() -> list[Case]:
    known = {c.name for c in all_checks()}
    return [case for case in discover(ROOT / "tests" / "cases") if case.name in known]


def current(case: Case) -> Example:
    """The code as it stands now; with the stored finding if that was made from the same code, else with none."""
    code = case_code(case.file, ROOT / "tests" / "material.py")
    new = Example(code.story, code.sick, code.changes, "", code.data)
    stored = read(EXAMPLES / f"{case.name}.toml")
    same = stored is not None and stored.sick == new.sick
    return replace(new, finding=stored.finding) if same else new


def examined(case: Case, example: Example) -> Example:
    """Without a finding where sleuth does not find what it should: --check then says so."""
    from finding import NothingToShow, finding

    print(f"examining the sick case of {case.name} …", file=sys.stderr)
    try:
        return replace(example, finding=finding(case, ROOT))
    except NothingToShow as reason:
        print(reason, file=sys.stderr)
        return replace(example, finding="")


def as_toml(example: Example) -> str:
    """Long texts as they are, so that a change of theirs can be read in a diff."""
    parts = asdict(example)
    data = "".join(f"{name} = {json.dumps(what, ensure_ascii=False)}\n" for name, what in parts.pop("data").items())
    story = json.dumps(parts.pop("story"), ensure_ascii=False)
    long = "".join(f"{name} = '''\n{text}'''\n" for name, text in parts.items())
    return f"# Written by ./dev docs.\nstory = {story}\n{long}\n[data]\n{data}"


def out_of_date(folder: Path, wanted: dict[str, str], ending: str = ".md") -> list[str]:
    there = {file.name: file.read_text(encoding="utf-8") for file in folder.glob(f"*{ending}")}
    return sorted(name for name in {*there, *wanted} if there.get(name) != wanted.get(name))


def write(folder: Path, wanted: dict[str, str], ending: str = ".md") -> None:
    """Pages of checks that are gone go too."""
    folder.mkdir(exist_ok=True)
    for name in out_of_date(folder, wanted, ending):
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8")
        else:
            (folder / name).unlink()


def frameworks() -> dict[str, str]:
    from frameworks import page

    from tests.conftest import kits

    return {"frameworks.md": page(kits(), cases())}


def stale() -> list[str]:
    """What ./dev docs would write anew. No training is examined for it: seconds."""
    examples = {case.name: current(case) for case in cases()}
    beside = [name for name, text in frameworks().items() if not _says(ROOT / "docs" / name, text)]
    files = {f"{name}.toml": as_toml(e) if e.finding else "" for name, e in examples.items()}
    return beside + out_of_date(EXAMPLES, files, ".toml") + out_of_date(PAGES, pages(examples))


def _says(file: Path, text: str) -> bool:
    return file.exists() and file.read_text(encoding="utf-8") == text


def renew(names: Iterable[str] | None) -> None:
    """`names` are the checks whose findings are made anew: all when empty, only those that must when None."""
    examples = {}
    for case in cases():
        example = current(case)
        asked = names is not None and (not names or case.name in names)
        examples[case.name] = examined(case, example) if asked or not example.finding else example
        write_one(EXAMPLES / f"{case.name}.toml", as_toml(examples[case.name]))
    write(EXAMPLES, {f"{name}.toml": as_toml(e) for name, e in examples.items()}, ".toml")
    write(PAGES, pages(examples))
    for name, text in frameworks().items():
        write_one(ROOT / "docs" / name, text)


def write_one(file: Path, text: str) -> None:
    """At once, so that an interruption loses no examination."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a page is out of date, write nothing")
    parser.add_argument("--findings", nargs="*", metavar="NAME", help="examine these sick cases again; without names, all")
    options = parser.parse_args()
    if not options.check:
        renew(options.findings)
    found = stale()
    if found:
        print(f"generated files are out of date ({', '.join(found)}): run ./dev docs and see what it says", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
