"""Public training scripts that nobody here wrote, as they are and with one fault planted in each: what does sleuth make of them?

None of their code is in this repository: DIR holds checkouts, one folder each, named as in benchmarks/wild/scripts.toml.
Every script runs in a scratch copy, one after the other, on one thread: plainly and under `sleuth run`. A planted script runs
once, under `sleuth run`.

Run: ./dev bench wild --from DIR                             all of it, about an hour
     ./dev bench wild --from DIR --healthy --only makemore   healthy scripts of this name, or whose name contains it
     ./dev bench wild --from DIR --faults
     ./dev bench wild --from DIR --plain                     without sleuth: does everything still run here?
     ./dev bench wild --from DIR --keep FOLDER               goes on where it was interrupted: what is kept there is not run again
     ./dev bench wild --from DIR --keep FOLDER --show        the table of what is kept there, without running anything
     ./dev bench wild --from DIR --sleuth OTHER/src          the same by other code of sleuth
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.wild.judging import Healthy, Planted, numbers
from benchmarks.wild.keeping import digest_of
from benchmarks.wild.lists import Fault, Script, Unfit, read_faults, read_scripts
from benchmarks.wild.scratch import LONGEST_SECONDS, SLEUTH, Workshop
from benchmarks.wild.table import fault_row, fault_sums, healthy_row, healthy_sums
from benchmarks.wild.trying import NotKept, Trial


def say(text: str) -> None:
    print(text, flush=True)


def chosen(names: list[str], words: list[str]) -> list[str]:
    exactly = [name for name in names if name in words]
    return exactly or [name for name in names if not words or any(word in name for word in words)]


def there(cases: dict[str, Script], workshop: Workshop) -> Iterator[tuple[str, Script]]:
    """Those whose repository is there; the others are said."""
    for name, script in cases.items():
        if workshop.missing(script):
            about = script.repository
            say(f"MISSING  {name}: no folder {about.folder} ({about.github} at {about.commit[:12]}) in {workshop.checkouts}")
        else:
            yield name, script


def plain_row(name: str, script: Script, trial: Trial, fault: Fault | None) -> str:
    outcome = trial.plainly(name, script, fault)
    last = " ".join(numbers(outcome.text)[-6:])
    cause = "" if outcome.code == 0 else "\n" + outcome.errors[-800:]
    return f"{'ran  ' if outcome.code == 0 else 'DIED '}  {name:48} {outcome.seconds:5.1f} s  {last}{cause}"


def run(options: argparse.Namespace, trial: Trial) -> int:
    scripts = read_scripts()
    faults = {fault.name: fault for fault in read_faults(scripts)}
    both = options.healthy == options.faults
    healthy_names = chosen(list(scripts), options.only) if both or options.healthy else []
    fault_names = chosen(list(faults), options.only) if both or options.faults else []
    planted: list[Planted] = []
    healthy: list[Healthy] = []
    done = 0
    for title, names in (("planted", fault_names), ("healthy", healthy_names)):
        say(f"\n== {title}")
        cases = {name: faults[name].script if title == "planted" else scripts[name] for name in names}
        for name, script in there(cases, trial.workshop):
            try:
                if options.plain:
                    say(plain_row(name, script, trial, faults.get(name)))
                elif title == "planted":
                    planted.append(trial.planted(faults[name]))
                    say(fault_row(planted[-1]))
                else:
                    healthy.append(trial.healthy(script))
                    say(healthy_row(healthy[-1]))
                done += 1
            except Unfit as unfit:
                say(f"UNFIT    {name}: {unfit}")
            except NotKept:
                say(f"NOT RUN  {name}")
    say("\n== sums")
    for row in (*fault_sums(planted), *healthy_sums(healthy)):
        say(row)
    left_out = len(healthy_names) + len(fault_names) - done
    say(f"left out: {left_out} of {len(healthy_names) + len(fault_names)}")
    return 1 if left_out else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="checkouts", type=Path, required=True, metavar="DIR", help="the folder of checkouts")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="names, or parts of names")
    parser.add_argument("--healthy", action="store_true", help="only the healthy scripts")
    parser.add_argument("--faults", action="store_true", help="only the planted ones")
    parser.add_argument("--plain", action="store_true", help="run each once without sleuth, and judge nothing")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="for what was run; what is there by the same code is not run again"
    )
    parser.add_argument("--show", action="store_true", help="only what is kept: nothing is run")
    parser.add_argument(
        "--sleuth", type=Path, default=SLEUTH, metavar="SRC", help="the folder that the package lies in; else the one here"
    )
    parser.add_argument("--python", default=sys.executable, metavar="INTERPRETER", help="that runs the scripts")
    parser.add_argument("--longest", type=float, default=LONGEST_SECONDS, metavar="SECONDS", help="that one run may take")
    options = parser.parse_args()
    sleuth = options.sleuth.resolve()
    code = digest_of(sleuth / "sleuth")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        workshop = Workshop(options.checkouts.absolute(), options.python, place, sleuth, options.longest)
        say(
            f"sleuth {code}; {os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f} at the beginning (costs depend on it)"
        )
        return run(options, Trial(workshop, (options.keep or place / "kept").resolve(), code, options.show))


if __name__ == "__main__":
    sys.exit(main())
