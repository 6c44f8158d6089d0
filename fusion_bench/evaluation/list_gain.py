"""What is left of the gain of a better list once it is fused and reranked.

Two reports that differ by the contents of one list, and a system that is this list alone in both.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.evaluation.compared_reports import explain_untested, list_texts
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.stats.intervals import (
    ALPHA,
    MeanEstimate,
    estimate_mean,
    paired_difference,
    t_quantile,
)

#: Of the parts of a dataset that are fused lists.
RUNS = "runs/"


class SystemGain(NamedTuple):
    """What one system gains by the new list.

    Attributes:
        system: Its name.
        gain: Mean of new − old.
        beyond: Mean of that − the gain of the list alone; None for the list itself.
        share: That gain ÷ the gain of the list alone, with the ends of its interval (Fieller);
            None for the list itself, and where no gain of the list alone is shown.
    """

    system: str
    gain: MeanEstimate
    beyond: MeanEstimate | None = None
    share: tuple[float, float, float] | None = None


def find_list_gain(old: Collection, new: Collection) -> tuple[str, list[SystemGain]] | None:
    """The one list that differs, and what each system gains by it, the list alone first.

    Args:
        old: A collection of the report before.
        new: The same collection now.

    Returns:
        None where no list differs, or none is a system alone.
    """
    parts = old.digests.keys() | new.digests.keys()
    changed = [part for part in parts if old.digests.get(part) != new.digests.get(part)]
    if explain_untested(old, new) is not None or len(changed) != 1:
        return None
    [part] = changed
    name = part.removeprefix(RUNS)
    gains = {}
    for row in new.competitors.values():
        before = old.competitors.get(row.name)
        is_same = before is not None and before.config == row.config
        if before is None or not is_same or name not in list_texts(row.config or {}):
            continue
        results = (each.measures[new.primary_measure] for each in (row, before))
        sides = [np.array(each.values, dtype=np.float64) for each in results]
        if np.isfinite(sides).all():
            gains[row.name] = paired_difference(*sides)
    alone = next((row for row in gains if _is_alone(new.competitors[row].config, name)), None)
    if not part.startswith(RUNS) or alone is None:
        return None
    groups = np.asarray(number_by_appearance(new.groups)[0])
    others = [describe_gain(row, gains[row], gains[alone], groups) for row in gains if row != alone]
    first = SystemGain(alone, estimate_mean(gains[alone], groups))
    return name, [first, *others]


def _is_alone(config: dict[str, Any] | None, name: str) -> bool:
    """Whether a system is one list without anything."""
    known = config or {}
    method = (known.get("blend") or {}).get("method", "none")
    return list(known.get("runs", ())) == [name] and method == "none"


def ratio_interval(
    numerators: FloatArray, denominators: FloatArray, groups: IntArray
) -> tuple[float, float, float] | None:
    """The ratio of two means over the same queries, and the ends of its interval.

    Args:
        numerators: Shape (Q,).
        denominators: Shape (Q,).
        groups: Shape (Q,), integer codes.

    Returns:
        None where the interval of the denominators' mean holds 0: then no ratio can be excluded.
    """
    top, bottom = (estimate_mean(each, groups) for each in (numerators, denominators))
    if math.isnan(bottom.freedom):
        return None
    both = estimate_mean(numerators + denominators, groups)
    first, second = top.standard_error**2, bottom.standard_error**2
    shared = (both.standard_error**2 - first - second) / 2
    square = t_quantile(bottom.freedom, 1 - ALPHA / 2) ** 2
    scale = bottom.mean**2 - square * second
    if scale <= 0:
        return None
    middle = (top.mean * bottom.mean - square * shared) / scale
    rest = middle**2 - (top.mean**2 - square * first) / scale
    width = math.sqrt(max(rest, 0.0))
    return top.mean / bottom.mean, middle - width, middle + width


def describe_gain(system: str, gain: FloatArray, alone: FloatArray, groups: IntArray) -> SystemGain:
    """What a system gains, beside what the list alone gains.

    Args:
        system: Its name.
        gain: Shape (Q,): new − old.
        alone: Shape (Q,): the same of the list alone.
        groups: Shape (Q,), integer codes.
    """
    is_shown = estimate_mean(alone, groups).low > 0
    share = ratio_interval(gain, alone, groups) if is_shown else None
    beyond = estimate_mean(paired_difference(gain, alone), groups)
    return SystemGain(system, estimate_mean(gain, groups), beyond, share)
