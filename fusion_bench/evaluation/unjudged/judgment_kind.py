"""What the judgments of some queries allow to be said of unjudged documents."""

from __future__ import annotations

from collections.abc import Collection

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.rows.grouped_rows import query_slices
from fusion_bench.io.dataset import Dataset
from fusion_bench.stats.unjudged_rule import JudgmentKind, name_kind


def judgment_kind(dataset: Dataset, queries: Collection[str]) -> JudgmentKind:
    """The kind of the judgments of these queries.

    Over judgments of relevant documents only, values over judged documents only see nothing but
    the order among these: a list with its one relevant document at rank 100 scores 1. Nothing in
    such data tells a shallow pool from a bad system, so what the dataset declares decides.
    """
    return recognize_kind(dataset.qrels, queries, dataset.spec.judgments)


def recognize_kind(
    qrels: Qrels, queries: Collection[str], declared: str | None = None
) -> JudgmentKind:
    """The kind of these judgments, by what they are declared as."""
    chosen = set(queries)
    has_irrelevant = any(
        query in chosen and bool((qrels.grades[rows] <= 0).any())
        for query, rows in query_slices(qrels.queries, qrels.offsets)
    )
    return name_kind(declared, has_irrelevant=has_irrelevant)
