"""`./dev check NAME`: tries a check everywhere, writes what follows from it, and prints what a reviewer must read."""

import time
from collections.abc import Sequence

from tests import golden_tables
from tests.authoring import generated, verdicts
from tests.authoring.everywhere import OTHERS_IN, all_others, kit_names, own_case
from tests.authoring.naming import Place, check_of, known_place, shown
from tests.authoring.prompts import prompts_left
from tests.authoring.review import matrix, section
from tests.authoring.rules import SEARCH, TEXTS, advice_missing, by_hand, pytest_fails, style_fails
from tests.authoring.runs import Outcome, Run, outcomes


def say(line: str) -> None:
    print(line, flush=True)


def try_check(name: str, kits: Sequence[str] | None, *, everywhere: bool = True, update_golden: bool = False) -> bool:
    """Whether all is well; without `kits`, in all. Stops at the first part that is not: nobody waits in vain."""
    place, began = known_place(name), time.monotonic()
    if not _texts_are_sound(place):
        return False
    whole = everywhere and not kits
    kits = kits or kit_names()
    own = _tried(f"2  Its sick and healthy case in {', '.join(kits)} …", own_case(place.name, list(kits)), place.name)
    section("Its case, by framework", matrix(place.name, own))
    faults = [*verdicts.own_faults(place.name, own)]
    if not update_golden:
        faults += generated.changed_rows(place.name, own)
    if faults:
        section("Not right yet; nothing new was written", faults)
        return False
    others = (
        _tried("\n3  All other trainings: cases, zoo, look-alikes …", all_others(place.name), place.name) if everywhere else []
    )
    faults = list(verdicts.other_faults(place.name, others))
    golden = golden_tables.rows(OTHERS_IN)
    speaks = list(verdicts.sick_others(place.name, others, golden))
    section("Not from your check: these trainings break by themselves", verdicts.broken_others(others))
    if faults:
        section("Not right yet; nothing new was written", faults)
        section("Other sick cases in which it speaks", speaks)
        return False
    faults = _write(place, own) + list(advice_missing(check_of(place)))
    looked = sum(not o.not_examined and not o.cannot_build for o in others)
    section(
        f"Other sick cases in which it speaks (it could look at {looked} of {len(others)} trainings)",
        speaks,
        "none" if others else "not tried",
    )
    section("Edges that `explains` may lack", verdicts.beside(place.name, own))
    section("To do by hand", by_hand(check_of(place)))
    section("Still missing: tests fail without it", faults)
    state = (
        "not ready"
        if faults
        else "ready"
        if whole
        else "ready as far as it was tried (--kits and --own-only leave trainings out),"
    )
    say(f"\n{place.name}: {state} after {time.monotonic() - began:.0f} s. Before you commit: ./dev lint, ./dev test")
    return not faults


def _texts_are_sound(place: Place) -> bool:
    if left := prompts_left([place.check, place.case]):
        section(f"{place.name} still asks you for {len(left)} things: answer each and delete its TODO", left)
        return False
    say(f"1  Texts and style of {shown(place.check)} and its case …")
    faults = [said for said in (style_fails(place), pytest_fails(TEXTS, "--deselect", SEARCH)) if said]
    section("Not right yet; nothing was written", faults)
    return not faults


def _tried(title: str, runs: list[Run], name: str) -> list[Outcome]:
    say(title)
    found = []
    for outcome in outcomes(runs, name, say):
        found.append(outcome)
        if outcome.summary and outcome.run.name != name:
            say(f"  {name} speaks, {outcome.run}: {outcome.summary}")
    return found


def _write(place: Place, own: list[Outcome]) -> list[str]:
    """What is wrong with what was written; prints what was."""
    say("\n4  Golden rows, symptom search, pages …")
    before = generated.texts()
    generated.write_rows(place.name, own)
    faults = [said for said in (generated.write_search(), generated.write_pages(place.name)) if said]
    after = generated.texts()
    section("Golden files, the lines that changed", generated.golden_diff(before, after), "none")
    section("Files written", generated.written(before, after), "none")
    return faults
