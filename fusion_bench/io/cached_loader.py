"""Tables and alignments of a dataset, from the cache where it has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fusion_bench.data.aligned_runs import AlignedRuns, Ties, align, described
from fusion_bench.data.packed_ids import Ids, pack
from fusion_bench.data.records import Qrels, Query, Reading, Run, ScoreSpace
from fusion_bench.io.array_file import Array, Stored
from fusion_bench.io.cache import Cache, key_of
from fusion_bench.io.files import qrels_of, run_of
from fusion_bench.io.parallel_read import read_together

__all__ = ["Wanted", "aligned", "load_tables"]

#: The arrays of an alignment; everything else is in the tables and the ``dataset.yaml``.
ALIGNED = (
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


@dataclass(frozen=True)
class Wanted:
    """One file and how it is read; without a reading it holds judgements."""

    path: Path
    name: str = ""
    roles: frozenset[str] = frozenset()
    reading: Reading | None = None
    score_space: ScoreSpace | None = None


def load_tables(
    files: Sequence[Wanted], cache: Cache | None
) -> tuple[list[Qrels | Run], list[str | None]]:
    """Each file's table, and its key in the cache.

    Raises:
        DataError: A file breaks a rule; the first of them, as if they were read one by one.
    """
    keys = [None if cache is None else _key(cache, file) for file in files]
    stored = [None if cache is None or key is None else cache.get(key) for key in keys]
    missing = [file for file, entry in zip(files, stored, strict=True) if entry is None]
    rows = read_together([(file.path, "run" if file.reading else "qrels") for file in missing])
    tables: list[Qrels | Run] = []
    for n, (file, entry) in enumerate(zip(files, stored, strict=True)):
        if entry is not None:
            tables.append(_restored(file, entry))
            continue
        if file.reading is None:
            tables.append(qrels_of(file.path, next(rows)))
        else:
            space = file.score_space
            tables.append(run_of(file.path, next(rows), file.name, file.roles, file.reading, space))
        if cache is not None and (keys[n] is None or _key(cache, file) != keys[n]):
            keys[n] = None  # it changed while it was read
        elif cache is not None:
            keys[n] = _keep(cache, cast("str", keys[n]), tables[n])
    return tables, keys


def _key(cache: Cache, file: Wanted) -> str | None:
    kind = "run" if file.reading else "qrels"
    return cache.key_of_file(file.path, kind, file.reading, file.score_space)


def _keep(cache: Cache, key: str, table: Qrels | Run) -> str | None:
    """Store a table; its key, unless it is of a kind that is not stored."""
    vocabulary = pack(table.vocabulary)
    if vocabulary is None:
        return None  # an id that is too long to be packed
    facts: dict[str, Any] = {"queries": table.queries, "digest": table.digest()}
    arrays: dict[str, Array] = {
        "offsets": table.offsets,
        "vocabulary": vocabulary.words,
        "documents": table.documents,
    }
    if isinstance(table, Run):
        facts |= {"duplicates": table.duplicates, "zero_scores": table.zero_scores}
        arrays |= {"scores": table.scores, "ranks": table.ranks}
    else:
        arrays |= {"grades": table.grades}
    cache.keep(key, facts, arrays)
    return key


def _restored(file: Wanted, entry: Stored) -> Qrels | Run:
    arrays, facts = cast("dict[str, Any]", dict(entry.arrays)), dict(entry.facts)
    vocabulary = Ids(arrays.pop("vocabulary"))
    queries, digest = tuple(facts.pop("queries")), facts.pop("digest")
    table: Qrels | Run
    if file.reading is None:
        table = Qrels(queries=queries, vocabulary=vocabulary, **arrays)
    else:
        table = Run(
            name=file.name,
            roles=file.roles,
            reading=file.reading,
            queries=queries,
            vocabulary=vocabulary,
            **arrays,
            **facts,
        )
    table.remember_digest(digest)
    return table


def aligned(
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
    keys = [qrels[1], [key for _, key in runs], [key for _, key in rerankers]]
    key = key_of("aligned", *keys, ties, complete)
    known = None not in (keys[0], *(key for _, key in (*runs, *rerankers)))
    entry = cache.get(key) if cache is not None and known else None
    tables, lists = [run for run, _ in runs], [run for run, _ in rerankers]
    if entry is not None:
        arrays = cast("dict[str, Any]", dict(entry.arrays))
        return AlignedRuns(
            sources=tuple(run.name for run in tables),
            roles=tuple(run.roles for run in tables),
            queries=qrels[0].queries,
            **described(qrels[0], queries),
            vocabulary=Ids(arrays.pop("vocabulary")),
            rerankers=tuple(run.name for run in lists),
            ties=ties,
            **arrays,
        )
    made = align(qrels[0], tables, rerankers=lists, queries=queries, ties=ties, complete=complete)
    if cache is not None and known and isinstance(made.vocabulary, Ids):
        arrays = {name: getattr(made, name) for name in ALIGNED}
        cache.keep(key, {}, {**arrays, "vocabulary": made.vocabulary.words})
    return made
