"""The list of one source for one query, in any form that a caller has it in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, get_args

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import DataError, did_you_mean
from fusion_bench.util.formatting import is_encodable

#: Score spaces with limits: least and greatest score, and both in words.
LIMITS: Mapping[ScoreSpace, tuple[float, float, str]] = {
    "unit": (0.0, 1.0, "0 to 1"),
    "log_prob": (-math.inf, 0.0, "at most 0"),
}
#: The keys of a result that is a mapping, and the attributes of one that is an object.
KEYS = ("id", "score", "text", "metadata")


@dataclass(frozen=True, slots=True)
class Hit:
    """One document that a retriever returned.

    Attributes:
        id: The document's id.
        score: The retriever's score, finite; greater is better.
        text: The document's text; only a reranker reads it. None = not handed over.
        metadata: Anything else, which is merged over the sources.
    """

    id: str
    score: float
    text: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_hits(given: object, source: str) -> list[Hit]:
    """The list of one source.

    Args:
        given: ``(id, score)``, ``(id, score, text)`` or ``(id, score, text, metadata)`` each; or
            mappings or objects with these names; or ``{id: score}``; or ids alone, best first.
        source: The source's name, for messages.

    Raises:
        DataError: An item is none of these, an id is empty, or a score is no finite number.
    """
    if isinstance(given, Mapping):
        given = list(given.items())
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DataError(f"list {source!r}: give a list of (id, score), not {type(given).__name__}")
    items = list(given)
    if items and all(isinstance(item, str) for item in items):
        items = [(item, float(len(items) - i)) for i, item in enumerate(items)]
    return [_read_hit(item, source, i) for i, item in enumerate(items, 1)]


def check_scores(hits: Iterable[Hit], source: str, space: ScoreSpace) -> None:
    """Check that the scores of a rerank list lie where their score space says.

    Args:
        hits: The list, as it was handed over.
        source: Its name, for messages.
        space: What its scores mean.

    Raises:
        DataError: A score does not.
    """
    if space not in LIMITS:
        return
    low, high, allowed = LIMITS[space]
    for number, hit in enumerate(hits, 1):
        if not low <= hit.score <= high:
            raise DataError(
                f"list {source!r}, item {number}: a score of the score space {space!r} is "
                f"{allowed}, given {hit.score:g}: declare what the scores mean "
                f"({', '.join(get_args(ScoreSpace))})"
            )


def _read_hit(item: object, source: str, number: int) -> Hit:
    if type(item) is tuple and len(item) in {2, 3}:  # by far the most frequent, and the fastest
        name, score, text = item if len(item) == 3 else (*item, None)
        is_text = text is None or type(text) is str
        is_score = type(score) is float and math.isfinite(score)
        if type(name) is str and name and is_encodable(name) and is_score and is_text:
            return Hit(name, score, text)
    return _read_fields(item, f"list {source!r}, item {number}")


def _read_fields(item: object, where: str) -> Hit:
    if isinstance(item, tuple | list):
        if not 2 <= len(item) <= len(KEYS):
            raise DataError(
                f"{where}: {len(item)} fields, and (id, score), (id, score, text) or (id, score, "
                "text, metadata) is needed"
            )
        fields = dict(zip(KEYS, item, strict=False))
    elif isinstance(item, Mapping):
        fields = dict(item)
    else:
        fields = {key: getattr(item, key) for key in KEYS if hasattr(item, key)}
    for key in fields:
        if key not in KEYS:
            hint = did_you_mean(str(key), KEYS)
            raise DataError(f"{where}: unknown key {key!r}{hint} (known: {', '.join(KEYS)})")
    if "id" not in fields or "score" not in fields:
        raise DataError(f"{where}: 'id' and 'score' are needed, given {item!r:.80}")
    text, metadata = fields.get("text"), fields.get("metadata") or {}
    if text is not None and not isinstance(text, str):
        raise DataError(f"{where}: text is text or None, given {text!r:.80}")
    if not isinstance(metadata, Mapping):
        raise DataError(f"{where}: metadata is a mapping or None, given {metadata!r:.80}")
    return Hit(_read_id(fields["id"], where), _read_score(fields["score"], where), text, metadata)


def _read_id(value: object, where: str) -> str:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    with suppress(ValueError):  # a whole number of 5,000 digits
        if is_whole or (isinstance(value, str) and value != "" and is_encodable(value)):
            return str(value)
    raise DataError(f"{where}: an id is text or a whole number, given {_show(value)}")


def _read_score(value: object, where: str) -> float:
    # numpy's numbers are Real, or turn into one.
    number: Any = getattr(value, "item", lambda: value)()
    with suppress(OverflowError):  # a whole number of 400 digits
        if not isinstance(number, bool) and isinstance(number, Real) and math.isfinite(number):
            return float(number)
    raise DataError(f"{where}: a score is a finite number, given {_show(value)}")


def _show(value: object) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:
        return "a whole number of more than 4,300 digits"
