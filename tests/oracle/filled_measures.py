"""The slow obvious loop for filled values: every outcome of every unjudged document."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product

from fusion_bench.measures import Measure
from tests.oracle.measures import rbp_weights

#: One list's documents by rank: the grade, or None where it is unjudged.
Grades = Sequence[int | None]


def mean_gain_at(rank: int, lists: Sequence[Grades], gain: Callable[[int], float]) -> float:
    """Of the judged documents at a rank, or at the nearest rank that has any."""
    by_rank: dict[int, list[float]] = {}
    for grades in lists:
        for position, grade in enumerate(grades, start=1):
            if grade is not None:
                by_rank.setdefault(position, []).append(gain(grade))
    if not by_rank:
        return math.nan
    nearest = min(by_rank, key=lambda other: (abs(other - rank), other))
    return sum(by_rank[nearest]) / len(by_rank[nearest])


def filled_value(
    measure: Measure, grades: Grades, lists: Sequence[Grades], judgments: Mapping[str, int]
) -> float:
    """Of one list within the cutoff; ``lists`` are those of all queries within it."""
    rel = getattr(measure, "rel", 1)

    def gain(grade: int) -> float:
        if measure.method == "ERR":
            return (2.0 ** max(grade, 0) - 1) / 2.0 ** int(getattr(measure, "max_grade", 4))
        if measure.method == "RBP" and rel is None:
            return float(max(grade, 0))
        if measure.method != "nDCG":
            return float(grade >= rel)
        positive = max(grade, 0)
        return 2.0**positive - 1 if "exp-log2" in measure.name else float(positive)

    gains = [
        mean_gain_at(rank, lists, gain) if grade is None else gain(grade)
        for rank, grade in enumerate(grades, start=1)
    ]
    if measure.method == "nDCG":
        best = sorted(map(gain, judgments.values()), reverse=True)[: measure.cutoff]
        ideal = sum(g / math.log2(i + 1) for i, g in enumerate(best, start=1))
        dcg = sum(g / math.log2(i + 1) for i, g in enumerate(gains, start=1))
        return min(dcg / ideal, 1) if ideal else 0.0
    if measure.method == "RBP":
        of_cwl_eval = rel is not None and measure.cutoff is None
        weights = rbp_weights(getattr(measure, "p", 0.8), len(gains), of_cwl_eval=of_cwl_eval)
        return sum(w * g for w, g in zip(weights, gains, strict=True))
    expected = 0.0
    for outcome in product((0, 1), repeat=len(gains)):
        chances = (g if bit else 1 - g for g, bit in zip(gains, outcome, strict=True))
        expected += math.prod(chances) * _sum_of(measure, outcome)
    if measure.method in {"R", "AP"}:
        relevant = sum(grade >= rel for grade in judgments.values())
        return min(expected / relevant, 1) if relevant else 0.0
    return expected


def _sum_of(measure: Measure, outcome: Sequence[int]) -> float:
    """What the measure adds up where these ranks are relevant."""
    ranks = [rank for rank, bit in enumerate(outcome, start=1) if bit]
    match measure.method:
        case "RR" | "ERR":
            return 1 / ranks[0] if ranks else 0.0
        case "Success":
            return float(bool(ranks))
        case "P":
            assert measure.cutoff is not None
            return len(ranks) / measure.cutoff
        case "AP":
            return sum(number / rank for number, rank in enumerate(ranks, start=1))
    return float(len(ranks))
