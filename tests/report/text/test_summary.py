"""A page in at most 40 lines: the verdict first, the provenance last."""

from __future__ import annotations

import pytest

from fusion_bench.report import evaluation_page as evaluation
from fusion_bench.report import tuning_page as tuning
from fusion_bench.report.markdown import MAX_SUMMARY_LINES, render_summary
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table
from tests.report import cases
from tests.report.tuning import cases as tuning_cases

PAGES = {
    "example": cases.example_page(),
    "usual": evaluation.build_page(cases.report(cases.full())),
    "many systems": evaluation.build_page(cases.report(cases.many(200))),
    "many collections": evaluation.build_page(cases.report(*[cases.many(30)] * 12)),
    "empty": evaluation.build_page(cases.report()),
    "tuning": tuning.build_page(tuning_cases.record(by_type=tuning_cases.typed())),
    "nothing": Page("nothing", ()),
}


@pytest.mark.parametrize("name", PAGES)
def test_it_has_at_most_forty_lines_and_the_headline_first(name: str) -> None:
    text = render_summary(PAGES[name])
    lines = text.splitlines()
    assert len(lines) <= MAX_SUMMARY_LINES
    assert lines[0].startswith("# ")
    assert text.endswith("\n")
    if PAGES[name].headline is not None:
        assert lines[2].startswith("**")


def test_the_verdict_its_table_and_the_provenance() -> None:
    text = render_summary(PAGES["usual"])
    assert text.index("+100.0 %: 2 queries better, 0 worse of 3") < text.index("| better one |")
    assert text.splitlines()[-1] == (
        "*experiment.yaml, 2025-01-02T03:04:05+00:00; ties trec, seed 7, alpha 0.05, "
        "data ffffffffffff*"
    )
    assert "RR@10" not in text


def test_rows_and_collections_that_are_left_out_are_counted() -> None:
    text = render_summary(PAGES["many systems"])
    assert "| **base** |" in text
    assert "more |" in text
    assert "more sections in the full report" in render_summary(PAGES["many collections"])


def test_findings_beyond_the_limit_are_counted() -> None:
    findings = tuple(Finding(f"finding {i}") for i in range(9))
    table = Table("t", (Column("a", is_text=True),), (Row(("x",)),))
    text = render_summary(Page("p", (Section("s", findings=findings, parts=(table,)),)))
    assert "finding 5" in text
    assert "3 more in the full report" in text
