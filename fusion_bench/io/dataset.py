"""A dataset: everything that a ``dataset.yaml`` names, read, checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import UnknownNameError
from fusion_bench.io.cached_loader import FileRequest, load_aligned, load_tables, switch_runs
from fusion_bench.io.dataset_cache import Cache, hash_key, open_cache
from fusion_bench.io.dataset_config import DatasetSpec, make_switches, read_spec
from fusion_bench.io.dataset_paths import DatasetPaths, request_judges, request_lists, request_qrels
from fusion_bench.io.fingerprints import (
    Fingerprint,
    fingerprint_judgments,
    fingerprint_lists,
    fingerprint_queries,
)
from fusion_bench.io.json_objects import load_known_queries
from fusion_bench.io.provenance import ListMeta, read_meta
from fusion_bench.io.query_groups import resolve_groups
from fusion_bench.util.formatting import Columns, TableView, pluralize

#: What no judgments are kept under in the cache.
EMPTY_KEY: Final = hash_key("no judgments")


def add_unjudged(
    qrels: Qrels, key: str | None, known: Mapping[str, Query], lists: Iterable[Qrels | Run]
) -> tuple[Qrels, str | None]:
    """The judgments with the queries of the queries file and of the lists, and their key.

    Args:
        qrels: The judgments.
        key: Of their file in the cache; None = it is not kept.
        known: What is known of the queries, by id.
        lists: The runs and rerank lists.
    """
    names = {*known, *(query for table in lists for query in table.queries)}
    whole = qrels.add_queries(names)
    return whole, None if key is None else hash_key("every query", key, list(whole.queries))


def later_requests(files: Sequence[FileRequest]) -> list[list[FileRequest]]:
    """For the second and each later trial, the files of the lists that have so many.

    Args:
        files: Of the first trial.
    """
    return [
        [
            replace(file, path=file.later_paths[t], later_paths=())
            for file in files
            if t < len(file.later_paths)
        ]
        for t in range(max((len(file.later_paths) for file in files), default=0))
    ]


def list_fields(
    lists: Iterable[tuple[FileRequest, Run]], judges: Mapping[str, FileRequest]
) -> dict[str, Any]:
    """The fields of a ``Dataset`` that say which lists it has.

    Args:
        lists: What was asked for, and the list.
        judges: Its other files, by key.

    Raises:
        DataError: The provenance of a rerank list is damaged, or that of another list.
    """
    pairs = [*lists]
    metas = {file.name: read_meta(file.path) for file, _ in pairs if file.kind == "rerank"}
    return {
        "runs": {run.name: run for file, run in pairs if file.kind == "runs"},
        "rerankers": {run.name: run for file, run in pairs if file.kind == "rerank"},
        "provenance": {name: meta for name, meta in metas.items() if meta is not None},
        "files": {**{file.key: file for file, _ in pairs}, **judges},
    }


def later_fields(
    lists: Sequence[tuple[FileRequest, Run]], count: int, judges: Mapping[str, FileRequest]
) -> Iterator[dict[str, Any]]:
    """The same fields for the second and each later trial.

    A list that has fewer files stands there with its first one, as lists of one file do.

    Args:
        lists: Those of the first trial, then those of the second that have so many files, ….
        count: How many belong to the first.
        judges: The other files, by key.
    """
    first = {file.key: (replace(file, later_paths=()), run) for file, run in lists[:count]}
    numbers = [len(file.later_paths) for file, _ in lists[:count]]
    later = iter(lists[count:])
    for t in range(max(numbers, default=0)):
        files = islice(later, sum(t < number for number in numbers))
        trial = {file.key: (file, run) for file, run in files}
        yield list_fields((first | trial).values(), judges)


T = TypeVar("T", Qrels, Run)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(TableView):
    """A judged collection with its frozen lists.

    Attributes:
        spec: What its ``dataset.yaml`` says.
        qrels: The judgements.
        runs: The runs that were asked for, by name.
        rerankers: The rerank lists that were asked for, by name.
        queries: What is known of the queries, by id.
        declared_queries: The same before groups were found; None = none were looked for.
        cache: Where it and its alignments are kept; None = nowhere.
        keys: The tables as they were read, and the key of each in the cache.
        provenance: What is known of the making of the rerank lists, by name.
        files: Where each list was read from, and how: ``runs/NAME`` or ``rerank/NAME``. Further
            judges, ``judges/NAME``, are read by ``io.judgments``.
        documents: JSON Lines with the texts of the documents; None = not named.
        later_trials: The same with the second, third, … file of each list that has so many; this
            dataset holds the first. Empty = every list has one file.
        refined: The same with the lists of the refined queries; None = not read, or there are none.
        has_file: Whether a ``dataset.yaml`` says all this.
    """

    spec: DatasetSpec
    qrels: Qrels
    runs: Mapping[str, Run]
    rerankers: Mapping[str, Run]
    queries: Mapping[str, Query]
    declared_queries: Mapping[str, Query] | None = None
    cache: Cache | None = None
    keys: Sequence[tuple[Qrels | Run, str | None]] = field(default=(), repr=False)
    provenance: Mapping[str, ListMeta] = field(default_factory=dict)
    files: Mapping[str, FileRequest] = field(default_factory=dict, repr=False)
    documents: Path | None = None
    later_trials: tuple[Dataset, ...] = field(default=(), repr=False)
    refined: Dataset | None = None
    has_file: bool = True

    def aligned(self, runs: Sequence[str], *, ties: Ties = "trec") -> AlignedRuns:
        """These runs and all rerank lists that were read, on one set of candidates.

        Args:
            runs: Names, in the order that ``first_seen`` ties go by.
            ties: The tie rule.

        Raises:
            AlignmentError: They cannot be aligned.
        """
        aligned = load_aligned(
            self._keyed(self.qrels),
            [self._keyed(self.runs[name]) for name in runs],
            [self._keyed(run) for run in self.rerankers.values()],
            self.queries,
            self.cache,
            ties=ties,
            complete=self.spec.judgments == "complete",
        )
        relevance = self.spec.binary_relevance
        return replace(aligned, binary_relevance=relevance, spaces=self.spaces, qrels=self.qrels)

    def _keyed(self, table: T) -> tuple[T, str | None]:
        """A table and its key in the cache."""
        return table, next((key for known, key in self.keys if known is table), None)

    def _summary(self) -> str:
        lists = f"runs: {', '.join(self.runs)}"
        if self.rerankers:
            lists += f"; rerank lists: {', '.join(self.rerankers)}"
        kind = "judged query" if self.is_judged else "unjudged query"
        return f"Dataset({self.name!r}, {pluralize(len(self.qrels), kind)}; {lists})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        lists = [*self.runs.items(), *self.rerankers.items()][:limit]
        return {
            "list": [name for name, _ in lists],
            "kind": ["run" if name in self.runs else "rerank" for name, _ in lists],
            "queries": [len(run) for _, run in lists],
            "documents": [len(run.documents) for _, run in lists],
        }

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name

    @property
    def trials(self) -> tuple[Dataset, ...]:
        """The dataset once a trial; alone where every list has one file."""
        return (self, *self.later_trials)

    @property
    def trial_lists(self) -> frozenset[str]:
        """The lists with several files, as ``runs/NAME`` and ``rerank/NAME``."""
        return frozenset(self.trial_counts)

    @property
    def trial_counts(self) -> dict[str, int]:
        """How many files each of these lists has."""
        files = self.files.items()
        return {key: len(file.later_paths) + 1 for key, file in files if file.later_paths}

    def count_trials(self, lists: Collection[str] | None = None) -> int:
        """How many trials there are of what reads some lists: the fewest files of those of several.

        Args:
            lists: As ``runs/NAME`` and ``rerank/NAME``; None = every list.

        Returns:
            1 where each of them has one file.
        """
        counts = self.trial_counts.items()
        return min((n for key, n in counts if lists is None or key in lists), default=1)

    @property
    def declared(self) -> Mapping[str, Query]:
        """What is known of the queries, with no group but the declared ones."""
        return self.declared_queries or self.queries

    @property
    def found_groups(self) -> dict[str, str]:
        """The group of each query whose group is not the declared one."""
        pairs = self.queries.items() - self.declared.items()
        return {query: record.group for query, record in sorted(pairs) if record.group}

    @property
    def is_judged(self) -> bool:
        """Whether any document is judged."""
        return len(self.qrels.grades) > 0

    @property
    def spaces(self) -> dict[str, ScoreSpace]:
        """Score space of each rerank list."""
        return {name: spec.score_space for name, spec in self.spec.rerank.items()}

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits that judged queries belong to."""
        names = {self.queries[q].split for q in self.qrels.queries if q in self.queries}
        return tuple(sorted(split for split in names if split))

    @property
    def ranked_by_column(self) -> frozenset[str]:
        """The lists whose order is that of a rank column, whatever their scores."""
        lists = {**self.runs, **self.rerankers}
        return frozenset(n for n, run in lists.items() if run.read_options.rank_from == "column")

    def degraded(self, reranker: str) -> tuple[str, ...]:
        """The queries whose scores in a rerank list are not those of the provider it names.

        A fallback scored them, or nobody did, or too many scores could not be read. Numbers made
        from such a list describe no one reranker, so whoever decides by them has to refuse it
        unless told otherwise.

        Args:
            reranker: Name of the rerank list.

        Returns:
            Query ids, sorted; empty for a list of which nothing is known.

        Raises:
            UnknownNameError: The dataset has no such list.
        """
        if reranker not in self.spec.rerank:
            raise UnknownNameError("reranker", reranker, self.spec.rerank, where=self.name)
        metas = [trial.provenance.get(reranker) for trial in self.trials]
        return tuple(
            sorted({query for meta in metas if meta is not None for query in meta.degraded})
        )

    def degradation(self, reranker: str) -> str | None:
        """Why nothing should be decided by a rerank list, in one line; None = nothing speaks."""
        if not self.degraded(reranker):
            return None
        metas = (trial.provenance.get(reranker) for trial in self.trials)
        return next(m.describe_degradation(reranker) for m in metas if m is not None and m.degraded)

    def digests(self) -> dict[str, str]:
        """SHA-256 of each loaded part; of the queries every field that decides a value.

        Of groups those that were declared: found ones follow from the other parts.
        """
        known = fingerprint_queries(self.qrels, self.declared)
        parts = {"qrels": self.qrels.digest(), **known.parts}
        parts |= {f"runs/{name}": run.digest() for name, run in self.runs.items()}
        parts |= {f"rerank/{name}": run.digest() for name, run in self.rerankers.items()}
        parts |= {name: run.digest() for name, run in self._later_lists()}
        return parts if self.refined is None else parts | self.refined.refined_digests()

    def refined_digests(self) -> dict[str, str]:
        """SHA-256 of the lists of refined queries, where these were read in place of the others."""
        specs = {f"runs/{name}": spec.refined for name, spec in self.spec.runs.items()}
        specs |= {f"rerank/{name}": spec.refined for name, spec in self.spec.rerank.items()}
        runs = {f"runs/{name}": run for name, run in self.runs.items()}
        runs |= {f"rerank/{name}": run for name, run in self.rerankers.items()}
        return {f"{key} refined": run.digest() for key, run in runs.items() if specs[key]}

    def _later_lists(self) -> Iterator[tuple[str, Run]]:
        """The lists of later trials, each named by its list and trial: ``runs/NAME trial 2``."""
        for number, trial in enumerate(self.later_trials, 2):
            lists = {f"runs/{name}": run for name, run in trial.runs.items()}
            lists |= {f"rerank/{name}": run for name, run in trial.rerankers.items()}
            present = [key for key in lists if number <= self.trial_counts.get(key, 1)]
            yield from ((f"{key} trial {number}", lists[key]) for key in present)

    @cached_property
    def contents(self) -> Fingerprint:
        """Everything loaded that a value can depend on: contents, and how they are read."""
        whole = fingerprint_judgments(self.spec, self.qrels)
        whole |= fingerprint_queries(self.qrels, self.queries, all_fields=True)
        whole |= fingerprint_lists(self.spec, self.runs, self.rerankers)
        for name, run in self._later_lists():
            whole |= Fingerprint.of_table(name, run)
        if self.refined is not None:
            whole |= Fingerprint(self.refined.refined_digests())
        return whole

    @property
    def fingerprint(self) -> str:
        """SHA-256 over :attr:`contents`."""
        return self.contents.digest


