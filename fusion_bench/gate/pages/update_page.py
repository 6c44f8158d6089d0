"""What an update of a baseline changed, as a page."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.gate.baselines.record import Baseline
from fusion_bench.gate.pages.check_texts import check_tone
from fusion_bench.gate.pages.gate_page import changes_table
from fusion_bench.gate.records.history import BaselineUpdate, CheckUpdate, QueryLoss
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table, Tone
from fusion_bench.util.formatting import format_number, quote_text

COLUMNS = (
    Column("check", is_text=True),
    Column("verdict", is_text=True),
    Column("old"),
    Column("new"),
    Column("difference"),
    Column("changed", is_optional=True),
    Column("max_drop", is_optional=True),
)
MEAN_COLUMNS = (Column("measure", is_text=True), Column("old"), Column("new"))


def build_update_page(baseline: Baseline) -> Page:
    """The page of a baseline's newest update, which has one before it."""
    previous, update = baseline.history[-2:]
    parts: list[Table] = []
    if update.config_changes:
        parts.append(changes_table("configuration", update.config_changes))
    if update.checks:
        rows = tuple(Row(_check_cells(check), check_tone(check)) for check in update.checks)
        parts.append(Table("Old and new values", COLUMNS, rows))
    else:
        parts.append(_means_table(previous, update))
    sections = [Section(findings=tuple(_build_findings(update)), parts=tuple(parts))]
    if update.losses:
        losses = tuple(Finding(_describe_loss(loss)) for loss in update.losses)
        sections.append(Section("Queries that lost most", findings=losses))
    title = f"What update {len(baseline.history)} changed"
    return Page(title, tuple(sections), headline=_build_headline(update))


def _build_headline(update: BaselineUpdate) -> Finding:
    if not update.verdict:
        return Finding("The new values cannot be compared with the old ones.", "inconclusive")
    tones = {check_tone(check) for check in update.checks}
    order: tuple[Tone, ...] = ("failed", "inconclusive", "passed")
    text = f"Verdict of the gate on this update: {update.verdict}"
    return Finding(text, next((tone for tone in order if tone in tones), "inconclusive"))


def _build_findings(update: BaselineUpdate) -> Iterator[Finding]:
    if update.is_anchor:
        yield Finding("The new values are the anchor from now on.", key="anchor")
    for reason in update.incomparable:
        yield Finding(f"not compared: {reason}", "warning", key="incomparable")
    for policy_change in update.policy_changes:
        tone: Tone = "warning" if policy_change.needs_update else "plain"
        text = f"policy: {policy_change.description} ({policy_change.effect})"
        yield Finding(text, tone, key="policy")
    for change in update.list_changes:
        yield Finding(change.description, key="lists")


def _check_cells(check: CheckUpdate) -> tuple[str, ...]:
    return (
        check.display_name,
        "error" if check.error is not None else check.status,
        format_number(check.old_mean),
        format_number(check.new_mean),
        format_number(check.difference, signed=True),
        f"{check.changed} of {check.queries}",
        f"{check.max_drop:g}",
    )


def _means_table(previous: BaselineUpdate, update: BaselineUpdate) -> Table:
    """The means of both, where the queries are not the same."""
    rows = []
    for collection, means in update.means.items():
        before = previous.means.get(collection, {})
        for measure, mean in means.items():
            values = (format_number(before.get(measure)), format_number(mean))
            rows.append(Row((f"{collection} / {display_measure(measure)}", *values)))
    return Table("Means", MEAN_COLUMNS, tuple(rows))


def _describe_loss(loss: QueryLoss) -> str:
    name = quote_text(f"query {loss.query}", loss.text)
    old, new = format_number(loss.old_value), format_number(loss.new_value)
    return f"{loss.collection}, {name}: {loss.measure} {old} → {new}"
