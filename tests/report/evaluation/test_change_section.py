"""What a page says of the change since the last report."""

from __future__ import annotations

from fusion_bench.evaluation.report_changes import find_changes
from fusion_bench.evaluation.report_file import Report
from fusion_bench.report.change_page import change_section
from fusion_bench.report.html.pages import evaluation_html
from fusion_bench.report.page import Section
from tests.report import cases
from tests.report.cases import compared, fused, system
from tests.report.html.pages import parse_page


def of_values(*values: float, answer: str = "better", settings: float = 0.05) -> Report:
    rows = (system("base", 0.5, 0.4, 0.3), fused("mine", *values))
    collection = cases.collection(*rows, comparisons=[compared("mine", 0.1, answer)])
    return cases.report(collection, settings={"alpha": settings})


def section(old: Report, new: Report) -> Section:
    return change_section(find_changes(old, new), 0.005)


def test_nothing_changed() -> None:
    shown = section(of_values(0.9, 0.8, 0.7), of_values(0.9, 0.8, 0.7))
    assert [finding.text for finding in shown.findings] == [
        "No setting, system, list or value changed."
    ]
    assert shown.parts == ()


def test_values_answers_and_settings_then_and_now() -> None:
    old, new = of_values(0.9, 0.8, 0.7), of_values(0.6, 0.8, 0.7, answer="worse", settings=0.1)
    shown = section(old, new)
    texts = [finding.text for finding in shown.findings]
    assert texts == ["tiny: 1 system of 2 and the values of 1 query changed."]
    settings, systems, queries = shown.tables
    assert [row.cells for row in settings.rows] == [("setting", "alpha", "0.05", "0.1")]
    assert [(row.cells, row.tone) for row in systems.rows] == [
        (("mine", "0.8000", "0.7000", "-0.1000", "0", "1", "better", "worse"), "worse")
    ]
    assert [row.cells for row in queries.rows] == [("q0", "mine", "0.9000", "0.6000", "-0.3000")]


def test_a_new_collection_and_other_data_are_named() -> None:
    old = of_values(0.9, 0.8, 0.7)
    (collection,) = old.collections
    other = collection.model_copy(update={"digests": {"qrels": "1" * 64}})
    added = collection.model_copy(update={"name": "another"})
    shown = section(old, old.model_copy(update={"collections": (other, added)}))
    assert [(finding.text, finding.tone) for finding in shown.findings] == [
        ("tiny: the contents of qrels changed.", "warning"),
        ("another is new.", "plain"),
    ]


def test_the_page_shows_it_after_the_results_and_only_with_a_last_report() -> None:
    report = of_values(0.9, 0.8, 0.7)
    title = "Since the report of 2025-01-02T03:04:05+00:00"
    html = evaluation_html(report, None, of_values(0.9, 0.8, 0.1))
    places = [html.index(text) for text in ("tiny 1: 3 queries", title, "Configuration and inputs")]
    assert places == sorted(places)
    assert title not in parse_page(evaluation_html(report)).text
