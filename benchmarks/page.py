"""The size of the report's page, and how soon it can be used, for 10,000 steps × 300 tensors.

The run is made up and written through the store's own writer: what is measured is the page, not the training. A browser opens it;
beside the wall time stands the time that its main thread computed, which a busy machine does not stretch.
Run: ./dev bench page [--steps 10000] [--keep FILE]
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

import sleuth
from sleuth.core.observation import (
    Architecture,
    Evaluation,
    Frame,
    Layer,
    Memory,
    Observation,
    Parameter,
    Role,
    Settings,
    Split,
    Step,
    Units,
)
from sleuth.core.statistics import EXPONENT_BINS
from sleuth.store.writing import Writer

MEGABYTE = 1e6
SIZE_BAR, SECONDS_BAR = 6.0, 2.0
PARAMETERS, OUTPUTS = 60, 120  # 60 × (weight, gradient, update) and 120 outputs: 300 tensors
CHROMIUM = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
PATHS = {
    Role.WEIGHT: tuple(f"blocks.{i // 2}.linear.{('weight', 'bias')[i % 2]}" for i in range(PARAMETERS)),
    Role.ACTIVATION: tuple(f"blocks.{i // 4}.{('norm', 'linear', 'act', 'dropout')[i % 4]}" for i in range(OUTPUTS)),
}
PATHS |= {Role.GRADIENT: PATHS[Role.WEIGHT], Role.UPDATE: PATHS[Role.WEIGHT]}


def observations(steps: int) -> Iterator[Observation]:
    rng = np.random.default_rng(0)
    layers = tuple(Layer(path, "Linear", "linear") for path in PATHS[Role.ACTIVATION])
    parameters = tuple(Parameter(p, (12, 12), "float32", "cpu", True, True, p.rsplit(".", 1)[0]) for p in PATHS[Role.WEIGHT])
    yield Architecture(layers, parameters)
    yield Settings("torch", "mse_loss", "Adam", 1e-3, versions={"torch": "2.13.0"})
    for step in range(steps):
        loss = 2 * np.exp(-step / 3000) + rng.normal(0, 0.05) + 5 * (step == steps // 3)
        yield Step(
            step, float(loss), lr=1e-3, gradient_norm=float(rng.lognormal()), seconds={"step": float(rng.lognormal(-5, 0.2))}
        )
        for role, paths in PATHS.items():
            yield Frame(step, role, paths, table(rng, len(paths), step), exponents(rng, len(paths)) if step % 50 == 0 else None)
        if step % 50 == 0:
            yield Memory(step, int(3e8 + 100 * step))
            for path in PATHS[Role.ACTIVATION][2::8]:
                yield Units(step, path, "activation", "relu", 64, rng.integers(0, 3, 64), np.zeros(64), np.ones(64))
        if step % 500 == 499:
            yield Evaluation(step, Split.VALIDATION, {"loss": float(loss), "accuracy": 0.9}, logged=True)


def table(rng: np.random.Generator, tensors: int, step: int) -> np.ndarray:
    rows = np.zeros((tensors, 9))
    sizes = np.logspace(-4, -1, tensors) * rng.lognormal(0, 0.3, tensors)
    rows[:, 0], rows[:, 2], rows[:, 3], rows[:, 4] = 144, 144 * sizes**2, -3 * sizes, 3 * sizes
    return rows


def exponents(rng: np.random.Generator, tensors: int) -> np.ndarray:
    counts = np.zeros((tensors, EXPONENT_BINS), dtype=np.int32)
    counts[:, 13:17] = rng.integers(0, 99, (tensors, 4))
    return counts


def record(folder: Path, steps: int) -> None:
    writer = Writer(folder / "rank0.sqlite")
    writer.write_fact("run", {"framework": "torch", "subject": "made up", "began": 0.0})
    for seen in observations(steps):
        writer.write([seen])
        if isinstance(seen, Step) and seen.step % 200 == 0:
            writer.commit(now=True)
    writer.write_fact("end", {"seconds": 60.0, "overhead": None, "notes": []})
    writer.close()


# Noted by the page itself, in milliseconds since it was asked for: whoever asks from outside has to wait for its main thread.
NOTING = """
  window.noted = {};
  new PerformanceObserver((list) => list.getEntries().forEach((e) => (noted[e.name] ??= e.startTime))).observe({type: "paint"});
  new MutationObserver(() => {
    if (document.body?.classList.contains("ready")) noted.ready ??= performance.now();
    if (document.querySelector(".chart.drawn")) noted.drawn ??= performance.now();
  }).observe(document, {subtree: true, attributes: true, childList: true});
"""


def opened(page: Page, file: Path) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def computed() -> float:
        return next(m["value"] for m in session.send("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")

    page.add_init_script(NOTING)
    page.goto(file.as_uri(), wait_until="commit")
    page.wait_for_selector(".chart.drawn", timeout=60_000)
    noted, work = {name: at / 1e3 for name, at in page.evaluate("noted").items()}, computed()
    began = time.perf_counter()
    page.evaluate("document.querySelector('#heat-gradient').scrollIntoView()")
    page.wait_for_selector("#heat-gradient.drawn", timeout=60_000)
    drawn = time.perf_counter() - began
    text = max(noted["first-contentful-paint"], noted["ready"])
    print(f"the text can be read and used after {text:.2f} s, the first charts after {noted['drawn']:.2f} s", end=" ")
    print(
        f"({work:.2f} s of computing)  (bar ≤ {SECONDS_BAR:g}: {'kept' if noted['drawn'] <= SECONDS_BAR else 'MISSED'});", end=" "
    )
    print(f"a heat map is drawn in {drawn:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="write the page here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record(folder, given.steps)
        report = sleuth.load(folder)
        began = time.perf_counter()
        file = report.save(given.keep or folder / "report.html").resolve()
        size = file.stat().st_size / MEGABYTE
        print(f"{given.steps:,} steps × 300 tensors: page written in {time.perf_counter() - began:.1f} s")
        print(f"size {size:.2f} MB  (bar ≤ {SIZE_BAR:g}: {'kept' if size <= SIZE_BAR else 'MISSED'})")
        with sync_playwright() as browsers:
            browser = browsers.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM)
            for _ in range(3):
                opened(browser.new_page(viewport={"width": 1100, "height": 800}), file)
            browser.close()


if __name__ == "__main__":
    main()
