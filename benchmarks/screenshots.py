"""The README's pictures of the report page and of the console: ``make pictures``.

They show the default experiment, whose ``report.html`` ``make eval`` writes.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.page import LIMIT_MS, READY, find_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent
EXPERIMENT = ROOT / "experiments/default.yaml"
PAGE = ROOT / "reports/default/report.html"
PICTURES = ROOT / "reports/pictures"
#: Of the windows, in CSS pixels.
PAGE_SIZE, CONSOLE_SIZE = (1280, 1500), (1280, 960)
#: A picture of a README is not larger.
MAX_BYTES = 300_000


def take_picture(browser: Browser, url: str, size: tuple[int, int], file: Path) -> None:
    """Write what a window of a size shows of a page, once its views are there.

    Raises:
        ValueError: The file would be larger than :data:`MAX_BYTES`.
    """
    width, height = size
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="light", reduced_motion="reduce"
    )
    page.goto(url, timeout=LIMIT_MS)
    page.wait_for_selector(READY, state="attached", timeout=LIMIT_MS)
    data: bytes = page.screenshot(timeout=LIMIT_MS)
    page.close()
    if len(data) > MAX_BYTES:
        raise ValueError(f"{file}: {len(data):,} bytes, and {MAX_BYTES:,} are allowed")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


@contextmanager
def serve_console(experiment: Path) -> Iterator[str]:
    """The address of an experiment's console, which is served while the context lasts."""
    command = [sys.executable, "-m", "fusion_bench", "serve", str(experiment)]
    options = ["--no-open", "--json"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE)  # noqa: S603
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    try:
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def take_all(folder: Path = PICTURES) -> None:
    """Renew both pictures.

    Raises:
        FileNotFoundError: There is no page, no chromium or no Playwright.
    """
    if not PAGE.exists():
        raise FileNotFoundError(f"{PAGE}: run 'make eval' first")
    with find_browser() as browser, serve_console(EXPERIMENT) as address:
        if browser is None:
            raise FileNotFoundError("no chromium: run 'apt-get install chromium' as root")
        take_picture(browser, PAGE.as_uri(), PAGE_SIZE, folder / "page.png")
        take_picture(browser, address, CONSOLE_SIZE, folder / "console.png")


if __name__ == "__main__":
    take_all()
