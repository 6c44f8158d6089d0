from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.config.parameters import Parameter
from fusion_bench.data.aligned_runs import AlignedRuns, Ties, align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import Qrels, Query, Run, ScoreSpace
from fusion_bench.experiment.system import System
from fusion_bench.tune.line_search.linear_path import line, spot
from fusion_bench.tune.line_search.step_function import Steps, can_step, steps
from fusion_bench.tune.space.objective import Problem
from tests.tune.problems import BLEND, problem, system

V2_BONUS = {"method": "rrf_v2", "bonus": {1: 0.01}}
MEAN = {"method": "weighted_score", "normalize": "min_max"}


def collection(
    seed: int,
    queries: int = 5,
    pool: int = 9,
    places: int = 1,
    *,
    scored: float = 1.0,
    ties: Ties = "trec",
) -> AlignedRuns:
    """Lists with gaps, many ties and several relevant documents; queries of two types."""
    rng = np.random.default_rng(seed)
    rows = [(f"q{q}", f"d{d}") for q in range(queries) for d in range(pool)]

    def run(name: str, role: str, share: float) -> Run:
        kept = [row for row in rows if rng.random() < share] or rows[:1]
        scores = np.round(rng.random(len(kept)), places)
        return Run.from_rows(
            name, [q for q, _ in kept], [d for _, d in kept], scores, roles=frozenset({role})
        )

    runs = [run("good", "question", 0.7), run("bad", "keyword", 0.7)]
    grades = rng.choice([0, 0, 1, 2], size=len(rows))
    qrels = Qrels.from_rows([q for q, _ in rows], [d for _, d in rows], grades)
    types = {f"q{q}": Query(f"q{q}", type="a" if q % 2 else None) for q in range(queries)}
    return align(qrels, runs, rerankers=[run("sharp", "x", scored)], queries=types, ties=ties)


def dimension(one: Problem, path: str) -> Parameter:
    return next(p for p in one.parameters if p.path == path)


def found(one: Problem, path: str) -> Steps:
    parameter = dimension(one, path)
    along = line(one, one.default, parameter)
    assert along is not None
    return steps(along, *parameter.bounds, one.measure)


def values_at(one: Problem, path: str, places: FloatArray) -> FloatArray:
    """By plain evaluation, on the queries that the parameter speaks of."""
    here = spot(one, one.default, dimension(one, path))
    assert here is not None
    trials = [{**one.default, path: float(w)} for w in places]
    return np.asarray(here.problem.values(trials).mean(axis=1))


