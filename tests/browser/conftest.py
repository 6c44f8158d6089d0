"""One chromium for all tests of this folder, and pages that must do nothing wrong.

These tests need Debian's ``chromium`` and the extra ``browser``: ``make test-browser`` runs them,
``make test`` leaves them out.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.serving.console.experiment_files import open_session
from fusion_bench.util.loopback import Access
from tests.browser.observed_page import LIMIT_MS, ObservedPage, observe
from tests.browser.project import Evaluation, evaluate_project
from tests.serving.console.running_server import serve_in_thread

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: Neither a sandbox, which root has none of, nor a shared memory that containers keep small; and no
#: name is asked of a resolver, which may take its time to say that it knows none.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        pytest.exit("no chromium: run 'apt-get install chromium' as root", returncode=2)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path,
            args=ARGUMENTS,
            env={**os.environ, "LANG": "C.UTF-8"},
            timeout=LIMIT_MS,
        )
        yield chromium
        chromium.close()


class Opener:
    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._pages: list[ObservedPage] = []

    def __call__(self, url: str, **options: Any) -> ObservedPage:  # noqa: ANN401 - of observe
        self._pages.append(observe(self._browser, url, **options))
        return self._pages[-1]

    def close(self) -> None:
        problems = [problem for page in self._pages for problem in page.problems()]
        for page in self._pages:
            page.page.context.close()
        assert problems == []


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Opener]:
    opener = Opener(browser)
    yield opener
    opener.close()


@pytest.fixture(scope="session")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    return evaluate_project(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def report_page(open_page: Opener, evaluation: Evaluation) -> Page:
    return open_ready(open_page, evaluation.page).page


def open_ready(open_page: Opener, url: str, **options: Any) -> ObservedPage:  # noqa: ANN401 - of observe
    """Open a page of ours, and wait until its views are there."""
    opened = open_page(url, **options)
    opened.page.wait_for_selector("html[data-ready=true]", state="attached")
    return opened


@pytest.fixture(scope="session")
def console(evaluation: Evaluation) -> Iterator[Access]:
    parsed, source = read_experiment(evaluation.experiment)
    session = open_session(parsed, source, folders=[evaluation.root / "datasets"])
    with serve_in_thread(session, evaluation.root / "reports") as access:
        yield access


@pytest.fixture
def console_page(open_page: Opener, console: Access) -> Page:
    return open_console(open_page, console).page


def open_console(open_page: Opener, access: Access, **options: Any) -> ObservedPage:  # noqa: ANN401 - of observe
    origin = f"http://127.0.0.1:{access.port}/"
    return open_ready(open_page, access.address, allowed=origin, **options)
