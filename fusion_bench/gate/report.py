"""A verdict as a page, and its parts as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.gate.power_check import power_warning, required_queries_text
from fusion_bench.gate.result import (
    CheckResult,
    DocumentChange,
    GateVerdict,
    GuardResult,
    QueryCheck,
    QueryRegression,
)
from fusion_bench.gate.verdict import INCONCLUSIVE, PASSED
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table, Tone
from fusion_bench.util.formatting import escape_control_chars, format_number, pluralize

TONES: dict[str, Tone] = {"pass": "passed", "regressed": "failed", "inconclusive": "inconclusive"}
EXIT_TONES: dict[int, Tone] = {PASSED: "passed", INCONCLUSIVE: "inconclusive"}
COLUMNS = (
    Column("check", is_text=True),
    Column("status", is_text=True),
    Column("baseline", is_optional=True),
    Column("candidate", is_optional=True),
    Column("difference"),
    Column("lower bound", is_optional=True),
    Column("max_drop"),
    Column("adjusted p", is_optional=True),
    Column("changed", is_optional=True),
    Column("min. detectable drop"),
    Column("false pass rate", is_optional=True),
)
NOTES = (
    "Lower bound: one-sided, 95 %. Adjusted p: one-sided paired randomization test, Holm's "
    "correction over all checks. Minimum detectable drop: 80 % power. False pass rate: at a true "
    "drop of exactly max_drop.",
)


def build_gate_page(verdict: GateVerdict) -> Page:
    """The page of a verdict; the terminal and Markdown render it."""
    return Page(
        f"fusion-bench gate: {verdict.experiment}",
        tuple(_build_sections(verdict)),
        headline=Finding(verdict.headline, EXIT_TONES.get(verdict.exit_code, "failed")),
    )


def _build_sections(verdict: GateVerdict) -> Iterator[Section]:
    baseline = verdict.baseline
    if verdict.baseline_system:
        baseline += f" ({verdict.baseline_system}: “{verdict.baseline_reason}”)"
    parts = [] if not verdict.config_changes else [_changes_table(verdict)]
    if verdict.checks:
        rows = tuple(Row(_check_cells(check), TONES[check.status]) for check in verdict.checks)
        parts.append(Table("Checks", COLUMNS, rows, NOTES))
    yield Section(text=f"Candidate {verdict.system}, baseline {baseline}.", parts=tuple(parts))
    findings = (*_check_findings(verdict), *_query_findings(verdict))
    if findings:
        yield Section("Findings", findings=findings)
    if verdict.regressions:
        losses = tuple(
            Finding(_describe_loss(query), details=tuple(describe_documents(query)))
            for query in verdict.regressions
        )
        yield Section("Queries that lost most", findings=losses)


def _changes_table(verdict: GateVerdict) -> Table:
    rows = tuple(
        Row((path, *("–" if side is None else str(side) for side in sides)))
        for path, sides in verdict.config_changes.items()
    )
    headers = ("configuration", "baseline", "candidate")
    return Table(
        "Changed configuration", tuple(Column(header, is_text=True) for header in headers), rows
    )


def _check_cells(check: CheckResult) -> tuple[str, ...]:
    status: str = check.status
    if check.error is not None:
        status = "error"
    elif not check.changed:
        status += " (no query changed)"
    elif check.few_changed:
        status += " (for these queries only)"
    rate = check.false_pass_rate
    return (
        check.name,
        status,
        format_number(check.baseline_mean),
        format_number(check.candidate_mean),
        format_number(check.difference, signed=True),
        format_number(check.lower_bound, signed=True),
        f"{check.max_drop:g}",
        format_number(check.p_holm),
        f"{check.changed} of {check.queries}",
        format_number(check.min_detectable_drop),
        "n/a" if rate is None else f"{100 * rate:.1f} %",
    )


def _check_findings(verdict: GateVerdict) -> Iterator[Finding]:
    for check in verdict.checks:
        if check.status != "pass":
            text = f"{check.name}: {check.status}: {describe_check(check)}"
            yield Finding(text, TONES[check.status], key=check.status)
        elif (warning := power_warning(check)) is not None:
            yield Finding(f"{check.name}: {warning}", "warning", key="power")


def _query_findings(verdict: GateVerdict) -> Iterator[Finding]:
    for check in verdict.query_checks:
        tone: Tone = "passed" if check.holds else "failed"
        if check.error is not None:
            tone = "inconclusive"
        text = f"{check.collection}: {describe_query_check(check)}"
        yield Finding(text, tone, key="guard" if isinstance(check, GuardResult) else "golden")


def describe_check(check: CheckResult) -> str:
    """A check's statistics in one sentence."""
    if check.error is not None:
        return f"not checked: {check.error}"
    text = (
        f"mean {format_number(check.baseline_mean)} → {format_number(check.candidate_mean)} "
        f"({format_number(check.difference, signed=True)}, lower bound "
        f"{format_number(check.lower_bound, signed=True)}, max_drop {check.max_drop:g}, adjusted "
        f"p {format_number(check.p_holm)}); {check.changed} of "
        f"{pluralize(check.queries, 'query')} changed, {check.losses} for the worse"
    )
    if check.few_changed:
        return f"{text}; fewer than 10 changed, so the status holds for these queries only"
    if check.status == "inconclusive" and check.min_detectable_drop is not None:
        drop = format_number(check.min_detectable_drop)
        text += f"; minimum detectable drop (80 % power) {drop}; {required_queries_text(check)}"
    return text


