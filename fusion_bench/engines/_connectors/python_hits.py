"""Hits in whatever form Python code returns them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fusion_bench.connector import Hit, make_hit
from fusion_bench.engines._connectors.answers import signed_score
from fusion_bench.util.http.json_fields import malformed_error

#: Keys of a hit that is a mapping, in the order in which they are looked for.
ID_KEYS = ("id", "_id", "document", "doc_id", "document_id")
SCORE_KEYS = ("score", "_score", "similarity", "distance")
TEXT_KEYS = ("text", "content", "page_content")


def read_hits(items: Any, *, is_distance: bool, texts: bool) -> list[Hit]:  # noqa: ANN401 - the user's own
    """Hits from ids, pairs of id and score, triples with the text, mappings, or hits.

    Where no item has a score, 1/rank stands for it: only the order means anything.

    Args:
        items: Best first.
        is_distance: Whether a smaller score is better; then its sign is turned.
        texts: Whether texts are wanted.

    Raises:
        ProviderError: Kind ``malformed``: it is nothing of that kind, or only some have a score.
    """
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise malformed_error(f"a list of hits is needed, given {type(items).__name__}")
    return make_hits(map(_split_item, items), is_distance=is_distance, texts=texts)


def make_hits(
    rows: Iterable[tuple[object, object, object]], *, is_distance: bool, texts: bool
) -> list[Hit]:
    """Hits from id, score and text each; None for all scores = 1/rank.

    Raises:
        ProviderError: Kind ``malformed``: a value breaks a rule, or only some have a score.
    """
    known = list(rows)
    unscored = sum(score is None for _, score, _ in known)
    if unscored not in {0, len(known)}:
        raise malformed_error(f"{unscored} of {len(known)} hits have no score: all or none")
    sign = -1 if is_distance else 1
    return [
        make_hit(
            document,
            1 / rank if score is None else signed_score(_to_plain(score), sign),
            text if texts else None,
        )
        for rank, (document, score, text) in enumerate(known, start=1)
    ]


def _to_plain(value: object) -> object:
    """A number of NumPy as one of Python."""
    return value.item() if hasattr(value, "item") else value


def _split_item(item: Any) -> tuple[object, object, object]:  # noqa: ANN401 - the user's own
    if isinstance(item, Hit):
        return item.document, item.score, item.text
    if isinstance(item, Mapping):
        return (
            _first_of(item, ID_KEYS),
            _first_of(item, SCORE_KEYS),
            _first_of(item, TEXT_KEYS),
        )
    if isinstance(item, tuple | list):
        if not 1 <= len(item) <= 3:
            raise malformed_error(f"a hit of {len(item)} values: id, score and text are allowed")
        return (*item, None, None)[:3]
    return _to_plain(item), None, None


def _first_of(item: Mapping[Any, Any], keys: Iterable[str]) -> object:
    return next((item[key] for key in keys if item.get(key) is not None), None)
