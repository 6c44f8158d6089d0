"""What the Pareto front says: the loss with less effort, and what the default could save."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.report.tuning_records import (
    PairedDifference,
    ParetoFront,
    ParetoPoint,
    TuningReport,
)
from fusion_bench.util.formatting import format_interval, format_number, format_percent

#: How an axis is called in a sentence.
EFFORT_NAMES = {"candidates": "candidates", "cost": "cost", "seconds": "latency"}


def format_difference(difference: PairedDifference) -> str:
    """``-0.0020 [-0.0040, 0.0000]``."""
    interval = format_interval(difference.low, difference.high, signed=True)
    return f"{format_number(difference.mean, signed=True)} {interval}"


def pareto_texts(report: TuningReport, front: ParetoFront) -> Iterator[str]:
    """Sentences on the cheapest good point, and on the one that equals the default."""
    best, cheapest = front.best, front.cheapest_within(report.min_gain)
    if cheapest is not best:
        yield (
            f"{front.point_name(cheapest).capitalize()} reaches, held out, "
            f"{format_difference(cheapest.over_best)} against the best of the front "
            f"({front.point_name(best)}) with {_effort_shares(front, cheapest, best)}."
        )
    elif best.depth:
        yield (
            f"The best of the front needs {front.point_name(best)}: no point with less effort is "
            f"within {format_number(report.min_gain)} of it on the tuning queries."
        )
    else:
        yield "Reranking does not pay at any depth: the best of the front has no reranker."
    default = front.default_point
    as_good = [point for point in front.efficient_points if point.value >= default.value]
    same = min(as_good, key=lambda point: (front.effort(point), -point.value))
    if "default" not in same.roles and front.effort(same) < front.effort(default):
        yield (
            f"The front equals the default ({front.point_name(default)}) at "
            f"{front.point_name(same)} with {_effort_shares(front, same, default)}; held out "
            f"{format_difference(same.over_default)}."
        )


def _effort_shares(front: ParetoFront, point: ParetoPoint, reference: ParetoPoint) -> str:
    """``20.0 % of its latency and 16.7 % of its cost``."""
    axes = tuple(axis for axis in front.axes if axis != "candidates") or front.axes
    names: dict[str, list[str]] = {}
    for axis in axes:
        part, total = (float(getattr(item, axis) or 0.0) for item in (point, reference))
        share = format_percent(part / total if total else 1.0)
        names.setdefault(share, []).append(EFFORT_NAMES[axis])
    return " and ".join(f"{share} of its {' and '.join(names[share])}" for share in names)
