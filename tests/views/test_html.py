"""The report in a notebook: complete, small, and harmless whatever a name holds."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from sleuth.core.diagnosis import Culprit
from sleuth.core.location import Location
from tests.views import reports

HOSTILE = "</style></div><script>alert(1)</script><img src=x onerror='alert(2)'>\"&"
VOID = {"br", "img", "meta", "input", "link"}


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open, "a tag is left open"
    return reader


@pytest.mark.parametrize("name", reports.ALL)
def test_every_fragment_is_sound_and_says_its_status(name: str) -> None:
    report = reports.ALL[name]()
    html = report.to_fragment()
    assert report._repr_html_() == html
    assert html.isascii()
    assert report.status.upper() in read(html).text


def test_verdict_why_where_and_what_to_do_are_there() -> None:
    text = read(reports.sick().to_fragment()).text
    for part in ("double-softmax", "M205", "train.py:23", "torch.softmax(self.head(x), dim=1)", "Return the scores"):
        assert part in text
    assert "cannot-overfit-one-batch because of double-softmax" in text
    assert "we warm up for 1,000 steps" in text
    assert "no validation data was given" in text


def test_hostile_names_are_only_text() -> None:
    finding = replace(
        reports.DOUBLE_SOFTMAX,
        where=HOSTILE,
        summary=HOSTILE,
        title=HOSTILE,
        why=HOSTILE,
        fix=HOSTILE,
        location=Location(HOSTILE, 1, HOSTILE),
    )
    facts = {"inputs": [{"path": HOSTILE, "shape": [1], "dtype": HOSTILE, "min": None}] * 2, "optimiser": HOSTILE}
    report = reports.report(
        Culprit(finding, ()),
        subject=HOSTILE,
        framework=HOSTILE,
        notes=(HOSTILE,),
        ignored={"labels-misaligned": HOSTILE},
        not_examined={"train-val-overlap": HOSTILE},
        facts=facts,
    )
    reader = read(report.to_fragment())
    assert not reader.tags & {"script", "img"}
    assert reader.attributes <= {"class"}
    assert reader.text.count("alert(1)") >= 10


def test_nothing_is_loaded_from_anywhere() -> None:
    html = reports.sick().to_fragment()
    assert "http" not in html
    assert "url(" not in html
