"""Every case in every framework that can build it: how often its illness is named first, and its healthy twin left alone.

Run: ./dev bench frameworks                    all of them, the better part of two hours on one core
     ./dev bench frameworks mlx numpy          only these frameworks
     ./dev bench frameworks mlx -k zero        only cases whose names hold this word
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from sleuth.testing import CannotBuild, Case, Kit
from tests.conftest import kits
from tests.grid import cases_of, diagnosed
from tests.seeding import seed


def judged(case: Case, kit: Kit, variant: str) -> tuple[str, str]:
    """(right, wrong, failed or unbuilt; what was said)."""
    seed()
    try:
        report = diagnosed(case, kit, variant)
    except CannotBuild as reason:
        return "unbuilt", str(reason)
    except Exception as error:  # one case that breaks must not cost the others
        return "failed", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    named = [finding.name for finding in report.findings]
    if variant == "healthy":
        return ("right" if not named and case.name in report.clear else "wrong"), ", ".join(named) or "silent"
    first = report.culprits[0].finding.name if report.culprits else "[nothing]"
    return ("right" if first == case.name else "wrong"), first


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kits", nargs="*")
    parser.add_argument("-k", dest="word", default="")
    given = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [kit for kit in kits() if not given.kits or kit.name in given.kits]
    counts: Counter[tuple[str, str, str]] = Counter()
    for kit in chosen:
        for case in cases_of(kit):
            if given.word not in case.name:
                continue
            for variant in ("sick", "healthy"):
                began = time.perf_counter()
                verdict, said = judged(case, kit, variant)
                counts[kit.name, variant, verdict] += 1
                seconds = time.perf_counter() - began
                if verdict != "unbuilt":
                    print(f"{verdict:7} {kit.name:8} {variant:8} {case.name:30} {seconds:6.1f} s  {said}", flush=True)
    print(f"\n{'':10} | sick: named first | healthy: silent | cannot be had there")
    for kit in chosen:
        sick, healthy = (_share(counts, kit.name, variant) for variant in ("sick", "healthy"))
        print(f"{kit.name:10} | {sick} | {healthy} | {counts[kit.name, 'sick', 'unbuilt']}")


def _share(counts: Counter[tuple[str, str, str]], kit: str, variant: str) -> str:
    right = counts[kit, variant, "right"]
    return f"{right} of {right + counts[kit, variant, 'wrong'] + counts[kit, variant, 'failed']}"


if __name__ == "__main__":
    main()
