"""Entities named in texts, and the walk that begins there: what both built-in collections share."""

import importlib.util
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError


def load_script() -> ModuleType:
    path = Path(__file__).parents[3] / "datasets" / "entity_walk.py"
    spec = importlib.util.spec_from_file_location("entity_walk", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


_SCRIPT = load_script()
EntityLinker, Graph = _SCRIPT.EntityLinker, _SCRIPT.Graph
personalized_pagerank = _SCRIPT.personalized_pagerank

NAMES = {
    "t1": "Scheduled Task",
    "t2": "Process Discovery",
    "t3": "Account Discovery",
    "t4": "The of",
}


def weight(holders: int) -> float:
    return math.log(1 + len(NAMES) / holders)


def test_coverage_and_seeds_are_shares_of_the_weight_of_a_name() -> None:
    [row] = EntityLinker(NAMES).coverage(["discovery of accounts and ACCOUNTS"])
    known, rare = weight(2), weight(1)
    assert row.tolist() == pytest.approx([0, known / (known + rare), 1, 0])
    linker = EntityLinker(NAMES, threshold=0.4, sharpness=3)
    whole = weight(1) + weight(2)
    partial = (weight(2) / whole) ** 3 * whole
    [row] = linker.seeds(["account discovery"])
    assert row[2] == pytest.approx(whole)
    assert row[1] == (pytest.approx(partial) if weight(2) / whole >= 0.4 else 0)
    assert linker.entities == ("t1", "t2", "t3", "t4")
    assert EntityLinker(NAMES, threshold=0.5).seeds(["task"])[0, 0] > 0
    assert EntityLinker(NAMES, threshold=0.51).seeds(["task"])[0, 0] == 0
    assert EntityLinker(NAMES).seeds([]).shape == (0, 4)


@pytest.mark.parametrize("text", ["", "the of", "nothing known"])
def test_a_text_that_names_nothing_has_no_seed(text: str) -> None:
    assert not EntityLinker(NAMES).seeds([text]).any()


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


def test_walks_by_nearness_weight_tolerance_and_without_edges() -> None:
    chain = [("n0", "n1", 1.0), ("n1", "n2", 1.0), ("n2", "n3", 1.0), ("n4", "n5", 1.0)]
    [row] = personalized_pagerank(Graph.from_edges(NODES, chain), np.eye(7)[:1], damping=0.3)
    assert row[0] > row[1] > row[2] > row[3] > 0
    assert row[4:].tolist() == [0, 0, 0]
    star = Graph.from_edges(NODES, [("n0", "n1", 3.0), ("n0", "n2", 1.0)])
    [row] = personalized_pagerank(star, np.eye(7)[:1])
    assert row[1] == pytest.approx(3 * row[2])
    star = Graph.from_edges(NODES, [("n0", "n1", 3.0)])
    [row] = personalized_pagerank(star, np.eye(7)[:1], tolerance=3.0)
    assert row.tolist() == [1, 0, 0, 0, 0, 0, 0]
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
