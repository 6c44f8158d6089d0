"""The console in use: a slider moves the numbers, which are those of ``eval``."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from fusion_bench.cli import main
from fusion_bench.evaluation.report_file import read_report
from fusion_bench.util.formatting import format_number
from tests.browser.accessibility import RULES, grave_findings
from tests.browser.conftest import open_console
from tests.browser.keyboard import walk_by_tab
from tests.browser.observed_page import observe
from tests.browser.project import EVIL_DOCUMENT, EVIL_QUERY, Evaluation
from tests.serving.console.running_server import running_command

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from fusion_bench.util.loopback import Access
    from tests.browser.conftest import Opener

SYSTEM, MEASURES = "tiered", ("nDCG@10", "RR@10")
SLIDER = '[data-control="fusion.k"] [data-part=slider]'
NUMBER = '[data-control="fusion.k"] [data-part=number]'


def settle(page: Page) -> None:
    page.wait_for_selector("main[data-state=settled]")


def address_of(page: Page) -> str:
    """As the page has it; Playwright hears of a change some time later."""
    address: str = page.evaluate("location.href")
    return address


def shown_means(page: Page) -> list[str]:
    return [page.inner_text(f'[data-measure="{name}"] [data-mean]') for name in MEASURES]


def move_slider(page: Page, key: str, times: int) -> float:
    """Move k by keys; the new value."""
    page.locator(SLIDER).focus()
    before = page.input_value(NUMBER)
    for _ in range(times):
        page.keyboard.press(key)
    settle(page)
    assert page.input_value(NUMBER) != before
    return float(page.input_value(NUMBER))


def evaluated_means(evaluation: Evaluation, out: Path, k: float) -> list[str]:
    """What ``eval`` finds on the tuning queries with this k."""
    options = ["--split", "dev", "--set", f"systems.{SYSTEM}.fusion.k={k:g}"]
    options += ["--no-plots", "--no-html", "--out", str(out)]
    assert main(["eval", str(evaluation.experiment), *options]) == 0
    [collection] = read_report(out / "report.json").collections
    results = collection.system(SYSTEM).measures
    return [format_number(results[name].mean) for name in MEASURES]


def test_a_slider_moves_the_numbers_to_those_of_eval(
    console_page: Page, evaluation: Evaluation, tmp_path: Path
) -> None:
    before = shown_means(console_page)
    k = move_slider(console_page, "Home", 1)
    after = shown_means(console_page)
    assert after != before
    assert after == evaluated_means(evaluation, tmp_path, k)
    assert "tuning queries" in console_page.inner_text("[data-label]")


def test_a_moved_slider_shows_its_curve_and_the_unjudged_share(console_page: Page) -> None:
    assert console_page.locator("[data-curve]").count() == 0
    move_slider(console_page, "Home", 1)
    curve = console_page.locator('[data-curve="fusion.k"]')
    curve.wait_for()
    points = curve.locator("polyline").get_attribute("points") or ""
    assert len(points.split()) > 5
    assert "highest at" in curve.inner_text()
    assert "Unjudged among the first 10 documents: " in console_page.inner_text("[data-unjudged]")


def test_tiers_are_named_in_words(console_page: Page) -> None:
    for path, label in (("value", "bonus, tier 1"), ("ranks", "ranks in tier 1")):
        control = console_page.locator(f'[data-control="fusion.bonus.1.{path}"]')
        assert control.locator("label").inner_text() == label


def test_undo_and_the_address_bring_a_setting_back(open_page: Opener, console: Access) -> None:
    page = open_console(open_page, console).page
    before = shown_means(page)
    move_slider(page, "Home", 1)
    moved, address = shown_means(page), address_of(page)
    page.keyboard.press("Control+z")
    settle(page)
    assert shown_means(page) == before
    shared = page.context.new_page()
    shared.goto(address)
    settle(shared)
    assert shown_means(shared) == moved


def test_two_tabs_do_not_disturb_each_other(console_page: Page) -> None:
    other = console_page.context.new_page()
    other.goto(address_of(console_page))
    settle(other)
    before = shown_means(other)
    move_slider(console_page, "Home", 1)
    k = move_slider(other, "End", 1)
    assert float(other.input_value(NUMBER)) == k
    assert float(console_page.input_value(NUMBER)) < k
    assert shown_means(console_page) != before


def test_a_changed_query_opens_with_both_lists_and_stays_text(console_page: Page) -> None:
    console_page.locator("select[data-system]").select_option("heavy a")
    settle(console_page)
    console_page.locator("[data-against=baseline]").first.click()
    console_page.locator(f'#changes [data-query="{EVIL_QUERY}"]').first.click()
    drawer = console_page.locator("[data-drawer]")
    drawer.wait_for()
    assert drawer.get_attribute("data-query") == EVIL_QUERY
    folded = drawer.locator(".more-moves")
    assert drawer.locator("[data-move]:visible").count() == 8
    assert folded.locator("summary").inner_text() == (
        f"{folded.locator('[data-move]').count()} more"
    )
    for name in ("before", "after"):
        row = drawer.locator(f'[data-list={name}] [data-document="{EVIL_DOCUMENT}"]')
        assert EVIL_DOCUMENT in row.first.inner_text()
    assert console_page.locator("img, iframe, svg[onload]").count() == 0
    console_page.keyboard.press("Escape")
    drawer.wait_for(state="hidden")


def test_axe_has_no_serious_finding(console_page: Page) -> None:
    for scheme, rules in RULES.items():
        console_page.emulate_media(color_scheme=scheme)
        assert grave_findings(console_page, *rules) == [], scheme


def test_tab_reaches_everything_and_one_sees_where(console_page: Page) -> None:
    visible, missed = walk_by_tab(console_page)
    assert missed == []
    assert len(visible) > 20
    assert all(visible)


def test_the_console_fits_wide_and_narrow_windows(open_page: Opener, console: Access) -> None:
    opened = open_console(open_page, console, width=1600)
    assert opened.overflow() == 0
    opened.resize(400)
    assert opened.overflow() == 0


def test_a_signal_ends_it_though_a_page_is_open(browser: Browser, evaluation: Evaluation) -> None:
    with running_command(evaluation.experiment) as (process, address):
        opened = observe(browser, address)
        settle(opened.page)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        opened.page.context.close()
    assert process.returncode == 130
    assert "Traceback" not in errors
