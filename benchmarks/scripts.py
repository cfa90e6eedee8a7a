"""Scripts with and without an illness (benchmarks/scripts), run as they are: is the first culprit right, and its line?

Run: ./dev bench scripts                        those of torch, some 20 minutes
     ./dev bench scripts torch/first jax/fourth mlx    these sets, and all sets of a framework, with a summary for each
     ./dev bench scripts late/ digits           those of torch whose path contains one of these
     ./dev bench scripts keras healthy/         those of keras whose path contains this
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETS = Path(__file__).parent / "scripts"
SOURCE = Path(__file__).parent.parent / "src"
# A line is right when it is at most so far away.
NEAR = 2
LONGEST_SECONDS = 300


@dataclass(frozen=True)
class Answer:
    script: dict[str, Any]
    culprit: str  # empty: none
    line: int | None
    severities: tuple[str, ...]
    seconds: float
    plain: float

    @property
    def right(self) -> bool:
        return self.culprit in (self.script["illness"], *self.script.get("also", ()))

    @property
    def at_the_line(self) -> bool | None:
        """None: this illness has no line."""
        text = self.script["line"]
        if not text:
            return None
        lines = [line.strip() for line in self.script["file"].read_text().splitlines()]
        return self.line is not None and abs(self.line - 1 - lines.index(text)) <= NEAR


def run(script: dict[str, Any], plainly: bool) -> Answer:
    path = script["file"]
    # The sleuth of this tree, whichever one is installed.
    modules = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": modules}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        plain = timed([sys.executable, str(path)], folder, environment) if plainly else 0.0
        command = [sys.executable, "-m", "sleuth", "run", "--quiet", "--json", str(report), str(path)]
        seconds = timed(command, folder, environment)
        if not report.exists():
            return Answer(script, "no report", None, ("error",), seconds, plain)
        found = json.loads(report.read_text())
    severities = tuple(finding["severity"] for finding in found["findings"])
    if not found["culprits"]:
        return Answer(script, "", None, severities, seconds, plain)
    first = found["culprits"][0]
    first = first.get("finding", first)
    place = first.get("location") or {}
    line = place.get("line") if Path(place.get("file", "")).name == path.name else None
    return Answer(script, first["name"], line, severities, seconds, plain)


def timed(command: list[str], folder: str, environment: dict[str, str]) -> float:
    began = time.perf_counter()
    try:
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=LONGEST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        print(f"  gave up after {LONGEST_SECONDS} s: {command[-1]}", file=sys.stderr)
    return time.perf_counter() - began


def show(answer: Answer) -> None:
    script = answer.script
    if script["kind"] == "healthy":
        loud = [s for s in answer.severities if s in ("error", "warning")]
        mark = "LOUD " if loud else "quiet"
        print(f"{mark}  {script['path']:38} {answer.culprit:28} {', '.join(answer.severities)}", flush=True)
        return
    mark = "right" if answer.right else "WRONG"
    place = {None: "no line", True: "line", False: f"LINE {answer.line}"}[answer.at_the_line]
    said = "" if answer.right else f"says {answer.culprit or 'nothing'}"
    print(f"{mark}  {script['path']:38} {script['illness']:28} {place:10} {said}", flush=True)


def summarise(answers: list[Answer], plainly: bool) -> None:
    for kinds in (("sick", "late"), ("late",)):
        some = [a for a in answers if a.script["kind"] in kinds]
        right = [a for a in some if a.right]
        placed = [a for a in some if a.at_the_line is not None]
        there = [a for a in placed if a.at_the_line and a.right]
        if some:
            name = " and ".join(kinds)
            print(f"\n{name}: {len(right)} of {len(some)} with the right first culprit ({len(right) / len(some):.0%})")
            print(f"{name}: {len(there)} of {len(placed)} with the right line as well ({len(there) / max(len(placed), 1):.0%})")
    healthy = [a for a in answers if a.script["kind"] == "healthy"]
    errors, warnings = (sum(a.severities.count(kind) for a in healthy) for kind in ("error", "warning"))
    silent = sum(not {"error", "warning"} & {*a.severities} for a in healthy)
    print(f"\n{len(healthy)} healthy: {silent} silent, {errors} errors and {warnings} warnings")
    if plainly:
        added = sorted(a.seconds - a.plain for a in answers)
        print(f"seconds added, start included: median {added[len(added) // 2]:.1f}, most {added[-1]:.1f}")


def find_sets() -> list[str]:
    """As framework/set, the oldest first; a set is a folder with answers."""
    ages = {name: age for age, name in enumerate(("first", "second", "third", "fourth", "fifth"))}
    found = (answers.parent.relative_to(SETS) for answers in SETS.glob("*/*/answers.toml"))
    in_order = sorted(found, key=lambda path: (path.parent.name, ages.get(path.name, len(ages)), path.name))
    return [path.as_posix() for path in in_order]


def choose(words: list[str]) -> tuple[list[str], list[str]]:
    """The sets that the words name, each once, and the words that name none: they are parts of paths."""
    sets, chosen, parts = find_sets(), [], []
    for word in words:
        named = [one for one in sets if word in (one, one.split("/")[0])]
        chosen += [one for one in named if one not in chosen]
        parts += [] if named else [word]
    return chosen or [one for one in sets if one.startswith("torch/")], parts


def read_answers(name: str, parts: list[str]) -> list[dict[str, Any]]:
    scripts = tomllib.loads((SETS / name / "answers.toml").read_text())["script"]
    return [s | {"file": SETS / name / s["path"]} for s in scripts if not parts or any(part in s["path"] for part in parts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="SET|FRAMEWORK|PART", help="sets, frameworks, parts of paths")
    parser.add_argument("--plain", action="store_true", help="run each without sleuth too, for the seconds that are added")
    parser.add_argument("--jobs", type=int, default=2, help="side by side")
    options = parser.parse_args()
    sets, parts = choose(options.words)
    chosen = {name: scripts for name in sets if (scripts := read_answers(name, parts))}
    if not chosen:
        parser.error(f"no script of {', '.join(sets)} has one of {', '.join(parts)} in its path; sets: {', '.join(find_sets())}")
    for name, scripts in chosen.items():
        print(f"\n== {name}")
        answers = []
        with ThreadPoolExecutor(options.jobs) as pool:
            for answer in pool.map(lambda script: run(script, options.plain), scripts):
                show(answer)
                answers.append(answer)
        summarise(answers, options.plain)


if __name__ == "__main__":
    main()
