"""The queries of a dataset that no judgment names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.io.cache.dataset_cache import hash_key

#: What no judgments are kept under in the cache.
EMPTY_KEY: Final = hash_key("no judgments")


def add_unjudged(
    qrels: Qrels, key: str | None, known: Mapping[str, Query], lists: Iterable[Qrels | Run]
) -> tuple[Qrels, str | None]:
    """The judgments with the queries of the queries file and of the lists, and their key.

    Args:
        qrels: The judgments.
        key: Of their file in the cache; None = it is not kept.
        known: What is known of the queries, by id.
        lists: The runs and rerank lists.
    """
    names = {*known, *(query for table in lists for query in table.queries)}
    whole = qrels.add_queries(names)
    return whole, None if key is None else hash_key("every query", key, list(whole.queries))
