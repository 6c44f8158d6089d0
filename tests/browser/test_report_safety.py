"""``report.html`` keeps nobody out, and no name from outside becomes more than text.

What a page must not do at all (requests, dialogs, errors, violations) fails every test of this
folder, through ``open_page``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.accessibility import RULES, grave_findings
from tests.browser.conftest import open_ready
from tests.browser.keyboard import walk_by_tab
from tests.browser.observed_page import LIMIT_MS
from tests.browser.project import EVIL_QUERY, EVIL_SYSTEM, Evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.conftest import Opener


def open_query(page: Page) -> None:
    page.locator(f'[data-queries] [data-query="{EVIL_QUERY}"]').click()
    page.locator("#query-panel").wait_for()


def test_hostile_names_stay_text(report_page: Page) -> None:
    open_query(report_page)
    report_page.locator(f'#systems-0 [data-system="{EVIL_SYSTEM}"] button').click()
    report_page.evaluate(
        "for (const each of document.querySelectorAll('details')) each.open = true"
    )
    elements = report_page.evaluate(
        "['script', 'iframe', 'img', 'svg[onload]'].map("
        "(name) => document.querySelectorAll(name).length)"
    )
    assert elements == [2, 0, 0, 0]  # the page's data and its own script
    text = report_page.inner_text("body")
    assert EVIL_QUERY in text
    assert EVIL_SYSTEM in text


def test_the_policy_allows_inline_by_hash_alone(report_page: Page) -> None:
    policy = report_page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute(
        "content"
    )
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert all(rules[name].startswith("'sha256-") for name in ("script-src", "style-src"))
    assert "unsafe" not in policy


def test_axe_has_no_serious_finding(report_page: Page) -> None:
    open_query(report_page)
    for scheme, rules in RULES.items():
        report_page.emulate_media(color_scheme=scheme)
        assert grave_findings(report_page, *rules) == [], scheme


def test_tab_reaches_everything_and_one_sees_where(report_page: Page) -> None:
    open_query(report_page)
    visible, missed = walk_by_tab(report_page)
    assert missed == []
    assert len(visible) > 20
    assert all(visible)


def test_the_page_fits_wide_and_narrow_windows(open_page: Opener, evaluation: Evaluation) -> None:
    opened = open_ready(open_page, evaluation.page, width=1600)
    page = opened.page
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert opened.overflow() == 0
    opened.resize(400)
    assert page.evaluate("document.querySelector('svg.forest').clientWidth") < 400
    assert opened.overflow() == 0
    names = page.locator("svg.forest .name")
    edges = names.evaluate_all("names => names.map(name => name.getBBox().x)")
    assert len(edges) == len(evaluation.collection.ranked_systems) - 1
    assert min(edges) >= 0
    open_query(page)
    assert opened.overflow() == 0


def test_print_shows_results_and_no_controls(report_page: Page) -> None:
    report_page.emulate_media(media="print")
    assert report_page.locator("#answer .headline").is_visible()
    assert report_page.locator("#systems-0").is_visible()
    assert report_page.locator("#page-tools").is_hidden()
    assert report_page.locator("[data-filter]").is_hidden()


def test_it_reads_without_script(browser: Browser, evaluation: Evaluation) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(evaluation.page, timeout=LIMIT_MS)
    assert page.locator("#answer .headline").is_visible()
    assert page.get_by_role("row", name=EVIL_SYSTEM).first.is_visible()
    context.close()
