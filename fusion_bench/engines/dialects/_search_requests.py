"""Searches by role and a reranking step, in requests of Elasticsearch and OpenSearch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusion_bench.engines.dialects._translation import Draft
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Dialect
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Replace

#: What a user replaces in a request.
TEXT_FIELD, VECTOR_FIELD, QUERY, VECTOR = "FIELD", "VECTOR_FIELD", "QUERY", "QUERY_VECTOR"
#: Greatest num_candidates of a knn retriever of Elasticsearch.
MOST_CANDIDATES = 10_000
PLACEHOLDERS = (
    f"{TEXT_FIELD}, {VECTOR_FIELD}: the fields that are searched. {QUERY}: the query's text. "
    f'"{VECTOR}": the numbers of its vector.'
)


def is_vector_search(name: str, roles: Mapping[str, frozenset[str]]) -> bool:
    """Whether a list is written as a search for near vectors: it has the role ``semantic``."""
    return "semantic" in roles.get(name, frozenset())


def fit_replace(draft: Draft, windows: dict[str, Any]) -> dict[str, Any]:
    """Set the draft's ``replace`` to what a reranking step of the engine does.

    Such a step scores the first documents of the fused list, and returns no others.

    Args:
        draft: Its blend is replaced.
        windows: ``depth`` and ``top_k`` of the translated system.

    Returns:
        The windows, ``top_k`` no greater than the reranker's depth.
    """
    blend = draft.blend
    if not isinstance(blend, Replace):
        return windows
    depth = min(blend.depth, windows["depth"])
    if depth < blend.depth:
        draft.lose(f"blend.depth: {depth} instead of {blend.depth}, as the window of the lists")
    wanted = draft.system.top_k
    if blend.tail == "keep" and (wanted is None or wanted > depth):
        draft.lose(f"blend.tail: what the reranker does not read, beyond {depth}, is not returned")
    if blend.min_score is not None:
        draft.lose(f"blend.min_score: {blend.min_score:g} is not written")
    if not blend.always_rerank:
        draft.lose("blend.always_rerank: every query is reranked")
    if not draft.is_of_dialect:
        draft.lose(
            f"blend: scores are those of {draft.dialect.title}'s reranker; set up "
            f"{blend.reranker!r} there",
            "rank-equivalent",
        )
    fixed = {"depth": depth, "tail": "drop", "min_score": None, "always_rerank": True}
    draft.blend = blend.model_copy(update=fixed)
    return {**windows, "top_k": min(windows["top_k"], depth)}


def find_reranker(dialect: type[Dialect], system: System) -> Replace | None:
    """The reranking step of a system; None = it has none.

    Raises:
        ConfigError: It is none that the engine can do.
    """
    blend = system.blend
    if not isinstance(blend, Replace):
        return None
    if blend.tail != "drop" or blend.min_score is not None or not blend.always_rerank:
        raise ConfigError(
            f"system {system.name!r}: blend cannot be written for {dialect.title} as it is: "
            "translate it first"
        )
    return blend


def read_reranker(name: str, depth: int) -> dict[str, Any]:
    """The blend of a reranking step that reads so many documents."""
    keys = {"method": "replace", "reranker": name, "depth": depth}
    return {**keys, "tail": "drop", "missing": "below"}


def write_search(name: str, window: int, *, is_vector: bool) -> dict[str, Any]:
    """Elasticsearch's retriever of a list: by vector or by text."""
    if not is_vector:
        query = {"match": {TEXT_FIELD: {"query": QUERY}}}
        return {"standard": {"_name": name, "query": query}}
    candidates = min(max(2 * window, 100), MOST_CANDIDATES)
    knn: dict[str, Any] = {"_name": name, "field": VECTOR_FIELD, "query_vector": VECTOR}
    return {"knn": {**knn, "k": window, "num_candidates": candidates}}


def add_reranker(retriever: dict[str, Any], blend: Replace | None) -> dict[str, Any]:
    """A retriever of Elasticsearch below a reranking step, where there is one."""
    if blend is None:
        return retriever
    step = {"field": TEXT_FIELD, "inference_id": blend.reranker, "inference_text": QUERY}
    return {
        "text_similarity_reranker": {
            "retriever": retriever,
            **step,
            "rank_window_size": blend.depth,
        }
    }


def write_query(name: str, window: int, *, is_vector: bool) -> dict[str, Any]:
    """OpenSearch's query of a list: by vector or by text."""
    if is_vector:
        return {"knn": {VECTOR_FIELD: {"vector": VECTOR, "k": window, "_name": name}}}
    return {"match": {TEXT_FIELD: {"query": QUERY, "_name": name}}}


def write_rerank_steps(blend: Replace, size: int) -> list[dict[str, Any]]:
    """OpenSearch's response processors: rerank every hit, and cut the list to its size."""
    context = {"document_fields": [TEXT_FIELD]}
    rerank = {"ml_opensearch": {"model_id": blend.reranker}, "context": context}
    return [{"rerank": rerank}, {"truncate_hits": {"target_size": size}}]


def read_rerank_steps(steps: Sequence[Mapping[str, Any]], depth: int) -> tuple[dict[str, Any], int]:
    """The blend of OpenSearch's response processors, and where they cut the list."""
    by_name = {name: step for each in steps for name, step in each.items()}
    model = by_name["rerank"]["ml_opensearch"]["model_id"]
    return read_reranker(model, depth), by_name["truncate_hits"]["target_size"]


def write_match(fields: Sequence[str], text: str) -> dict[str, Any]:
    """A query for the words of a text in one or several fields."""
    if len(fields) == 1 and not {"^", "*"} & set(fields[0]):
        return {"match": {fields[0]: {"query": text}}}
    return {"multi_match": {"query": text, "fields": list(fields)}}
