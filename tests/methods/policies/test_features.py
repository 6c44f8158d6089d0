"""Features against the obvious loop, and worked examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError
from fusion_bench.methods.policies import QueryFeatures
from fusion_bench.methods.policies._base import entropy, margin, variation
from fusion_bench.methods.policies.rules import _relative_gap as relative_gap

Lists = dict[str, dict[str, float]]
NAN = float("nan")
DOCUMENTS = [f"d{n}" for n in range(8)]


def features_of(*lists: Lists, queries: dict[str, Query] | None = None) -> QueryFeatures:
    """The features of lists, each query → document → score."""
    names = sorted({query for source in lists for query in source})
    runs = align(
        Qrels.from_dict({query: {"x": 1} for query in names}),
        [Run.from_dict(f"s{n}", source) for n, source in enumerate(lists)],
        queries=queries,
    )

    def refuse() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        raise AssertionError("this feature needs no fused list")

    return QueryFeatures(runs, np.ones(len(lists)), refuse)


def ranked(source: dict[str, float], depth: int) -> list[str]:
    """Documents by score, ties by the greater id first, as runs are read."""
    return sorted(source, key=lambda d: (source[d], d), reverse=True)[:depth]


scores = st.integers(-5, 5).map(float)
one_list = st.dictionaries(st.sampled_from(DOCUMENTS), scores, min_size=1)
one_source = st.fixed_dictionaries({"q1": one_list}, optional={"q2": one_list})


@given(first=one_source, second=one_source, depth=st.integers(1, 5))
def test_overlaps_are_those_of_the_slow_loop(first: Lists, second: Lists, depth: int) -> None:
    features = features_of(first, second)
    overlaps, biased = features.overlaps(depth), features.rank_overlaps(depth)
    for q, query in enumerate(features.runs.queries):
        a, b = (ranked(source.get(query, {}), depth) for source in (first, second))
        assert overlaps[q] == pytest.approx(len({*a} & {*b}) / max(len(a), len(b), 1))
        weights = [0.9**d for d in range(depth)]
        shared = [len({*a[: d + 1]} & {*b[: d + 1]}) / (d + 1) for d in range(depth)]
        expected = sum(w * s for w, s in zip(weights, shared, strict=True)) / sum(weights)
        assert biased[q] == pytest.approx(expected)


@given(source=one_source, depth=st.integers(2, 6))
def test_features_of_scores_are_those_of_the_slow_loop(source: Lists, depth: int) -> None:
    features = features_of(source)
    for q, query in enumerate(features.runs.queries):
        top = [source[query][d] for d in ranked(source.get(query, {}), depth)]
        assert features.lengths[0, q] == len(source.get(query, {}))
        assert features.entropies(depth)[0, q] == pytest.approx(slow_entropy(top))
        mean = sum(top) / len(top)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in top) / len(top))
        assert features.variations(depth)[0, q] == pytest.approx(
            deviation / abs(mean) if mean else 0.0
        )
        expected = top[0] - sum(top[1:]) / (len(top) - 1) if len(top) > 1 else 0.0
        assert features.margins(depth - 1)[0, q] == pytest.approx(expected)


def slow_entropy(top: list[float]) -> float:
    if len(top) == 1:
        return 0.0
    if min(top) == max(top):
        return 1.0
    scaled = [(x - min(top)) / (max(top) - min(top)) for x in top]
    shares = [x / sum(scaled) for x in scaled if x > 0]
    return -sum(p * math.log(p) for p in shares) / math.log(len(top))


@pytest.mark.parametrize(
    ("function", "top", "expected"),
    [
        (entropy, [NAN, NAN], 1.0),
        (entropy, [3.0, NAN], 0.0),
        (entropy, [3.0, 3.0], 1.0),
        (entropy, [2.0, 2.0, 0.0, NAN], math.log(2) / math.log(3)),
        (margin, [NAN, NAN], 0.0),
        (margin, [NAN, 0.6], 0.0),
        (margin, [0.8, NAN], 0.0),
        (margin, [0.8, 0.6, 0.4, NAN], 0.3),
        (variation, [NAN, NAN], 0.0),
        (variation, [3.0, 1.0], 0.5),
        (variation, [1.0, -1.0], 0.0),
        (relative_gap, [NAN, NAN], 1.0),
        (relative_gap, [1.0, NAN], 1.0),
        (relative_gap, [2.0, 2.0], 0.0),
        (relative_gap, [8.0, 4.0, 2.0, 0.0], 0.5),
    ],
)
def test_worked_examples(function: object, top: list[float], expected: float) -> None:
    assert callable(function)
    assert float(function(np.array(top))) == pytest.approx(expected)


def test_a_single_source_agrees_with_itself() -> None:
    features = features_of({"q1": {"d1": 1.0}})
    assert features.overlaps().tolist() == [1.0]
    assert features.rank_overlaps().tolist() == [1.0]


def test_words_need_texts() -> None:
    lists = {"q1": {"d1": 1.0}, "q2": {"d1": 1.0}}
    known = {"q1": Query("q1", text="two words")}
    with pytest.raises(AlignmentError, match=r"'q2'.*'text'"):
        features_of(lists, queries=known).count_words()
    known["q2"] = Query("q2", text="")
    features = features_of(lists, queries=known)
    assert features.count_words().tolist() == [2.0, 0.0]
    assert features.runs.between(1, 2).words == (0,)
    assert features.runs.subset(np.array([True, False])).words == (2,)
