"""Agreement of judges, and of orders."""

import math

import numpy as np
import pytest

from fusion_bench.data.qrels import Qrels
from fusion_bench.stats.agreement import (
    Weighting,
    make_weights,
    measure_kappa,
    pair_grades,
)
from fusion_bench.stats.intervals import t_quantile


def slow_kappa(pairs: list[tuple[int, int]], weighting: Weighting) -> float:
    """κ by its definition: every pair of grades drawn from the two margins."""

    def disagreement(first: int, second: int) -> float:
        distance = abs(first - second)
        return {"none": float(distance > 0), "linear": distance, "quadratic": distance**2}[
            weighting
        ]

    observed = sum(disagreement(*pair) for pair in pairs) / len(pairs)
    expected = sum(disagreement(a, b) for a, _ in pairs for _, b in pairs) / len(pairs) ** 2
    return 1 - observed / expected


def random_qrels(seed: int, queries: int = 6) -> tuple[Qrels, Qrels]:
    """Two judges of whom the second agrees with the first on about half."""
    draw = np.random.default_rng(seed)
    first: dict[str, dict[str, int]] = {}
    second: dict[str, dict[str, int]] = {}
    for q in range(queries):
        for d in range(int(draw.integers(3, 9))):
            grade = int(draw.integers(0, 4))
            other = grade if draw.random() < 0.5 else int(draw.integers(0, 4))
            first.setdefault(f"q{q}", {})[f"d{d}"] = grade
            second.setdefault(f"q{q}", {})[f"d{d}"] = other
    first["only here"] = {"d1": 1}
    second["q0"]["not there"] = 2
    return Qrels.from_dict(first), Qrels.from_dict(second)


@pytest.mark.parametrize("weighting", ["none", "linear", "quadratic"])
@pytest.mark.parametrize("seed", range(5))
def test_kappa_and_its_interval_are_those_of_slow_loops(seed: int, weighting: Weighting) -> None:
    first, second = random_qrels(seed)
    pairs = pair_grades(first, second)
    kappa = measure_kappa(pairs.counts, make_weights(pairs.grades, weighting))
    by_query = {
        query: [
            (grade, second.to_dict()[query][document])
            for document, grade in documents.items()
            if document in second.to_dict().get(query, {})
        ]
        for query, documents in first.to_dict().items()
    }
    by_query = {query: rows for query, rows in by_query.items() if rows}
    assert list(by_query) == list(pairs.queries)
    everything = [pair for rows in by_query.values() for pair in rows]
    assert kappa.value == pytest.approx(slow_kappa(everything, weighting))
    without = [
        slow_kappa([p for q, rows in by_query.items() if q != left for p in rows], weighting)
        for left in by_query
    ]
    assert kappa.without_query == pytest.approx(without)
    count = len(without)
    error = math.sqrt((count - 1) / count * sum((k - np.mean(without)) ** 2 for k in without))
    half_width = t_quantile(count - 1, 0.975) * error
    assert kappa.high - kappa.low == pytest.approx(
        min(1, kappa.value + half_width) - max(-1, kappa.value - half_width)
    )


def test_binary_kappa_counts_grades_from_the_cutoff() -> None:
    first, second = random_qrels(3)
    pairs = pair_grades(first, second)
    both = [
        (int(grade >= 2), int(second.to_dict()[query][document] >= 2))
        for query, documents in first.to_dict().items()
        for document, grade in documents.items()
        if document in second.to_dict().get(query, {})
    ]
    kappa = measure_kappa(pairs.binary_counts(2), make_weights((0, 1), "none"))
    assert kappa.value == pytest.approx(slow_kappa(both, "none"))


def test_judges_who_agree_on_everything_have_kappa_1() -> None:
    first, _ = random_qrels(0)
    pairs = pair_grades(first, first)
    kappa = measure_kappa(pairs.counts, make_weights(pairs.grades, "none"))
    assert (kappa.value, kappa.low, kappa.high) == (1, 1, 1)


def test_one_grade_alone_has_no_kappa() -> None:
    qrels = Qrels.from_dict({"q1": {"d1": 1, "d2": 1}, "q2": {"d1": 1}})
    pairs = pair_grades(qrels, qrels)
    kappa = measure_kappa(pairs.counts, make_weights(pairs.grades, "quadratic"))
    assert math.isnan(kappa.value)
    assert math.isnan(kappa.low)


def test_one_query_has_no_interval() -> None:
    first = Qrels.from_dict({"q1": {"d1": 1, "d2": 0, "d3": 1}})
    second = Qrels.from_dict({"q1": {"d1": 1, "d2": 0, "d3": 0}})
    pairs = pair_grades(first, second)
    kappa = measure_kappa(pairs.counts, make_weights(pairs.grades, "none"))
    assert kappa.value == pytest.approx(0.4)
    assert math.isnan(kappa.low)


def test_judges_of_other_pairs_share_nothing() -> None:
    first, second = (Qrels.from_dict({q: {"d1": 1}}) for q in ("q1", "q2"))
    pairs = pair_grades(first, second)
    assert (pairs.queries, pairs.grades, pairs.counts.shape) == ((), (), (0, 0, 0))
    assert math.isnan(measure_kappa(pairs.counts, make_weights((), "none")).value)
