from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.models.retrievers.graph import Graph, personalized_pagerank

Edge = tuple[str, str, float]
NODES = [f"n{i}" for i in range(7)]

edges = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(NODES), st.floats(0.01, 10)), max_size=15
)
seeds = st.lists(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=7, max_size=7), min_size=1, max_size=4
)
dampings = st.sampled_from([0.0, 0.3, 0.85, 0.95])


def oracle(given_edges: Sequence[Edge], start: FloatArray, damping: float) -> FloatArray:
    """Solve x = damping·(P x + lost·s) + (1 − damping)·s, one query at a time, densely."""
    size = len(NODES)
    adjacency = np.zeros((size, size))
    for one, other, weight in given_edges:
        adjacency[NODES.index(one), NODES.index(other)] += weight
        adjacency[NODES.index(other), NODES.index(one)] += weight
    result = np.zeros_like(start)
    for row, weights in zip(result, start, strict=True):
        if weights.sum() == 0:
            continue
        seed = weights / weights.sum()
        step = np.zeros((size, size))
        for node in range(size):
            out = adjacency[:, node].sum()
            step[:, node] = adjacency[:, node] / out if out > 0 else seed
        row[:] = np.linalg.solve(np.eye(size) - damping * step, (1 - damping) * seed)
    return result


@given(edges, seeds, dampings)
def test_the_walk_ends_where_linear_algebra_says(
    given_edges: list[Edge], weights: list[list[float]], damping: float
) -> None:
    start = np.array(weights)
    graph = Graph.from_edges(NODES, given_edges)
    walked = personalized_pagerank(graph, start, damping=damping, tolerance=1e-10)
    wanted = oracle(given_edges, start, damping)
    assert np.abs(walked - wanted).sum(axis=1).max() <= 2e-10
    np.testing.assert_allclose(walked.sum(axis=1), (start.sum(axis=1) > 0).astype(float))


@given(edges, seeds)
def test_no_query_depends_on_another(given_edges: list[Edge], weights: list[list[float]]) -> None:
    start = np.array(weights)
    graph = Graph.from_edges(NODES, given_edges)
    together = personalized_pagerank(graph, start)
    alone = [personalized_pagerank(graph, row[None])[0] for row in start]
    np.testing.assert_array_equal(together, alone)


def test_what_is_near_the_seed_scores_higher_than_what_is_far() -> None:
    chain = [("n0", "n1", 1.0), ("n1", "n2", 1.0), ("n2", "n3", 1.0), ("n4", "n5", 1.0)]
    [row] = personalized_pagerank(Graph.from_edges(NODES, chain), np.eye(7)[:1], damping=0.3)
    assert row[0] > row[1] > row[2] > row[3] > 0
    assert row[4:].tolist() == [0, 0, 0]


def test_heavier_edges_are_walked_more_often() -> None:
    star = Graph.from_edges(NODES, [("n0", "n1", 3.0), ("n0", "n2", 1.0)])
    [row] = personalized_pagerank(star, np.eye(7)[:1])
    assert row[1] == pytest.approx(3 * row[2])


def test_a_loose_tolerance_takes_no_step() -> None:
    star = Graph.from_edges(NODES, [("n0", "n1", 3.0)])
    [row] = personalized_pagerank(star, np.eye(7)[:1], tolerance=3.0)
    assert row.tolist() == [1, 0, 0, 0, 0, 0, 0]


def test_a_graph_without_edges_keeps_the_seeds() -> None:
    [row] = personalized_pagerank(Graph.from_edges(NODES, []), np.full((1, 7), 2.0))
    np.testing.assert_allclose(row, 1 / 7)


@pytest.mark.parametrize(
    ("nodes", "edge", "message"),
    [
        *((NODES, ("n0", "n1", w), "not positive") for w in (0.0, -1.0, math.nan, math.inf)),
        *((NODES, (*ends, 1.0), "both ends") for ends in (("n0", "x"), ("x", "n0"))),
        (["a", "b", "a"], ("a", "b", 1.0), "1 of 3"),
    ],
)
def test_graphs_that_are_none(nodes: list[str], edge: Edge, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Graph.from_edges(nodes, [edge])


@pytest.mark.parametrize(
    ("start", "options", "message"),
    [
        *((np.ones((1, 7)), {"damping": d}, "damping") for d in (-0.1, 1.0, math.nan)),
        *((np.ones((1, 7)), {"tolerance": t}, "tolerance") for t in (0.0, -1.0, math.nan)),
        *((bad, {}, "need") for bad in (np.ones(7), np.ones((1, 6)))),
        *((np.full((1, 7), value), {}, "seed weight") for value in (-1.0, math.nan, math.inf)),
    ],
)
def test_walks_that_are_none(start: FloatArray, options: dict[str, float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        personalized_pagerank(Graph.from_edges(NODES, []), start, **options)
