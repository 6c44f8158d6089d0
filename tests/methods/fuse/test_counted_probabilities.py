"""Fusions that count relevant documents, against the slow obvious loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.methods.fuse import Trainable, fusions
from tests.methods.fuse.trained_cases import (
    SOURCES,
    make_judgments,
    make_lists,
    make_runs,
    scores_by_document,
)
from tests.oracle import trained_methods as oracle

CONFIGS: list[dict[str, Any]] = [
    {"method": "prob_fuse", "segments": 3},
    {"method": "prob_fuse", "segments": 25, "unjudged": "skip"},
    {"method": "prob_fuse", "segments": 1},
    {"method": "pos_fuse"},
    {"method": "slide_fuse", "window": 2},
    {"method": "slide_fuse", "window": 0},
    {"method": "slide_fuse", "window": 30},
    {"method": "map_fuse"},
    {"method": "bayes_fuse"},
]


def fit_half(config: dict[str, Any], runs: AlignedRuns) -> tuple[AlignedRuns, Any]:
    """The second half of the queries, and the fusion fitted to the first."""
    fusion = fusions.build(config)
    assert isinstance(fusion, Trainable)
    first = np.arange(len(runs.queries)) < 6
    return runs.subset(~first), fusion.fit(runs.subset(first))


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), relevance=st.integers(1, 2), depth=st.integers(1, 15))
def test_equals_the_slow_loop(
    config: dict[str, Any], seed: int, relevance: int, depth: int
) -> None:
    lists, grades = make_lists(seed, depth=depth), make_judgments(seed)
    view, model = fit_half(config, make_runs(lists, grades, binary_relevance=relevance))
    seen = {query: grades[query] for query in list(grades)[:6]}
    ranked = {name: {q: list(documents) for q, documents in lists[name].items()} for name in lists}
    learn = oracle.TRAINED[config["method"]]
    score = {
        name: learn({q: ranked[name][q] for q in seen}, seen, relevance, config) for name in SOURCES
    }
    for (query, document), value in scores_by_document(view, model.fuse(view)).items():
        expected = 0.0
        for name in SOURCES:
            documents = ranked[name][query]
            place = documents.index(document) + 1 if document in documents else None
            expected += score[name](place, len(documents))
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-14)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), depth=st.integers(1, 60))
def test_seg_fuse_equals_the_slow_loop(seed: int, depth: int) -> None:
    lists = make_lists(seed, depth=depth, documents=70)
    grades = make_judgments(seed, documents=70)
    view, model = fit_half({"method": "seg_fuse"}, make_runs(lists, grades))
    seen = {query: grades[query] for query in list(grades)[:6]}
    for (query, document), value in scores_by_document(view, model.fuse(view)).items():
        expected = 0.0
        for name in SOURCES:
            ranked = lists[name][query]
            if document in ranked:
                low, high = min(ranked.values()), max(ranked.values())
                x = (ranked[document] - low) / (high - low) if high > low else 1.0
                documents = {q: list(lists[name][q]) for q in seen}
                place = list(ranked).index(document) + 1
                chance = oracle.seg_fuse_probability(documents, seen, 1, place)
                expected += chance * (x + 1)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_worked_examples() -> None:
    lists = {"a": {"q1": {"x": 3.0, "y": 2.0, "z": 1.0, "w": 0.5}, "q2": {"u": 2.0, "v": 1.0}}}
    runs = make_runs(lists, {"q1": {"x": 1, "z": 1, "w": 0}, "q2": {"u": 1}})
    only_q1 = np.array([True, False])

    def scores(**config: object) -> dict[str, float]:
        fusion = fusions.build(config)
        assert isinstance(fusion, Trainable)
        view = runs.subset(~only_q1)
        fused = fusion.fit(runs.subset(only_q1)).fuse(view)
        return {d: value for (_, d), value in scores_by_document(view, fused).items()}

    # Two segments of the list of four: x, y | z, w, each with one relevant of two.
    assert scores(method="prob_fuse", segments=2) == {"u": 0.5, "v": 0.25}
    assert scores(method="prob_fuse", segments=2, unjudged="skip") == {"u": 1.0, "v": 0.25}
    assert scores(method="pos_fuse") == {"u": 1.0, "v": 0.0}
    assert scores(method="slide_fuse", window=1) == {"u": 0.5, "v": 0.5}
    assert scores(method="map_fuse") == {"u": (1 + 2 / 3) / 2, "v": (1 + 2 / 3) / 4}
    assert scores(method="seg_fuse") == {"u": 2 * 0.5, "v": 0.5}
    odds = np.log(0.4 / 0.6)
    assert scores(method="bayes_fuse") == pytest.approx({"u": odds, "v": odds})
