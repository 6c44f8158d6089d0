"""Loading of judgments, lists and alignments: from files, or from the cache where it has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align, query_fields, source_switches
from fusion_bench.data.grouped_rows import (
    CategoricalIds,
    IdVocabulary,
    count_within_queries,
    encode_ids,
)
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import (
    GradeOptions,
    ReadOptions,
    parse_scores,
    parse_whole_numbers,
)
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.io.dataset_cache import Array, Cache, StoredArrays, hash_key
from fusion_bench.io.dataset_config import DatasetPaths, DatasetSpec, FileSettings, ListSpec
from fusion_bench.io.formats import read_raw_table, source_name
from fusion_bench.io.formats._json_queries import read_requests
from fusion_bench.io.held_out import HeldOut, find_open_campaigns
from fusion_bench.io.json_objects import load_queries
from fusion_bench.io.raw_files import DEFAULT_LAYOUT, ArrowStrings, FileLayout, Kind, RawTable
from fusion_bench.util.formatting import check_wanted

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
    "common_documents",
    "top_documents",
)


Table: TypeAlias = Qrels | Run


@dataclass(frozen=True)
class FileRequest:
    """One file and how it is read; without read options it holds judgements.

    Attributes:
        grade_options: How rows of judgments become grades.
        later_paths: The files of the second and later repeats of the same list.
        repeat: Which of its repeats this file is, from 0.
    """

    path: Path
    name: str = ""
    roles: frozenset[str] = frozenset()
    read_options: ReadOptions | None = None
    score_space: ScoreSpace | None = None
    layout: FileLayout = DEFAULT_LAYOUT
    later_paths: tuple[Path, ...] = ()
    repeat: int = 0
    grade_options: GradeOptions = field(default_factory=GradeOptions)

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

    def read_qrels(self) -> Qrels:
        """The judgments of the file, read anew."""
        return load_qrels(self.path, layout=self.layout, options=self.grade_options)

    def read_rows(self) -> RawTable:
        """The rows of the file."""
        options = self.read_options
        kind, has_ranks = self._kind, options is not None and options.rank_from == "column"
        return read_raw_table(self.path, kind, has_ranks=has_ranks, layout=self.layout)

    @property
    def _kind(self) -> Kind:
        return "qrels" if self.read_options is None else "run"

    def make_table(self, rows: RawTable) -> Table:
        """The record of the file's rows.

        Raises:
            DataError: Says file, line and rule.
        """
        documents, options = rows.documents, self.read_options
        if isinstance(documents, ArrowStrings):
            raise TypeError("_encode_tables comes first")
        with _locate_errors(self.path, rows):
            if options is not None:
                return self._make_run(rows, documents, options)
            if rows.values is None:
                raise DataError("no grades, only ranks: judgments need a grade for each document")
            made = Qrels.from_rows(rows.queries, documents, rows.values, options=self.grade_options)
            return replace(made, notes=(*rows.notes, *made.notes))

    def _make_run(
        self, rows: RawTable, documents: Sequence[str] | CategoricalIds, options: ReadOptions
    ) -> Run:
        ranks, is_ranked = None, options.rank_from == "column"
        if rows.ranks is not None and (is_ranked or rows.values is None):
            ranks = parse_whole_numbers(rows.ranks, "rank")
        is_distance = rows.holds_distances(options.order)
        if rows.values is None and options.order == "lower":
            raise DataError(
                "order: lower needs scores, and there are only ranks: delete the option"
            )
        scores = _score_ranks(rows, ranks) if rows.values is None else parse_scores(rows.values)
        if self.score_space is not None:
            check_score_space(0.0 - scores if is_distance else scores, self.score_space)
        made = Run.from_rows(
            self.name,
            rows.queries,
            documents,
            scores,
            ranks=ranks if is_ranked else None,
            roles=self.roles,
            read_options=replace(options, order="lower") if is_distance else options,
        )
        notes = (*rows.notes, *made.notes)
        return replace(made, bare=rows.bare, read_options=options, notes=notes)

    def cache_key(self, cache: Cache) -> str | None:
        """What the file is kept under; None where there is no file."""
        return cache.file_key(
            self.path,
            self._kind,
            self.read_options or self.grade_options,
            self.score_space,
            self.layout,
        )

    def split_repeats(self) -> list[FileRequest]:
        """The files of the second and later repeats, each alone."""
        files = enumerate(self.later_paths, start=1)
        return [replace(self, path=path, later_paths=(), repeat=number) for number, path in files]


@contextmanager
def _locate_errors(path: Path, rows: RawTable) -> Iterator[None]:
    """Turn the row of an error into file and line."""
    try:
        yield
    except DataError as error:
        place = "" if error.row is None else rows.lines[error.row]
        line = f":{place}" if isinstance(place, int) else place
        raise DataError(f"{path}{line}: {error}") from None


def _score_ranks(rows: RawTable, ranks: IntArray | None) -> FloatArray:
    """Scores for documents of which only ranks are known: n … 1 for a list of n documents.

    These are the points of a Borda count, and what a list of bare document ids is given elsewhere.
    """
    if ranks is None:
        raise DataError("neither scores nor ranks: one of them is needed")
    if (ranks < 0).any():
        row = int(np.argmax(ranks < 0))
        raise DataError(f"rank {ranks[row]} is negative; ranks start at 0 or 1", row=row)
    queries = encode_ids(rows.queries).codes
    order = np.lexsort((-np.arange(len(ranks)), -ranks, queries))  # of each query the last first
    starts = np.flatnonzero(np.diff(queries[order], prepend=-1))
    lengths = np.diff(starts, append=len(order))
    scores = np.empty(len(order))
    scores[order] = np.arange(1, len(order) + 1) - np.repeat(starts, lengths)
    return scores


def check_score_space(scores: FloatArray, space: ScoreSpace) -> None:
    """Check that rerank scores lie where their score space says.

    Raises:
        DataError: One does not.
    """
    allowed = {"unit": (0.0, 1.0, "between 0 and 1"), "log_prob": (-np.inf, 0.0, "at most 0")}
    if space not in allowed:
        return
    low, high, rule = allowed[space]
    outside = np.flatnonzero((scores < low) | (scores > high))
    if len(outside):
        raise DataError(
            f"rerank score {scores[outside[0]]:g} is outside its declared score_space "
            f"'{space}', which is {rule}: declare the right one "
            "(unit, logit, log_prob, unbounded, order)",
            row=int(outside[0]),
        )


def load_qrels(
    path: str | PathLike[str],
    *,
    layout: FileLayout = DEFAULT_LAYOUT,
    options: GradeOptions | None = None,
) -> Qrels:
    """Read judgments: TREC, .csv, .tsv, .json, .jsonl or .parquet, gzip or not.

    Args:
        path: The file.
        layout: Its format and the names of its columns, where they are not the usual ones.
        options: How its rows become grades.

    Raises:
        DataError: Says file, line and rule.
    """
    request = FileRequest(Path(path), layout=layout, grade_options=options or GradeOptions())
    tables, _ = load_tables([request], None)
    return cast("Qrels", tables[0])


def load_run(
    path: str | PathLike[str],
    *,
    name: str | None = None,
    roles: frozenset[str] = frozenset(),
    read_options: ReadOptions | None = None,
    score_space: ScoreSpace | None = None,
    layout: FileLayout = DEFAULT_LAYOUT,
) -> Run:
    """Read one ranked list a query: TREC, .csv, .tsv, .json, .jsonl or .parquet, gzip or not.

    Args:
        path: The file; or a folder of JSON answers, one file a query.
        name: Name of the source; the file's own by default.
        roles: What it was asked with and how it found.
        read_options: Options that decide its ranks.
        score_space: For a rerank list: what its numbers mean; a value outside is an error.
        layout: Its format and the names of its columns, where they are not the usual ones.

    Raises:
        DataError: Says file, line and rule.
    """
    file, options = Path(path), read_options or ReadOptions()
    request = FileRequest(file, name or source_name(file), roles, options, score_space, layout)
    tables, _ = load_tables([request], None)
    return cast("Run", tables[0])


def load_stated_qrels(path: Path, settings: FileSettings) -> Qrels:
    """Read judgments as settings state them.

    Raises:
        FusionBenchError: A value or the file breaks a rule.
    """
    spec = settings.qrels(path)
    return load_qrels(path, layout=spec.layout, options=spec.grade_options)


def load_stated_run(
    path: Path, name: str, settings: FileSettings, score_space: ScoreSpace | None = None
) -> Run:
    """Read a list as settings state it; arguments and errors as for :func:`request_list`."""
    request = request_list(path, name, settings, score_space)
    return cast("Run", load_tables([request], None)[0][0])


def request_list(
    path: Path, name: str, settings: FileSettings, score_space: ScoreSpace | None = None
) -> FileRequest:
    """How a list is read that settings state.

    Args:
        path: The file.
        name: Of the list.
        settings: With what is stated of it.
        score_space: For a rerank list: what its numbers mean.

    Raises:
        FusionBenchError: A value or the file breaks a rule.
    """
    spec = settings.list(name, path)
    layout = spec.layout
    if spec.requests is not None:
        layout = replace(layout, requests=read_requests(Path(spec.requests)))
    return FileRequest(
        path, name, read_options=spec.read_options, score_space=score_space, layout=layout
    )


def request_lists(
    spec: DatasetSpec,
    paths: DatasetPaths,
    runs: Collection[str] | None,
    rerankers: Collection[str] | None,
    *,
    refined: bool,
) -> tuple[list[FileRequest], list[FileRequest]]:
    """The files of the runs and of the rerank lists, or those of refined queries in their place.

    Refined queries have one repeat: the first file of each list without a refined one.

    Args:
        spec: What the ``dataset.yaml`` says.
        paths: Resolves its paths.
        runs: Names of the runs; None = all.
        rerankers: Names of the rerank lists; None = all.
        refined: Take the file of the refined queries where a list has one.
    """

    def request(kind: str, name: str, run: ListSpec, space: ScoreSpace | None) -> FileRequest:
        if refined and run.refined is not None:
            files = [paths.existing(run.refined, kind, name, "refined")]
        else:
            files = [*paths.repeats(run.path, kind, name, "path")]
        layout = run.layout
        if run.requests is not None:
            requests = paths.existing(run.requests, kind, name, "requests")
            known = {}
            if spec.queries is not None:
                known = load_queries(paths.existing(spec.queries, "queries"))
            texts = {each.text: each.id for each in known.values() if each.text is not None}
            layout = replace(layout, requests=read_requests(requests, texts))
        return FileRequest(
            files[0],
            name,
            frozenset(run.roles if space is None else ()),
            run.read_options,
            space,
            layout=layout,
            later_paths=() if refined else tuple(files[1:]),
        )

    run_files = [
        request("runs", name, run, None)
        for name, run in spec.runs.items()
        if runs is None or name in runs
    ]
    rerank_files = [
        request("rerank", name, run, run.score_space)
        for name, run in spec.rerank.items()
        if rerankers is None or name in rerankers
    ]
    return run_files, rerank_files


def load_tables(
    files: Sequence[FileRequest], cache: Cache | None
) -> tuple[list[Table], list[str | None]]:
    """Each file's table without the queries that open campaigns hold out, and its cache key.

    Raises:
        DataError: A file breaks a rule; the first of them, as if they were read one by one.
    """
    campaigns = find_open_campaigns(file.path for file in files)
    keys = [None if cache is None else file.cache_key(cache) for file in files]
    stored = [None if cache is None or key is None else cache.load(key) for key in keys]
    needed = [key for key in keys if key is not None]
    rows = read_together([file for file, entry in zip(files, stored, strict=True) if not entry])
    tables: list[Table] = []
    for n, (file, entry) in enumerate(zip(files, stored, strict=True)):
        if entry is not None:
            tables.append(_restore_table(file, entry))
            continue
        tables.append(file.make_table(next(rows)))
        key = keys[n]
        if cache is not None and key is not None:
            if file.cache_key(cache) == key:
                table = tables[n]
                facts: dict[str, Any] = {"queries": table.queries, "digest": table.digest()}
                facts["notes"] = table.notes
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
            else:
                keys[n] = None  # it changed while it was read
    if not campaigns:
        return tables, keys
    judged = [table for table in tables if isinstance(table, Qrels)]
    answered = {query for table in tables for query in table.queries}
    qrels = judged[0] if judged else Qrels.without_judgments(())
    held_out = HeldOut.match(campaigns, qrels, answered)
    return [*map(held_out.drop_from, tables)], [*map(held_out.change_key, keys)]


def read_together(files: Sequence[FileRequest]) -> Iterator[RawTable]:
    """The rows of each file; what pyarrow read of their document ids is encoded together.

    Raises:
        DataError: A file cannot be read; after the rows of those before it.
    """
    tables: list[RawTable] = []
    failure: FusionBenchError | None = None
    for file in files:
        check_wanted()
        try:
            tables.append(file.read_rows())
        except FusionBenchError as error:
            failure = error
            break
    if any(isinstance(table.documents, ArrowStrings) for table in tables):
        from fusion_bench.io.arrow_text import encode_documents

        tables = encode_documents(tables)
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
            complete=complete,
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


def _restore_table(file: FileRequest, entry: StoredArrays) -> Table:
    """The table of a file as it was kept."""
    arrays, facts = cast("dict[str, Any]", dict(entry.arrays)), dict(entry.facts)
    queries, digest = tuple(facts.pop("queries")), facts.pop("digest")
    notes, ids = tuple(facts.pop("notes")), _restore_ids(arrays)
    shared = {"queries": queries, "vocabulary": ids, "notes": notes, **arrays}
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
