"""A page of 10,000 queries and 20 systems: what is in the document stays bounded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fusion_bench.report.html.pages import evaluation_html
from tests.browser.conftest import open_ready
from tests.report import cases

if TYPE_CHECKING:
    from tests.browser.conftest import Opener

QUERIES, SYSTEMS = 10_000, 20


@pytest.fixture(scope="session")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = [
        cases.fused(f"system {s}", *((q * (s + 3) % 97) / 96 for q in range(QUERIES)))
        for s in range(1, SYSTEMS)
    ]
    base = cases.system("base", *(q % 89 / 88 for q in range(QUERIES)))
    compared = [cases.compared(f"system {s}", 0.01) for s in range(1, SYSTEMS)]
    report = cases.report(cases.collection(base, *rows, comparisons=compared))
    path: Path = tmp_path_factory.mktemp("large") / "report.html"
    path.write_text(evaluation_html(report), encoding="utf-8")
    return path.as_uri()


def test_rows_are_drawn_where_they_are_seen(open_page: Opener, large_page: str) -> None:
    page = open_ready(open_page, large_page).page
    rows = page.locator("[data-queries] [role=option]")
    assert 0 < rows.count() < 100
    assert page.evaluate("document.querySelectorAll('*').length") < 5_000
    page.locator("[data-queries]").evaluate("(node) => { node.scrollTop = node.scrollHeight; }")
    page.wait_for_selector(f"[role=option][aria-posinset='{QUERIES}']")
    assert rows.count() < 100
    page.get_by_role("button", name="Single queries").click()
    page.locator("#heat-0 .heat-scroller").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#heat-status-0").text_content()
    assert page.locator("#heat-0 canvas").count() == 1
    width = page.evaluate("document.querySelector('#heat-0 canvas').width")
    assert width <= 2_000  # of 160,000 pixels of cells
