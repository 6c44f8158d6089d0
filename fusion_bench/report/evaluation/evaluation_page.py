"""The page of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fusion_bench.evaluation.judge_checks.judge_warnings import find_judge_warnings
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.scope import format_scope
from fusion_bench.report.evaluation.cost_table import cost_table
from fusion_bench.report.evaluation.crag_tables import crag_tables
from fusion_bench.report.evaluation.findings import collection_findings, decision_finding
from fusion_bench.report.evaluation.slice_tables import slice_tables
from fusion_bench.report.evaluation.tables import (
    input_table,
    primary_table,
    secondary_table,
    validity_table,
)
from fusion_bench.report.evaluation.trial_tables import trial_tables
from fusion_bench.report.judging.judge_section import drop_judge_findings, judge_section
from fusion_bench.report.lint_page import lint_section
from fusion_bench.report.page import Figure, Finding, Page, Section, YamlBlock
from fusion_bench.util.formatting import pluralize

#: Settings that decide the numbers of a page.
SHOWN_SETTINGS = ("ties", "alpha", "correction", "min_gain", "resamples", "seed")


def build_page(report: Report, figures: Sequence[Sequence[Figure]] = ()) -> Page:
    """The page of an evaluation: for each collection its findings, tables and inputs.

    Args:
        report: What to show.
        figures: For each collection the figures beside its page; empty = none.
    """
    description = " ".join(str(report.settings.get("description") or "").split())
    sections = [*judge_section(_judge_warnings(report))]
    sections += [Section(text=description)] if description else []
    sections += lint_section(report.lint)
    for i, collection in enumerate(report.collections):
        section = _collection_section(report, collection, figures[i] if figures else ())
        sections.append(replace(section, key=f"collection {i}"))
    sections += [_details(report, collection) for collection in report.collections]
    return Page(report.name, tuple(sections), _headline(report), _provenance(report))


def _judge_warnings(report: Report) -> Iterator[DataWarning]:
    """What speaks against the judge of each collection; of several, the collection comes first."""
    for collection in report.collections:
        start = f"{collection.name}: " if len(report.collections) > 1 else ""
        for warning in find_judge_warnings(collection.judge, collection.runs):
            yield DataWarning(key=warning.key, text=f"{start}{warning.text}")


def _headline(report: Report) -> Finding | None:
    """The decision on the collection, or on each of several."""
    decisions = [decision_finding(report, collection) for collection in report.collections]
    if len(decisions) == 1:
        return decisions[0]
    tones = {finding.tone for finding in decisions}
    text = f"Results on {len(decisions)} collections:"
    details = tuple(finding.text for finding in decisions)
    return Finding(text, tones.pop() if len(tones) == 1 else "plain", "decision", details)


def _provenance(report: Report) -> Section:
    """Where the numbers come from, and how they were computed."""
    settings, provenance = report.settings, report.provenance
    v2 = "on" if provenance.v2_enabled else "off: v2 ran as v1"
    summary = [f"{key} {settings[key]}" for key in ("ties", "seed", "alpha") if key in settings]
    if not provenance.v2_enabled:
        summary.append("RAG_FUSION_V2_ENABLED off")
    summary += [f"data {item.fingerprint[:12]}" for item in report.collections]
    overrides = {"--set": ", ".join(provenance.overrides)} if provenance.overrides else {}
    summary += [f"{option} {values}" for option, values in overrides.items()]
    shown = [key for key in SHOWN_SETTINGS if key in settings]
    facts = {
        "created": provenance.created,
        "experiment": f"{provenance.source} (SHA-256 {provenance.source_sha256})",
        **overrides,
        "versions": ", ".join(f"{name} {v}" for name, v in provenance.versions.items()),
        "RAG_FUSION_V2_ENABLED": v2,
        **{key: "default" if settings[key] is None else str(settings[key]) for key in shown},
    }
    origin = f"{provenance.source}, {provenance.created}"
    text = "; ".join(filter(None, (origin, ", ".join(summary))))
    return Section("Provenance", summary=text, facts=facts)


def _collection_section(
    report: Report, collection: Collection, figures: Sequence[Figure]
) -> Section:
    optional = (*slice_tables(report, collection), cost_table(collection))
    scope = format_scope(collection.split, collection.query_type, collection.where)
    queries = pluralize(len(collection.queries), "query")
    return Section(
        title=f"{collection.name} {collection.version}{scope}: {queries}",
        findings=tuple(
            finding
            for finding in drop_judge_findings(collection_findings(report, collection))
            if finding.key != "decision"  # the headline
        ),
        parts=(
            *figures[:1],
            primary_table(report, collection),
            *figures[1:],
            *(table for table in optional if table is not None),
            *trial_tables(collection),
            *crag_tables(report, collection),
            validity_table(collection),
            *(secondary_table(report, collection, name) for name in collection.measures[1:]),
        ),
    )


def _details(report: Report, collection: Collection) -> Section:
    """What it takes to repeat the run: every option resolved, every input named."""
    systems = {row.name: row.config for row in collection.systems if row.config is not None}
    groups = pluralize(len(set(collection.groups)), "group")
    return Section(
        title=f"Configuration and inputs of {collection.name}",
        facts={
            "queries": f"{len(collection.queries):,} in {groups}, "
            f"{collection.queries_without_relevant:,} without a relevant document",
            "split": collection.split or "none: all judged queries",
            "query type": collection.query_type or "all",
            **{name: ", ".join(values) for name, values in collection.where.items()},
            "best single source chosen on": collection.tuning_split or "the evaluated queries",
            "judgments": f"{collection.judgments or 'not declared'}, relevant from grade "
            f"{collection.binary_relevance}",
            "fingerprint": f"{collection.fingerprint} ({', '.join(collection.digests)})",
        },
        parts=(
            input_table(collection),
            YamlBlock("Resolved systems", {"systems": systems}),
            YamlBlock("Settings", report.settings),
            YamlBlock("SHA-256 of each part", collection.digests),
        ),
        is_folded=True,
    )
