"""The page of ``fusion-bench lint``, and its findings as lines at the top of other pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.evaluation.report_records.lint_finding import LintFinding
from fusion_bench.lint import LintReport, WitnessedFinding, WitnessRecord
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table, Tone
from fusion_bench.util.formatting import pluralize

TONES: dict[str, Tone] = {"warning": "warning", "note": "plain"}


def lint_lines(findings: Sequence[LintFinding]) -> tuple[Finding, ...]:
    """One line a rule: ``lint ID: message [systems] (docs/lint.md#ID)``; warnings last."""
    by_id: dict[str, list[LintFinding]] = {}
    for finding in findings:
        by_id.setdefault(finding.id, []).append(finding)
    lines = [_merge_findings(same) for same in by_id.values()]
    return tuple(sorted(lines, key=lambda line: line.tone == "warning"))


def lint_section(findings: Sequence[LintFinding]) -> tuple[Section, ...]:
    """The lines as a section of a page; none where nothing was found."""
    return (Section(findings=lint_lines(findings)),) if findings else ()


def _merge_findings(findings: Sequence[LintFinding]) -> Finding:
    """The first finding of a rule, and how many others it has."""
    first, *others = findings
    more = f"; {pluralize(len(others), 'more configuration')}" if others else ""
    text = f"lint {first.id}: {first.message} [{_describe_scope(first)}{more}] ({first.docs})"
    return Finding(text, TONES[first.severity], f"lint {first.id}")


def _describe_scope(finding: LintFinding) -> str:
    """The first system, how many more, and the query types where it is not of all queries."""
    first, *others = finding.systems
    more = f" and {len(others)} more" if others else ""
    types = f", query type {', '.join(finding.query_types)}" if finding.query_types else ""
    types += f", intent {', '.join(finding.intents)}" if finding.intents else ""
    return f"{first}{more}{types}"


def build_lint_page(report: LintReport) -> Page:
    """The page of a lint report: each finding with its witness."""
    sections = tuple(_build_section(finding) for finding in report.findings)
    notes = tuple(Finding(text, key=key) for key, text in _list_notes(report))
    if notes:
        sections = (*sections, Section(findings=notes))
    return Page(
        f"Lint: {report.experiment}", sections, Finding(_describe_result(report), _tone(report))
    )


def _tone(report: LintReport) -> Tone:
    return "warning" if any(f.severity == "warning" for f in report.findings) else "passed"


def _describe_result(report: LintReport) -> str:
    """How many warnings and notes there are, and in how many systems."""
    systems = pluralize(len(report.systems), "system")
    severities = [finding.severity for finding in report.findings]
    warnings = pluralize(severities.count("warning"), "warning")
    notes = pluralize(severities.count("note"), "note")
    return f"{warnings} and {notes} in {systems}."


def _list_notes(report: LintReport) -> Iterator[tuple[str, str]]:
    """What was not looked at."""
    if report.unchecked:
        text = "No dataset is known. Not checked, because these need its dataset.yaml:"
        yield "unchecked", f"{text} {', '.join(report.unchecked)}."
    if report.unchecked_systems:
        names = ", ".join(report.unchecked_systems)
        yield "unchecked systems", f"Not checked, because their weights need roles: {names}."
    if report.untranslated:
        systems = ", ".join(f"{name} ({why})" for name, why in report.untranslated.items())
        yield "untranslated", f"Not looked at for {report.engine}: {systems}."
    if report.ignored:
        yield "ignored", f"Ignored by the experiment: {', '.join(report.ignored)}."


def _build_section(finding: WitnessedFinding) -> Section:
    text = f"{finding.severity}: {finding.message}"
    details = (
        f"systems: {', '.join(finding.systems)}",
        *((f"query types: {', '.join(finding.query_types)}",) if finding.query_types else ()),
        *((f"intents: {', '.join(finding.intents)}",) if finding.intents else ()),
        f"at {finding.where}; see {finding.docs}",
    )
    return Section(
        title=finding.id,
        findings=(Finding(text, TONES[finding.severity], finding.id, details),),
        parts=(_witness_table(finding.witness),),
    )


def _witness_table(witness: WitnessRecord) -> Table:
    """The documents with their ranks, as the real system orders them."""
    sources = tuple(dict.fromkeys(name for row in witness.documents for name in row.ranks))
    columns = (
        Column("document", is_text=True),
        *(Column(f"{name} rank") for name in sources),
        *(Column(f"{name} score", is_optional=True) for name in sources),
        *map(Column, ("rerank", "final score", "final rank")),
    )
    rows = tuple(
        Row(
            (
                row.document,
                *(str(row.ranks.get(name, "–")) for name in sources),
                *(_format_score(row.scores.get(name)) for name in sources),
                "" if row.rerank is None else _format_score(row.rerank),
                _format_score(row.final_score),
                "dropped" if row.final_rank is None else str(row.final_rank),
            )
        )
        for row in witness.documents
    )
    return Table(f"Witness: {witness.claim}.", columns, rows).without_empty_columns()


def _format_score(score: float | None) -> str:
    return "–" if score is None else f"{score:.4f}"
