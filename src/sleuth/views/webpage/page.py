"""The report as one page that needs nothing else: no network, no server, also on a phone.

The answer stands first, as text, and can be read before any script has run. Charts are drawn when they come into view; without
plotly, the curves among them are plain pictures.
"""

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from sleuth.core.report import Report
from sleuth.views.webpage.sections import sections
from sleuth.views.wording import count, duration, heading

# Whatever a name might smuggle in: nothing but our own scripts runs, and nothing is loaded from anywhere.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; script-src {}"


def render(report: Report) -> str:
    plotly = plotly_script()
    found = [section for section in sections(report, drawn=plotly is not None) if section.body]
    links = "".join(f'<a href="#{section.name}">{escape(section.title)}</a>' for section in found)
    body = "".join(f'<section id="{section.name}"><h2>{escape(section.title)}</h2>{section.body}</section>' for section in found)
    head = f"<header><p><b>sleuth</b> · {escape(report.subject)}</p><p>{escape(' · '.join(_facts(report)))}</p></header>"
    # Pure ASCII: also half a character in a name comes through.
    text = f'{head}<nav aria-label="Sections">{links}</nav><main>{body}</main>'.encode("ascii", "xmlcharrefreplace").decode()
    scripts = [] if plotly is None else [read("charts", "charts.js"), read("webpage", "page.js")]
    # Most of the page, and it takes longer to start than all the rest: page.js does so when the text can be read.
    waiting = "" if plotly is None else f'<script type="text/plain" id="plotly">{plotly}</script>'
    policy = POLICY.format(_hashes(scripts + ([plotly] if plotly else [])))
    return "".join(
        (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
            f"<title>{_title(report)}</title><style>{read('webpage', 'page.css')}</style></head><body>",
            text,
            waiting,
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>",
        )
    )


def _facts(report: Report) -> Iterator[str]:
    _, took, *rest = heading(report)
    if report.source in ("watch", "replay"):  # the others say it themselves
        took = f"{count(report.steps, 'step')} in {duration(report.seconds)}"
    yield from (took, *rest)


def _title(report: Report) -> str:
    culprit = f"{report.culprits[0].finding.name} · " if report.status == "sick" and report.culprits else ""
    return escape(f"{culprit}{report.subject} · sleuth").encode("ascii", "xmlcharrefreplace").decode()


@cache
def plotly_script() -> str | None:
    """None: plotly is not installed. Some 5 MB, most of the page."""
    found = find_spec("plotly")  # not imported: that takes longer than all the rest
    places = found.submodule_search_locations or () if found is not None else ()
    files = (Path(place, "package_data", "plotly.min.js") for place in places)
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return None
    # As a browser reads it, line ends included: its hash is taken.
    script = file.read_text(encoding="utf-8").replace("\r\n", "\n").replace("\r", "\n")
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


@cache
def read(folder: str, name: str) -> str:
    return (resources.files("sleuth.views") / folder / name).read_text(encoding="utf-8")


def _hashes(scripts: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
