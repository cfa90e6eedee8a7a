"""How often each check names its illness first, in settings its author had not seen (tests/confounders).

Run: ./dev bench checks            all of them
     ./dev bench checks dead-units frozen-parameters
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from sleuth import UnusableInput
from sleuth.checks import all_checks
from tests.confounders import Built, discover, judged
from tests.seeding import seed


def found_first(build: Callable[[], Built]) -> str:
    """The first culprit's name; what happened instead, in brackets."""
    seed()
    try:
        report = judged(build())
    except UnusableInput as error:
        return f"[refused: {error}]"
    return report.culprits[0].finding.name if report.culprits else "[nothing]"


def main() -> None:
    torch.set_num_threads(1)
    known = {check.name for check in all_checks()}
    wanted = set(sys.argv[1:]) or known
    results: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, variant, build in discover():
        if name in wanted & known:
            start = time.perf_counter()
            answer = found_first(build)
            results[name].append((variant, answer))
            mark = "right" if answer == name else "WRONG"
            print(f"{mark}  {name:28} {variant:45} {time.perf_counter() - start:5.1f} s  {answer}", flush=True)
    print(f"\n{'check':30} first  of")
    for name, answers in results.items():
        right = sum(answer == name for _, answer in answers)
        confused = ", ".join(answer for _, answer in answers if answer != name)
        print(f"{name:30} {right:5} {len(answers):3}  {confused}")
    total = sum(map(len, results.values()))
    right = sum(answer == name for name, answers in results.items() for _, answer in answers)
    print(f"\n{right} of {total} named first ({right / max(total, 1):.1%})")


if __name__ == "__main__":
    main()
