"""Quality against rerank effort, as a table and in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.report.page import Column, Row, Table
from fusion_bench.report.tuning.tuning_records import (
    Difference,
    Front,
    FrontPoint,
    RerankerEffort,
    TuningReport,
)
from fusion_bench.util.formatting import (
    escape_control_chars,
    format_interval,
    format_number,
    is_known,
)
from fusion_bench.util.formatting import format_percent as percent

__all__ = ["best", "cheap", "effort", "findings", "named", "sources", "table"]

#: How an axis is called in a sentence.
AXES = {"candidates": "candidates", "cost": "cost", "seconds": "latency"}


def effort(front: Front, point: FrontPoint) -> float:
    """What points are put in order by: cost where it is known, else latency, else candidates."""
    return float(getattr(point, front.axes[-1]) or 0.0)


def best(front: Front) -> FrontPoint:
    """The efficient point of the greatest tuning value; of equal ones the cheapest."""
    return max(front.efficient, key=lambda point: (point.value, -effort(front, point)))


def cheap(front: Front, min_gain: float) -> FrontPoint:
    """The cheapest efficient point within ``min_gain`` of the best on the tuning queries."""
    enough = [p for p in front.efficient if p.value >= best(front).value - min_gain]
    return min(enough, key=lambda point: (effort(front, point), -point.value))


def table(tuning: TuningReport, front: Front) -> Table:
    """The efficient trades, the default and the choice, and what each is worth held out."""
    rows = []
    several = len(front.efforts) > 1
    priced, timed, slow = (
        any(point.depth and is_known(getattr(point, what)) for point in front.points)
        for what in ("cost", "seconds", "slow")
    )
    for point in front.points:
        if not (point.efficient or point.roles):
            continue
        cells = [escape_control_chars(point.reranker or "none")] if several else []
        cells += [f"{point.depth:,}", f"{point.candidates:.1f}"]
        cells += [_amount(point.cost)] if priced else []
        cells += [_amount(point.seconds)] if timed else []
        cells += [_amount(point.slow)] if slow else []
        cells += [format_number(point.value), format_number(point.held_out)]
        cells += [_difference(point.over_default), _difference(point.over_best), _marks(point)]
        rows.append(Row(tuple(cells), "plain" if point.efficient else "warning"))
    columns = [Column("reranker", is_text=True)] if several else []
    columns += [Column("rerank depth"), Column("candidates a query", is_optional=True)]
    columns += [Column("cost of 1,000 queries")] if priced else []
    columns += [Column("seconds a query")] if timed else []
    columns += [Column("p95 seconds", is_optional=True)] if slow else []
    columns += [Column(f"{tuning.measure}, tuning"), Column("held-out")]
    columns += [Column("held out: - default"), Column("held out: - best"), Column("", is_text=True)]
    return Table("Quality against effort", tuple(columns), tuple(rows), tuple(_notes(front)))


def _notes(front: Front) -> Iterator[str]:
    axes = " and ".join(AXES[axis] for axis in front.axes)
    yield (
        "Each row is the best found at its depth on the tuning queries; nothing that takes less "
        f"({axes}) is as good there, but for rows marked as off the front. Held out: what to "
        "believe of it, with paired intervals against the default and against the last efficient "
        "row, not adjusted for the number of rows."
    )
    yield from sources(front)


def sources(front: Front) -> Iterator[str]:
    """Where each reranker's price and time are known from, one sentence a reranker."""
    for one in front.efforts:
        parts = [*_cost(one), *_time(one)]
        name = escape_control_chars(one.reranker) + (
            "" if one.provider is None else f" ({escape_control_chars(one.provider)})"
        )
        if not parts:
            yield (
                f"{name}: neither price nor time is known: declare tune.effort, or score the list "
                "with fusion-bench rerank, which keeps a ledger."
            )
            continue
        record = ""
        if "ledger" in {one.cost, one.seconds}:
            record = (
                f" Its ledger: {one.queries:,} queries, {one.calls:,} calls of up to "
                f"{one.largest_call or 0:,} documents, up to {one.at_once or 1:,} at once; "
                "candidates are priced and timed by the calls they need, a call as the smallest "
                "that was measured or more."
            )
        yield f"{name}: {'; '.join(parts)}.{record}"