def assert_exact(one: Problem, path: str) -> None:
    """Inside every stretch wide enough to stand in, evaluation says what the step function says."""
    step = found(one, path)
    width = np.diff(step.edges)
    wide = width > 1e-9
    # Not the very middle: in a place such as w = 1 documents may tie that never do beside it.
    inside = (step.edges[:-1] + 0.4873 * width)[wide]
    assert values_at(one, path, inside) == pytest.approx(step.values[wide], abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    measure=st.sampled_from(
        ["nDCG@3", "nDCG(dcg='exp-log2')@5", "R@2", "P(rel=2)@3", "RR@4", "Success@1"]
    ),
    fusion=st.sampled_from(
        [
            "rrf",
            V2_BONUS,
            {**MEAN, "missing": "zero"},
            {**MEAN, "missing": "skip"},
            {**MEAN, "missing": "min"},
        ]
    ),
    path=st.sampled_from(["fusion.weights.good", "fusion.weights.bad"]),
    top_k=st.sampled_from([None, 2]),
)
def test_along_a_weight_the_steps_are_those_of_evaluation(
    seed: int, measure: str, fusion: object, path: str, top_k: int | None
) -> None:
    runs = collection(seed)
    one = problem(
        system(fusion, top_k=top_k), {"fusion.weights": "own"}, runs=runs, measure=measure
    )
    assert_exact(one, path)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    measure=st.sampled_from(["nDCG@5", "RR@5", "R@4"]),
    missing=st.sampled_from(["zero", "below"]),
    tail=st.sampled_from(["keep", "drop"]),
    retrieval=st.sampled_from(["fused_min_max", "reciprocal_rank"]),
    method=st.sampled_from(
        [
            ("linear", "blend.beta"),
            ("position_aware", "blend.rest"),
            ("position_aware", "blend.tiers.1.value"),
        ]
    ),
)
def test_along_a_share_of_a_blend_too(
    seed: int, measure: str, missing: str, tail: str, retrieval: str, method: tuple[str, str]
) -> None:
    blend = {
        **BLEND,
        "method": method[0],
        "missing": missing,
        "tail": tail,
        "retrieval": retrieval,
        "min_score": 0.1,
    }
    one = problem(system(blend=blend), runs=collection(seed), measure=measure)
    assert_exact(one, method[1])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    measure=st.sampled_from(["nDCG@2", "RR@3", "R(rel=2)@2", "Success@1"]),
    path=st.sampled_from(["fusion.weights.good", "fusion.weights.bad", "fusion.bonus.1.value"]),
    fusion=st.sampled_from(["rrf_v2", "rrf_v2 of 1", "zero", "skip", "min"]),
    space=st.sampled_from(["unit", "logit", "unbounded", "order"]),
    blend=st.sampled_from(
        [
            {"method": "replace"},
            {"method": "linear", "beta": 0.3},
            {"method": "linear", "beta": 0.02, "retrieval": "fused_max_possible"},
        ]
    ),
    missing=st.sampled_from(["below", "zero"]),
    scored=st.sampled_from([1.0, 0.6]),
    tail=st.sampled_from(["keep", "drop"]),
    depth=st.sampled_from([3, 5, 20]),
)
def test_beside_a_blend_the_steps_are_those_of_evaluation(
    seed: int,
    measure: str,
    path: str,
    fusion: str,
    space: ScoreSpace,
    blend: dict[str, object],
    missing: str,
    scored: float,
    tail: str,
    depth: int,
) -> None:
    fused = {
        "rrf_v2": {"method": "rrf_v2"},
        "rrf_v2 of 1": {"method": "rrf_v2", "normalize": "max_possible"},
    }.get(fusion, {**MEAN, "missing": fusion})
    rest = {"reranker": "sharp", "depth": depth, "missing": missing, "tail": tail}
    one = problem(
        system(fused, {**blend, **rest}), runs=collection(seed, scored=scored), measure=measure
    )
    one = replace(one, spaces={"sharp": space})
    known = {parameter.path for parameter in one.parameters}
    if path in known and line(one, one.default, dimension(one, path)) is not None:
        assert_exact(one, path)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    measure=st.sampled_from(["nDCG@3", "RR@4"]),
    method=st.sampled_from([{"method": "rrf"}, {"method": "rrf_v2"}, {**MEAN, "missing": "zero"}]),
    place=st.sampled_from(["weights_by_type.a.good", "weights_by_type.hybrid.keyword"]),
    blend=st.sampled_from(["none", {"method": "replace", "reranker": "sharp", "depth": 4}]),
)
def test_weights_of_a_type_that_add_up_to_1(
    seed: int, measure: str, method: object, place: str, blend: object
) -> None:
    weights = {"a": {"good": 0.5, "bad": 0.5}, "hybrid": {"question": 0.5, "keyword": 0.5}}
    default = system(method, blend, weights_by_type=weights)
    assert_exact(problem(default, runs=collection(seed), measure=measure), place)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    query_type=st.sampled_from(["a", "hybrid"]),
    path=st.sampled_from(["fusion.weights.bad", "fusion.bonus.2.value", "blend.beta"]),
)
def test_numbers_of_a_type_move_that_type_alone(seed: int, query_type: str, path: str) -> None:
    beta = {"by_query_type": {"a": 1.0, "hybrid": 0.4}}
    default = system({"method": "rrf_v2"}, {**BLEND, "beta": beta, "missing": "zero"})
    one = problem(default, runs=collection(seed), measure="nDCG@3")
    one = replace(one, spaces={"sharp": "unit"})
    assert_exact(one, f"by_query_type.{query_type}.{path}")


