"""Writes the page of every check and their index into docs/checks; with --check, only says what is out of date."""

import argparse
import sys
from pathlib import Path

from sleuth.checks import all_checks
from sleuth.views.catalogue import index
from sleuth.views.explain import explain

FOLDER = Path(__file__).parent / "checks"


def pages() -> dict[str, str]:
    checks = all_checks()
    return {"index.md": index(checks), **{f"{c.name}.md": explain(c, checks, markdown=True) for c in checks}}


def out_of_date(folder: Path, wanted: dict[str, str]) -> list[str]:
    there = {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.md")}
    return sorted(name for name in {*there, *wanted} if there.get(name) != wanted.get(name))


def write(folder: Path, wanted: dict[str, str]) -> None:
    """Pages of checks that are gone go too."""
    folder.mkdir(exist_ok=True)
    for name in out_of_date(folder, wanted):
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8")
        else:
            (folder / name).unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a page is out of date, write nothing")
    wanted = pages()
    if not parser.parse_args().check:
        write(FOLDER, wanted)
        return 0
    stale = out_of_date(FOLDER, wanted)
    if stale:
        print(f"docs/checks is out of date ({', '.join(stale)}): run ./dev docs", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
