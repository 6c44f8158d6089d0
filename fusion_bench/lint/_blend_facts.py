"""What the rules about blends share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusion_bench.blend import RerankBlend, RetrievalBlend
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import RankedList, order_fused, same_lists, to_raw_score

#: Lists of a witness end at this rank where the configuration sets no limit, so that fused scores
#: below the first hardly differ.
LAST_RANK = 500


def list_weights(blend: RetrievalBlend) -> tuple[FloatArray, FloatArray]:
    """(D,) each: the weights of retrieval and rerank score at fused ranks 1 to ``depth``."""
    return blend.weights_at(np.arange(1, blend.depth + 1))


def term_bounds(blend: RetrievalBlend) -> tuple[FloatArray, FloatArray]:
    """(D,) each: least and greatest final score by fused rank, with 1/rank as retrieval term."""
    retrieval, rerank = list_weights(blend)
    low = retrieval / np.arange(1, blend.depth + 1)
    return low, low + rerank


def count_documents(blend: RerankBlend, needed: int) -> int:
    """How many documents a witness needs, so that the blend does not skip the query."""
    return needed if blend.always_rerank else max(needed, blend.skip_limit + 1)


def count_ranks(subject: Subject, blend: RerankBlend) -> int:
    """Fused ranks that lists which agree can fill; 0 where the blend skips lists so short."""
    depths = [subject.depth_of(name) or blend.depth for name in subject.sources]
    limit = min([blend.depth, *depths])
    return limit if limit >= count_documents(blend, 1) else 0


def ladder(
    subject: Subject, blend: RerankBlend, needed: int
) -> tuple[dict[str, RankedList], list[str]]:
    """Lists that all agree: one document far ahead, the others close together; and fused order."""
    count = count_documents(blend, needed)
    last = min((subject.depth_of(name) or LAST_RANK for name in subject.sources), default=LAST_RANK)
    start = max(2, last - count + 2)
    lists = same_lists(subject.sources, [1, *range(start, start + count - 1)])
    return lists, order_fused(subject, lists)


def rerank_by_place(
    order: Sequence[str], units: Sequence[float] | FloatArray, space: ScoreSpace
) -> Mapping[str, float]:
    """Raw rerank scores by fused rank: the documents beyond ``units`` get the last of them."""
    last = len(units) - 1
    return {
        document: to_raw_score(float(units[min(i, last)]), space)
        for i, document in enumerate(order)
    }
