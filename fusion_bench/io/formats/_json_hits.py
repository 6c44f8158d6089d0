"""The documents of one ranked list in JSON: objects, pairs of document and score, or ids."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fusion_bench.config.fields.column_names import COLUMN_NAMES, VALUE_ROLES
from fusion_bench.errors import DataError
from fusion_bench.io.file_layout import ColumnNames
from fusion_bench.io.formats._column_names import (
    find_columns,
    guess_columns,
    match_columns,
)
from fusion_bench.io.json_objects import require_text
from fusion_bench.io.json_shapes import is_indexed
from fusion_bench.io.raw_table import Kind

#: Inside a list an ``id`` can only be the document's.
HIT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **COLUMN_NAMES,
    "document": (*COLUMN_NAMES["document"], "id", "_id"),
    "score": (*COLUMN_NAMES["score"], "_score"),
}


class HitReader:
    """Reads the hits of ranked lists.

    Attributes:
        kind: What the file holds.
        columns: What a key holds → its name, where it has none of the usual names; ``a.b`` is the
            key ``b`` of the object ``a``.
    """

    def __init__(self, kind: Kind, columns: ColumnNames) -> None:
        self.kind = kind
        self.columns = {role: name for role, name in columns.items() if role != "query"}
        self._is_nested = any("." in name for name in self.columns.values())
        self._names: dict[tuple[str, ...], dict[str, str]] = {}

    def read_hits(
        self, hits: Sequence[Any], ids: object, where: str
    ) -> Iterator[tuple[str, Any, Any]]:
        """Document, score (or grade) and rank of each hit; None for what is not known.

        Args:
            hits: The list, best first.
            ids: What the indices of a reranker's answer count: the documents that were sent.
            where: Prefix of a message.

        Raises:
            DataError: A hit names no document, or has no value.
        """
        for place, hit in enumerate(hits, start=1):
            if isinstance(hit, dict):
                yield self._read_object(hit, place, ids, where)
            elif isinstance(hit, list | tuple):
                if len(hit) != 2:
                    raise DataError(
                        f"{where}: {json.dumps(hit)[:60]} is no pair of document and score"
                    )
                rank = None if isinstance(hit, tuple) else place
                yield require_text(hit[0], "document", where), hit[1], rank
            else:
                yield require_text(hit, "document", where), None, place

    def _read_object(
        self, hit: dict[str, Any], place: int, ids: object, where: str
    ) -> tuple[str, Any, Any]:
        hit = _flatten(hit) if self._is_nested else hit
        if self.has_index(hit):
            document = _resolve_index(hit["index"], ids, where)
            names = self._find_names(hit, where, ())
        else:
            names = self._find_names(hit, where, ("document",))
            document = require_text(hit[names["document"]], "document", where)
        value = hit[names["value"]] if "value" in names else None
        return document, value, hit[names["rank"]] if "rank" in names else place

    def has_index(self, hit: object) -> bool:
        """Whether a hit names its document by the place in the list that was sent."""
        return is_indexed(hit) and "document" not in self.columns

    def guess_columns(self, hit: object) -> dict[str, str]:
        """What a hit has no known key for → the key that may hold it."""
        if not isinstance(hit, dict):
            return {}
        roles = "document", VALUE_ROLES[self.kind]
        present = {role: name for role, name in self.columns.items() if name in hit}
        given = match_columns(list(hit), roles, "", present, HIT_NAMES)
        return guess_columns([role for role in roles if role not in given], given, list(hit))

    def _find_names(
        self, hit: dict[str, Any], where: str, required: tuple[str, ...]
    ) -> dict[str, str]:
        """The names of the keys of a hit."""
        keys = tuple(hit)
        if keys not in self._names:
            self._names[keys] = find_columns(
                keys,
                self.kind,
                where,
                self.columns,
                known_names=HIT_NAMES,
                required=required,
                is_ordered=True,
            )
        return self._names[keys]


def _flatten(hit: dict[str, Any]) -> dict[str, Any]:
    """The object with the keys of its objects beside its own, as ``outer.inner``."""
    nested = {
        f"{outer}.{inner}": value
        for outer, values in hit.items()
        if isinstance(values, dict)
        for inner, value in values.items()
    }
    return hit | nested


def _resolve_index(index: object, ids: object, where: str) -> str:
    """The document at an index of the list that was sent.

    Raises:
        DataError: The list is not there, or too short.
    """
    sent = ids if isinstance(ids, list) else []
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(sent):
        raise DataError(
            f"{where}: index {json.dumps(index)} is none of the {len(sent)} ids that were sent, "
            "counted from 0"
        )
    return require_text(sent[index], "document", where)
