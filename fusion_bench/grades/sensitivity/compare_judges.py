"""What the reports of one experiment under several judges say together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.grades.sensitivity.records import (
    JudgeVerdict,
    OrderAgreement,
    Stability,
    SystemSensitivity,
)
from fusion_bench.stats.answers import BETTER, WORSE, Answer
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.rank_correlation import kendall_tau

#: Means that agree to as many decimal places tie.
TIE_PLACES = 12


def compare_systems(
    collections: Mapping[str, Collection], *, alpha: float
) -> Iterator[SystemSensitivity]:
    """Every system under every judge.

    Args:
        collections: By judge, on the same queries and systems; the first is the reference.
        alpha: Level of the intervals of all shifts together.
    """
    reference, *others = collections.values()
    shifts = max(1, len(others) * (len(reference.competitors) - 1))
    for name in reference.competitors:
        verdicts = tuple(
            _record_verdict(judge, collection, reference, name, alpha / shifts)
            for judge, collection in collections.items()
        )
        answers = [each.answer for each in verdicts if each.answer is not None]
        yield SystemSensitivity(
            system=name,
            verdicts=verdicts,
            stability=find_stability(answers) if answers else None,
        )


def find_stability(answers: Sequence[Answer]) -> Stability:
    """Whether judges say the same: better, worse, or neither."""
    signs = {1 if each in BETTER else -1 if each in WORSE else 0 for each in answers}
    if len(signs) == 1:
        return "same"
    return "reversed" if {1, -1} <= signs else "not shown by all"


def compare_orders(collections: Mapping[str, Collection]) -> Iterator[OrderAgreement]:
    """Kendall's τ of the orders of each two judges.

    Args:
        collections: By judge, on the same queries and systems.
    """
    means = {judge: _list_means(collection) for judge, collection in collections.items()}
    names = list(next(iter(collections.values())).competitors)
    for first, second in combinations(collections, 2):
        correlation = kendall_tau(means[first], means[second])
        yield OrderAgreement(
            first=first,
            second=second,
            tau=correlation.tau,
            agreeing=correlation.agreeing,
            opposite=correlation.opposite,
            tied=correlation.tied,
            swapped=tuple(_list_swapped(names, means[first], means[second])),
        )


def _list_swapped(
    names: Sequence[str], first: FloatArray, second: FloatArray
) -> Iterator[tuple[str, str]]:
    for a, b in combinations(range(len(names)), 2):
        if (first[a] - first[b]) * (second[a] - second[b]) < 0:
            yield (names[a], names[b]) if first[a] > first[b] else (names[b], names[a])


def _list_means(collection: Collection) -> FloatArray:
    """The means of the systems on the primary measure, (S,)."""
    rows = (row.measures[collection.primary_measure] for row in collection.competitors.values())
    means = [np.nan if row.mean is None else row.mean for row in rows]
    return np.asarray(np.round(means, TIE_PLACES), np.float64)


def _record_verdict(
    judge: str, collection: Collection, reference: Collection, name: str, alpha: float
) -> JudgeVerdict:
    mean = collection.system(name).measures[collection.primary_measure].mean
    compared = collection.comparison(name, collection.primary_measure)
    if compared is None:
        return JudgeVerdict(judge=judge, mean=mean)
    shift: dict[str, float] = {}
    if collection is not reference:
        change = _list_differences(collection, name) - _list_differences(reference, name)
        groups = number_by_appearance(collection.groups)[0]
        estimate = estimate_mean(change, groups, alpha=alpha)
        shift = {"shift": estimate.mean, "shift_low": estimate.low, "shift_high": estimate.high}
    return JudgeVerdict(
        judge=judge,
        mean=mean,
        difference=compared.difference,
        low=compared.low,
        high=compared.high,
        p_adjusted=compared.p_adjusted,
        answer=compared.answer,
        **shift,
    )


def _list_differences(collection: Collection, name: str) -> FloatArray:
    """System − baseline by query on the primary measure, (Q,)."""
    values = collection.system_values()
    return paired_difference(values[name][0], values[collection.baseline][0])
