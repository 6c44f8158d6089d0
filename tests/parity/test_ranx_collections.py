"""On every real collection fusion and normalization equal ranx's, document by document.

What reads ranks is handed to ranx with strictly decreasing scores made from our ranks, because
ranx settles ties by the order of insertion, and only while lists are short.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import AlignmentError
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.normalize import normalizers
from tests.parity.collections import COLLECTIONS, PAIRS, aligned
from tests.parity.test_ranx import NORMALIZERS, Ranked, Ranx

pytestmark = pytest.mark.parity

#: ranx divides by 1e-9 where the greatest score is not positive; ours is an error.
NEGATIVE = {"codec"}


@cache
def peer() -> Ranx:
    return Ranx()


@cache
def view_of(collection: str) -> AlignedRuns:
    """The queries that both runs answer: ranx refuses others."""
    runs = aligned(collection)
    return runs.subset(np.asarray((runs.lengths > 0).all(axis=0)))


@cache
def lists(collection: str, source: int, *, by_rank: bool = False) -> Ranked:
    """One source's documents by query, best rank first, with scores or what falls with ranks."""
    view = view_of(collection)
    ranks = view.ranks[source].astype(np.float64)
    values = 1e6 - ranks if by_rank else view.scores[source]
    rows = np.flatnonzero(view.ranks[source] > 0)
    rows = rows[np.lexsort((view.ranks[source, rows], view.query_index[rows]))]
    out: dict[str, dict[str, float]] = {query: {} for query in view.queries}
    for row in rows:
        document = view.vocabulary[view.documents[row]]
        out[view.queries[view.query_index[row]]][document] = float(values[row])
    return out


def same(view: AlignedRuns, ours: FloatArray, theirs: dict[str, dict[str, float]]) -> None:
    """Every candidate has the same value on both sides, and neither side has others."""
    rows = np.flatnonzero(~np.isnan(ours))
    assert len(rows) == sum(len(documents) for documents in theirs.values())
    found = [
        theirs[view.queries[q]][view.vocabulary[document]]
        for q, document in zip(view.query_index[rows], view.documents[rows], strict=True)
    ]
    np.testing.assert_allclose(ours[rows], found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_rrf(collection: str) -> None:
    view = view_of(collection)
    runs = {name: lists(collection, s, by_rank=True) for s, name in enumerate(PAIRS[collection])}
    theirs = peer().fused(runs, norm=None, method="rrf", params={"k": 60})
    same(view, fusions.build({"method": "rrf", "k": 60}).fuse(view), theirs)


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_weighted_sum_of_min_max(collection: str) -> None:
    view = view_of(collection)
    names = PAIRS[collection]
    runs = {name: lists(collection, s) for s, name in enumerate(names)}
    config: dict[str, Any] = {
        "method": "weighted_score",
        "weights": dict(zip(names, (0.3, 0.7), strict=True)),
        "normalize": {"method": "min_max", "constant": 0},
        "missing": "zero",
    }
    params = {"weights": (0.3, 0.7)}
    theirs = peer().fused(runs, norm="min-max", method="wsum", params=params)
    same(view, fusions.build(config).fuse(view), theirs)


@pytest.mark.parametrize("norm", NORMALIZERS)
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_normalizer(collection: str, norm: str) -> None:
    view = view_of(collection).restrict(PAIRS[collection][:1])
    if norm == "max" and collection in NEGATIVE:
        with pytest.raises(AlignmentError, match="greatest score of "):
            normalizers.build(NORMALIZERS[norm]).normalize_scores(view)
        return
    reads_ranks = norm in {"rank", "borda"}
    ranked = lists(collection, 0, by_rank=reads_ranks)
    ours = normalizers.build(NORMALIZERS[norm]).normalize_scores(view)[0]
    same(view, ours, peer().normalized(ranked, norm))
