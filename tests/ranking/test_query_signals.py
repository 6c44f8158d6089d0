"""Signals of a system, and runs without the relevant documents of some queries."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import UnknownNameError
from fusion_bench.experiment.system import System
from fusion_bench.ranking.query_signals import answered_queries, compute_signals, mask_relevant

BM25 = {"q1": {"a": 9.0, "b": 7.0, "c": 1.0}, "q2": {"a": 4.0}}
DENSE = {"q1": {"b": 0.8, "d": 0.2}, "q2": {"a": 0.5, "b": 0.25}}
RERANK = {"q1": {"a": 2.0, "b": -3.0, "d": 5.0}, "q2": {"b": 1.5}}
QRELS = {"q1": {"a": 1, "d": 1, "c": 0}, "q2": {"b": 2}}


def make_runs(space: str = "unbounded") -> AlignedRuns:
    runs = [Run.from_dict("bm25", BM25), Run.from_dict("dense", DENSE)]
    reranker = Run.from_dict("rr", RERANK)
    spaces = {"rr": space}
    return align(Qrels.from_dict(QRELS), runs, rerankers=[reranker], spaces=spaces)  # type: ignore[arg-type]


BLEND = {"method": "replace", "reranker": "rr", "depth": 2, "missing": "below"}


def test_each_signal_is_the_number_that_its_name_says() -> None:
    signals = compute_signals(System("s", ["bm25", "dense"], "rrf", BLEND), make_runs())
    assert signals["top:bm25"].tolist() == [9.0, 4.0]
    assert signals["top:dense"].tolist() == [0.8, 0.5]
    best, second = 1 / 61 + 1 / 62, 1 / 61  # b is second and first, a first in one list
    assert signals["fused top"][0] == pytest.approx(best)
    assert signals["fused margin"][0] == pytest.approx(best - second)
    assert signals["agreement"].tolist() == [0.1, 0.1]
    # The first two of q1 are b and a: d, with the greatest rerank score, is not reordered.
    assert signals["rerank top"].tolist() == [2.0, 1.5]


def test_one_result_has_no_margin_and_one_list_no_agreement() -> None:
    signals = compute_signals(System("s", ["bm25"]), make_runs())
    assert math.isnan(signals["fused margin"][1])
    assert "agreement" not in signals
    assert "rerank top" not in signals


def test_an_order_alone_is_no_signal() -> None:
    system = System("s", ["bm25", "dense"], "rrf", BLEND)
    assert "rerank top" not in compute_signals(system, make_runs("order"))


def test_scores_that_follow_from_ranks_are_no_signal() -> None:
    by_rank = {q: {d: 1 / n for n, d in enumerate(docs, 1)} for q, docs in BM25.items()}
    lists = [Run.from_dict("bm25", by_rank), Run.from_dict("dense", DENSE)]
    signals = compute_signals(
        System("s", ["bm25", "dense"], "rrf"), align(Qrels.from_dict(QRELS), lists)
    )
    assert "top:bm25" not in signals
    assert "top:dense" in signals


def test_a_masked_query_loses_its_relevant_documents_everywhere() -> None:
    masked = mask_relevant(make_runs(), np.array([True, False]))
    documents = [masked.vocabulary[code] for code in masked.documents.tolist()]
    first = [d for d, q in zip(documents, masked.query_index.tolist(), strict=True) if q == 0]
    assert sorted(first) == ["b", "c"]
    ranks = dict(zip(first, masked.ranks[0][masked.query_index == 0].tolist(), strict=True))
    assert ranks == {"b": 1, "c": 2}
    signals = compute_signals(System("s", ["bm25", "dense"], "rrf", BLEND), masked)
    assert signals["top:bm25"].tolist() == [7.0, 4.0]
    assert signals["rerank top"].tolist() == [-3.0, 1.5]


def test_scores_by_rank_do_not_show_the_mask() -> None:
    by_rank = {q: {d: 10.0 - n for n, d in enumerate(docs, 1)} for q, docs in BM25.items()}
    runs = align(Qrels.from_dict(QRELS), [Run.from_dict("bm25", by_rank)])
    masked = mask_relevant(runs, np.array([True, False]))
    assert sorted(masked.scores[0].tolist(), reverse=True) == [9.0, 9.0, 8.0]


@given(st.data())
def test_without_a_masked_query_nothing_changes(data: st.DataObject) -> None:
    documents = st.dictionaries(st.sampled_from("abcdef"), st.floats(-5, 5), min_size=1)
    lists = [
        Run.from_dict(name, {q: data.draw(documents) for q in ("q1", "q2")})
        for name in ("bm25", "dense")
    ]
    runs = align(Qrels.from_dict(QRELS), lists)
    same = mask_relevant(runs, np.array([False, False]))
    for name in ("offsets", "documents", "ranks", "scores", "rerank"):
        np.testing.assert_array_equal(getattr(same, name), getattr(runs, name))


@pytest.mark.parametrize(
    ("signal", "above", "answered"),
    [
        ("top:bm25", 4.0, [True, False]),  # equal is not above
        ("fused margin", -1.0, [True, False]),  # a query with one result has no margin
        ("top:dense", 0.4, [True, True]),
    ],
)
def test_a_query_is_answered_above_the_threshold(
    signal: str, above: float, answered: list[bool]
) -> None:
    sources = ["bm25"] if signal == "fused margin" else ["bm25", "dense"]
    system = System("s", sources, abstain={"signal": signal, "above": above})
    assert answered_queries(system, make_runs()).tolist() == answered


def test_a_system_without_a_threshold_answers_every_query() -> None:
    assert answered_queries(System("s", ["bm25"]), make_runs()).tolist() == [True, True]


def test_a_signal_that_the_lists_lack_is_refused() -> None:
    abstain = {"signal": "rerank top", "above": 0.0}
    system = System("s", ["bm25", "dense"], "rrf", BLEND, abstain=abstain)
    with pytest.raises(UnknownNameError, match=r"abstain: .*'rerank top'"):
        answered_queries(system, make_runs("order"))
