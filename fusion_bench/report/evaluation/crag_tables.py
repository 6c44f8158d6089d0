"""Tables of CRAG's verdicts, and of what refined queries returned."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.crag import CragResult, VerdictCount
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.page import Column, Row, Table
from fusion_bench.util.formatting import (
    UNADJUSTED,
    format_coverage,
    format_interval,
    format_number,
    format_percent,
)


def crag_tables(report: Report, collection: Collection) -> Iterator[Table]:
    """The verdicts on each list with absolute scores, then the replay of refined queries."""
    if not collection.crag:
        return
    yield _verdict_table(collection.crag)
    if any(result.refined is not None for result in collection.crag):
        yield _refined_table(report, collection)


def _verdict_table(results: tuple[CragResult, ...]) -> Table:
    interval = Column("95 % interval", is_optional=True)
    columns = (
        Column("list", is_text=True),
        *map(Column, ("correct", "precision")),
        interval,
        *map(Column, ("ambiguous", "with relevant")),
        *map(Column, ("incorrect", "precision")),
        interval,
        Column("web search"),
    )
    rows = []
    for result in results:
        ambiguous, total = result.ambiguous, len(result.verdicts)
        share = ambiguous.relevant / ambiguous.queries if ambiguous.queries else None
        cells = (
            result.title,
            *_verdict_cells(result.correct),
            _format_count(ambiguous),
            format_percent(share),
            *_verdict_cells(result.incorrect),
            f"{result.needs_web_search:,} ({format_percent(result.needs_web_search / total)})",
        )
        rows.append(Row(cells))
    rule = results[0]
    notes = (
        f"By the best rerank score in the top {rule.top} of a list: correct from {rule.upper:g}, "
        f"incorrect up to {rule.lower:g}, ambiguous between them. A web search is recommended "
        "unless the verdict is correct.",
        f"precision = share of the verdicts that are right: correct with a document of grade "
        f"{rule.grade} or more in the top {rule.top}, incorrect without one. Queries count singly.",
    )
    return Table("CRAG: which lists can be answered from?", columns, tuple(rows), notes)


def _format_count(count: VerdictCount) -> str:
    return f"{count.queries:,} ({format_percent(count.share)})"


def _verdict_cells(count: VerdictCount) -> tuple[str, str, str]:
    """Number and share, precision, interval."""
    interval = format_interval(count.low, count.high)
    return (_format_count(count), format_number(count.precision), interval)


def _refined_table(report: Report, collection: Collection) -> Table:
    primary = collection.primary_measure
    columns = (
        Column("list", is_text=True),
        *map(Column, ("queries", "before", "after", "difference")),
        Column(f"{format_coverage(report.alpha)} interval{UNADJUSTED}"),
        *map(Column, ("correct after", "relevant before", "relevant after")),
        Column("all queries", is_optional=True),
    )
    rows = []
    for result in collection.crag:
        refined = result.refined
        if refined is None:
            continue
        cells = (
            result.title,
            f"{len(refined.queries):,}",
            format_number(refined.before),
            format_number(refined.after),
            format_number(refined.difference, signed=True),
            format_interval(refined.low, refined.high, signed=True),
            f"{refined.verdicts.count('correct'):,}",
            f"{refined.relevant_before:,}",
            f"{refined.relevant_after:,}",
            f"{format_number(refined.mean_before)} → {format_number(refined.mean_after)}",
        )
        rows.append(Row(cells))
    names = " or ".join(report.settings.get("crag", {}).get("refine", ()))
    notes = (
        f"The lists of the refined query in place of the original one's, for the queries whose "
        f"verdict is {names} and that have some. before and after = mean {primary} over these "
        "queries; all queries = over all of the collection.",
        "relevant = lists with a relevant document in the top.",
        f"{UNADJUSTED} Not adjusted for the number of lists; no verdict rests on it.",
    )
    return Table(
        f"CRAG: {display_measure(primary)} with refined queries", columns, tuple(rows), notes
    )
