"""The engine gives the values of the plain path, to the last bit, or says that it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench import engine, measure
from fusion_bench.align import AlignedRuns, align
from fusion_bench.engine import Refusal, count, layout, scoring
from fusion_bench.fuse import Fusion, fusions
from fusion_bench.measure import parse_measure
from fusion_bench.order import FloatArray, positions
from fusion_bench.records import Qrels, Run

NAMES = (
    *("nDCG@1", "nDCG@3", "nDCG", "nDCG(dcg='exp-log2')@5", "RR@2", "RR", "RR(rel=2)", "R@1"),
    *("R(rel=2)@4", "AP@2", "AP", "P@2", "P(rel=3)@5", "Success@1", "Success(rel=2)@3"),
)
MEASURES = [parse_measure(name) for name in NAMES]
SOURCES = ("bm25", "dense", "hyde")
ROLES = {"bm25": {"keyword"}, "dense": {"question", "semantic"}, "hyde": {"hyde"}}
DOCUMENTS = [f"d{i:02}" for i in range(24)]
EXAMPLES = settings(max_examples=150, deadline=None)


def plain(
    fusion: Fusion, view: AlignedRuns, measures: list[measure.Measure], top_k: int | None = None
) -> FloatArray:
    """The slow way, written out."""
    placed = positions(fusion.fuse(view), view.offsets)
    if top_k is not None:
        placed = np.where(placed > top_k, 0, placed)
    return measure.evaluate(measures, view, placed)


def assert_same(
    trials: list[Fusion], view: AlignedRuns, *, top_k: list[int | None] | None = None
) -> None:
    """One at a time and all at once."""
    cuts = top_k or [None] * len(trials)
    together = engine.evaluate(trials, view, MEASURES, top_k=top_k)
    for fusion, cut, found in zip(trials, cuts, together, strict=True):
        expected = plain(fusion, view, MEASURES, cut)
        (alone,) = engine.evaluate([fusion], view, MEASURES, top_k=[cut])
        for values in (found, alone):
            if isinstance(values, Refusal):
                assert values.reason == "weights beyond the range of the engine"
                assert fusion.method == "weighted_score"
            else:
                assert values.tobytes() == expected.tobytes()


@st.composite
def views(draw: st.DrawFn) -> AlignedRuns:
    """Up to three lists, short or empty, that share documents; several grades."""
    used = draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=3, unique=True))
    used = sorted({*used, "dense"}, key=draw(st.permutations(SOURCES)).index)
    pool = DOCUMENTS[: draw(st.integers(1, len(DOCUMENTS)))]
    queries = [f"q{i}" for i in range(draw(st.integers(1, 4)))]
    grade = st.integers(-1, 3)
    judged = {
        query: draw(st.dictionaries(st.sampled_from(pool), grade, min_size=1)) for query in queries
    }
    score = st.integers(-2, 3).map(float) | st.floats(-5, 5)
    lists = {
        name: {
            query: draw(st.dictionaries(st.sampled_from(pool), score, max_size=12))
            for query in queries
        }
        for name in used
    }
    runs = [
        Run.from_dict(
            name,
            {q: found for q, found in (lists[name] | {"common": {"d00": 1.0}}).items() if found},
            roles=frozenset(ROLES[name]),
        )
        for name in used
    ]
    qrels = Qrels.from_dict(judged | {"common": {"d00": 1}})
    return align(qrels, runs, ties=draw(st.sampled_from(["trec", "first_seen"])))


WEIGHTS = st.one_of(
    st.just(1.0),
    st.integers(1, 3).map(float),
    st.floats(1e-3, 10),
    st.sampled_from([1e-14, 1e-11, 1e-9, 1e9, 1e14, 1e-200, 1e200]),
)
BONUSES = st.dictionaries(
    st.integers(1, 6), st.sampled_from([0.0, 0.01, 0.02, 0.05, 1.0, 1e9]), max_size=3
)
KS = st.sampled_from([0, 1, 2, 60, 1000]) | st.floats(0, 1000)


@st.composite
def configs(draw: st.DrawFn, sources: tuple[str, ...], method: str) -> dict[str, Any]:
    config: dict[str, Any] = {"method": method, "weights": {s: draw(WEIGHTS) for s in sources}}
    if method == "weighted_score":
        config["normalize"] = draw(st.sampled_from(["none", "min_max", "z_score", "rank"]))
        config["missing"] = draw(st.sampled_from(["skip", "zero", "min"]))
        return config
    config["k"] = draw(KS)
    config["normalize"] = draw(st.sampled_from(["none", "max_possible", "three_lists"]))
    if method == "rrf_v2":
        config["bonus"] = draw(BONUSES)
        config["bonus_scope"] = draw(st.sampled_from(["best_rank", "per_source", "question"]))
        config["bonus_unit"] = draw(st.sampled_from(["absolute", "relative"]))
    return config


@pytest.mark.parametrize("method", ["rrf", "rrf_v2", "weighted_score"])
def test_any_weights_on_any_lists(method: str) -> None:
    @EXAMPLES
    @given(st.data())
    def same(data: st.DataObject) -> None:
        view = data.draw(views())
        every = st.lists(configs(view.sources, method), min_size=1, max_size=10)
        trials = [fusions.build(config) for config in data.draw(every)]
        cut = st.lists(st.none() | st.integers(1, 9), min_size=len(trials), max_size=len(trials))
        assert_same(trials, view, top_k=data.draw(cut))

    same()


@pytest.mark.parametrize("method", ["rrf", "rrf_v2", "weighted_score"])
def test_any_limits_of_the_engine(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted queries, blocks of few pairs, doubts settled at once, one lane: the same values."""

    @EXAMPLES
    @given(st.data())
    def same(data: st.DataObject) -> None:
        for module, name, values in (
            (layout, "MOST_COUNTED", (0, 1, 2, 24)),
            (layout, "BLOCK_PAIRS", (1, 5, 24_000)),
            (layout, "CHUNK_PAIRS", (1, 7, 500_000)),
            (layout, "MOST_CODES", (1, 2**62)),
            (count, "MOST_DOUBTS", (0, 3, 250_000)),
            (count, "BYTE_ROWS", (1, 2, 255)),
            (scoring, "JOINED", (0, 1 << 14)),
            (scoring, "MOST_BYTES", (1, 1 << 24)),
            (scoring, "MEAN_ROWS", (1, 3, 1 << 13)),
        ):
            monkeypatch.setattr(module, name, data.draw(st.sampled_from(values)))
        view = data.draw(views())
        every = st.lists(configs(view.sources, method), min_size=1, max_size=3)
        assert_same([fusions.build(config) for config in data.draw(every)], view)

    same()
