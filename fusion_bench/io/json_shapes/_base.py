"""What a shape of JSON is, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from fusion_bench.config.fields.column_names import COLUMN_NAMES
from fusion_bench.config.registry import Registry
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
SHAPES: Registry[Shape] = Registry(
    "JSON shape", "fusion_bench.io.json_shapes", "fusion_bench.json_shapes"
)


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
