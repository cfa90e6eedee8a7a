"""The report as text: the answer first, then stage by stage. Readable without colour and in 80 columns."""

from sleuth.core.report import Report


def render(report: Report) -> str:
    lines = [f"sleuth · {report.subject} · {report.status}"]
    lines += [
        f"✗ {c.finding.name} {c.finding.code}: {c.finding.summary} [{', '.join(s.name for s in c.symptoms)}]"
        for c in report.culprits
    ]
    lines += [f"– {name}: {reason}" for name, reason in report.not_examined.items()]
    return "\n".join(lines)