def describe_query_check(check: QueryCheck) -> str:
    """A guard or a golden query in one sentence, with its outcome."""
    if isinstance(check, GuardResult):
        text = (
            f"{pluralize(check.violations, 'query')} ({100 * check.share:.2f} %) lost more than "
            f"{check.max_loss:g} in {check.measure}, allowed {100 * check.max_share:g} %"
        )
    else:
        rank = "not in the list" if check.rank is None else f"at rank {check.rank}"
        text = f"query {check.query!r}: {check.document!r} is {rank}, allowed top {check.top}"
    if check.error is not None:
        return f"{text}: not checked: {check.error}"
    return f"{text}: {'holds' if check.holds else 'violated'}"


def _describe_loss(query: QueryRegression) -> str:
    values = f"{format_number(query.value_before)} → {format_number(query.value_after)}"
    return f"{query.collection}, query {query.query}: {query.measure} {values}"


def describe_documents(query: QueryRegression) -> Iterator[str]:
    """A line for each relevant document that moved, and one for those that did not."""
    for document in query.documents:
        if document.is_moved:
            yield _describe_move(query, document)
    unmoved = sum(not document.is_moved for document in query.documents)
    if unmoved:
        yield f"{pluralize(unmoved, 'more relevant document')}: same rank, or in neither list"


def _describe_move(query: QueryRegression, document: DocumentChange) -> str:
    before = _format_rank(document.rank_before, document.cut_rank_before, query.top_k[0])
    after = _format_rank(document.rank_after, document.cut_rank_after, query.top_k[1])
    return f"{document.document} (grade {document.grade}) {before} → {after}: {document.cause}"


def _format_rank(rank: int | None, cut_rank: int | None, top_k: int | None) -> str:
    if rank is None and cut_rank is not None:
        return f"{cut_rank} (below top_k {top_k})"
    return "–" if rank is None else str(rank)


def format_text(verdict: GateVerdict) -> str:
    """The headline, and what did not pass, as plain lines."""
    page = build_gate_page(verdict)
    lines = [f"{page.title}: {verdict.headline}"]
    for section in page.sections:
        for finding in section.findings:
            if finding.tone != "passed":
                lines += [finding.text, *(f"    {line}" for line in finding.details)]
    return "\n".join(map(escape_control_chars, lines))
