"""Values of measures: gains, ties, bounds and filled grades."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.measures import (
    collect_returned,
    compute_measures,
    no_relevant,
    parse_measure,
    tie_sensitivity,
)
from fusion_bench.measures._base import is_bounded
from tests.examples import examples
from tests.measures.cases import COMMON, Built, Case, all_measures, build, cases
from tests.oracle.filled_measures import Grades, filled_value
from tests.oracle.measures import measure_value, orders


def value(name: str, judgments: dict[str, int], *ranked: str) -> float:
    """One measure of one list; the list is shown best first."""
    scores: dict[str, float | None] = {d: -float(i) for i, d in enumerate(ranked)}
    built = build(Case({"q": judgments}, {"q": scores}))
    return float(compute_measures([parse_measure(name)], built.runs, built.positions)[0, 0])


@given(cases())
def test_every_measure_is_what_the_obvious_loop_finds(case: Case) -> None:
    built = build(case)
    measures = all_measures()
    found = compute_measures(measures, built.runs, built.positions)
    for m, measure in enumerate(measures):
        for q, query in enumerate(built.runs.queries):
            expected = measure_value(measure, case.ranked(query), case.judgments[query])
            assert found[m, q] == pytest.approx(expected, abs=1e-12), (measure.name, query)


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
        ("ERR", 1 / 16 / 2 + 15 / 16 * 7 / 16 / 4),
        ("ERR@3", 1 / 16 / 2),
        ("ERR(max_grade=3)@2", 1 / 8 / 2),
        ("RBP(p=0.5)", 0.5 * (0.5 + 3 * 0.125)),
        ("RBP(p=0.5,rel=2)@4", 0.5 * 0.125),
    ],
)
def test_worked_example(name: str, expected: float) -> None:
    found = value(name, {"a": 1, "b": 0, "c": 3}, "unjudged", "a", "b", "c")
    assert found == pytest.approx(expected, abs=1e-15)


def test_what_negative_grades_and_missing_documents_count() -> None:
    grades = {"spam": -2, "good": 1}
    assert value("Judged@2", grades, "spam", "good") == 1
    assert value("RR", grades, "spam", "good") == 1 / 2
    assert value("RR(judged_only=True)", grades, "spam", "good") == 1
    assert value("R@10", {"a": 1, "b": 1, "c": 2}, "a") == pytest.approx(1 / 3)
    assert value("AP", {"a": 1, "b": 1, "c": 2}, "a") == pytest.approx(1 / 3)
    assert value("nDCG@1", {"a": 1, "b": 1, "c": 2}, "a") == pytest.approx(1 / 2)


def test_queries_and_measures_without_a_bound_are_known() -> None:
    qrels = Qrels.from_dict({"q1": {"a": 0, "b": -1}, "q2": {"a": 1}, "q3": {"a": 3}})
    runs = align(qrels, [Run.from_dict("r", {"q1": {"a": 1.0}})])
    assert no_relevant(runs).tolist() == [True, False, False]
    assert no_relevant(runs, 2).tolist() == [True, True, False]
    assert value("RBP", {"a": 9}, "a") == pytest.approx(1.8)
    assert not is_bounded("RBP(p=0.5)@10")
    assert is_bounded("RBP(rel=2)")


def test_grades_beyond_a_scale_are_refused() -> None:
    with pytest.raises(DataError, match=r"5000.*nDCG\(dcg='exp-log2'\)"):
        value("nDCG(dcg='exp-log2')@10", {"a": 5000}, "a")
    assert value("nDCG@10", {"a": 5000}, "a") == 1
    with pytest.raises(DataError, match=r"grade 5 .*max_grade=5"):
        value("ERR@10", {"a": 5}, "a")
    assert value("ERR(max_grade=5)@10", {"a": 5}, "a") == 31 / 32


#: ir_measures 0.4.3 with cwl_eval 1.0.12 (``rel``) and trectools 0.0.50.
PROVIDERS = {
    "RBP(rel=1)": 0.44191999999999987,
    "RBP(p=0.5,rel=2)": 0.53125,
    "RBP(p=0.99,rel=1)": 0.029507233964097886,
    "RBP": 0.9238399999999998,
    "RBP(p=0.5)@2": 1.75,
}


@pytest.mark.parametrize(("name", "expected"), PROVIDERS.items())
def test_rbp_is_that_of_the_providers_of_ir_measures(name: str, expected: float) -> None:
    found = value(name, {"a": 3, "b": 1, "c": 0, "e": 2, "z": 1}, *"abcde")
    assert found == pytest.approx(expected, rel=0, abs=1e-12)


def test_no_measure_gives_no_row_and_results_are_frozen() -> None:
    built = build(Case({"q": {"a": 1}}, {"q": {"a": 1.0}}))
    assert compute_measures([], built.runs, built.positions).shape == (0, 1)
    found = tie_sensitivity([parse_measure("RR")], built.runs, built.positions, built.firsts)
    for array in (found.affected, found.minimum, found.maximum, found.expected):
        assert not array.flags.writeable


# ── ties


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


@given(cases(), st.one_of(st.none(), st.integers(1, 7)))
def test_ties_of_a_query_never_depend_on_the_others(case: Case, limit: int | None) -> None:
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


def test_large_groups_have_stable_sums() -> None:
    ids = [f"d{i:04}" for i in range(2000)]
    scores: dict[str, float | None] = dict.fromkeys(ids, 1.0)
    built = build(Case({"q": {ids[7]: 1}}, {"q": scores}))
    measures = [parse_measure(name) for name in ("RR", "AP", "RR(judged_only=True)", "Success@20")]
    found = tie_sensitivity(measures, built.runs, built.positions, built.firsts, limit=1000)
    harmonic = sum(1 / i for i in range(1, 1001)) / 2000
    assert found.expected[:, 0] == pytest.approx([harmonic, harmonic, 0.5, 0.01], rel=1e-12)


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


def test_a_measure_of_ir_measures_has_extremes_but_no_expectation() -> None:
    case = Case(
        {"q": {"a": 1, "b": 0}, "r": {"a": 1}},
        {"q": {"a": 1.0, "b": 1.0, "c": 1.0}, "r": {"a": 2.0, "b": 1.0}},
    )
    built = build(case)
    measures = [parse_measure("Rprec"), parse_measure("RR")]
    found = tie_sensitivity(measures, built.runs, built.positions, built.firsts)
    assert found.affected.tolist() == [1, 1]
    assert found.minimum[0].tolist() == [0, 1]
    assert found.maximum[0].tolist() == [1, 1]
    assert math.isnan(found.expected[0, 0])
    assert found.expected[0, 1] == 1
    unjudged = replace(built.runs, qrels=None)
    with pytest.raises(ConfigError, match="pass qrels"):
        tie_sensitivity(measures, unjudged, built.positions, built.firsts)


# ── values where unjudged documents have the mean gain of judged ones at their rank


WITH_FORMULA = [name for name in COMMON if not name.startswith("Judged")]


def filled(built: Built, name: str) -> FloatArray | None:
    every = np.arange(len(built.runs.queries))
    returned = collect_returned(built.runs, [(every, built.runs, built.positions)], cutoff=None)
    return parse_measure(name).filled_values(returned)


def grades_of(case: Case, query: str, cutoff: int | None) -> Grades:
    """Negative grades are pooled, but not judged."""
    judgments = case.judgments[query]
    known = {document: grade for document, grade in judgments.items() if grade >= 0}
    return [known.get(document) for document in case.ranked(query)][:cutoff]


@settings(max_examples=examples(25))
@given(cases(documents=5))
def test_filled_values_are_expected_ones(case: Case) -> None:
    built = build(case)
    for name in WITH_FORMULA:
        measure, values = parse_measure(name), filled(built, name)
        assert values is not None
        lists = [grades_of(case, query, measure.cutoff) for query in built.runs.queries]
        for grades, value, query in zip(lists, values, built.runs.queries, strict=True):
            expected = filled_value(measure, grades, lists, case.judgments[query])
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True), (name, query)


@settings(max_examples=examples(25))
@given(cases(lowest_grade=0))
def test_without_unjudged_documents_filled_values_are_the_plain_ones(case: Case) -> None:
    judgments = {
        query: case.judgments[query] | dict.fromkeys(case.scores.get(query, {}), 0)
        for query in case.judgments
    }
    built = build(Case(judgments, case.scores))
    for name in WITH_FORMULA:
        values = compute_measures([parse_measure(name)], built.runs, built.positions)[0]
        assert filled(built, name) == pytest.approx(values, abs=1e-12)


def test_what_cannot_be_filled() -> None:
    built = build(Case({"q": {"a": 1}}, {"q": {"a": 1.0}}))
    assert filled(built, "Judged@10") is None
    assert filled(built, "Rprec") is None
    built = build(Case({"q": {"a": 1}, "r": {"a": 1}}, {"q": {"x": 2.0, "y": 1.0}}))
    values = filled(built, "nDCG@10")
    assert values is not None
    assert np.isnan(values[0])
    assert values[1] == 0  # an empty list has nothing to fill


# ── which measures are known to lie in [0, 1]


@pytest.mark.parametrize("name", ["nDCG@10", "nDCG(dcg='exp-log2')@10", "RR(rel=2)@10", "AP"])
def test_known(name: str) -> None:
    assert is_bounded(name)


@pytest.mark.parametrize("name", ["NumRet@10", "NumRelRet", "plugin:Measure@10", "nDCGX"])
def test_unknown(name: str) -> None:
    assert not is_bounded(name)
