"""The page of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.evaluation.report_records import Collection, Report
from fusion_bench.report.evaluation.cost_table import cost_table
from fusion_bench.report.evaluation.findings import collection_findings
from fusion_bench.report.evaluation.query_type_table import query_type_table
from fusion_bench.report.evaluation.tables import (
    input_table,
    measure_tables,
    primary_table,
    validity_table,
)
from fusion_bench.report.page import Figure, Page, Part, Section, YamlBlock
from fusion_bench.util.formatting import pluralize


def build_page(report: Report, figures: Sequence[Sequence[Figure]] = ()) -> Page:
    """The page of an evaluation: for each collection its findings, tables and inputs.

    Args:
        report: What to show.
        figures: For each collection the figures beside its page; empty = none.
    """
    sections = [_overview(report)]
    for i, collection in enumerate(report.collections):
        sections.append(_collection_section(report, collection, figures[i] if figures else ()))
        sections.append(_details(report, collection))
    return Page(report.name, tuple(sections))


def _overview(report: Report) -> Section:
    settings, provenance = report.settings, report.provenance
    summary = [f"{key} {settings[key]}" for key in ("ties", "seed", "alpha") if key in settings]
    if not provenance.v2_enabled:
        summary.append("RAG_FUSION_V2_ENABLED off")
    facts = {
        "created": provenance.created,
        "experiment": f"{provenance.source} (SHA-256 {provenance.source_sha256})",
        "versions": ", ".join(f"{name} {v}" for name, v in provenance.versions.items()),
        "RAG_FUSION_V2_ENABLED": "on" if provenance.v2_enabled else "off: v2 ran as v1",
        **{
            key: "default" if settings[key] is None else str(settings[key])
            for key in ("ties", "alpha", "interval", "resamples", "seed")
            if key in settings
        },
    }
    origin = f"{provenance.source}, {provenance.created}"
    return Section(
        summary="; ".join(filter(None, (origin, ", ".join(summary)))),
        text=" ".join(str(settings.get("description") or "").split()),
        facts=facts,
    )


def _collection_section(
    report: Report, collection: Collection, figures: Sequence[Figure]
) -> Section:
    return Section(
        title=_collection_title(collection),
        facts=_collection_facts(collection),
        findings=collection_findings(report, collection),
        parts=(primary_table(report, collection), *figures, *_other_tables(report, collection)),
    )


def _collection_title(collection: Collection) -> str:
    """``name version, split test, type local: 30 queries``."""
    scope = "" if collection.split is None else f", split {collection.split}"
    if collection.query_type is not None:
        scope += f", type {collection.query_type}"
    queries = pluralize(len(collection.queries), "query")
    return f"{collection.name} {collection.version}{scope}: {queries}"


def _other_tables(report: Report, collection: Collection) -> Iterator[Part]:
    for table in (query_type_table(report, collection), cost_table(collection)):
        if table is not None:
            yield table
    yield validity_table(report, collection)
    yield from measure_tables(report, collection)


def _collection_facts(collection: Collection) -> dict[str, str]:
    groups = len(set(collection.groups))
    return {
        "queries": f"{len(collection.queries):,} in {pluralize(groups, 'group')}, "
        f"{collection.queries_without_relevant:,} without a relevant document",
        "split": collection.split or "none: all judged queries",
        "query type": collection.query_type or "all",
        "best single source chosen on": collection.tuning_split or "the evaluated queries",
        "judgments": f"{collection.judgments}, relevant from grade {collection.binary_relevance}",
        "fingerprint": f"{collection.fingerprint} ({', '.join(collection.digests)})",
    }


def _details(report: Report, collection: Collection) -> Section:
    """What it takes to repeat the run: every option resolved, every input named."""
    systems = {row.name: row.config for row in collection.systems if row.config is not None}
    return Section(
        title="Configuration and inputs",
        parts=(
            input_table(collection),
            YamlBlock("Resolved systems", {"systems": systems}),
            YamlBlock("Settings", report.settings),
            YamlBlock("SHA-256 of each part", collection.digests),
        ),
        is_folded=True,
    )
