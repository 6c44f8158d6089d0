"""``report.html`` in use: sorting, filtering, keys, and what an opened query shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusion_bench.evaluation.recommendation import preferred_system
from fusion_bench.report.data_warnings import judged_columns
from fusion_bench.util.formatting import format_number
from tests.browser.conftest import open_ready
from tests.browser.project import EVIL_QUERY, EVIL_SYSTEM, Evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Opener

PRIMARY, SECOND, HEADING = "nDCG@10", "RR@10", "MRR@10"
ROWS = "[data-queries] [role=option]"


def values_of(evaluation: Evaluation, system: str, measure: str = PRIMARY) -> dict[str, float]:
    result = evaluation.collection.system(system).measures[measure]
    pairs = zip(evaluation.collection.queries, result.values, strict=True)
    return {query: value for query, value in pairs if value is not None}


def gains_of(evaluation: Evaluation, system: str) -> dict[str, float]:
    base = values_of(evaluation, evaluation.collection.baseline)
    return {query: value - base[query] for query, value in values_of(evaluation, system).items()}


def shown_systems(page: Page) -> list[str]:
    return page.eval_on_selector_all(
        "#systems-0 tr[data-system]", "rows => rows.map(row => row.dataset.system)"
    )


def shown_queries(page: Page) -> list[str]:
    return page.eval_on_selector_all(ROWS, "rows => rows.map(row => row.dataset.query)")


def current_query(page: Page) -> str | None:
    return page.locator(f"{ROWS}[aria-selected=true]").get_attribute("data-query")


def test_pictures_are_drawn_without_scrolling_or_a_further_frame(
    open_page: Opener, evaluation: Evaluation
) -> None:
    no_frames = "window.requestAnimationFrame = () => 0; window.ResizeObserver = NoObserver;"
    script = f"class NoObserver {{ observe() {{}} }} {no_frames}"
    page = open_ready(open_page, evaluation.page, height=300, script=script).page
    pictures = page.locator("#main .picture").all()
    assert len(pictures) > 1
    for picture in pictures:
        assert picture.locator("svg").count() == 1
    blank = "canvas => canvas.toDataURL() === document.createElement('canvas').toDataURL()"
    canvas = page.locator("#heat-0 canvas")
    assert canvas.evaluate("canvas => canvas.getBoundingClientRect().height") > 15
    assert not canvas.evaluate(blank)


def test_a_click_and_a_key_sort_a_column(report_page: Page, evaluation: Evaluation) -> None:
    report_page.get_by_label("Group by verdict").uncheck()
    report_page.locator("[data-view=systems] .column-switch").click()
    rows = (*evaluation.collection.ranked_systems, *evaluation.collection.reference_rows)
    for key, measure in (("1", PRIMARY), ("2", SECOND)):
        heading = report_page.locator(f"#systems-0 th[data-sort='{key}']")
        assert heading.get_attribute("aria-sort") is None
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == "descending"
        means = {row.name: row.measures[measure].mean or 0.0 for row in rows}
        order = [means[name] for name in shown_systems(report_page)]
        assert len(order) == len(means)
        assert order == sorted(order, reverse=True)
        report_page.keyboard.press(key)
        assert heading.get_attribute("aria-sort") == "ascending"
        assert [means[name] for name in shown_systems(report_page)] == sorted(order)


def test_systems_are_grouped_by_their_verdict(report_page: Page, evaluation: Evaluation) -> None:
    comparisons = evaluation.collection.comparisons
    answers = {each.candidate: each.answer for each in comparisons if each.measure == PRIMARY}
    for group in ("better", "worse"):
        names = report_page.eval_on_selector_all(
            f"#systems-0 tbody[data-group={group}] tr[data-system]",
            "rows => rows.map(row => row.dataset.system)",
        )
        assert sorted(names) == sorted(name for name in answers if answers[name] == group)


def test_the_table_says_how_much_is_judged(report_page: Page, evaluation: Evaluation) -> None:
    report_page.get_by_label("Group by verdict").uncheck()
    report_page.locator("[data-view=systems] .column-switch").click()
    headings = report_page.locator("#systems-0 thead th").all_inner_texts()
    judged, ends = headings.index("Judged@10"), headings.index("if judged")
    rows = (*evaluation.collection.ranked_systems, *evaluation.collection.reference_rows)
    bounds = {row.name: row.measures[PRIMARY].bounds for row in rows}
    known = [each for each in bounds.values() if each is not None]
    assert any((each.low or 0) < (each.high or 0) for each in known)
    columns = judged_columns(known, lambda each: each)
    for row in report_page.locator("#systems-0 tr[data-system]").all():
        cells = row.locator("th, td").all_inner_texts()
        each = bounds[row.get_attribute("data-system") or ""]
        shown = ["", ""] if each is None else [column.cell(each) for column in columns]
        assert [cells[judged], cells[ends]] == shown


def test_seven_columns_are_shown_until_a_button_shows_all(report_page: Page) -> None:
    headings = report_page.locator("#systems-0 thead th:visible")
    assert headings.count() <= 7
    texts = headings.all_inner_texts()
    assert "p" not in texts
    assert [text.split()[0] for text in texts[1:3]] == [PRIMARY, HEADING]
    switch = report_page.locator("[data-view=systems] .column-switch")
    switch.click()
    assert {"p", "if judged", f"verdict on {HEADING}"} <= {*headings.all_inner_texts()}
    switch.click()
    assert headings.count() <= 7


def test_systems_of_the_best_group_are_marked(report_page: Page, evaluation: Evaluation) -> None:
    report_page.get_by_label("Group by verdict").uncheck()
    marked = report_page.locator("#systems-0 tr[data-system]:has(.best-group)")
    names = marked.evaluate_all("rows => rows.map(row => row.dataset.system)")
    assert sorted(names) == sorted(evaluation.collection.shown_first_group) != []


def test_a_phone_cuts_no_verdict_and_no_name(open_page: Opener, evaluation: Evaluation) -> None:
    opened = open_ready(open_page, evaluation.page, width=390)
    assert opened.overflow() <= 0
    ends = "nodes => nodes.map(node => node.getBoundingClientRect().right)"
    for cells in ("#systems-0 .verdict", "#systems-0 tbody th", ".forest .name, .forest .value"):
        rights = opened.page.locator(cells).evaluate_all(ends)
        assert max(rights) <= 390
    names = opened.page.locator("[data-view=forest] .name").all_text_contents()
    compared = {each.candidate for each in evaluation.collection.ranked_comparisons}
    assert {*names} >= compared - {EVIL_SYSTEM}
    assert len({*names}) == len(compared)


def test_the_title_is_the_answer_and_the_commands_stand_below_it(report_page: Page) -> None:
    answer = report_page.locator("h1 bdi").first.text_content() or ""
    assert answer
    assert report_page.title().startswith(answer)
    assert any(
        "fusion-bench tune" in each
        for each in report_page.locator("#advice code").all_inner_texts()
    )


def test_the_filter_has_a_key_and_keeps_what_matches(report_page: Page) -> None:
    report_page.keyboard.press("/")
    report_page.keyboard.type("q1")
    report_page.wait_for_function(f"document.querySelectorAll('{ROWS}').length === 10")
    assert all(query.startswith("q1") for query in shown_queries(report_page))
    report_page.keyboard.press("Escape")
    report_page.keyboard.press("j")  # a letter is a command again
    assert current_query(report_page) == shown_queries(report_page)[0]


def test_keys_walk_over_queries(report_page: Page, evaluation: Evaluation) -> None:
    gains = gains_of(evaluation, preferred_system(evaluation.collection))
    report_page.keyboard.press("j")
    report_page.keyboard.press("j")
    second = shown_queries(report_page)[1]
    assert current_query(report_page) == second
    report_page.keyboard.press("k")
    assert current_query(report_page) == shown_queries(report_page)[0]
    report_page.keyboard.press("n")
    lost = current_query(report_page)
    assert lost is not None
    assert gains[lost] < 0
    report_page.keyboard.press("P")  # the one before that it wins
    won = current_query(report_page)
    assert won is not None
    assert gains[won] > 0


def test_a_key_shows_the_keys(report_page: Page) -> None:
    report_page.keyboard.press("?")
    dialog = report_page.locator("#keys")
    dialog.wait_for()
    for key in ("/", "j", "k", "n", "p", "?"):
        assert dialog.locator("kbd", has_text=key).count() > 0
    report_page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")


def test_a_query_opens_with_the_values_of_the_record(
    report_page: Page, evaluation: Evaluation
) -> None:
    report_page.locator(f'{ROWS}[data-query="{EVIL_QUERY}"]').click()
    panel = report_page.locator("#query-panel")
    panel.wait_for()
    assert panel.get_attribute("data-query") == EVIL_QUERY
    query = evaluation.collection.queries.index(EVIL_QUERY)
    for i, measure in enumerate((PRIMARY, SECOND)):
        items = panel.locator("details.values").nth(i).locator("li[data-system]")
        texts = dict(items.evaluate_all("rows => rows.map(r => [r.dataset.system, r.textContent])"))
        for row in evaluation.collection.ranked_systems:
            value = format_number(row.measures[measure].values[query])
            assert texts[row.name].startswith(f"{row.name}{value}")
    report_page.keyboard.press("Escape")
    panel.wait_for(state="hidden")


def test_a_query_opens_by_keys(report_page: Page) -> None:
    report_page.keyboard.press("j")
    report_page.keyboard.press("j")
    report_page.locator("[data-queries]").focus()
    report_page.keyboard.press("Enter")
    panel = report_page.locator("#query-panel")
    assert panel.get_attribute("data-query") == shown_queries(report_page)[1]
    report_page.keyboard.press("j")  # the open one follows
    assert panel.get_attribute("data-query") == shown_queries(report_page)[2]


def test_the_heat_map_is_sorted_by_the_gain_of_any_system(
    report_page: Page, evaluation: Evaluation
) -> None:
    label = report_page.locator("#heat-0 .heat-labels button", has_text=EVIL_SYSTEM)
    label.click()
    assert label.get_attribute("aria-pressed") == "true"
    gains = gains_of(evaluation, EVIL_SYSTEM)
    drawn = [gains[query] for query in shown_queries(report_page)]
    assert drawn == sorted(gains.values(), reverse=True)[: len(drawn)]
    scroller = report_page.locator("#heat-0 .heat-scroller")
    scroller.focus()
    report_page.keyboard.press("ArrowRight")
    first = shown_queries(report_page)[0]
    report_page.keyboard.press("Enter")
    assert report_page.locator("#query-panel").get_attribute("data-query") == first


def test_one_click_shows_what_a_system_loses(report_page: Page, evaluation: Evaluation) -> None:
    gains = sorted(gains_of(evaluation, preferred_system(evaluation.collection)).values())
    ends = report_page.locator("[data-view=queries] [data-end]")
    assert ends.evaluate_all("all => all.map(each => each.ariaPressed)") == ["true", "false"]
    ends.nth(1).click()
    assert ends.evaluate_all("all => all.map(each => each.ariaPressed)") == ["false", "true"]
    shown = report_page.locator(f"{ROWS} .number-cell:nth-child(5)").first.text_content()
    assert shown == format_number(gains[0], signed=True)


def test_queries_are_sorted_by_their_unjudged_documents(report_page: Page) -> None:
    heading = report_page.locator("[data-view=queries] button[data-sort=unjudged]")
    heading.click()
    read = "cells => cells.map(cell => Number(cell.dataset.unjudged))"
    counts = report_page.locator(f"{ROWS} [data-unjudged]").evaluate_all(read)
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 0
    status = report_page.locator("#heat-status-0").text_content() or ""
    assert "the unjudged" in status


def test_a_slice_keeps_its_queries(report_page: Page, evaluation: Evaluation) -> None:
    report_page.locator("select[data-choice=slice]").select_option(value='["type","local"]')
    types = dict(zip(evaluation.collection.queries, evaluation.collection.types, strict=True))
    assert {types[query] for query in shown_queries(report_page)} == {"local"}
    note = report_page.locator("[data-view=queries] h3").text_content() or ""
    assert f"{list(types.values()).count('local')} queries" in note


def test_a_click_counts_where_rows_are_drawn_while_it_lasts(
    open_page: Opener, evaluation: Evaluation
) -> None:
    opened = open_ready(open_page, evaluation.page)
    row = opened.page.locator(ROWS).nth(3)
    row.hover()
    opened.page.mouse.down()
    opened.resize(1000)
    opened.page.mouse.up()
    panel = opened.page.locator("#query-panel")
    panel.wait_for()
    assert panel.get_attribute("data-query") == row.get_attribute("data-query")
