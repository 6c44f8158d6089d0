from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.errors import ConfigError
from fusion_bench.measures import compute_measures, parse_measure, tie_sensitivity
from tests.measures.cases import Case, all_measures, build, cases
from tests.oracle.measures import measure_value, orders


def brute(
    case: Case, query: str, limit: int | None
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(measures, orders): every measure under every order of the ties."""
    lists = [order[:limit] for order in orders(case.returned(query))]
    return np.array(
        [
            [measure_value(measure, ranked, case.judgments[query]) for ranked in lists]
            for measure in all_measures()
        ]
    )


@settings(max_examples=50, deadline=None)
@given(cases(documents=6, levels=3), st.one_of(st.none(), st.integers(1, 7)))
def test_extremes_and_mean_are_those_of_all_orders(case: Case, limit: int | None) -> None:
    built = build(case)
    measures = all_measures()
    found = tie_sensitivity(measures, built.runs, built.positions, built.firsts, limit=limit)
    affected = np.zeros(len(measures), dtype=int)
    for q, query in enumerate(built.runs.queries):
        values = brute(case, query, limit)
        for m, measure in enumerate(measures):
            low, high, mean = values[m].min(), values[m].max(), values[m].mean()
            assert found.minimum[m, q] == pytest.approx(low, abs=1e-12), measure.name
            assert found.maximum[m, q] == pytest.approx(high, abs=1e-12), measure.name
            assert found.expected[m, q] == pytest.approx(mean, abs=1e-12), measure.name
            affected[m] += high - low > 1e-12
    assert found.affected.tolist() == affected.tolist()


@settings(deadline=None)
@given(cases())
def test_the_given_order_lies_between_the_extremes(case: Case) -> None:
    built = build(case)
    measures = all_measures()
    found = tie_sensitivity(measures, built.runs, built.positions, built.firsts)
    values = compute_measures(measures, built.runs, built.positions)
    assert (found.minimum <= values).all()
    assert (values <= found.maximum).all()
    assert (found.minimum <= found.expected + 1e-12).all()
    assert (found.expected <= found.maximum + 1e-12).all()


@settings(deadline=None)
@given(cases(), st.one_of(st.none(), st.integers(1, 7)))
def test_a_query_never_depends_on_the_others(case: Case, limit: int | None) -> None:
    built = build(case)
    measures = all_measures()
    whole = tie_sensitivity(measures, built.runs, built.positions, built.firsts, limit=limit)
    for q in range(len(built.runs.queries)):
        keep = np.arange(len(built.runs.queries)) == q
        rows = keep[built.runs.query_index]
        alone = tie_sensitivity(
            measures,
            built.runs.subset(keep),
            built.positions[rows],
            built.firsts[rows],
            limit=limit,
        )
        for name in ("minimum", "maximum", "expected"):
            assert getattr(alone, name)[:, 0].tolist() == getattr(whole, name)[:, q].tolist()


def test_one_relevant_among_three_ties() -> None:
    built = build(Case({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.5}}))
    measures = [parse_measure(name) for name in ("RR", "nDCG@2", "Success@1", "P@10")]
    found = tie_sensitivity(measures, built.runs, built.positions, built.firsts)
    assert found.affected.tolist() == [1, 1, 1, 0]
    assert found.minimum[:, 0] == pytest.approx([1 / 3, 0, 0, 0.1])
    assert found.maximum[:, 0] == pytest.approx([1, 1, 1, 0.1])
    mean_of_two = (1 + 1 / math.log2(3)) / 3
    assert found.expected[:, 0] == pytest.approx([(1 + 1 / 2 + 1 / 3) / 3, mean_of_two, 1 / 3, 0.1])


def test_large_groups_have_stable_sums() -> None:
    ids = [f"d{i:04}" for i in range(2000)]
    scores: dict[str, float | None] = dict.fromkeys(ids, 1.0)
    built = build(Case({"q": {ids[7]: 1}}, {"q": scores}))
    measures = [parse_measure(name) for name in ("RR", "AP", "RR(judged_only=True)", "Success@20")]
    found = tie_sensitivity(measures, built.runs, built.positions, built.firsts, limit=1000)
    harmonic = sum(1 / i for i in range(1, 1001)) / 2000
    assert found.expected[:, 0] == pytest.approx([harmonic, harmonic, 0.5, 0.01], rel=1e-12)


def test_the_limit_comes_after_the_reordering() -> None:
    built = build(Case({"q": {"a": 1}}, {"q": {"b": 1.0, "a": 1.0}}))
    found = tie_sensitivity(
        [parse_measure("RR"), parse_measure("Judged@5")],
        built.runs,
        built.positions,
        built.firsts,
        limit=1,
    )
    assert found.minimum[:, 0].tolist() == [0, 0]
    assert found.maximum[:, 0].tolist() == [1, 1]
    assert found.expected[:, 0].tolist() == [0.5, 0.5]


def test_chance_decides_which_judged_documents_are_above_the_limit() -> None:
    case = Case(
        {"a long": {"a": 1, "b": 1}, "b short": {"a": 1}, "c late": {"a": 1, "b": 0}},
        {
            "a long": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0},
            "b short": {"a": 1.0},
            "c late": {"c": 2.0, "a": 1.0, "b": 1.0, "d": 1.0},
        },
    )
    built = build(case)
    measure = parse_measure("R(judged_only=True)@9")
    found = tie_sensitivity([measure], built.runs, built.positions, built.firsts, limit=2)
    assert found.minimum[0].tolist() == [0, 1, 0]
    assert found.maximum[0].tolist() == [1, 1, 1]
    assert found.expected[0].tolist() == pytest.approx([1 / 2, 1, 1 / 3])


def test_results_are_frozen() -> None:
    built = build(Case({"q": {"a": 1}}, {"q": {"a": 1.0}}))
    found = tie_sensitivity([parse_measure("RR")], built.runs, built.positions, built.firsts)
    for array in (found.affected, found.minimum, found.maximum, found.expected):
        assert not array.flags.writeable


def test_a_measure_of_ir_measures_has_extremes_but_no_expectation() -> None:
    case = Case(
        {"q": {"a": 1, "b": 0}, "r": {"a": 1}},
        {"q": {"a": 1.0, "b": 1.0, "c": 1.0}, "r": {"a": 2.0, "b": 1.0}},
    )
    built = build(case)
    measures = [parse_measure("Rprec"), parse_measure("RR")]
    found = tie_sensitivity(measures, built.runs, built.positions, built.firsts, qrels=built.qrels)
    assert found.affected.tolist() == [1, 1]
    assert found.minimum[0].tolist() == [0, 1]
    assert found.maximum[0].tolist() == [1, 1]
    assert math.isnan(found.expected[0, 0])
    assert found.expected[0, 1] == 1
    unjudged = replace(built.runs, qrels=None)
    with pytest.raises(ConfigError, match="pass qrels"):
        tie_sensitivity(measures, unjudged, built.positions, built.firsts)
