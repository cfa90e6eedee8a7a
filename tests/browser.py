"""A real browser for pages of ours: nothing that it logs and no request that it makes goes unnoticed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

# A busy machine is slow, and no illness of ours: how fast pages are is measured by ./dev bench page.
PATIENCE_MS = 120_000
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


@dataclass
class Noted:
    messages: list[str] = field(default_factory=list)  # of the console, and exceptions
    requests: list[str] = field(default_factory=list)


@contextmanager
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium here")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield opened
        opened.close()


def listened(page: Any) -> Noted:
    noted = Noted()
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda message: noted.messages.append(message.text))
    page.on("pageerror", lambda error: noted.messages.append(str(error)))
    page.on("dialog", lambda dialog: (noted.messages.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: noted.requests.append(request.url))
    return noted
