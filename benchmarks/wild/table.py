"""The rows and sums of `./dev bench wild`."""

from statistics import median

from benchmarks.wild.judging import Healthy, Planted

ENOUGH = 0.7


def healthy_row(run: Healthy) -> str:
    report = run.report
    heard = f"{report.steps} steps" if report.heard else "UNHEARD" if report.there else "NO REPORT"
    alarms = ", ".join(
        f"{severity} {name}{' (arguable)' if name in run.script.arguable else ''}"
        for severity, name in report.findings
        if severity in ("error", "warning")
    )
    mark = "LOUD " if run.wrong_alarms else "quiet"
    code = "" if run.code[0] == run.code[1] == 0 else f" ended {run.code[0]}, {run.code[1]}"
    cost = f"{run.plain:5.1f} s x{run.watched / max(run.plain, 0.01):4.2f} +{run.after:4.1f} s"
    examined = f"{len(report.examined):3}/{report.asked - report.ruled_out:3}/{report.asked:3}"
    same = f"same {run.same:3} of {run.compared:4}"
    return f"{mark}  {run.script.name:30} {same}  {heard:12} {examined}  {cost}{code}  {alarms}".rstrip()


def fault_row(run: Planted) -> str:
    line = {None: "no line", True: "line", False: "LINE"}[run.at_the_line]
    if run.at_the_line is False and run.report.place:
        line += f" {run.report.place[0]}:{run.report.place[1]} for {run.expected}"
    said = run.report.culprit or "nothing"
    found = " (found, not first)" if run.further_down else ""
    if run.verdict == "other" and said in run.fault.script.arguable:
        found += " (which is arguable there anyway)"
    told = run.fault.illness if run.verdict == "right" else f"{run.fault.illness}, says {said}{found}"
    unheard = "" if run.report.heard else "  UNHEARD" if run.report.there else "  NO REPORT"
    ended = "" if run.code == 0 else f"  ended {run.code}"
    return f"{run.verdict:6}  {run.fault.name:48} {told}  {line}{unheard}{ended}"


def healthy_sums(runs: list[Healthy]) -> list[str]:
    if not runs:
        return []
    comparable = [run for run in runs if run.same != "?"]
    loud = [run for run in runs if run.wrong_alarms]
    broken = [run.script.name for run in runs if run.code[0] != run.code[1]]
    ratios = sorted(run.watched / max(run.plain, 0.01) for run in runs)
    afters = sorted(run.after for run in runs)
    rows = [
        f"{len(runs)} healthy runs of {len({run.script.path for run in runs})} scripts, "
        f"{len({run.script.repository for run in runs})} repositories",
        f"  same output: {sum(run.same == 'yes' for run in runs)} of {len(comparable)} that can be compared",
        f"  broken (ended otherwise than plainly): {', '.join(broken) or 'none'}",
        f"  heard: {sum(run.report.heard for run in runs)} of {len(runs)}",
        f"  alarmed wrongly: {len(loud)} of {len(runs)}"
        + "".join(f"\n    {run.script.name}: {', '.join(run.wrong_alarms)}" for run in loud),
        f"  training took: median x{median(ratios):.2f}, most x{ratios[-1]:.2f}; after the end: median {median(afters):.1f} s, "
        f"most {afters[-1]:.1f} s",
    ]
    return rows + [f"  {row}" for row in examined_sums(runs)]


def examined_sums(runs: list[Healthy]) -> list[str]:
    """What was examined, of the checks that the training can feed by the words of the report; and, by framework, of those
    that at least one healthy run of that framework fed in this table."""
    covered = sorted(run.report.coverage for run in runs)
    enough = sum(share >= ENOUGH for share in covered)
    rows = [
        f"examined, of what the training can feed by the report: median {median(covered):.0%}, least {covered[0]:.0%}; "
        f"{ENOUGH:.0%} or more in {enough} of {len(runs)}"
    ]
    for kind in sorted({run.script.kind for run in runs}):
        some = [run.report.examined for run in runs if run.script.kind == kind]
        fed = frozenset[str]().union(*some)
        shares = sorted(len(examined) / max(len(fed), 1) for examined in some)
        asked = max(run.report.asked for run in runs if run.script.kind == kind)
        rows.append(
            f"examined, {kind}: median {median(shares):.0%}, least {shares[0]:.0%} of {len(fed)} checks that some run fed "
            f"({asked} asked, {len(some)} runs)"
        )
    return rows


def fault_sums(runs: list[Planted]) -> list[str]:
    if not runs:
        return []
    rows = [f"{len(runs)} planted faults in {len({run.fault.script.path for run in runs})} scripts"]
    for name, some in [("all", runs), *by_family(runs)]:
        right = [run for run in some if run.verdict == "right"]
        placed = [run for run in some if run.expected is not None]
        there = [run for run in placed if run.verdict == "right" and run.at_the_line]
        other, silent = (sum(run.verdict == word for run in some) for word in ("other", "silent"))
        rows.append(
            f"  {name:28} first culprit right {len(right):2} of {len(some):2}, other {other:2}, silent {silent:2}; "
            f"line too {len(there):2} of {len(placed):2}"
        )
    return rows


def by_family(runs: list[Planted]) -> list[tuple[str, list[Planted]]]:
    families = dict.fromkeys(run.fault.family for run in runs)
    return [(family, [run for run in runs if run.fault.family == family]) for family in families]
