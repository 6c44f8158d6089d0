"""Tables as rows of strings: the one place that decides what a report shows and how it is written.

Markdown and the terminal only draw them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    MeasureResult,
    Report,
    RunInfo,
    SystemResult,
    TieResult,
)
from fusion_bench.util.formatting import (
    UNADJUSTED,
    escape_control_chars,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    format_rounded,
    is_known,
    pluralize,
)

__all__ = [
    "Column",
    "Row",
    "Table",
    "checks",
    "coverage",
    "escape_control_chars",
    "format_interval",
    "format_number",
    "format_p_value",
    "format_percent",
    "inputs",
    "is_known",
    "level",
    "main",
    "other",
    "prices",
    "ranked",
]

Tone: TypeAlias = Literal["plain", "baseline", "better", "worse", "doubtful", "bound"]

TONES: dict[str | None, Tone] = {"better": "better", "worse": "worse", "no verdict": "doubtful"}


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        header: Its heading.
        left: Text stands left, numbers right.
        optional: The first to go where the width does not suffice.
    """

    header: str
    left: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Row:
    """A row: one cell a column, and what kind of row it is."""

    cells: tuple[str, ...]
    tone: Tone = "plain"


@dataclass(frozen=True)
class Table:
    """A table: title, columns, rows, and what a reader must know to read them."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def level(report: Report) -> float:
    """The level of intervals and tests."""
    return float(report.settings.get("alpha", 0.05))


def coverage(report: Report) -> str:
    """What an interval is called: ``95 %``."""
    return f"{100 - 100 * level(report):.6g} %"


def ranked(collection: Collection) -> tuple[SystemResult, ...]:
    """The compared systems by primary mean, best first; equals in the experiment's order."""

    def worth(row: SystemResult) -> float:
        mean = row.measures[collection.primary].mean
        return mean if mean is not None and not math.isnan(mean) else -math.inf

    systems = [row for row in collection.systems if row.kind == "system"]
    return tuple(sorted(systems, key=worth, reverse=True))


def main(report: Report, collection: Collection) -> Table:
    """What decides: the primary measure, the difference to the baseline and the verdict."""
    primary, covered = collection.primary, f"{coverage(report)} interval"
    rows = [_main_row(report, collection, row) for row in _rows(collection)]
    compared = sum(c.measure == primary for c in collection.comparisons)
    order = (
        f"Best {primary} first. Difference = system - {escape_control_chars(collection.baseline)} "
        "(the baseline), "
        f"paired over {pluralize(len(collection.queries), 'query')}; p of a paired randomisation "
        f"test, adjusted by Holm's method over {pluralize(compared, 'compared system')}; w/t/l = "
        "queries won, tied and lost against the baseline."
    )
    scale = [
        f"{escape_control_chars(row.name)} ({row.kind}): {escape_control_chars(row.note)}"
        for row in collection.systems
        if row.kind != "system"
    ]
    columns = (
        Column("system", left=True),
        Column(primary),
        Column(covered, optional=True),
        Column("difference"),
        Column(covered),
        Column("Holm p"),
        Column("w/t/l"),
        Column("verdict", left=True),
    )
    return Table(f"{primary} decides", columns, tuple(rows), (order, *scale))


def _rows(collection: Collection) -> tuple[SystemResult, ...]:
    bounds = (row for row in collection.systems if row.kind != "system")
    return (*ranked(collection), *bounds)


def _tone(row: SystemResult, found: ComparisonResult | None) -> Tone:
    if row.kind != "system":
        return "bound"
    if found is None:
        return "baseline"
    return TONES.get(found.verdict, "plain")


def _difference(found: ComparisonResult | None, alpha: float) -> tuple[str, ...]:
    """Difference, interval, p, wins/ties/losses; blank for a row that is not compared."""
    if found is None:
        return ("", "", "", "")
    adjusted = found.p_holm is not None
    return (
        format_number(found.difference, signed=True),
        format_interval(found.low, found.high, signed=True),
        format_p_value(found.p_holm if adjusted else found.p, alpha=alpha, adjusted=adjusted),
        f"{found.wins}/{found.ties}/{found.losses}",
    )


