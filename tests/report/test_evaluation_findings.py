"""What the golden page of an evaluation's findings does not show, and what lint found."""

from __future__ import annotations

from typing import Any

from fusion_bench.checks.records import LintFinding
from fusion_bench.report.data_warnings import lint_lines, lint_section
from fusion_bench.report.evaluation_findings import collection_findings
from tests.report import cases


def make_finding(**changes: Any) -> LintFinding:  # noqa: ANN401 - any field's value
    fields = {"id": "some-rule", "severity": "warning", "message": "1 + 1 is 2", "systems": ("a",)}
    return LintFinding(**{**fields, **changes})


def test_findings_come_before_warnings() -> None:
    found = cases.full()
    tones = [f.tone for f in collection_findings(cases.report(found, v2=False), found)]
    assert tones.index("warning") == len(tones) - 1


def test_a_line_has_id_message_systems_and_section() -> None:
    [line] = lint_lines([make_finding(systems=("a", "b", "c"), query_types=("local",))])
    assert line.text.startswith("lint some-rule: 1 + 1 is 2 [")
    assert line.text.endswith("(docs/reference/lint.md#some-rule)")
    assert (line.tone, line.key) == ("warning", "lint some-rule")


def test_other_configurations_of_a_rule_are_counted() -> None:
    findings = [make_finding(), make_finding(message="2"), make_finding(message="3")]
    [line] = lint_lines(findings)
    assert "[a; 2 more configurations]" in line.text


def test_notes_are_no_warnings_and_stand_first() -> None:
    lines = lint_lines([make_finding(), make_finding(id="other", severity="note")])
    assert [(line.key, line.tone) for line in lines] == [
        ("lint other", "plain"),
        ("lint some-rule", "warning"),
    ]


def test_nothing_found_is_no_section() -> None:
    assert lint_section(()) == ()
