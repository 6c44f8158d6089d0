"""What the judgments of some queries allow to be said of unjudged documents."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.rows.grouped_rows import query_slices
from fusion_bench.io.dataset import Dataset

#: ``complete``: an unlisted document is not relevant; ``sparse``: no document is judged not
#: relevant; ``pooled``: all others.
JudgmentKind: TypeAlias = Literal["pooled", "sparse", "complete"]


def judgment_kind(dataset: Dataset, queries: Collection[str]) -> JudgmentKind:
    """The kind of the judgments of these queries.

    Complete judgments are declared; sparse ones are recognized. Over sparse judgments, values
    over judged documents only see nothing but the order among relevant ones: a list with its one
    relevant document at rank 100 scores 1.
    """
    complete = dataset.spec.judgments == "complete"
    return "complete" if complete else recognize_kind(dataset.qrels, queries)


def recognize_kind(qrels: Qrels, queries: Collection[str]) -> JudgmentKind:
    """The kind of judgments that nobody declared complete."""
    chosen = set(queries)
    has_irrelevant = any(
        query in chosen and bool((qrels.grades[rows] <= 0).any())
        for query, rows in query_slices(qrels.queries, qrels.offsets)
    )
    return "pooled" if has_irrelevant else "sparse"
