"""``report.html`` on paper: light, unfolded, nothing cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(18, 22, 28)"


def fire(page: Page, event: str) -> None:
    """What a browser tells a page before and after it prints."""
    page.evaluate("name => window.dispatchEvent(new Event(name))", event)


def test_paper_is_light_and_the_screen_dark_again(report_page: Page) -> None:
    page = report_page
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(BACKGROUND) == DARK
    fire(page, "beforeprint")
    assert page.evaluate(BACKGROUND) == LIGHT
    fire(page, "afterprint")
    assert page.evaluate(BACKGROUND) == DARK
    page.emulate_media(media="print", color_scheme="dark")  # without the events too
    assert page.evaluate(BACKGROUND) == LIGHT


def test_paper_stays_light_where_the_system_turns_dark_meanwhile(report_page: Page) -> None:
    page = report_page
    page.emulate_media(color_scheme="light")
    page.evaluate(
        "() => { window.turned = new Promise(turned =>"
        " matchMedia('(prefers-color-scheme: dark)').addEventListener('change', turned)); }"
    )
    fire(page, "beforeprint")
    page.emulate_media(color_scheme="dark")
    page.evaluate("window.turned.then(() => null)")  # a browser says so with its next frame only
    assert page.evaluate(BACKGROUND) == LIGHT
    fire(page, "afterprint")
    assert page.evaluate(BACKGROUND) == DARK


def test_paper_has_the_pictures_and_repeats_the_headings_of_tables(report_page: Page) -> None:
    forest = report_page.locator("[data-view=forest] svg")
    assert forest.get_attribute("width") != "700"
    fire(report_page, "beforeprint")
    assert forest.get_attribute("width") == "700"
    report_page.emulate_media(media="print")
    assert report_page.locator("svg.forest, canvas").count() > 1
    report_page.wait_for_function(  # a picture is drawn with the next frame
        "() => [...document.querySelectorAll('svg.forest, canvas')]"
        ".every(node => node.getBoundingClientRect().height > 100)"
    )
    read = "node => [getComputedStyle(node).display, getComputedStyle(node).breakInside]"
    for head in report_page.locator("table thead").all():
        assert head.evaluate(read) == ["table-header-group", "avoid"]
    # Chromium leaves the boxes of buttons out of a heading that it repeats.
    for button in report_page.locator("thead button").all():
        assert button.evaluate("node => getComputedStyle(node).display") == "contents"


def test_paper_has_all_tables_and_the_whole_heat_map(report_page: Page) -> None:
    tables = report_page.locator("details.all-tables")
    assert tables.get_attribute("open") is None
    fire(report_page, "beforeprint")
    assert tables.get_attribute("open") is not None
    report_page.set_viewport_size({"width": 700, "height": 900})
    report_page.emulate_media(media="print")
    widths = report_page.eval_on_selector_all(
        "#heat-0 .heat-scroller, #heat-0 canvas",
        "nodes => nodes.map(node => node.getBoundingClientRect().width)",
    )
    assert widths[0] == widths[1]
    fire(report_page, "afterprint")
    assert tables.get_attribute("open") is None
