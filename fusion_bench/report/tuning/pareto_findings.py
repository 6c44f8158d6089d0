"""What the Pareto front says: the loss with less effort, and what the default could save."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.report.tuning_records.pareto_front import (
    PairedDifference,
    ParetoFront,
    ParetoPoint,
)
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.formatting import format_difference, format_number, format_percent

#: How an axis is called in a sentence.
EFFORT_NAMES = {"candidates": "candidates", "cost": "cost", "seconds": "latency"}


def format_paired(difference: PairedDifference) -> str:
    """``-0.0020 [-0.0040, 0.0000]``."""
    return format_difference(difference.mean, difference.low, difference.high)


def pareto_texts(report: TuningReport, front: ParetoFront) -> Iterator[str]:
    """Sentences on the cheapest good point, and on the one that equals the default."""
    best = front.best
    cheapest = front.cheapest_reaching(best.value - report.min_gain)
    if cheapest is best:
        yield (
            f"The best of the front is {front.point_name(best)}: no point with less effort is "
            f"within {format_number(report.min_gain)} of it on the tuning queries."
        )
    else:
        yield (
            f"{front.point_name(cheapest).capitalize()} reaches, held out, "
            f"{format_paired(cheapest.over_best)} against the best of the front "
            f"({front.point_name(best)}) with {_effort_shares(front, cheapest, best)}."
        )
    default = front.default_point
    same = front.cheapest_reaching(default.value)
    if "default" not in same.roles and front.effort(same) < front.effort(default):
        yield (
            f"On the tuning queries the front reaches the default ({front.point_name(default)}) at "
            f"{front.point_name(same)} with {_effort_shares(front, same, default)}; held out "
            f"{format_paired(same.over_default)}."
        )


def _effort_shares(front: ParetoFront, point: ParetoPoint, reference: ParetoPoint) -> str:
    """``20.0 % of its latency, 16.7 % of its cost``."""
    shares = []
    for axis in tuple(axis for axis in front.axes if axis != "candidates") or front.axes:
        part, total = (float(getattr(item, axis) or 0.0) for item in (point, reference))
        shares.append(
            f"{format_percent(part / total if total else 1.0)} of its {EFFORT_NAMES[axis]}"
        )
    return ", ".join(shares)