def load_dataset(
    path: Path,
    *,
    runs: Collection[str] | None = None,
    rerankers: Collection[str] | None = None,
    cache: bool | Cache = True,
    refined: bool = False,
    every_query: bool | None = False,
    groups: Mapping[str, str] | None = None,
) -> Dataset:
    """Read a dataset and check it.

    Args:
        path: Its ``dataset.yaml``.
        runs: Names of the runs to read; all by default.
        rerankers: Names of the rerank lists to read; all by default.
        cache: Whether what was read before may be taken from the cache beside it; or a cache.
        refined: Read the lists of the refined queries in place of those that have some.
        every_query: Keep queries without judgments, and allow none at all; None = where none are.
        groups: Groups by query that stand for those that a search would find; None = search.

    Raises:
        ConfigError: The ``dataset.yaml`` breaks a rule, or names no judgments.
        DataError: One of its files does.
        AlignmentError: Its queries are not those of its judgements.
    """
    spec, source = read_spec(path)
    paths = DatasetPaths(source)
    documents = None if spec.documents is None else paths(spec.documents, "documents")
    is_whole = spec.qrels is None if every_query is None else every_query
    qrels_files = request_qrels(spec, paths, optional=is_whole)
    run_files, rerank_files = request_lists(spec, paths, runs, rerankers, refined=refined)
    queries = None if spec.queries is None else paths.existing(spec.queries, "queries")
    store = cache if isinstance(cache, Cache) else None
    if cache is True:
        store = open_cache(path.parent, spec.list_paths(path.parent))
    count = len(run_files) + len(rerank_files)
    later = later_requests([*run_files, *rerank_files])
    requests = [*run_files, *rerank_files, *chain.from_iterable(later)]
    tables, keys = load_tables([*qrels_files, *requests], store)
    if not qrels_files:
        tables, keys = [Qrels.without_judgments(()), *tables], [EMPTY_KEY, *keys]
    qrels = cast("Qrels", tables[0])
    known = {} if queries is None else load_known_queries(queries, qrels)
    if is_whole:
        tables[0], keys[0] = add_unjudged(qrels, keys[0], known, tables[1:])
        qrels = cast("Qrels", tables[0])
    read = [] if refined else cast("list[Run]", tables[1 : len(run_files) + 1])
    declared, known = resolve_groups(spec, paths, known, qrels, read, store, groups)
    switches = make_switches(spec, source, qrels, known)
    switch_runs(requests, tables, keys, switches)
    lists = [*zip(requests, cast("list[Run]", tables[1:]), strict=True)]
    judges = request_judges(spec, paths)
    dataset = Dataset(
        spec=spec,
        qrels=qrels,
        queries=known,
        declared_queries=declared,
        documents=documents,
        cache=store,
        keys=tuple(zip(tables, keys, strict=True)),
        **list_fields(lists[:count], judges),
    )
    trials = tuple(replace(dataset, **fields) for fields in later_fields(lists, count, judges))
    return replace(dataset, later_trials=trials) if trials else dataset
