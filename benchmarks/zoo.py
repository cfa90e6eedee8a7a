"""What is examined in each healthy training of tests/zoo, and why the rest is not.

Run: ./dev bench zoo            all of them; the table is kept in benchmarks/results/zoo.txt
     ./dev bench zoo vae gan
"""

import importlib
import pkgutil
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import tests.zoo
from sleuth import Report, Subject, examine
from tests.feeding import LEAST, feedable, share_examined

KEPT = Path(__file__).parent / "results" / "zoo.txt"


def look_at(name: str) -> tuple[Subject, Report]:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    subject = importlib.import_module(f"tests.zoo.{name}").build()
    return subject, examine(subject, progress=False)


def rows(name: str, subject: Subject, report: Report) -> Iterator[str]:
    examined, fed = share_examined(report, subject)
    found = ", ".join(f.name for f in report.findings) or "silent"
    yield f"{name:20} {examined:3} of {fed:3}  {examined / fed:4.0%}  {len(report.stage_of) - fed:3} cannot be fed  {found}"
    can = feedable(report.stage_of, subject)
    for check, reason in report.not_examined.items():
        yield f"    {'-' if check in can else 'x'} {check}: {reason}"


def main() -> None:
    torch.set_num_threads(1)
    every = [m.name for m in pkgutil.iter_modules(tests.zoo.__path__) if m.name != "data"]
    names = sys.argv[1:] or every
    lines = [f"Checks examined in healthy trainings; at least {LEAST:.0%} of those that can be fed. x: cannot be fed here.", ""]
    for name in names:
        start = time.perf_counter()
        lines += list(rows(name, *look_at(name)))
        print(f"{time.perf_counter() - start:5.1f} s  {name}", file=sys.stderr, flush=True)
    text = "\n".join(lines)
    print(text)
    if names == every:
        KEPT.write_text(text + "\n")


if __name__ == "__main__":
    main()
