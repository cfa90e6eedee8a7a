"""Public training scripts that nobody here wrote, as they are and with one fault planted in each: what does sleuth make of them?

None of their code is in this repository: DIR holds checkouts, one folder each, named as in benchmarks/wild/scripts.toml.
Every script runs in a scratch copy, one after the other, on one thread: twice plainly, to know which printed numbers are
repeatable, and once under `sleuth run`. A planted script runs once, under `sleuth run`.

Run: ./dev bench wild --from DIR                     all of it, about an hour
     ./dev bench wild --from DIR --healthy makemore  healthy scripts whose name contains this
     ./dev bench wild --from DIR --faults
     ./dev bench wild --from DIR --plain             without sleuth: does everything still run here?
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.wild.judging import Healthy, Planted, judge_healthy, numbers, read_report
from benchmarks.wild.lists import Fault, Script, Unfit, line_of, read_faults, read_scripts
from benchmarks.wild.scratch import LONGEST_SECONDS, Workshop
from benchmarks.wild.table import fault_row, fault_sums, healthy_row, healthy_sums


def try_healthy(script: Script, workshop: Workshop) -> Healthy:
    first, second = (workshop.plainly(script, workshop.copy(script)) for _ in range(2))
    report = workshop.place / "report.json"
    report.unlink(missing_ok=True)
    watched = workshop.under_sleuth(script, workshop.copy(script), report)
    return judge_healthy(script, first, second, watched, read_report(report))


def try_fault(fault: Fault, workshop: Workshop) -> Planted:
    report = workshop.place / "report.json"
    report.unlink(missing_ok=True)
    folder = workshop.copy(fault.script, [fault.edit])
    expected = line_of(fault, folder)
    watched = workshop.under_sleuth(fault.script, folder, report)
    return Planted(fault, read_report(report), expected, watched.code, watched.seconds)


def try_plainly(name: str, script: Script, workshop: Workshop, fault: Fault | None) -> str:
    folder = workshop.copy(script, [fault.edit] if fault else [])
    if fault:
        line_of(fault, folder)
    outcome = workshop.plainly(script, folder)
    last = " ".join(numbers(outcome.text)[-6:])
    cause = "" if outcome.code == 0 else "\n" + outcome.errors[-800:]
    return f"{'ran  ' if outcome.code == 0 else 'DIED '}  {name:48} {outcome.seconds:5.1f} s  {last}{cause}"


def chosen(names: list[str], words: list[str]) -> list[str]:
    return [name for name in names if not words or any(word in name for word in words)]


def each(cases: dict[str, Script], workshop: Workshop) -> Iterator[tuple[str, Script]]:
    """Those whose repository is there; the others are said."""
    for name, script in cases.items():
        if workshop.missing(script):
            about = script.repository
            say(f"MISSING  {name}: no folder {about.folder} ({about.github} at {about.commit[:12]}) in {workshop.checkouts}")
        else:
            yield name, script


def say(text: str) -> None:
    print(text, flush=True)


def run(options: argparse.Namespace, workshop: Workshop) -> int:
    scripts = read_scripts()
    faults = {fault.name: fault for fault in read_faults(scripts)}
    both = options.healthy == options.faults
    healthy_names = chosen(list(scripts), options.words) if both or options.healthy else []
    fault_names = chosen(list(faults), options.words) if both or options.faults else []
    left_out = 0
    planted: list[Planted] = []
    healthy: list[Healthy] = []
    for title, names in (("planted", fault_names), ("healthy", healthy_names)):
        say(f"\n== {title}")
        cases = {name: faults[name].script if title == "planted" else scripts[name] for name in names}
        left_out += sum(workshop.missing(script) for script in cases.values())
        for name, script in each(cases, workshop):
            try:
                if options.plain:
                    say(try_plainly(name, script, workshop, faults.get(name)))
                elif title == "planted":
                    planted.append(try_fault(faults[name], workshop))
                    say(fault_row(planted[-1]))
                else:
                    healthy.append(try_healthy(script, workshop))
                    say(healthy_row(healthy[-1]))
            except Unfit as unfit:
                left_out += 1
                say(f"UNFIT    {name}: {unfit}")
    say("\n== sums")
    for row in (*fault_sums(planted), *healthy_sums(healthy)):
        say(row)
    say(f"left out: {left_out} of {len(healthy_names) + len(fault_names)}")
    return 1 if left_out else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="PART", help="parts of names")
    parser.add_argument("--from", dest="checkouts", type=Path, required=True, metavar="DIR", help="the folder of checkouts")
    parser.add_argument("--healthy", action="store_true", help="only the healthy scripts")
    parser.add_argument("--faults", action="store_true", help="only the planted ones")
    parser.add_argument("--plain", action="store_true", help="run each once without sleuth, and judge nothing")
    parser.add_argument("--python", default=sys.executable, metavar="INTERPRETER", help="that runs the scripts")
    parser.add_argument("--longest", type=float, default=LONGEST_SECONDS, metavar="SECONDS", help="that one run may take")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        return run(options, Workshop(options.checkouts.absolute(), options.python, Path(place).resolve(), options.longest))


if __name__ == "__main__":
    sys.exit(main())
