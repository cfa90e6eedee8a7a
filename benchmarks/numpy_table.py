"""Networks as people write them in NumPy, with one mistake each: is it named first, with its parameter, its term and its line?

Run: ./dev bench numpy_table        (FORM or FAULT …, to see only those)
"""

import argparse
import tempfile
import traceback
from collections import Counter
from pathlib import Path

from tests.adapters.numpy_table.faults import FAULTS, FORMS, NAMES, Fault, told
from tests.adapters.numpy_table.judging import report_of

WORDS = ("name", "parameter", "term", "line")


def judge_fault(fault: Fault, folder: Path) -> tuple[dict[str, bool], str]:
    try:
        report = report_of(fault.id, fault.source(), fault.by, folder)
    except Exception:
        return dict.fromkeys(WORDS, False), "raised: " + traceback.format_exc(limit=-2).replace("\n", " | ")
    if not report.culprits:
        return dict.fromkeys(WORDS, False), "nothing"
    first = report.culprits[0].finding
    line = (first.location.text or "").strip() if first.location is not None else "no line"
    return told(fault, first), f"{first.name} @ {first.where}: {first.summary}  [{line}]"


def judge_healthy(form: str, by: str, folder: Path) -> str:
    source = (FORMS / f"{form}.py").read_text(encoding="utf-8")
    try:
        report = report_of(f"{form}-whole-{by}", source, by, folder)
    except Exception:
        return "raised: " + traceback.format_exc(limit=-2).replace("\n", " | ")
    said = "; ".join(f"{f.name} ({f.severity.name.lower()}): {f.summary}" for f in report.findings)
    return said or report.status


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("only", nargs="*", help="parts of names")
    only = parser.parse_args().only
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        for fault in FAULTS:
            if only and not any(word in fault.id for word in only):
                continue
            found, said = judge_fault(fault, folder)
            counts["faults"] += 1
            counts.update(word for word in WORDS if found[word] and found["name"])
            counts["all"] += all(found.values())
            marks = "".join(word[0] if found[word] else "-" for word in WORDS)
            print(f"{marks}  {fault.id:45} {said}", flush=True)
        for form in NAMES:
            for by in ("examine", "watch"):
                if not only or any(word in f"{form}-whole" for word in only):
                    print(f"      {form + '-whole-' + by:45} {judge_healthy(form, by, folder)}", flush=True)
    print(", ".join(f"{word} {counts[word]}" for word in ("faults", *WORDS, "all")))


if __name__ == "__main__":
    main()
