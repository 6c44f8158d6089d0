"""Tables and alignments of a dataset, from the cache where it has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align, query_fields, source_switches
from fusion_bench.data.grouped_rows import IdVocabulary, count_within_queries
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import FusionBenchError
from fusion_bench.io.dataset_cache import Array, Cache, StoredArrays, hash_key
from fusion_bench.io.formats import read_raw_table
from fusion_bench.io.load_records import encode_tables, make_qrels, make_run
from fusion_bench.io.raw_files import DEFAULT_LAYOUT, FileLayout, RawTable

#: The arrays of an alignment; everything else is in the tables and the ``dataset.yaml``.
ALIGNED_FIELDS = (
    "offsets",
    "documents",
    "ranks",
    "scores",
    "grades",
    "judged",
    "rerank",
    "rerank_ranks",
    "ideal_offsets",
    "ideal_grades",
)


Table: TypeAlias = Qrels | Run


@dataclass(frozen=True)
class FileRequest:
    """One file and how it is read; without read options it holds judgements.

    Attributes:
        later_paths: The files of the second and later trials of the same list.
        trial: Which of its trials this file is, from 0.
    """

    path: Path
    name: str = ""
    roles: frozenset[str] = frozenset()
    read_options: ReadOptions | None = None
    score_space: ScoreSpace | None = None
    layout: FileLayout = DEFAULT_LAYOUT
    later_paths: tuple[Path, ...] = ()
    trial: int = 0

    @property
    def kind(self) -> str:
        """The key of ``dataset.yaml`` that names it: ``qrels``, ``runs`` or ``rerank``."""
        if self.read_options is None:
            return "qrels"
        return "runs" if self.score_space is None else "rerank"

    @property
    def key(self) -> str:
        """Its name among all files: ``qrels``, ``runs/NAME`` or ``rerank/NAME``."""
        return f"{self.kind}/{self.name}" if self.name else self.kind

    def read_rows(self) -> RawTable:
        """The rows of the file."""
        options = self.read_options
        if options is None:
            return read_raw_table(self.path, "qrels", layout=self.layout)
        has_ranks = options.rank_from == "column"
        return read_raw_table(self.path, "run", has_ranks=has_ranks, layout=self.layout)

    def make_table(self, rows: RawTable) -> Table:
        """The record of the file's rows."""
        if self.read_options is None:
            return make_qrels(self.path, rows)
        return make_run(self.path, rows, self.name, self.roles, self.read_options, self.score_space)

    def cache_key(self, cache: Cache) -> str | None:
        """What the file is kept under; None where there is no file."""
        kind = "run" if self.read_options else "qrels"
        options = self.read_options, self.score_space, self.layout
        return cache.file_key(self.path, kind, *options)

    def split_trials(self) -> list[FileRequest]:
        """The files of the second and later trials, each alone."""
        files = enumerate(self.later_paths, start=1)
        return [replace(self, path=path, later_paths=(), trial=number) for number, path in files]


def load_tables(
    files: Sequence[FileRequest], cache: Cache | None
) -> tuple[list[Table], list[str | None]]:
    """Each file's table, and its key in the cache.

    Raises:
        DataError: A file breaks a rule; the first of them, as if they were read one by one.
    """
    keys = [None if cache is None else file.cache_key(cache) for file in files]
    stored = [None if cache is None or key is None else cache.load(key) for key in keys]
    needed = [key for key in keys if key is not None]
    rows = _read_together([file for file, entry in zip(files, stored, strict=True) if not entry])
    tables: list[Table] = []
    for n, (file, entry) in enumerate(zip(files, stored, strict=True)):
        if entry is not None:
            tables.append(restore_table(file, entry))
            continue
        tables.append(file.make_table(next(rows)))
        key = keys[n]
        if cache is not None and key is not None:
            if file.cache_key(cache) == key:
                _store_table(cache, key, tables[n], needed)
            else:
                keys[n] = None  # it changed while it was read
    return tables, keys


