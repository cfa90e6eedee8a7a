"""Makes docs/pictures/dashboard.png: a real training that forgets zero_grad, in the real dashboard, in Chromium.

Run: .venv/bin/python docs/dashboard_picture.py
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits
from torch import nn

import sleuth

PICTURE = Path(__file__).with_name("pictures") / "dashboard.png"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
COLOURS = 64  # enough for text and lines, and a quarter of the bytes


def train(folder: Path) -> None:
    torch.manual_seed(0)
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with sleuth.watch(model, optimizer, name="digits", directory=folder, quiet=True):
        for _ in range(600):
            rows = torch.randint(0, len(x), (32,))
            loss = nn.functional.cross_entropy(model(x[rows].float() / 16), y[rows])
            loss.backward()
            optimizer.step()


def photograph(address: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1100, "height": 760})
        page.goto(address)
        page.locator("tbody a").first.click()
        page.locator("#curves").scroll_into_view_if_needed()
        page.wait_for_selector("#curves .main-svg")
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(1000)
        page.screenshot(path=PICTURE)
        browser.close()
    Image.open(PICTURE).convert("RGB").quantize(COLOURS).save(PICTURE, optimize=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder))
        command = [sys.executable, "-m", "sleuth", "ui", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            photograph(next(found.group() for line in server.stdout if (found := re.search(r"http://\S+", line))))
            server.terminate()


if __name__ == "__main__":
    main()
