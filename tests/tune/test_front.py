"""Quality against effort: the front is what a look at every pair of points says it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.tune.front import DEPTHS, at_depth, efficient, front
from fusion_bench.tune.problem import Problem
from fusion_bench.tune.search import Study, search
from fusion_bench.tune.splits import Split, hashed_split
from fusion_bench.tuning import Effort, Tuning
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

SETTINGS = Tuning(system="tuned", trials=12, sampler="random", polish=False).settings()


@pytest.fixture(scope="module")
def base() -> Problem:
    return problem(system(blend=BLEND), runs=aligned(60, depth=12))


@pytest.fixture(scope="module")
def split(base: Problem) -> Split:
    return hashed_split(base.runs.groups, base.runs.types, salt="s")


@pytest.fixture(scope="module")
def study(base: Problem, split: Split) -> Study:
    return search(base, split.tune, SETTINGS)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
@settings(max_examples=50, deadline=None)
def test_nothing_on_the_front_is_beaten_and_what_is_off_it_is(
    points: list[tuple[int, int]],
) -> None:
    on = efficient([e for e, _ in points], [v for _, v in points])
    for (effort, value), kept in zip(points, on, strict=True):
        beaten = [
            (e, v) for e, v in points if e <= effort and v >= value and (e, v) != (effort, value)
        ]
        assert kept == (not beaten)


def test_each_depth_has_the_best_of_the_good_trials(
    base: Problem, split: Split, study: Study
) -> None:
    points = front(base, split, study.trials, Effort(price=2.0, seconds=0.01))
    assert [point.depth for point in points] == list(DEPTHS)
    assert [point.candidates for point in points] == [min(depth, 12) for depth in DEPTHS]
    assert points[1].cost == 10.0
    assert points[1].seconds == pytest.approx(0.05)
    for point in points:
        values = Problem(
            at_depth(base.build(point.params), point.depth),
            base.runs,
            base.measure,
            (),
            base.spaces,
        ).values([{}])[0]
        assert point.value == pytest.approx(values[split.tune].mean())
        assert point.held_out == pytest.approx(values[split.held_out].mean())
    assert points[0].efficient, "nothing is cheaper than no reranker"
    beyond = [point for point in points if point.depth > 12]
    assert not any(p.efficient for p in beyond if p.value < points[3].value)
    assert max(p.value for p in points[1:]) > points[0].value, "the rerank list is the best list"


def test_without_a_price_there_is_no_cost(base: Problem, split: Split, study: Study) -> None:
    points = front(base, split, study.trials, Effort())
    assert {(point.cost, point.seconds) for point in points} == {(None, None)}


def test_without_a_reranker_there_is_no_front(split: Split) -> None:
    plain = problem(runs=aligned(60, depth=12))
    study = search(plain, split.tune, SETTINGS.model_copy(update={"trials": 2}))
    assert front(plain, split, study.trials, Effort()) == ()


def test_with_a_depth_for_each_type_there_is_no_front(split: Split) -> None:
    typed = system(blend={"by_query_type": {"a": BLEND, "hybrid": {**BLEND, "depth": 3}}})
    own = problem(typed, runs=aligned(60, depth=12))
    study = search(own, split.tune, SETTINGS.model_copy(update={"trials": 2}))
    assert front(own, split, study.trials, Effort()) == ()


def test_a_depth_without_scores_is_left_out(base: Problem, split: Split, study: Study) -> None:
    rerank = base.runs.rerank.copy()
    ranks = base.runs.rerank_ranks.copy()
    low = base.runs.ranks[0] == 12  # the last of the good source, which fusion rarely puts on top
    rerank[0, low], ranks[0, low] = np.nan, 0
    runs = replace(base.runs, rerank=rerank, rerank_ranks=ranks, _memo={})
    points = front(replace(base, runs=runs), split, study.trials, Effort())
    assert 0 < len(points) < len(DEPTHS)
    assert points[0].depth == 0