def _read_together(files: Sequence[FileRequest]) -> Iterator[RawTable]:
    """The rows of each file; what pyarrow read of their document ids is encoded together.

    Raises:
        DataError: A file cannot be read; after the rows of those before it.
    """
    tables: list[RawTable] = []
    failure: FusionBenchError | None = None
    for file in files:
        try:
            tables.append(file.read_rows())
        except FusionBenchError as error:
            failure = error
            break
    tables = encode_tables(tables)
    while tables:
        yield tables.pop(0)  # and forgets it: it is large
    if failure is not None:
        raise failure


def load_aligned(
    qrels: tuple[Qrels, str | None],
    runs: Sequence[tuple[Run, str | None]],
    rerankers: Sequence[tuple[Run, str | None]],
    queries: Mapping[str, Query],
    cache: Cache | None,
    *,
    ties: Ties,
    complete: bool,
) -> AlignedRuns:
    """What :func:`align` returns, from the cache where it was made before.

    Args:
        qrels: The judgements and their key, as :func:`load_tables` returned them.
        runs: The sources, likewise.
        rerankers: The rerank lists, likewise.
        queries: Types and groups, by query id.
        cache: None = none.
        ties: The tie rule.
        complete: The judgements are complete.

    Raises:
        AlignmentError: They cannot be aligned.
    """
    keys = [qrels[1], *(key for _, key in (*runs, *rerankers))]
    needed = [key for key in keys if key is not None]
    if cache is not None and len(needed) < len(keys):
        cache = None
    key = hash_key("aligned", keys, len(runs), ties, complete)
    entry = None if cache is None else cache.load(key)
    tables, lists = [run for run, _ in runs], [run for run, _ in rerankers]
    if entry is not None:
        arrays = cast("dict[str, Any]", dict(entry.arrays))
        return AlignedRuns(
            sources=tuple(run.name for run in tables),
            roles=tuple(run.roles for run in tables),
            switches=source_switches(tables),
            queries=qrels[0].queries,
            **query_fields(qrels[0], queries),
            vocabulary=_restore_ids(arrays),
            rerankers=tuple(run.name for run in lists),
            ties=ties,
            **arrays,
        )
    made = align(qrels[0], tables, rerankers=lists, queries=queries, ties=ties, complete=complete)
    if cache is not None:
        arrays = {name: getattr(made, name) for name in ALIGNED_FIELDS}
        cache.store(key, {}, arrays | _split_ids(made.vocabulary), needed)
    return made


def _split_ids(vocabulary: IdVocabulary) -> dict[str, Array]:
    """The arrays that a vocabulary is stored as."""
    names = [name.encode() for name in vocabulary]
    return {
        "vocabulary": np.frombuffer(b"".join(names), dtype=np.uint8),
        "vocabulary_limits": np.cumsum([0, *map(len, names)]),
    }


def _restore_ids(arrays: dict[str, Any]) -> IdVocabulary:
    """Take a vocabulary out of stored arrays."""
    return IdVocabulary(arrays.pop("vocabulary"), arrays.pop("vocabulary_limits"))


def _store_table(cache: Cache, key: str, table: Table, needed: Sequence[str]) -> None:
    """Keep a table in the cache."""
    facts: dict[str, Any] = {"queries": table.queries, "digest": table.digest()}
    arrays: dict[str, Array] = {"offsets": table.offsets, "documents": table.documents}
    if isinstance(table, Run):
        facts |= {"duplicates": table.duplicates, "zero_scores": table.zero_scores}
        facts["bare"] = dict(table.bare)
        arrays["scores"] = table.scores
        if table.read_options.rank_from == "column":  # otherwise they count
            arrays["ranks"] = table.ranks
    else:
        arrays["grades"] = table.grades
    cache.store(key, facts, arrays | _split_ids(table.vocabulary), needed)


def restore_table(file: FileRequest, entry: StoredArrays) -> Table:
    """The table of a file as it was kept."""
    arrays, facts = cast("dict[str, Any]", dict(entry.arrays)), dict(entry.facts)
    queries, digest = tuple(facts.pop("queries")), facts.pop("digest")
    shared = {"queries": queries, "vocabulary": _restore_ids(arrays), **arrays}
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