def _mean(result: MeasureResult) -> tuple[str, str]:
    return format_number(result.mean), format_interval(result.low, result.high)


def _main_row(report: Report, collection: Collection, row: SystemResult) -> Row:
    found = collection.comparison(row.name, collection.primary)
    tone = _tone(row, found)
    word = row.kind if tone == "bound" else "baseline" if found is None else found.verdict or ""
    mean = _mean(row.measures[collection.primary])
    return Row(
        (escape_control_chars(row.name), *mean, *_difference(found, level(report)), word), tone
    )


def checks(report: Report, collection: Collection) -> Table:
    """What could make the main table mislead: too few queries, ties, unjudged documents."""
    primary, systems = collection.primary, ranked(collection)
    tied = any(_affected(row.measures[primary].ties) for row in systems)
    notes = [
        f"detectable = the smallest true difference that so many queries would show with power .8 "
        f"at level {level(report):g}, before Holm's adjustment.",
        f"unjudged = share of the top 10. judged only = the difference in {primary} over judged "
        f"documents alone{_judged_only_note(collection)}.",
        f"tied = queries whose {primary} depends on the order of tied documents; tie orders = the "
        "mean for the worst … expected … best order of them."
        if tied
        else f"No system's {primary} depends on the order of tied documents.",
    ]
    ties = (Column("tied"), Column("tie orders")) if tied else ()
    columns = (
        Column("system", left=True),
        Column("detectable"),
        *ties,
        Column("unjudged"),
        Column("judged only"),
    )
    rows = tuple(_check_row(collection, row, tied) for row in systems)
    return Table("Can the table be trusted?", columns, rows, tuple(notes))


def _judged_only_note(collection: Collection) -> str:
    if collection.knows_not_relevant:
        return "; 'flips' = its sign differs, so no verdict is drawn"
    return (
        "; every judged document is relevant here, so it sees only the order among relevant "
        "documents and speaks against no verdict"
    )


def _check_row(collection: Collection, row: SystemResult, tied: bool) -> Row:
    found = collection.comparison(row.name, collection.primary)
    ties = _ties(row.measures[collection.primary].ties) if tied else ()
    judged = ""
    if found is not None:
        flips = " flips" if found.verdict == "no verdict" else ""
        judged = format_number(found.judged_only_difference, signed=True) + flips
    cells = (
        format_number(found.detectable) if found else "",
        *ties,
        format_percent(row.unjudged),
        judged,
    )
    return Row((escape_control_chars(row.name), *cells), _tone(row, found))


def _affected(ties: TieResult | None) -> int:
    return 0 if ties is None else ties.affected


def _ties(ties: TieResult | None) -> tuple[str, str]:
    """How many queries, and the mean over the orders of ties; blank for a bound."""
    if ties is None:
        return ("", "")
    if not ties.affected:
        return ("0", "")
    orders = (format_number(value) for value in (ties.minimum, ties.expected, ties.maximum))
    return (f"{ties.affected}", "…".join(orders))


def other(report: Report, collection: Collection, measures: Sequence[str]) -> Table:
    """Measures that do not decide, beside each other, in the order of the main table."""
    covered, columns = f"{coverage(report)} interval", [Column("system", left=True)]
    rows = _rows(collection)
    cells = [[escape_control_chars(row.name)] for row in rows]
    for name in measures:
        tied = any(_affected(row.measures[name].ties) for row in rows)
        columns += [
            Column(name),
            Column(covered, optional=True),
            Column("difference"),
            Column(covered, optional=True),
            Column(f"p{UNADJUSTED}"),
            Column("w/t/l", optional=True),
            *((Column("tied"), Column("tie orders", optional=True)) if tied else ()),
        ]
        for line, row in zip(cells, rows, strict=True):
            result = row.measures[name]
            found = collection.comparison(row.name, name)
            line += [*_mean(result), *_difference(found, level(report))]
            line += _ties(result.ties) if tied else ()
    tones = [_other_tone(collection, row) for row in rows]
    note = (
        f"{UNADJUSTED} not adjusted for the number of comparisons: no verdict rests on these. "
        f"Rows in the order of {collection.primary}."
    )
    made = tuple(Row(tuple(line), tone) for line, tone in zip(cells, tones, strict=True))
    return Table(", ".join(measures), tuple(columns), made, (note,))


