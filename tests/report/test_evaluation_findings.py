"""What the golden page of an evaluation's findings does not show, and what lint found."""

from typing import Any

import pytest

from fusion_bench.checks.records import LintFinding
from fusion_bench.evaluation.report_records import SystemResult
from fusion_bench.report.data_warnings import lint_lines, lint_section
from fusion_bench.report.evaluation_findings import reranker_findings
from fusion_bench.report.page import Page, Section
from fusion_bench.report.terminal import shorten_page
from tests.report import cases
from tests.report.evaluation_finding_cases import FINDINGS


def make_finding(**changes: Any) -> LintFinding:  # noqa: ANN401 - any field's value
    fields = {"id": "some-rule", "severity": "warning", "message": "1 + 1 is 2", "systems": ("a",)}
    return LintFinding(**{**fields, **changes})


def test_a_line_has_its_parts_and_counts_other_configurations() -> None:
    [line] = lint_lines([make_finding(systems=("a", "b", "c"), query_types=("local",))])
    assert line.text.startswith("lint some-rule: 1 + 1 is 2 [")
    assert line.text.endswith("(docs/reference/lint.md#some-rule)")
    assert (line.tone, line.key) == ("warning", "lint some-rule")
    findings = [make_finding(), make_finding(message="2"), make_finding(message="3")]
    [line] = lint_lines(findings)
    assert "[a; 2 more configurations]" in line.text


def test_notes_are_no_warnings_and_nothing_found_is_no_section() -> None:
    lines = lint_lines([make_finding(), make_finding(id="other", severity="note")])
    assert [(line.key, line.tone) for line in lines] == [
        ("lint other", "plain"),
        ("lint some-rule", "warning"),
    ]
    assert lint_section(()) == ()


def blended(name: str, *values: float, k: int = 60, **blend: object) -> SystemResult:
    """A fusion with a blend; none is given = it has none."""
    config = {"runs": ["a", "b"], "fusion": {"method": "rrf", "k": k}}
    row = cases.system(name, *values)
    return row.model_copy(update={"config": {**config, "blend": blend or {"method": "none"}}})


LOW, HIGH = (0.1, 0.12, 0.11), (0.5, 0.51, 0.53)
RERANK: dict[str, Any] = {"method": "replace", "reranker": "model"}
PLAIN = (blended("base", *HIGH), blended("five", *HIGH, k=5))


@pytest.mark.parametrize(
    ("rows", "tone", "parts"),
    [
        ((blended("base+", *LOW, **RERANK), blended("five+", *LOW, k=5, **RERANK)), "warning", ()),
        ((blended("base+", 0.1, 0.9, 0.11, **RERANK),), "plain", ("shown in 0 of 1 pair",)),
        ((blended("base+", *LOW, **RERANK), blended("five+", 0.9, 1, 1, k=5, **RERANK)), "", ()),
        ((blended("base+", *LOW, method="linear", reranker="model", beta=0),), "", ()),
        ((blended("other+", *LOW, k=7, **RERANK),), "", ()),
    ],
)
def test_a_reranker_that_lowers_every_fusion_is_named_with_its_difference(
    rows: tuple[SystemResult, ...], tone: str, parts: tuple[str, ...]
) -> None:
    collection = cases.collection(*PLAIN, *rows)
    found = [*reranker_findings(cases.report(collection), collection)]
    assert [finding.tone for finding in found] == [tone] * bool(tone)
    shown = ("model", "base+ against base", "-0.4", *parts)
    assert all(part in finding.text for finding in found for part in shown if tone == "warning")
    assert all(part in finding.text for finding in found for part in parts)


def test_a_loss_that_unjudged_documents_decide_is_not_claimed() -> None:
    item = cases.compared("base+", -0.4, "unjudged decide")
    rows = (*PLAIN, blended("base+", *LOW, **RERANK))
    collection = cases.collection(*rows, comparisons=[item])
    [finding] = reranker_findings(cases.report(collection), collection)
    assert finding.tone == "plain"
    assert "lowers" not in finding.text


@pytest.mark.parametrize("case", FINDINGS)
def test_a_warning_in_brief_is_one_sentence_of_a_line(case: str) -> None:
    page = Page("x", (Section(findings=tuple(FINDINGS[case])),))
    [section] = shorten_page(page).sections
    for finding in section.findings:
        if finding.tone == "warning":
            assert len(f"! {finding.text}") <= 78, finding.text
