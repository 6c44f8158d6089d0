from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError
from fusion_bench.measures import compute_measures, no_relevant, parse_measure
from tests.measures.cases import COMMON, Case, all_measures, build, cases
from tests.oracle.measures import measure_value


def value(name: str, judgments: dict[str, int], *ranked: str) -> float:
    """One measure of one list; the list is shown best first."""
    scores: dict[str, float | None] = {d: -float(i) for i, d in enumerate(ranked)}
    built = build(Case({"q": judgments}, {"q": scores}))
    return float(compute_measures([parse_measure(name)], built.runs, built.positions)[0, 0])


@settings(deadline=None)
@given(cases())
def test_every_measure_is_what_the_obvious_loop_finds(case: Case) -> None:
    built = build(case)
    measures = all_measures()
    found = compute_measures(measures, built.runs, built.positions)
    for m, measure in enumerate(measures):
        for q, query in enumerate(built.runs.queries):
            expected = measure_value(measure, case.ranked(query), case.judgments[query])
            assert found[m, q] == pytest.approx(expected, abs=1e-12), (measure.name, query)


@settings(deadline=None)
@given(cases())
def test_a_query_never_depends_on_the_others(case: Case) -> None:
    built = build(case)
    measures = all_measures()
    together = compute_measures(measures, built.runs, built.positions)
    for q in range(len(built.runs.queries)):
        keep = np.arange(len(built.runs.queries)) == q
        placed = built.positions[keep[built.runs.query_index]]
        alone = compute_measures(measures, built.runs.subset(keep), placed)
        assert alone[:, 0].tobytes() == together[:, q].tobytes()


def test_long_lists_are_the_same_bits_in_any_shard() -> None:
    rng = np.random.default_rng(3)
    ids = [f"d{i}" for i in range(300)]
    judgments = {
        f"q{q}": {d: int(g) for d, g in zip(ids, rng.integers(-1, 4, 300), strict=True)}
        for q in range(20)
    }
    scores: dict[str, dict[str, float | None]] = {
        query: {d: float(s) for d, s in zip(ids, rng.normal(size=300), strict=True)}
        for query in judgments
    }
    built = build(Case(judgments, scores))
    measures = all_measures()
    whole = compute_measures(measures, built.runs, built.positions)
    for parts in (2, 7, 20):
        shards = []
        for part in range(parts):
            keep = np.arange(20) % parts == part
            placed = built.positions[keep[built.runs.query_index]]
            shards.append(compute_measures(measures, built.runs.subset(keep), placed))
        for part, shard in enumerate(shards):
            assert shard.tobytes() == np.ascontiguousarray(whole[:, part::parts]).tobytes()


@settings(deadline=None)
@given(cases())
def test_inputs_stay_as_they_were(case: Case) -> None:
    built = build(case)
    before = built.positions.copy()
    built.positions.setflags(write=False)
    compute_measures(all_measures(), built.runs, built.positions)
    assert (built.positions == before).all()


@pytest.mark.parametrize("name", COMMON)
def test_an_empty_list_and_nothing_relevant_are_zero(name: str) -> None:
    if not name.startswith("Judged"):
        assert value(name, {"a": 0, "b": -1}, "a", "b") == 0
    built = build(Case({"q": {"a": 1}}, {"q": {"a": None}}))
    assert compute_measures([parse_measure(name)], built.runs, built.positions)[0, 0] == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nDCG@2", (1 / math.log2(3)) / (3 + 1 / math.log2(3))),
        ("nDCG(dcg='exp-log2')@2", (1 / math.log2(3)) / (7 + 1 / math.log2(3))),
        ("RR", 1 / 2),
        ("RR@1", 0.0),
        ("RR(rel=2)", 1 / 4),
        ("AP", (1 / 2 + 2 / 4) / 2),
        ("AP@3", (1 / 2) / 2),
        ("P@5", 2 / 5),
        ("P@10", 2 / 10),
        ("R@2", 1 / 2),
        ("Success@1", 0.0),
        ("Success@2", 1.0),
        ("Judged@1", 0.0),
        ("Judged@2", 1 / 2),
        ("Judged@10", 3 / 4),
        ("RR(judged_only=True)", 1.0),
        ("P(judged_only=True)@2", 1 / 2),
        ("Judged(judged_only=True)@10", 1.0),
    ],
)
def test_worked_example(name: str, expected: float) -> None:
    found = value(name, {"a": 1, "b": 0, "c": 3}, "unjudged", "a", "b", "c")
    assert found == pytest.approx(expected, abs=1e-15)


def test_a_negative_grade_is_judged_for_judged_and_taken_out_of_judged_only() -> None:
    grades = {"spam": -2, "good": 1}
    assert value("Judged@2", grades, "spam", "good") == 1
    assert value("RR", grades, "spam", "good") == 1 / 2
    assert value("RR(judged_only=True)", grades, "spam", "good") == 1


def test_relevant_documents_that_nobody_returned_count() -> None:
    assert value("R@10", {"a": 1, "b": 1, "c": 2}, "a") == pytest.approx(1 / 3)
    assert value("AP", {"a": 1, "b": 1, "c": 2}, "a") == pytest.approx(1 / 3)
    assert value("nDCG@1", {"a": 1, "b": 1, "c": 2}, "a") == pytest.approx(1 / 2)


def test_no_relevant_tells_which_queries_can_only_score_zero() -> None:
    qrels = Qrels.from_dict({"q1": {"a": 0, "b": -1}, "q2": {"a": 1}, "q3": {"a": 3}})
    runs = align(qrels, [Run.from_dict("r", {"q1": {"a": 1.0}})])
    assert no_relevant(runs).tolist() == [True, False, False]
    assert no_relevant(runs, 2).tolist() == [True, True, False]


def test_a_grade_that_overflows_two_to_the_grade_is_refused() -> None:
    with pytest.raises(DataError, match=r"5000.*nDCG\(dcg='exp-log2'\)"):
        value("nDCG(dcg='exp-log2')@10", {"a": 5000}, "a")
    assert value("nDCG@10", {"a": 5000}, "a") == 1


def test_no_measure_gives_no_row() -> None:
    built = build(Case({"q": {"a": 1}}, {"q": {"a": 1.0}}))
    assert compute_measures([], built.runs, built.positions).shape == (0, 1)