def _other_tone(collection: Collection, row: SystemResult) -> Tone:
    if row.kind != "system":
        return "bound"
    return "baseline" if row.name == collection.baseline else "plain"


def inputs(collection: Collection) -> Table:
    """The input lists: how each was read and what was noticed."""
    columns = (
        *(Column(name, left=True) for name in ("list", "kind", "roles", "read with")),
        Column("unanswered"),
        Column("unjudged queries"),
        Column("duplicates"),
        Column("zero scores"),
    )
    note = (
        "Over the whole dataset: unanswered = judged queries without a result, which score 0; "
        "unjudged queries are ignored; duplicates were dropped; zero scores are padding, more "
        "often than not."
    )
    return Table("Input lists", columns, tuple(_input_row(run) for run in collection.runs), (note,))


def _input_row(run: RunInfo) -> Row:
    reading = ", ".join(f"{key}: {value}" for key, value in run.reading.items())
    space = "" if run.score_space is None else f" ({run.score_space})"
    counts = (run.unanswered, run.unjudged_queries, run.duplicates, run.zero_scores)
    texts = (run.name, f"{run.kind}{space}", ", ".join(run.roles), reading)
    return Row((*map(escape_control_chars, texts), *(f"{count:,}" for count in counts)))


def prices(collection: Collection) -> Table | None:
    """Quality against cost and latency of the rerank lists; None where neither is known."""
    priced = {run.name: run for run in collection.runs if run.ledger}
    chosen = [(row, priced[_list_of(row)]) for row in ranked(collection) if _list_of(row) in priced]
    if not chosen:
        return None
    columns = (
        Column("system", left=True),
        Column("scored by", left=True),
        Column(collection.primary),
        Column("difference"),
        *(Column(name) for name in ("p50 ms", "p95 ms", "price / 1,000", "tokens / 1,000")),
        *(Column(name) for name in ("calls", "retries", "degraded")),
    )
    note = (
        "Of the runs that scored the lists: p50 and p95 of a query's reranking as it was measured "
        "then; price and tokens for 1,000 queries; degraded = queries that another provider "
        "scored, or nobody."
    )
    rows = tuple(_price_row(collection, row, run) for row, run in chosen)
    return Table("Quality against cost and latency", columns, rows, (note,))


def _list_of(row: SystemResult) -> str:
    """Name of the rerank list that a system blends in; empty = none."""
    blend = (row.config or {}).get("blend")
    return str(blend.get("reranker") or "") if isinstance(blend, dict) else ""


def _price_row(collection: Collection, row: SystemResult, run: RunInfo) -> Row:
    ledger = run.ledger or {}
    latency = ledger.get("query_ms") or {}
    queries = ledger.get("queries_answered") or 0
    per = 1000 / queries if queries else math.nan
    found = collection.comparison(row.name, collection.primary)
    cells = (
        format_number(row.measures[collection.primary].mean),
        "" if found is None else format_number(found.difference, signed=True),
        *(format_rounded(latency.get(key)) for key in ("p50", "p95")),
        format_number(per * float(ledger.get("cost", math.nan))),
        format_rounded(per * float(ledger.get("tokens", math.nan))),
        *(format_rounded(ledger.get(key)) for key in ("calls", "retries")),
        f"{run.degraded:,}",
    )
    return Row(
        (escape_control_chars(row.name), escape_control_chars(run.provider or "unknown"), *cells)
    )
