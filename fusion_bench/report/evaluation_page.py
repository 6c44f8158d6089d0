"""The page of an evaluation, with its shorter form for a first try."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any, Final, TypeAlias

from fusion_bench.checks.collection_warnings import join_collections
from fusion_bench.checks.records import ListInfo
from fusion_bench.config.json_records import compute_once
from fusion_bench.data.records import format_condition
from fusion_bench.evaluation import report_records
from fusion_bench.evaluation.report_file import Report
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report import evaluation_findings, page
from fusion_bench.report.answer_texts import DIFFERENCE, interval_column
from fusion_bench.report.data_warnings import (
    find_report_warnings,
    judge_section,
    lint_section,
    warning_sections,
)
from fusion_bench.report.evaluation_tables import (
    grid_table,
    judged_notes,
    primary_table,
    secondary_table,
    slice_tables,
    validity_table,
)
from fusion_bench.util.formatting import (
    UNADJUSTED,
    format_coverage,
    format_interval,
    format_number,
    format_percent,
    format_rounded,
    pluralize,
)

#: What scoring a list took, as its run recorded it.
Ledger: TypeAlias = dict[str, Any]
COST_NOTE: Final = (
    "From the runs that scored the lists. p50 and p95: latency of reranking one query. Price "
    "and tokens are for 1,000 queries. degraded = queries that the provider did not score."
)


def cost_table(collection: report_records.Collection) -> page.Table | None:
    """Quality against cost and latency of the rerank lists; None where no list has a ledger."""
    runs = {run.name: run for run in collection.runs if run.ledger and run.trial in {None, 1}}
    rows, notes = [], [COST_NOTE]
    for row in collection.ranked_systems:
        blend = (row.config or {}).get("blend")
        run = runs.get(str(blend.get("reranker"))) if isinstance(blend, dict) else None
        if run is not None:
            rows.append((row, run))
            if repeats := (run.ledger or {}).get("trials"):
                notes.append(
                    f"{run.name}: scored for the candidates of {repeats} trials together. Latency, "
                    "price and tokens of one trial are lower."
                )
    primary = collection.primary_measure
    columns: list[page.Column[tuple[report_records.SystemResult, ListInfo]]] = [
        page.Column("system", lambda pair: pair[0].name, is_text=True),
        page.Column("scored by", lambda pair: pair[1].provider or "unknown", is_text=True),
        page.Column(
            display_measure(primary), lambda pair: format_number(pair[0].measures[primary].mean)
        ),
        DIFFERENCE.of(lambda pair: collection.comparison(pair[0].name, primary)),
        *page.columns_of(LEDGER_COLUMNS, lambda pair: pair[1].ledger),
        page.Column("degraded", lambda pair: f"{pair[1].degraded_queries:,}"),
    ]
    title = "Quality against cost and latency"
    return page.make_table(title, columns, rows, notes=dict.fromkeys(notes)) if rows else None


def _format_latency(key: str, ledger: Ledger) -> str:
    return format_rounded((ledger.get("query_ms") or {}).get(key))


def _find_amount(key: str, ledger: Ledger) -> float | None:
    """The amount per 1,000 queries; NaN without queries."""
    queries, amount = ledger.get("queries_answered") or 0, ledger.get(key)
    if amount is None:
        return None
    return 1000 / queries * float(amount) if queries else math.nan


def _format_price(ledger: Ledger) -> str:
    cost = _find_amount("cost", ledger)
    return "not known" if cost is None else format_number(cost)


LEDGER_COLUMNS: tuple[page.Column[Ledger], ...] = (
    page.Column("p50 ms", partial(_format_latency, "p50")),
    page.Column("p95 ms", partial(_format_latency, "p95")),
    page.Column("price / 1,000", _format_price),
    page.Column("tokens / 1,000", lambda ledger: format_rounded(_find_amount("tokens", ledger))),
    page.Column("calls", lambda ledger: format_rounded(ledger.get("calls"))),
    page.Column("retries", lambda ledger: format_rounded(ledger.get("retries"))),
)


def _crag_tables(report: Report, collection: report_records.Collection) -> Iterator[page.Table]:
    """The verdicts on each list with absolute scores, then the replay of refined queries."""
    if not collection.crag:
        return
    count = page.Column[report_records.VerdictCount]("", _format_count)
    judged: tuple[page.Column[report_records.VerdictCount], ...] = (
        page.Column("precision", lambda count: format_number(count.precision)),
        page.Column("95 % interval", lambda c: format_interval(c.low, c.high), is_optional=True),
    )
    columns: list[page.Column[report_records.CragResult]] = [
        page.Column("list", lambda result: result.title, is_text=True),
        *page.columns_of(
            (replace(count, header="correct"), *judged), lambda result: result.correct
        ),
        page.Column("ambiguous", lambda result: _format_count(result.ambiguous)),
        page.Column(
            "with relevant",
            lambda result: format_percent(
                result.ambiguous.relevant / result.ambiguous.queries
                if result.ambiguous.queries
                else None
            ),
        ),
        *page.columns_of(
            (replace(count, header="incorrect"), *judged), lambda result: result.incorrect
        ),
        page.Column("web search", _format_searches),
    ]
    rule = collection.crag[0]
    notes = (
        f"By the best rerank score in the top {rule.top} of a list: correct from {rule.upper:g}, "
        f"incorrect up to {rule.lower:g}, ambiguous between them. A web search is recommended "
        "unless the verdict is correct.",
        f"precision = share of the verdicts that are right: correct with a document of grade "
        f"{rule.grade} or more in the top {rule.top}, incorrect without one. Queries count singly.",
    )
    title = "CRAG: which lists can be answered from?"
    yield page.make_table(title, columns, collection.crag, notes=notes)
    if any(result.refined is not None for result in collection.crag):
        yield _refined_table(report, collection)


def _format_count(count: report_records.VerdictCount) -> str:
    return f"{count.queries:,} ({format_percent(count.share)})"


def _format_searches(result: report_records.CragResult) -> str:
    share = result.needs_web_search / len(result.verdicts)
    return f"{result.needs_web_search:,} ({format_percent(share)})"


def _refined_table(report: Report, collection: report_records.Collection) -> page.Table:
    primary = collection.primary_measure
    refined: tuple[page.Column[report_records.RefinedResult], ...] = (
        page.Column("queries", lambda each: f"{len(each.queries):,}"),
        page.Column("before", lambda each: format_number(each.before)),
        page.Column("after", lambda each: format_number(each.after)),
        *(
            DIFFERENCE,
            replace(
                interval_column(report.alpha),
                header=f"{format_coverage(report.alpha)} interval{UNADJUSTED}",
            ),
        ),
        page.Column("correct after", lambda each: f"{each.verdicts.count('correct'):,}"),
        page.Column("relevant before", lambda each: f"{each.relevant_before:,}"),
        page.Column("relevant after", lambda each: f"{each.relevant_after:,}"),
        page.Column(
            "all queries",
            lambda r: f"{format_number(r.mean_before)} → {format_number(r.mean_after)}",
            is_optional=True,
        ),
    )
    columns: list[page.Column[report_records.CragResult]] = [
        page.Column("list", lambda result: result.title, is_text=True),
        *page.columns_of(refined, lambda result: result.refined),
    ]
    names = " or ".join(report.settings.get("crag", {}).get("refine", ()))
    notes = (
        f"The lists of the refined query in place of the original one's, for the queries whose "
        f"verdict is {names} and that have some. before and after = mean "
        f"{display_measure(primary)} over these queries; all queries = over all of the collection.",
        "relevant = lists with a relevant document in the top.",
        "Unadjusted for the number of lists; no verdict rests on it.",
    )
    title = f"CRAG: {display_measure(primary)} with refined queries"
    results = [result for result in collection.crag if result.refined is not None]
    return page.make_table(title, columns, results, notes=notes)


#: Settings that decide the numbers of a page.
SHOWN_SETTINGS = ("ties", "alpha", "min_gain", "seed")


def repeat_tables(collection: report_records.Collection) -> Iterator[page.Table]:
    """A table of the systems of several repeats, and one of their comparisons."""
    if rows := collection.repeated_systems:
        columns: list[
            page.Column[tuple[report_records.SystemResult, report_records.RepeatsResult]]
        ] = [
            page.Column("system", lambda pair: pair[0].name, is_text=True),
            *page.columns_of(SPREAD_COLUMNS, lambda pair: pair[1]),
        ]
        measure = display_measure(collection.primary_measure)
        count = pluralize(len(collection.queries), "query")
        notes = (
            f"lowest, highest, sd of means = {measure} of each trial over all queries.",
            "% = parts of the variance of one value: queries differ (queries), a trial differs on "
            "all queries together (trials), a trial differs on one query (both). Crossed random "
            "effects.",
            f"disagree = of {count}, those whose value differs between trials 1 and 2, and between "
            "any two.",
        )
        yield page.make_table("Repeated trials", columns, rows, notes=notes)


def _format_share(share: float | None) -> str:
    return format_rounded(None if share is None else 100 * share)


SPREAD_COLUMNS: tuple[page.Column[report_records.RepeatsResult], ...] = (
    page.Column("trials", lambda repeats: f"{len(repeats.means):,}×"),
    page.Column("lowest", lambda repeats: format_number(min(repeats.means))),
    page.Column("highest", lambda repeats: format_number(max(repeats.means))),
    page.Column("sd of means", lambda repeats: format_number(repeats.sd)),
    page.Column("% queries", lambda repeats: _format_share(repeats.query_share)),
    page.Column("% trials", lambda repeats: _format_share(repeats.trial_share)),
    page.Column("% both", lambda repeats: _format_share(repeats.residual_share)),
    page.Column("disagree (1, 2)", lambda repeats: f"{repeats.disagreeing_pair:,}"),
    page.Column("disagree (any)", lambda repeats: f"{repeats.disagreeing:,}"),
)


@compute_once
def build_page(report: Report) -> page.Page:
    """The page of an evaluation: for each collection its findings, tables and inputs."""
    description = " ".join(str(report.settings.get("description") or "").split())
    sections = [*judge_section(join_collections(find_report_warnings(report)))]
    sections += [page.Section(text=description)] if description else []
    for i, collection in enumerate(report.collections):
        sections.append(replace(_collection_section(report, collection), key=f"collection {i}"))
    sections += lint_section(report.lint)
    sections += [_details(report, collection) for collection in report.collections]
    settings, provenance = report.settings, report.provenance
    summary = [f"{key} {settings[key]}" for key in ("ties", "seed", "alpha") if key in settings]
    if not provenance.v2_enabled:
        summary.append("RAG_FUSION_V2_ENABLED off")
    summary += [f"data {item.fingerprint[:12]}" for item in report.collections]
    summary += [f"--set {', '.join(provenance.overrides)}"] if provenance.overrides else []
    shown = [key for key in SHOWN_SETTINGS if key in settings]
    facts = {
        **provenance.facts,
        **({} if provenance.v2_enabled else {"RAG_FUSION_V2_ENABLED": "off: v2 ran as v1"}),
        **{key: "default" if settings[key] is None else str(settings[key]) for key in shown},
    }
    text = "; ".join(filter(None, (provenance.origin, ", ".join(summary))))
    return page.Page(
        report.name,
        tuple(sections),
        page.join_decisions(
            "Results",
            [evaluation_findings.decision_finding(report, each) for each in report.collections],
        ),
        page.Section("Provenance", summary=text, facts=facts),
        answer=evaluation_findings.answer_in_words(report),
        advice=tuple(evaluation_findings.list_advice(report)),
    )


def _collection_section(report: Report, collection: report_records.Collection) -> page.Section:
    optional = (*slice_tables(report, collection), cost_table(collection))
    scope = report_records.format_scope(collection.split, collection.query_type, collection.where)
    queries = pluralize(len(collection.queries), "query")
    return page.Section(
        title=f"{collection.name} {collection.version}{scope}: {queries}",
        findings=evaluation_findings.collection_findings(report, collection),
        parts=(
            *filter(None, (grid_table(collection),)),
            primary_table(report, collection),
            *(table for table in optional if table is not None),
            *repeat_tables(collection),
            *_crag_tables(report, collection),
            validity_table(collection),
            *(secondary_table(report, collection, name) for name in collection.measures[1:]),
        ),
    )


def _details(report: Report, collection: report_records.Collection) -> page.Section:
    """What it takes to repeat the run: every option resolved, every input named."""
    systems = {row.name: row.config for row in collection.systems if row.config is not None}
    groups = pluralize(len(set(collection.groups)), "group")
    return page.Section(
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
            page.YamlBlock("Resolved systems", {"systems": systems}),
            page.YamlBlock("Settings", report.settings),
            page.YamlBlock("SHA-256 of each part", collection.digests),
        ),
        is_folded=True,
    )


def build_starter_page(report: Report, notes: Sequence[str]) -> page.Page:
    """The page of a starter comparison.

    Args:
        report: With one collection.
        notes: What the systems' names stand for, what was guessed, what was left out.
    """
    (collection,) = report.collections
    full_page = build_page(report)
    table = primary_table(report, collection)
    rows = tuple(row for row in table.rows if row.tone != "reference")
    primary = display_measure(collection.primary_measure)
    queries = pluralize(len(collection.queries), "query")
    known = [
        comparison.min_detectable_difference
        for comparison in collection.ranked_comparisons
        if comparison.min_detectable_difference is not None
    ]
    power = f"With {queries} no difference can be shown: too few queries changed."
    if known:
        middle, least, most = map(format_number, (median(known), min(known), max(known)))
        power = (
            f"With {queries} you can see differences of ≥ {middle} in {primary}: the median "
            "minimum detectable difference (80 % power, all comparisons together at level "
            f"{report.alpha:g}; {least} to {most} by system)."
        )
    systems = page.Section(
        title=f"{collection.name}: {queries}",
        findings=(
            page.Finding(power, key="power"),
            *evaluation_findings.compared_findings(collection),
        ),
        parts=(
            *filter(None, (grid_table(collection),)),
            replace(table, rows=rows, notes=(table.notes[0], *judged_notes(collection), *notes)),
        ),
    )
    warnings = warning_sections(find_report_warnings(report)[collection.name])
    title = f"Starter systems against {collection.baseline}"
    return page.Page(
        title,
        (systems, *warnings, *lint_section(report.lint)),
        full_page.headline,
        full_page.provenance,
        advice=full_page.advice,
    )


def input_table(collection: report_records.Collection) -> page.Table:
    """The input lists: how each was read, and what was noticed."""
    columns: tuple[page.Column[ListInfo], ...] = (
        page.Column("list", lambda run: run.title, is_text=True),
        page.Column("kind", _format_kind, is_text=True),
        page.Column("roles", lambda run: ", ".join(run.roles), is_text=True),
        page.Column("options", _format_read_options, is_text=True),
        page.Column("unanswered", lambda run: f"{run.unanswered_queries:,}"),
        page.Column("unjudged queries", lambda run: f"{run.unjudged_queries:,}"),
        page.Column("duplicates", lambda run: f"{run.duplicate_rows:,}"),
        page.Column("zero scores", lambda run: f"{run.zero_scores:,}"),
    )
    note = (
        "Over the whole dataset. unanswered = judged queries without a result; they score 0. "
        "Unjudged queries are ignored. Duplicates were dropped. Zero scores are usually padding."
    )
    return page.make_table("Input lists", columns, collection.runs, notes=(note,))


def _format_kind(run: ListInfo) -> str:
    return run.kind if run.score_space is None else f"{run.kind} ({run.score_space})"


def _format_read_options(run: ListInfo) -> str:
    options = ", ".join(f"{key}: {value}" for key, value in run.read_options.items())
    if run.on_queries is not None:
        options += f", on for {run.on_queries:,} (when: {format_condition(run.when)})"
    return options
