"""A page inside a notebook, and the page of two reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fusion_bench as fb
from fusion_bench.util.formatting import format_number
from tests.browser.accessibility import grave_findings
from tests.browser.conftest import Opener, open_ready
from tests.browser.project import EVIL_QUERY, EVIL_SYSTEM, Evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def changed(evaluation: Evaluation) -> fb.Report:
    text = evaluation.experiment.read_text(encoding="utf-8")
    file = evaluation.root / "experiments" / "changed.yaml"
    assert "method: rrf, k: 5}" in text
    file.write_text(text.replace("method: rrf, k: 5}", "method: rrf, k: 500}"), encoding="utf-8")
    return fb.run_experiment(file, split="all")


@pytest.fixture(scope="module")
def address(evaluation: Evaluation, changed: fb.Report) -> str:
    page = fb.page(changed, before=evaluation.root / "reports/mine")
    return page.save(evaluation.root / "comparison.html").as_uri()


def row_text(page: Page, system: str) -> str:
    texts: list[str] = page.locator("#systems-0 tr[data-system]").evaluate_all(
        "(rows, name) => rows.filter(r => r.dataset.system === name).map(r => r.textContent)",
        system,
    )
    (text,) = texts
    return text


def test_the_page_of_two_reports(
    open_page: Opener, address: str, evaluation: Evaluation, changed: fb.Report
) -> None:
    opened = open_ready(open_page, address, width=400)
    page = opened.page
    assert opened.overflow() <= 0
    (collection,) = changed.collections
    then, now = (
        each.system(EVIL_SYSTEM).measures["nDCG@10"] for each in (evaluation.collection, collection)
    )
    assert now.mean != then.mean
    for mean in (then.mean, now.mean):
        assert format_number(mean) in row_text(page, EVIL_SYSTEM)
    # Only the changed system is compared; its greatest change stands first.
    first = page.locator("[data-queries] [role=option]").first
    gains = {
        query: new - old
        for query, new, old in zip(collection.queries, now.values, then.values, strict=True)
        if new is not None and old is not None
    }
    greatest = max(gains.values())
    assert gains[first.get_attribute("data-query") or ""] == greatest
    first.click()
    value = page.locator("#query-panel details.values li.chosen .number-cell").nth(1)
    assert value.text_content() == format_number(greatest, signed=True)
    page.keyboard.press("Escape")
    page.locator("[data-filter]").fill(EVIL_QUERY)
    assert first.get_attribute("data-query") == EVIL_QUERY
    assert grave_findings(page) == []
    dark = open_ready(open_page, address, scheme="dark")
    assert grave_findings(dark.page, "color-contrast") == []


def test_a_page_in_a_notebook_works_in_its_frame(
    open_page: Opener, changed: fb.Report, tmp_path: Path
) -> None:
    notebook = tmp_path / "notebook.html"
    frame = fb.page(changed)._repr_html_()
    notebook.write_text(f"<!doctype html><title>notebook</title>{frame}", encoding="utf-8")
    page = open_page(notebook.as_uri()).page
    inner = page.frame_locator("iframe")
    inner.locator("html[data-ready=true]").wait_for(state="attached")
    inner.locator("[data-queries] [role=option]").first.click()
    panel = inner.locator("#query-panel")
    panel.wait_for(state="visible")
    assert panel.locator("[data-block=relevant] tr[data-document]").count() >= 1
    panel.get_by_role("button", name="Close").click()
    panel.wait_for(state="hidden")
