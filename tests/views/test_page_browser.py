"""The report's page in a real browser: drawn, quiet, to itself, usable with mouse, keyboard and thumb, and harmless."""

from dataclasses import replace

import pytest

from sleuth.core.diagnosis import Culprit
from sleuth.core.location import Location
from sleuth.views.webpage import page as webpage
from tests.browser import browser, listened
from tests.views import recordings, reports

pytest.importorskip("plotly")
pytestmark = pytest.mark.long

DESK = {"viewport": {"width": 1100, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "color_scheme": "dark"}


@pytest.fixture(scope="module")
def opened():
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory):
    hostile = recordings.HOSTILE
    culprit = replace(
        reports.DOUBLE_SOFTMAX, where=hostile, summary=hostile, why=hostile, fix=hostile, location=Location(hostile, 1, hostile)
    )
    facts = {"architecture": {"count": 1, "layers": [_layer(hostile)]}, "machine": {"python": hostile}, "optimiser": hostile}
    report = reports.report(
        Culprit(culprit, (reports.OVERFIT,)), subject=hostile, notes=(hostile,), remembered=recordings.recording(), facts=facts
    )
    return report.save(tmp_path_factory.mktemp("page") / "report.html")


def _layer(path: str) -> dict[str, object]:
    return {"path": path, "kind": path, "shapes": [[2, 3]], "parameters": 6, "trainable": 0}


def shown(opened, file, **options):
    page = opened.new_context(**options).new_page()
    noted = listened(page)
    page.goto(file.as_uri())
    page.wait_for_selector("body.ready")
    return page, noted


def draw(page, name: str) -> None:
    page.locator(f"#{name}").scroll_into_view_if_needed()
    page.wait_for_selector(f"#{name}.drawn")


def test_every_chart_is_drawn_without_a_word_in_the_console_and_without_a_request(opened, file) -> None:
    page, noted = shown(opened, file, **DESK)
    height = page.evaluate("document.documentElement.scrollHeight")
    for box in page.locator(".chart").all():
        draw(page, box.get_attribute("id"))
        assert box.locator(".main-svg").count() > 0
    assert page.locator(".chart").count() >= 12
    ids = page.evaluate("[...document.querySelectorAll('section, .chart')].map((box) => box.id)")
    assert len(ids) == len(set(ids))
    assert noted.messages == []
    assert {address.split(":")[0] for address in noted.requests} <= {"file", "data", "blob"}
    assert [address for address in noted.requests if address.startswith("file")] == [file.as_uri()]
    assert page.evaluate("document.documentElement.scrollHeight") == height, "the layout jumped while charts were drawn"


def test_names_with_markup_are_shown_as_they_are(opened, file) -> None:
    page, noted = shown(opened, file, **DESK)
    draw(page, "heat-gradient")
    assert recordings.HOSTILE in page.locator("#verdict").inner_text()
    assert recordings.HOSTILE[-20:] in page.locator("#heat-gradient .yaxislayer-above").text_content()
    page.locator("#heat-gradient .nsewdrag").hover(position={"x": 60, "y": 5})
    assert recordings.HOSTILE in page.locator("#heat-gradient .hoverlayer").text_content()
    draw(page, "spread-weight")
    assert recordings.HOSTILE in page.locator("figure:has(#spread-weight) option").first.inner_text()
    assert page.locator("img").count() == 0
    assert noted.messages == []


def test_hover_shows_a_value_and_dragging_zooms_and_keys_do_too(opened, file) -> None:
    page, _ = shown(opened, file, **DESK)
    draw(page, "loss")
    plot = page.locator("#loss .nsewdrag")
    plot.hover(position={"x": 100, "y": 50})
    assert "1.8" in page.locator("#loss .hoverlayer").text_content()

    def span() -> float:
        low, high = page.evaluate("document.getElementById('loss').layout.xaxis.range")
        return high - low

    whole = span()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 120, steps=4)
    page.mouse.up()
    page.wait_for_timeout(100)
    zoomed = span()
    assert zoomed < whole / 2
    page.locator("#loss").focus()
    page.keyboard.press("+")
    assert span() == pytest.approx(zoomed / 2)
    page.keyboard.press("0")
    assert span() == pytest.approx(whole)


def test_a_phone_scrolls_in_one_direction_only(opened, file) -> None:
    page, noted = shown(opened, file, **PHONE)
    draw(page, "heat-gradient")
    for details in page.locator("details").all():
        details.evaluate("box => (box.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    assert noted.messages == []


def test_without_plotly_curves_are_pictures_and_the_page_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, opened, tmp_path
) -> None:
    webpage.plotly_script.cache_clear()
    monkeypatch.setattr(webpage, "find_spec", lambda name: None)
    try:
        file = reports.report(remembered=recordings.recording()).save(tmp_path / "plain.html")
    finally:
        webpage.plotly_script.cache_clear()
    assert file.stat().st_size < 500_000
    page = opened.new_page()
    noted = listened(page)
    page.goto(file.as_uri())
    assert page.locator("#curves svg path").count() >= 4
    assert "pip install plotly" in page.locator("#notes").inner_text()
    assert noted.messages == []
