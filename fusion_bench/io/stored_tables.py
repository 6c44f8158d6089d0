"""Tables as stored arrays and back, and the request for a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from fusion_bench.data.grouped_rows import count_within_queries
from fusion_bench.data.ids import IdVocabulary
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Qrels, Run, ScoreSpace
from fusion_bench.io.array_folder import Array, StoredArrays
from fusion_bench.io.cache import Cache
from fusion_bench.io.formats import read_raw_table
from fusion_bench.io.load_records import make_qrels, make_run
from fusion_bench.io.raw_table import RawTable

Table: TypeAlias = Qrels | Run


@dataclass(frozen=True)
class FileRequest:
    """One file and how it is read; without read options it holds judgements."""

    path: Path
    name: str = ""
    roles: frozenset[str] = frozenset()
    read_options: ReadOptions | None = None
    score_space: ScoreSpace | None = None

    def read_rows(self) -> RawTable:
        """The rows of the file."""
        options = self.read_options
        if options is None:
            return read_raw_table(self.path, "qrels")
        return read_raw_table(self.path, "run", has_ranks=options.rank_from == "column")

    def make_table(self, rows: RawTable) -> Table:
        """The record of the file's rows."""
        if self.read_options is None:
            return make_qrels(self.path, rows)
        return make_run(self.path, rows, self.name, self.roles, self.read_options, self.score_space)

    def cache_key(self, cache: Cache) -> str | None:
        """What the file is kept under; None where there is no file."""
        kind = "run" if self.read_options else "qrels"
        return cache.file_key(self.path, kind, self.read_options, self.score_space)


def split_ids(vocabulary: IdVocabulary) -> dict[str, Array]:
    """The arrays that a vocabulary is stored as."""
    names = [name.encode() for name in vocabulary]
    return {
        "vocabulary": np.frombuffer(b"".join(names), dtype=np.uint8),
        "vocabulary_limits": np.cumsum([0, *map(len, names)]),
    }


def restore_ids(arrays: dict[str, Any]) -> IdVocabulary:
    """Take a vocabulary out of stored arrays."""
    return IdVocabulary(arrays.pop("vocabulary"), arrays.pop("vocabulary_limits"))


def store_table(cache: Cache, key: str, table: Table, needed: Sequence[str]) -> None:
    """Keep a table in the cache."""
    facts: dict[str, Any] = {"queries": table.queries, "digest": table.digest()}
    arrays: dict[str, Array] = {"offsets": table.offsets, "documents": table.documents}
    if isinstance(table, Run):
        facts |= {"duplicates": table.duplicates, "zero_scores": table.zero_scores}
        arrays["scores"] = table.scores
        if table.read_options.rank_from == "column":  # otherwise they count
            arrays["ranks"] = table.ranks
    else:
        arrays["grades"] = table.grades
    cache.store(key, facts, arrays | split_ids(table.vocabulary), needed)


def restore_table(file: FileRequest, entry: StoredArrays) -> Table:
    """The table of a file as it was kept."""
    arrays, facts = cast("dict[str, Any]", dict(entry.arrays)), dict(entry.facts)
    queries, digest = tuple(facts.pop("queries")), facts.pop("digest")
    shared = {"queries": queries, "vocabulary": restore_ids(arrays), **arrays}
    table: Table
    if file.read_options is None:
        table = Qrels(**shared)
    else:
        ranks = arrays.get("ranks", count_within_queries(arrays["offsets"]))
        about = {
            "name": file.name,
            "roles": file.roles,
            "read_options": file.read_options,
            "ranks": ranks,
        }
        table = Run(**(shared | about | facts))
    table.remember_digest(digest)
    return table
