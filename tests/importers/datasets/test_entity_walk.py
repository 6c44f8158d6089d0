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
