"""The dashboard in a real browser, served by a real process, while a real training writes."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.ui.conftest import FAST, SICK, SLOW
from tests.ui.training import HOSTILE

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.long, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")]

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
DRAWN = ".chart .main-svg"


class Visit:
    """A page, and everything that it complained of or asked for."""

    def __init__(self, page: "sync_api.Page", address: str) -> None:
        self.page, self.address = page, address
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(address)

    def go(self, path: str) -> "sync_api.Page":
        self.page.goto(self.address.split("/?")[0] + path)
        return self.page


@pytest.fixture(scope="module")
def address(runs: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "sleuth", "ui", str(runs), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as server:
        assert server.stdout is not None
        found = next(match for line in server.stdout if (match := re.search(r"http://\S+", line)))
        yield found.group()
        server.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator["sync_api.Browser"]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def visit(browser: "sync_api.Browser", address: str) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    visit = Visit(context.new_page(), address)
    yield visit
    hacked = visit.page.evaluate("window.hacked")
    context.close()
    assert hacked is None, "a name was obeyed"
    assert visit.complaints == []
    assert [url for url in visit.asked if not url.startswith(("http://127.0.0.1", "data:", "blob:"))] == []


def test_the_list_leads_to_a_comparison_by_keyboard_alone(visit: Visit) -> None:
    page = visit.page
    assert "token" not in page.url
    until(page, "document.querySelectorAll('tbody tr').length >= 4")
    assert page.locator("tbody").get_by_text(SICK, exact=True).count() == 1
    page.get_by_label("Filter").focus()
    page.keyboard.type("2026")
    for name in (SLOW, FAST):
        page.get_by_label(f"Compare {name}").focus()
        page.keyboard.press("Space")
    page.get_by_role("button", name="Compare").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(DRAWN)
    assert page.locator("#partings h3").inner_text() == "They part at step 0: in the updates, first in first.weight."
    assert page.locator("#options tbody tr").inner_text().split() == ["learning", "rate", "0.1", "0.3"]
    legend = page.locator("#curves figure").first.locator(".legendtext").all_text_contents()
    assert legend == [SLOW, FAST]


def test_a_sick_run_shows_its_culprit_and_hostile_names_as_text(visit: Visit) -> None:
    page = visit.go(f"/runs/{quote(SICK)}")
    page.wait_for_selector("#verdict article")
    assert page.locator("h1").inner_text() == SICK
    assert "missing-zero-grad" in page.locator("#verdict").inner_text()
    page.locator("#layers").scroll_into_view_if_needed()
    page.wait_for_selector(f"#layers {DRAWN}")
    assert HOSTILE in page.locator("#summary").inner_text()
    assert any("hacked=1>.weight" in text for text in page.locator("#layers .ytick text").all_text_contents())
    page.locator("#architecture summary").click()
    assert HOSTILE in page.locator("#architecture").inner_text()
    assert page.locator("main img").count() == 0


def test_a_chart_tells_values_under_the_pointer_and_zooms(visit: Visit) -> None:
    page = visit.go(f"/runs/{SLOW}")
    box = page.locator("#curves figure[data-name=loss] .chart")
    box.scroll_into_view_if_needed()
    box.locator(".main-svg").first.wait_for()
    area = box.locator(".nsewdrag").bounding_box()
    across = "document.querySelector('[data-name=loss] .chart')._fullLayout.xaxis.range.map(Number)"
    low, high = page.evaluate(across)
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    box.locator(".hoverlayer .hovertext, .hoverlayer .legend").first.wait_for()
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.8, area["y"] + area["height"] * 0.55, steps=4)
    page.mouse.up()
    until(page, f"{across}[0] > {low} + 5")
    box.focus()
    page.keyboard.press("0")
    until(page, f"{across}[0] === {low}")
    page.keyboard.press("+")
    until(page, f"{across}[1] - {across}[0] < {(high - low) * 0.6}")
    spoken = box.get_attribute("aria-label") or ""
    assert spoken.startswith("Loss; loss: ")


def test_what_comes_in_moves_nothing(visit: Visit) -> None:
    visit.page.add_init_script(
        "window.shifts = 0; new PerformanceObserver(list => list.getEntries().forEach(e => shifts += e.value))"
        ".observe({type: 'layout-shift', buffered: true})"
    )
    for path in ("/", f"/runs/{SLOW}", f"/compare?run={SLOW}&run={FAST}"):
        page = visit.go(path)
        page.wait_for_selector("tbody tr" if path == "/" else DRAWN)
        page.wait_for_timeout(300)
        # The share below which browsers call a page steady.
        assert page.evaluate("shifts") < 0.1, path


@pytest.mark.parametrize("scheme, brightness", [("light", 255), ("dark", 20)])
def test_pages_follow_the_colours_of_the_system_until_others_are_chosen(visit: Visit, scheme: str, brightness: int) -> None:
    page = visit.page
    page.emulate_media(color_scheme=scheme)
    ground = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    assert abs(page.evaluate(ground) - brightness) < 20
    page.get_by_label("Colours").select_option({"light": "dark", "dark": "light"}[scheme])
    assert abs(page.evaluate(ground) - brightness) > 100


def test_a_step_is_seen_within_two_seconds(visit: Visit, runs: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.ui.training", str(runs), "live", "0.1", "100000", "0.05"]
    clock = tmp_path / "clock"
    with clock.open("w") as file, subprocess.Popen(command, stdout=file, cwd=ROOT, env=ENVIRONMENT) as training:
        try:
            link = visit.page.locator("tbody a", has_text="-live-")
            link.wait_for()
            link.click()
            visit.page.locator("#curves").scroll_into_view_if_needed()
            visit.page.wait_for_selector(f"#curves {DRAWN}")
            lags = [lag(visit.page, clock) for _ in range(5)]
        finally:
            training.kill()
    # On a machine that does other things too, one of them shows what the dashboard itself needs.
    assert min(lag for lag, _ in lags) < 2.0, lags
    assert min(lag for _, lag in lags) < 2.0, lags
    assert visit.page.locator("#summary").inner_text().split()[1] == "running"


def until(page: "sync_api.Page", expression: str) -> None:
    """The page's own policy forbids what playwright's wait_for_function does: it evaluates a text."""
    deadline = time.monotonic() + 60
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(50)


def lag(page: "sync_api.Page", clock: Path) -> tuple[float, float]:
    """How long ago the first step was made that the numbers, and that the curve, do not show yet."""
    page.wait_for_timeout(700)
    drawn = "Math.max(...document.querySelector('[data-name=loss] .chart').data.flatMap(trace => trace.x))"
    number, curve = page.evaluate(
        f"[Number(document.querySelector('#summary').children[1].innerText.match(/[\\d,]+$/)[0].replace(',', '')), {drawn}]"
    )
    now = time.time()
    times = [float(line) for line in clock.read_text().split()]
    # Steps are counted from 0.
    return tuple(now - times[shown] if shown < len(times) else 0.0 for shown in (number, curve + 1))
