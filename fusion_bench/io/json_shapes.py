"""The shapes in which JSON holds ranked lists: one function each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from fusion_bench.config.registry import Registry
from fusion_bench.data.document_rows import COLUMN_NAMES
from fusion_bench.errors import DataError

#: Keys that can only be a document's id.
DOCUMENT_IDS: Final = {"id", "_id", *COLUMN_NAMES["document"]} - {"document", "doc"}


#: Keys of an answer that is not whole, true there → what they say.
UNFINISHED: Final = {
    "timed_out": "the search timed out",
    "is_partial": "the answer is partial",
    "is_running": "the search is still running",
}
#: What parts of a search may have become of which the hits are missing.
MISSING: Final = {
    "_shards": ("a shard", ("failed",)),
    "_clusters": ("a cluster", ("skipped", "partial", "failed", "running")),
}


class RankedList(NamedTuple):
    """The documents of one query, best first.

    Attributes:
        hits: Objects, pairs of document and score, or ids.
        query: The query's id; None = the object around the list, or the file's name, says it.
    """

    hits: Sequence[Any]
    query: str | None = None


#: Returns the lists in an object of its shape, and None for an object of another.
Shape: TypeAlias = Callable[[Any], list[RankedList] | None]
SHAPES: Registry[Shape] = Registry("JSON shape", "", "fusion_bench.json_shapes")


def register_shape(name: str) -> Callable[[Shape], Shape]:
    """Decorator: register the function that recognizes a shape.

    An object is of one shape at most: a new one must refuse what the others take.
    """

    def register(find_lists: Shape) -> Shape:
        SHAPES.add_plugin(name, find_lists)
        return find_lists

    return register


def find_lists(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The ranked lists in a JSON value; None if it has no known shape."""
    for shape in SHAPES.load_built_in().values():
        lists = shape(body)
        if lists is not None:
            return lists
    return None


def refuse_incomplete(answer: Any) -> None:  # noqa: ANN401 - any JSON
    """Refuse an answer that states an error, or that it is not whole.

    Raises:
        DataError: Says which.
    """
    facts = answer if isinstance(answer, dict) else {}
    flaws = [what for key, what in UNFINISHED.items() if _is_set(facts.get(key))]
    for key, (part, states) in MISSING.items():
        counts = facts[key] if isinstance(facts.get(key), dict) else {}
        flaws += [f"{part} {state}" for state in states if _is_set(counts.get(state))]
    flaws += [f"it states an {key[:5]}" for key in ("error", "errors") if facts.get(key)]
    if flaws:
        raise DataError(f"{flaws[0]}, so that hits may be missing: ask again")


def _is_set(value: object) -> bool:
    """Whether a flag is true, or a count is not 0, also as text; no list or object is one."""
    return isinstance(value, str | int | float) and str(value).lower() not in {"", "0", "false"}


def find_indexed(body: Any) -> list[Any] | None:  # noqa: ANN401 - any JSON
    """The hits of a reranker's answer, which name their documents by index; None = no answer."""
    lists = [body.get(key) for key in ("results", "data")] if isinstance(body, dict) else [body]
    return next((hits for hits in lists if isinstance(hits, list) and has_indices(hits)), None)


def has_indices(hits: Sequence[Any]) -> bool:
    """Whether hits name their documents by the place in the list that was sent."""
    return bool(hits) and all(is_indexed(hit) for hit in hits)


def is_indexed(hit: object) -> bool:
    """Whether a hit has an index and no id; its ``document`` may be the text."""
    return isinstance(hit, dict) and "index" in hit and not DOCUMENT_IDS & hit.keys()


#: Keys that name a list of documents, in the answers of search libraries and services.
HIT_KEYS: Final = (
    "hits",
    "results",
    "documents",
    "docs",
    "passages",
    "candidates",
    "matches",
    "points",
    "ranking",
    "judgments",
    "data",
)


@register_shape("hits")
def find_nested_hits(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The list under a usual key; or under another, if it is the only list of objects."""
    if find_indexed(body) is not None:
        return None
    if isinstance(body, dict):
        named = [body[key] for key in HIT_KEYS if isinstance(body.get(key), list)]
        lists = named or _find_only_list(body)
        if not lists:
            return None
        return [RankedList(lists[0])]
    return [RankedList(body)] if isinstance(body, list) else None


def _find_only_list(body: dict[str, Any]) -> list[list[Any]]:
    """The list of objects beside something that may name the query, if it is the only one."""
    lists = [
        value
        for key, value in body.items()
        if key != "result"  # see find_points
        and isinstance(value, list)
        and value
        and all(isinstance(hit, dict) for hit in value)
    ]
    is_labeled = any(isinstance(value, str | int) for value in body.values())
    return lists if is_labeled and len(lists) == 1 else []


@register_shape("points")
def find_points(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The points of an answer of Qdrant.

    Source: https://api.qdrant.tech/api-reference/search/query-points
    """
    result = body.get("result") if isinstance(body, dict) else None
    points = result.get("points") if isinstance(result, dict) else result
    return [RankedList(points)] if isinstance(points, list) else None


@register_shape("query_mapping")
def find_mapped_queries(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """One list for each query."""
    if not isinstance(body, dict) or not body or set(body) <= {*HIT_KEYS, "result"}:
        return None
    lists = [_list_pairs(documents) for documents in body.values()]
    if None in lists:
        return None
    return [RankedList(pairs or [], query) for query, pairs in zip(body, lists, strict=True)]


def _list_pairs(documents: object) -> list[Any] | None:
    """Pairs of document and score; None where there are other things."""
    if isinstance(documents, dict):
        is_flat = not any(isinstance(value, dict | list) for value in documents.values())
        return list(documents.items()) if is_flat else None
    if isinstance(documents, list):
        is_flat = not any(isinstance(value, dict) for value in documents)
        return documents if is_flat else None
    return None


@register_shape("rerank_response")
def find_rerank_results(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The results of a reranker's answer, whose documents are indices.

    Cohere and Jina name the list ``results``, Voyage and Mixedbread ``data``; Hugging Face's Text
    Embeddings Inference answers with the bare list. The index counts the documents that were sent,
    from 0. Source: https://docs.cohere.com/reference/rerank
    """
    hits = find_indexed(body)
    return None if hits is None else [RankedList(hits)]


@register_shape("search_response")
def find_search_hits(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The hits of an answer of Elasticsearch or OpenSearch.

    Source: https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search
    """
    outer = body.get("hits") if isinstance(body, dict) else None
    hits = outer.get("hits") if isinstance(outer, dict) else None
    return [RankedList(hits)] if isinstance(hits, list) else None
