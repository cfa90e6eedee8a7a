"""The dashboard's server at its largest: memory, response times, and how soon a page can be used.

One run of 10,000 steps × 300 tensors and 19 smaller ones. Their rows come from a real training that is watched at every step
and repeated, with later steps, until the run is long enough. Run: ./dev bench ui [--steps 10000] [--runs 20]
"""

import argparse
import dataclasses
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import psutil
import torch

from benchmarks.store import train, verdict
from sleuth.core.observation import Ending, Frame, Observation, Step
from sleuth.store.reading import Run, files_of
from sleuth.store.writing import Writer

REAL_STEPS = 250
SMALL_STEPS = 500
MEGABYTE = 1e6
USABLE_BAR, RESPONSE_BAR, MEMORY_BAR = 2.0, 0.5, 400.0
GROUPS = ("curves", "layers", "flow", "histograms", "time", "memory")
# When each was first there, by the page's own clock: asking from outside would itself be slow.
NOTICE = """
window.noticed = {};
const wanted = { row: "tbody tr td", verdict: "#verdict .verdict", chart: "#curves .main-svg .trace" };
new MutationObserver(() => {
  for (const [name, selector] of Object.entries(wanted))
    if (!noticed[name] && document.querySelector(selector)) noticed[name] = performance.now();
}).observe(document, { childList: true, subtree: true });
"""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def recorded() -> list[Observation]:
    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder), REAL_STEPS)
        (run,) = Path(folder).iterdir()
        with Run(files_of(run)[0]) as opened:
            return list(opened.observations())


def write(folder: Path, seen: list[Observation], steps: int) -> None:
    writer = Writer(folder / "rank0.sqlite")
    writer.write_fact("run", {"framework": "torch", "subject": "Sequential", "began": time.time()})
    once = [o for o in seen if not isinstance(o, Step | Frame | Ending)]
    writer.write(once)
    for begin in range(0, steps, REAL_STEPS):
        writer.write(dataclasses.replace(o, step=o.step + begin) for o in seen if isinstance(o, Step | Frame))
        writer.commit(now=True)
    writer.write([Ending(steps)])
    writer.write_fact("end", {"seconds": steps / 100, "overhead": None, "notes": []})
    writer.close()


class Client:
    def __init__(self, address: str) -> None:
        self.base = address.split("/?")[0]
        self._open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar())).open
        self.get(address.removeprefix(self.base))

    def get(self, path: str) -> tuple[float, bytes]:
        began = time.perf_counter()
        with self._open(self.base + path) as answer:
            body = answer.read()
        return time.perf_counter() - began, body


def measure(client: Client, server: psutil.Process, big: str) -> None:
    def memory() -> float:
        return server.memory_info().rss / MEGABYTE

    print(f"server at rest: {memory():.0f} MB")
    first, _ = client.get("/api/runs")
    began, spent = time.perf_counter(), sum(server.cpu_times()[:2])
    times = []
    while any(run["verdict"] is None for run in json.loads(client.get("/api/runs")[1])["runs"]):
        times.append(client.get("/api/runs")[0])
        time.sleep(0.2)
    seconds, work = time.perf_counter() - began, sum(server.cpu_times()[:2]) - spent
    print(f"list: first answer {first:.2f} s; all judged after {seconds:.1f} s, {work:.1f} s of one processor", end="; ")
    print(f"meanwhile {_times(times)} an answer; {memory():.0f} MB")
    for group in GROUPS:
        cold, body = client.get(f"/api/runs/{big}/charts/{group}")
        warm = [client.get(f"/api/runs/{big}/charts/{group}")[0] for _ in range(5)]
        print(f"{group:10} first {cold:.2f} s, again {_times(warm)}, {len(body) / 1e3:.0f} kB")
    times = [client.get(f"/api/runs/{big}")[0] for _ in range(20)]
    print(f"run page's data: {_times(times)}  {verdict(max(times), RESPONSE_BAR)}")
    print(f"server after all that: {memory():.0f} MB  {verdict(memory(), MEMORY_BAR)}")


def _times(times: list[float]) -> str:
    return f"median {statistics.median(times) * 1e3:.0f} ms, worst {max(times) * 1e3:.0f} ms" if times else "none"


def browse(address: str, big: str) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("page in a browser: not measured, there is no chromium")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page()
        page.goto(address)
        page.add_init_script(NOTICE)
        for path, wanted in {"/": ("row",), f"/runs/{big}": ("verdict",), f"/runs/{big}#curves": ("verdict", "chart")}.items():
            page.goto("about:blank")
            page.goto(address.split("/?")[0] + path, wait_until="commit")
            for what in wanted:
                while not (took := page.evaluate(f"window.noticed?.{what}")):
                    page.wait_for_timeout(50)
                print(f"{path:34} {what:8} after {took / 1e3:.2f} s  {verdict(took / 1e3, USABLE_BAR)}")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        seen = recorded()
        big = "20260101-000000-big"
        write(Path(folder) / big, seen, given.steps)
        for number in range(1, given.runs):
            write(Path(folder) / f"20260101-0000{number:02}-small", seen, SMALL_STEPS)
        command = [sys.executable, "-m", "sleuth", "ui", folder, "--port", "0"]
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = next(found.group() for line in server.stdout if (found := re.search(r"http://\S+", line)))
            print(
                f"{given.runs} runs, one of {given.steps:,} steps × 300 tensors; served after {time.perf_counter() - began:.1f} s"
            )
            try:
                measure(Client(address), psutil.Process(server.pid), big)
                browse(address, big)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