def _cost(one: RerankerEffort) -> Iterator[str]:
    declared = _said(one.declared_price, "per 1,000 candidates")
    recorded = _said(one.recorded_price, "per 1,000 candidates at the list's own depth")
    yield from _either("cost", one.cost, declared, recorded)


def _time(one: RerankerEffort) -> Iterator[str]:
    declared = _said(one.declared_seconds, "s a candidate")
    recorded = _said(one.recorded_seconds, "s a query at the list's own depth (median)")
    yield from _either("time", one.seconds, declared, recorded)


def _said(value: float | None, unit: str) -> str:
    return "" if value is None else f"{_amount(value)} {unit}"


def _either(what: str, source: str | None, declared: str, recorded: str) -> Iterator[str]:
    """Which of the two counts, and what the other one says."""
    if source == "ledger":
        yield f"{what} from its ledger, {recorded}" + (
            f" (declared and not used: {declared}; say 'prefer: declared' to use it)"
            if declared
            else ""
        )
    elif source == "declared":
        yield f"{what} as declared, {declared}" + (
            f" (its ledger says {recorded})" if recorded else ""
        )


def findings(tuning: TuningReport, front: Front) -> Iterator[str]:
    """What the front says: what less effort loses, and what the default could do with less."""
    top, less = best(front), cheap(front, tuning.min_gain)
    if less is not top:
        yield (
            f"{named(front, less).capitalize()} {_loses(less.over_best)} against the best of the "
            f"front ({named(front, top)}) and takes {_share(front, less, top)}."
        )
    elif top.depth:
        yield (
            f"The best of the front needs {named(front, top)}: on the tuning queries nothing that "
            f"takes less is within {format_number(tuning.min_gain)} of it."
        )
    else:
        yield "Reranking pays at no depth: the best of the front has no reranker."
    default = next(point for point in front.points if "default" in point.roles)
    as_good = [point for point in front.efficient if point.value >= default.value]
    same = min(as_good, key=lambda point: (effort(front, point), -point.value))
    if "default" not in same.roles and effort(front, same) < effort(front, default):
        yield (
            f"What the default reaches with {named(front, default)}, the front reaches with "
            f"{named(front, same)}, {_share(front, same, default)}; held out "
            f"{_difference(same.over_default)}."
        )


def _loses(found: Difference) -> str:
    """``loses 0.0020 [-0.0040, 0.0000] held out``."""
    if found.mean < 0:
        return f"loses {format_number(-found.mean)} held out ({_difference(found)})"
    return f"loses nothing held out ({_difference(found)})"


def _share(front: Front, less: FrontPoint, more: FrontPoint) -> str:
    """``20.0 % of its latency and 16.7 % of its cost``."""
    axes = tuple(axis for axis in front.axes if axis != "candidates") or front.axes
    shares: dict[str, list[str]] = {}
    for axis in axes:
        part, of = (float(getattr(point, axis) or 0.0) for point in (less, more))
        shares.setdefault(percent(part / of if of else 1.0), []).append(AXES[axis])
    return " and ".join(f"{share} of its {' and '.join(names)}" for share, names in shares.items())


def named(front: Front, point: FrontPoint) -> str:
    """``depth 20``, with the reranker where there are several."""
    if not point.depth:
        return "no reranker"
    by = f" of {escape_control_chars(point.reranker or '')}" if len(front.efforts) > 1 else ""
    return f"depth {point.depth:,}{by}"


def _marks(point: FrontPoint) -> str:
    off = () if point.efficient else ("off the front",)
    return ", ".join((*point.roles, *off))


def _difference(found: Difference) -> str:
    interval = format_interval(found.low, found.high, signed=True)
    return f"{format_number(found.mean, signed=True)} {interval}"


def _amount(value: float | None) -> str:
    return f"{value:.4g}" if value is not None and is_known(value) else "n/a"
