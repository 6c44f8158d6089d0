"""Tables and alignments of a dataset, from the cache where it has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align, query_fields
from fusion_bench.data.records import Qrels, Query, Run
from fusion_bench.errors import FusionBenchError
from fusion_bench.io.cache import Cache, hash_key
from fusion_bench.io.load_records import encode_tables
from fusion_bench.io.raw_table import RawTable
from fusion_bench.io.stored_tables import (
    FileRequest,
    restore_ids,
    restore_table,
    split_ids,
    store_table,
)

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


def load_tables(
    files: Sequence[FileRequest], cache: Cache | None
) -> tuple[list[Qrels | Run], list[str | None]]:
    """Each file's table, and its key in the cache.

    Raises:
        DataError: A file breaks a rule; the first of them, as if they were read one by one.
    """
    keys = [None if cache is None else file.cache_key(cache) for file in files]
    stored = [None if cache is None or key is None else cache.load(key) for key in keys]
    needed = [key for key in keys if key is not None]
    rows = _read_together([file for file, entry in zip(files, stored, strict=True) if not entry])
    tables: list[Qrels | Run] = []
    for n, (file, entry) in enumerate(zip(files, stored, strict=True)):
        if entry is not None:
            tables.append(restore_table(file, entry))
            continue
        tables.append(file.make_table(next(rows)))
        key = keys[n]
        if cache is not None and key is not None:
            if file.cache_key(cache) == key:
                store_table(cache, key, tables[n], needed)
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
            queries=qrels[0].queries,
            **query_fields(qrels[0], queries),
            vocabulary=restore_ids(arrays),
            rerankers=tuple(run.name for run in lists),
            ties=ties,
            **arrays,
        )
    made = align(qrels[0], tables, rerankers=lists, queries=queries, ties=ties, complete=complete)
    if cache is not None:
        arrays = {name: getattr(made, name) for name in ALIGNED_FIELDS}
        cache.store(key, {}, arrays | split_ids(made.vocabulary), needed)
    return made
