"""The harness sees each fault that the tests of page and console rely on it to see."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.accessibility import grave_findings
from tests.browser.observed_page import LIMIT_MS, ObservedPage, observe

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.conftest import Opener

SCRIPT = "document.body.dataset.ready = 'yes';"
#: Between two looks at what a page did.
POLL_MS = 20
#: For a page that breaks the rule in question and no other.
FAULTS = {
    "request: https://nowhere.invalid/x.png": "<img alt='x' src='https://nowhere.invalid/x.png'>",
    "policy: script-src-attr: inline": "<p onclick='f()'>x</p>",
    "policy: style-src-attr: inline": "<p style='color:red'>x</p>",
    "dialog: hello": "",
    "error: broken": "",
}


def write_page(folder: Path, body: str, script: str = SCRIPT) -> str:
    """Write a page whose policy allows this one script, and return its address."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; img-src https:"
    path = folder / "page.html"
    path.write_text(
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>x</title>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"</head><body><main><h1>x</h1>{body}</main><script>{script}</script></body></html>",
        encoding="utf-8",
    )
    return path.as_uri()


def test_a_good_page_has_no_problem(tmp_path: Path, open_page: Opener) -> None:
    opened = open_page(write_page(tmp_path, "<p>text</p>"))
    opened.page.wait_for_selector("body[data-ready]")
    assert opened.problems() == []
    assert opened.overflow() == 0
    assert grave_findings(opened.page) == []


def problems_in_time(opened: ObservedPage) -> Iterator[str]:
    """Problems as they come: a browser tells some of them by a task of its own."""
    for _ in range(0, LIMIT_MS, POLL_MS):
        yield from opened.problems()
        opened.page.wait_for_timeout(POLL_MS)


@pytest.mark.parametrize("problem", FAULTS)
def test_each_fault_is_seen(browser: Browser, tmp_path: Path, problem: str) -> None:
    script = {"dialog": "alert('hello');", "error:": "throw new Error('broken');"}
    url = write_page(tmp_path, FAULTS[problem], f"{script.get(problem[:6], '')}{SCRIPT}")
    opened = observe(browser, url)
    opened.page.wait_for_function("document.readyState === 'complete'")
    assert any(seen.startswith(problem) for seen in problems_in_time(opened)), opened.problems()
    opened.page.context.close()


def test_a_wide_page_overflows(tmp_path: Path, open_page: Opener) -> None:
    url = write_page(tmp_path, f"<pre>{'x' * 500}</pre>")
    assert open_page(url, width=400).overflow() > 100


def test_a_page_that_keeps_somebody_out(tmp_path: Path, open_page: Opener) -> None:
    opened = open_page(write_page(tmp_path, "<input><button></button>"))
    findings = grave_findings(opened.page)
    assert {finding.split()[0] for finding in findings} >= {"label", "button-name"}
