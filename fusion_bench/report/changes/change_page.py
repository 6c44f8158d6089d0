"""The page of two reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fusion_bench.evaluation.report_changes.paired_changes import explain_untested
from fusion_bench.evaluation.report_changes.records import CollectionChange, ReportChange
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.report.changes.grade_warnings import grade_section
from fusion_bench.report.changes.verdict_text import change_headline
from fusion_bench.report.evaluation.change_section import (
    describe_collection,
    setting_table,
    value_tables,
)
from fusion_bench.report.page import Finding, Page, Section
from fusion_bench.report.v2_switch import v2_findings

SAME_SETTINGS = (
    "Nothing: the settings of the experiment, and of each system that both reports have, are the "
    "same."
)


def build_change_page(
    change: ReportChange, old: Report, new: Report, origins: Sequence[str] = ()
) -> Page:
    """Verdict, who gave the grades, configuration then and now, each collection, provenance last.

    Args:
        change: From the old to the new report, with its paired comparisons.
        old: The report before.
        new: The report now.
        origins: Where each report comes from, the old one first.
    """
    before = {each.name: each for each in old.collections}
    after = {each.name: each for each in new.collections}
    sections = [
        _collection_section(each, before.get(each.name), after.get(each.name), new)
        for each in change.collections
    ]
    return Page(
        f"Comparison: {new.name}" if old.name == new.name else f"{old.name} → {new.name}",
        (*grade_section(old, new), _configuration(change, old, new), *sections),
        change_headline(change, new.min_gain, new.alpha),
        _provenance(old, new, origins),
    )


def shared_collections(change: ReportChange) -> tuple[CollectionChange, ...]:
    """Those that a browser draws: with systems and queries of both reports, of which one moved."""
    return tuple(
        each
        for each in change.collections
        if each.status == "both" and any(row.better or row.worse for row in each.systems)
    )


def mount_views(page: Page, change: ReportChange) -> Page:
    """The same page with a place for the views of each collection that has some."""
    names = [each.name for each in shared_collections(change)]
    sections = tuple(
        replace(section, key=f"collection {names.index(section.title)}")
        if section.title in names
        else section
        for section in page.sections
    )
    return replace(page, sections=sections)


def _configuration(change: ReportChange, old: Report, new: Report) -> Section:
    table = setting_table(change)
    sides = {"the old report": old, "the new report": new}
    switch = {name: report.provenance.v2_enabled for name, report in sides.items()}
    findings = [*v2_findings(switch)]
    if table is None:
        findings.insert(0, Finding(SAME_SETTINGS))
    for each in change.collections:
        for status, text in (("new", "Only in the new report"), ("gone", "Only in the old one")):
            names = [row.name for row in each.systems if row.status == status]
            if names and each.status == "both":
                findings.insert(0, Finding(f"{text}, on {each.name}: {', '.join(names)}."))
    parts = () if table is None else (replace(table, title="Settings then and now"),)
    return Section("What changed in the configuration", findings=tuple(findings), parts=parts)


def _collection_section(
    change: CollectionChange, old: Collection | None, new: Collection | None, report: Report
) -> Section:
    findings = [*describe_collection(change)]
    if old is not None and new is not None:
        findings += _describe_untested(old, new)
    if not findings:
        findings.append(Finding("No value of any system changed."))
    tables = tuple(value_tables(change, report.min_gain, alpha=report.alpha))
    return Section(change.name, findings=tuple(findings), parts=tables)


def _describe_untested(old: Collection, new: Collection) -> Iterator[Finding]:
    reason = explain_untested(old, new)
    if reason is not None:
        text = f"{new.name}: {reason}, so no difference has an interval or a verdict."
        yield Finding(text, "warning", "not tested")


def _provenance(old: Report, new: Report, origins: Sequence[str]) -> Section:
    facts: dict[str, str] = {}
    for i, (side, report) in enumerate((("then", old), ("now", new))):
        provenance = report.provenance
        facts |= {
            f"{side}: report": f"{report.name}, {provenance.created}",
            **({f"{side}: file": origins[i]} if origins else {}),
            f"{side}: experiment": f"{provenance.source} (SHA-256 {provenance.source_sha256})",
            **({f"{side}: --set": ", ".join(provenance.overrides)} if provenance.overrides else {}),
            f"{side}: versions": ", ".join(f"{k} {v}" for k, v in provenance.versions.items()),
            f"{side}: data": ", ".join(
                f"{each.name} {each.fingerprint[:12]}" for each in report.collections
            ),
        }
    return Section("Provenance", facts=facts)