def test_where_a_blend_is_simple_its_weights_have_lines() -> None:
    """The property above says nothing of lines that are not there."""

    def has(blend: dict[str, object], space: ScoreSpace = "unit", **rest: object) -> bool:
        default = system({"method": "rrf_v2"}, {"reranker": "sharp", "depth": 5, **blend}, **rest)
        runs = collection(1, scored=0.6 if blend.get("missing") else 1.0)
        one = replace(problem(default, runs=runs), spaces={"sharp": space})
        return line(one, one.default, dimension(one, "fusion.weights.bad")) is not None

    linear: dict[str, object] = {"method": "linear", "beta": 0.5}
    spaces: list[ScoreSpace] = ["unit", "unbounded", "order"]
    assert [has({"method": "replace", "tail": "drop"}, space) for space in spaces] == [True] * 3
    assert has({**linear, "beta": 1.0, "tail": "drop"})
    assert has({**linear, "tail": "drop", "missing": "below"})
    assert has({**linear, "tail": "drop", "retrieval": "fused_max_possible"})
    assert has({**linear, "depth": 20}, "unbounded")
    others: tuple[dict[str, object], ...] = (
        {**linear, "tail": "drop", "retrieval": "fused_min_max"},
        {**linear, "tail": "drop", "retrieval": "reciprocal_rank"},
        {"method": "position_aware", "tail": "drop"},
        {"method": "replace"},  # depth 5, and the measure looks at 10
        {"method": "replace", "tail": "drop", "min_score": 0.2},
        {"method": "replace", "depth": 20, "always_rerank": False},
    )
    for other in others:
        assert not has(other), other
    assert not has({**linear, "tail": "drop"}, "unbounded")
    assert not has({"method": "replace", "tail": "drop", "missing": "zero"}, "unbounded")


def test_blocks_of_pairs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = problem(ranges={"fusion.weights": "own"}, runs=collection(3))
    whole = found(one, "fusion.weights.bad")
    monkeypatch.setattr("fusion_bench.tune.line_search.crossings.BLOCK", 20)
    parts = found(one, "fusion.weights.bad")
    assert np.array_equal(whole.edges, parts.edges)
    assert whole.values == pytest.approx(parts.values, abs=1e-14)


def test_a_collection_without_a_relevant_candidate_is_flat() -> None:
    runs = collection(1)
    flat = problem(ranges={"fusion.weights": "own"}, runs=runs, measure="P(rel=3)@3")
    step = found(flat, "fusion.weights.bad")
    assert step.values.tolist() == [0.0]


@pytest.mark.parametrize(
    ("default", "path"),
    [
        (system({"method": "rrf"}, BLEND), "fusion.weights.good"),  # nDCG@10 looks deeper than 5
        (system(min_relevance=0.01), "fusion.weights.good"),
        (system(), "fusion.k"),
        (system({"method": "rrf", "weights": {"good": 0}}), "fusion.weights.bad"),
        (system({"method": "rrf_v2"}), "fusion.bonus.1.ranks"),
        (system({"method": "rrf_v2"}), "fusion.k"),
    ],
)
def test_where_scores_are_no_such_lines_there_is_none(default: System, path: str) -> None:
    one = problem(default, runs=collection(1))
    assert line(one, one.default, dimension(one, path)) is None


def test_a_step_wide_has_no_line() -> None:
    ranges = {"fusion.weights.bad": {"low": 0, "high": 1, "step": 0.1}}
    one = problem(ranges=ranges, runs=collection(1))
    assert line(one, one.default, one.parameters[0]) is None


def test_which_measures_can_step() -> None:
    names = [
        "nDCG@10",
        "RR@10",
        "R@5",
        "P@5",
        "Success@1",
        "nDCG",
        "AP@100",
        "Judged@10",
        "nDCG(judged_only=True)@10",
    ]
    found = [can_step(problem(measure=name).measure) for name in names]
    assert found == [True] * 5 + [False] * 4


def test_the_best_stretch_is_where_we_are_or_the_widest_and_never_a_sliver() -> None:
    edges = np.array([0.0, 1.0, 2.0, 4.0, 4.0 + 1e-9, 5.0])
    step = Steps(edges, np.array([0.5, 0.3, 0.5, 0.9, 0.2]))
    assert step.best(0.5) == (0.5, 0.5)
    assert step.best(1.5) == (3.0, 0.5)
    merged = Steps(np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.5]))
    assert merged.best(5.0) == (1.0, 0.5)


def test_a_method_that_says_nothing_of_its_form_has_no_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fusion_bench.fuse.rrf.RRF.compiled", lambda *_: None)
    one = problem(ranges={"fusion.weights": "own"}, runs=collection(1))
    assert line(one, one.default, one.parameters[0]) is None
    point = problem(ranges={"fusion.weights.bad": {"low": 1, "high": 1}}, runs=collection(1))
    assert line(point, point.default, point.parameters[0]) is None
