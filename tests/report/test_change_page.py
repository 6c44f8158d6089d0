"""What the page of two reports says, and the data that it draws."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench.checks.records import JudgeInfo
from fusion_bench.evaluation.compared_reports import add_comparisons
from fusion_bench.evaluation.report_changes import find_changes
from fusion_bench.evaluation.report_file import Report
from fusion_bench.report.change_page import build_change_page, change_section
from fusion_bench.report.html.pages import change_html, evaluation_html
from fusion_bench.report.page import Finding, Page, Section
from tests.evaluation.test_report_changes import BEFORE, BETTER, OLD, of_values
from tests.report import cases
from tests.report.cases import HOSTILE, compared, fused, system
from tests.report.finding_cases import describe_cases
from tests.report.html.pages import page_data, parse_page
from tests.report.test_golden import FOLDER


def page_of(old: Report, new: Report) -> Page:
    change = add_comparisons(find_changes(old, new), old, new)
    return build_change_page(change, old, new, ["a.json", "b.json"])


def html_of(old: Report, new: Report) -> str:
    change = add_comparisons(find_changes(old, new), old, new)
    return change_html(change, old, new, page=build_change_page(change, old, new))


def data_of(old: Report, new: Report) -> list[dict[str, Any]]:
    collections: list[dict[str, Any]] = page_data(html_of(old, new))["collections"]
    return collections


def marked(report: Report, **update: object) -> Report:
    collections = [each.model_copy(update=update) for each in report.collections]
    return report.model_copy(update={"collections": tuple(collections)})


FELL = BEFORE - 0.1 - 0.01 * np.sin(np.arange(len(BEFORE)))
NEW = of_values(("base", FELL), ("mine", BETTER), ("other", BEFORE))


MOVED = NEW.model_copy(
    update={"collections": (NEW.collections[0].model_copy(update={"name": "another"}),)}
)
JUDGE = JudgeInfo(family="gpt")
PAIRS = {
    "one better, one worse": (OLD, NEW),
    "nothing changed": (OLD, OLD),
    "other judgments": (
        OLD,
        of_values(("base", BEFORE), ("mine", BETTER), digests={"qrels": "1" * 64}),
    ),
    "no collection in common": (OLD, MOVED),
    "no query in common": (
        OLD,
        of_values(("base", BEFORE), queries=tuple(f"p{i}" for i in range(40))),
    ),
    "no system in common": (OLD, of_values(("new one", BEFORE))),
    "a machine judge, synthetic queries": (
        marked(OLD, judge=JUDGE),
        marked(NEW, judge=JUDGE, synthetic_queries=7),
    ),
    "a machine judge in the old report only": (marked(OLD, judge=JUDGE), NEW),
}


def findings(old: Report, new: Report) -> list[Finding]:
    page = page_of(old, new)
    assert page.headline is not None
    own = [each for section in page.sections for each in section.findings]
    return [replace(page.headline, key="headline"), Finding(page.answer, key="answer"), *own]


def test_findings(compare_golden: Callable[[Path, str], None]) -> None:
    text = describe_cases({name: findings(*pair) for name, pair in PAIRS.items()})
    compare_golden(FOLDER / "change-findings.txt", text)


def test_nothing_is_drawn_where_nothing_changed_or_can_be_compared() -> None:
    for name in ("nothing changed", *(name for name in PAIRS if " in common" in name)):
        assert data_of(*PAIRS[name]) == []
    assert 'data-views="collection' not in html_of(OLD, OLD).partition("<script")[0]


def test_what_cannot_be_tested_has_differences_without_verdicts() -> None:
    (collection,) = data_of(*PAIRS["other judgments"])
    mine = next(row for row in collection["systems"] if row["name"] == "mine")
    assert (mine["group"], mine["difference"]["low"]) == ("open", None)
    assert mine["difference"]["verdict"] == "not tested"


def test_settings_that_changed_alike_share_a_row() -> None:
    def report(runs: tuple[str, ...]) -> Report:
        rows = (fused("mine", 0.1, 0.2), fused("other", 0.1, 0.3))
        config = {"runs": list(runs)}
        changed = tuple(row.model_copy(update={"config": config}) for row in rows)
        base = fused("base", 0.1, 0.1)
        return cases.report(cases.collection(base, *changed, judgments="complete"))

    (section, *_) = page_of(report(("a",)), report(("a", "b"))).sections
    (table,) = section.tables
    assert [row.cells for row in table.rows] == [("mine, other", "runs", '["a"]', '["a", "b"]')]


def test_each_system_has_its_values_then_and_now() -> None:
    (collection,) = data_of(OLD, NEW)
    names = [row["name"] for row in collection["systems"]]
    assert names == ["mine", "other", "base", "gone"]
    groups = {row["name"]: (row["group"], row["kind"]) for row in collection["systems"]}
    assert groups == {
        "mine": ("better", "system"),
        "base": ("worse", "system"),
        "other": ("new", "new"),
        "gone": ("gone", "gone"),
    }

    def values(key: str, name: str) -> list[float | None]:
        table = collection[key][0]
        indices = table["rows"][names.index(name)]
        return [None if i < 0 else table["distinct"][i] for i in indices]

    np.testing.assert_array_equal(values("values", "mine"), BETTER)
    np.testing.assert_array_equal(values("then", "mine"), BEFORE)
    assert set(values("then", "other")) == {None} == set(values("values", "gone"))
    assert collection["best"] in {"mine", "base"}


def test_queries_of_both_reports_only() -> None:
    (collection,) = NEW.collections
    queries = ("new query", *collection.queries[:-1])
    rows = data_of(OLD, cases.report(collection.model_copy(update={"queries": queries})))
    assert rows[0]["queries"] == list(collection.queries[:-1])
    assert {len(row) for row in rows[0]["then"][0]["rows"]} == {39}
    np.testing.assert_array_equal(
        [rows[0]["values"][0]["distinct"][i] for i in rows[0]["values"][0]["rows"][0]], BETTER[1:]
    )


def test_names_stay_text() -> None:
    script = "</script><script>alert(1)</script>"
    new = of_values(("base", BEFORE), (HOSTILE, BEFORE), (script, BEFORE), name="<i>")
    old = of_values(("base", BETTER), (HOSTILE, BETTER), (script, BETTER), name="<i>")
    html = html_of(old, new)
    assert script in parse_page(html).text
    assert html.count("<script") == 2
    assert "<i>" not in html.replace("&lt;i&gt;", "")
    assert HOSTILE in [row["name"] for row in page_data(html)["collections"][0]["systems"]]


# ── what a page says of the change since the last report


def with_values(*values: float, answer: str = "better", settings: float = 0.05) -> Report:
    rows = (system("base", 0.5, 0.4, 0.3), fused("mine", *values))
    collection = cases.collection(*rows, comparisons=[compared("mine", 0.1, answer)])
    return cases.report(collection, settings={"alpha": settings})


def section(old: Report, new: Report) -> Section:
    return change_section(find_changes(old, new), 0.005)


def test_values_answers_and_settings_then_and_now_or_nothing() -> None:
    shown = section(with_values(0.9, 0.8, 0.7), with_values(0.9, 0.8, 0.7))
    assert [finding.tone for finding in shown.findings] == ["plain"]
    assert shown.parts == ()
    old, new = with_values(0.9, 0.8, 0.7), with_values(0.6, 0.8, 0.7, answer="worse", settings=0.1)
    shown = section(old, new)
    [finding] = shown.findings
    assert "1 system of 2 " in finding.text
    assert "1 query" in finding.text
    settings, systems, queries = shown.tables
    assert [row.cells for row in settings.rows] == [("setting", "alpha", "0.05", "0.1")]
    assert [(row.cells, row.tone) for row in systems.rows] == [
        (("mine", "0.8000", "0.7000", "-0.1000", "0", "1", "better", "worse"), "worse")
    ]
    assert [row.cells for row in queries.rows] == [("q0", "mine", "0.9000", "0.6000", "-0.3000")]


def test_a_new_collection_and_other_data_are_named() -> None:
    old = with_values(0.9, 0.8, 0.7)
    (collection,) = old.collections
    other = collection.model_copy(update={"digests": {"qrels": "1" * 64}})
    added = collection.model_copy(update={"name": "another"})
    shown = section(old, old.model_copy(update={"collections": (other, added)}))
    qrels, name = shown.findings
    assert (qrels.tone, "qrels" in qrels.text) == ("warning", True)
    assert (name.text, name.tone) == ("another is new.", "plain")


def test_the_page_shows_it_after_the_results_and_only_with_a_last_report() -> None:
    report = with_values(0.9, 0.8, 0.7)
    title = "Since the report of 2025-01-02T03:04:05+00:00"
    html = evaluation_html(report, None, with_values(0.9, 0.8, 0.1))
    places = [html.index(text) for text in ("tiny 1: 3 queries", title, "Configuration and inputs")]
    assert places == sorted(places)
    assert title not in parse_page(evaluation_html(report)).text
