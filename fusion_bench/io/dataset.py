"""A dataset: everything that a ``dataset.yaml`` names, read, checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from shlex import quote
from typing import Any, Final, TypeVar, cast

import numpy as np

from fusion_bench._version import ENGINE
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns, ParentFinder, Ties, ViewCache
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace, Switch, check_field
from fusion_bench.data.run import Run, assign_roles
from fusion_bench.errors import AlignmentError, ConfigError, DataError, UnknownNameError
from fusion_bench.io.dataset_cache import Cache, hash_key, open_cache
from fusion_bench.io.dataset_config import ChunkRules, DatasetPaths, DatasetSpec, read_spec
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.io.held_out import HeldOut, find_open_campaigns, read_everything
from fusion_bench.io.json_objects import load_known_queries
from fusion_bench.io.load_records import FileRequest, load_aligned, load_tables, request_lists
from fusion_bench.io.parent_ids import find_parents
from fusion_bench.io.provenance import ListMeta, read_meta
from fusion_bench.io.query_groups import assign_groups, join_groups, read_groups
from fusion_bench.util.digests import hash_values
from fusion_bench.util.formatting import Columns, TableView, pluralize

#: Name of the parents that a rule finds, before the rule.
PARENTS: Final = "parents by "
#: What no judgments are kept under in the cache.
EMPTY_KEY: Final = hash_key("no judgments")


def _request_qrels(
    spec: DatasetSpec, paths: DatasetPaths, *, optional: bool = False
) -> list[FileRequest]:
    """The file of the judgments; an empty list where there is none.

    Args:
        spec: What the ``dataset.yaml`` says.
        paths: Resolves its paths.
        optional: Whether there may be none.

    Raises:
        ConfigError: There is none, and it is needed.
    """
    if spec.qrels is None:
        if optional:
            return []
        file = paths.source.path
        raise ConfigError(
            f"{file}: no judgments, and they are needed here: make some with 'fusion-bench judge "
            f"{quote(str(file))}', or name a file of them as 'qrels'"
        )
    location = ("qrels",) if isinstance(paths.source.data["qrels"], str) else ("qrels", "path")
    path, options = paths.existing(spec.qrels.path, *location), spec.qrels.grade_options
    return [FileRequest(path, layout=spec.qrels.layout, grade_options=options)]


def _request_judges(spec: DatasetSpec, paths: DatasetPaths) -> dict[str, FileRequest]:
    """The files of the further judges: ``judges/NAME`` → the file, which must be there."""
    return {
        f"judges/{name}": FileRequest(
            paths.existing(judge.path, "judges", name, "path"),
            name,
            layout=judge.layout,
            grade_options=judge.grade_options,
        )
        for name, judge in spec.judges.items()
    }


def _make_switches(
    spec: DatasetSpec, source: Source, qrels: Qrels, queries: Mapping[str, Query]
) -> dict[str, Switch]:
    """The switch of each run with a condition, by the run's name.

    Args:
        spec: What the ``dataset.yaml`` says.
        source: Where it says it.
        qrels: The judgments; a judged query of which nothing else is known counts too.
        queries: What is known of the queries, by id.

    Raises:
        ConfigError: A condition, and no queries file; or a field of lists or objects.
        UnknownNameError: A field that no query has.
    """
    conditions = {name: run.when for name, run in spec.runs.items() if run.when is not None}
    every = [*queries.values(), *(Query(q) for q in qrels.queries if q not in queries)]
    switches = {}
    for name, condition in conditions.items():
        where = source.where(("runs", name, "when"))
        if spec.queries is None:
            raise ConfigError(
                f"{where}: a run is on by fields of the queries, and there are none: name their "
                "file as 'queries'"
            )
        for query_field in condition:
            check_field(query_field, queries.values(), where)
        switches[name] = Switch.for_queries(condition, every)
    return switches


def _switch_run(run: Run, key: str | None, switch: Switch) -> tuple[Run, str | None]:
    """A run that is empty where it is off, and its key in the cache.

    Args:
        run: As it was read.
        key: Of the file in the cache; None = it is not kept.
        switch: Of the run.
    """
    on = sorted(switch.queries.intersection(run.queries))
    return run.switched(switch), None if key is None else hash_key("on", key, on)


def _resolve_groups(
    spec: DatasetSpec,
    paths: DatasetPaths,
    records: Mapping[str, Query],
    qrels: Qrels,
    read: Sequence[Run],
    cache: Cache | None,
    sealed: Mapping[str, str] | None = None,
) -> tuple[dict[str, Query], dict[str, Query]]:
    """The queries with the declared groups, and with those that ``groups`` makes of them.

    Args:
        spec: What the ``dataset.yaml`` says.
        paths: Resolves its paths.
        records: What is known of the queries, by id.
        qrels: The judgments.
        read: The runs that were read, before any is switched off; ``auto`` reads the others.
        cache: Where tables may be kept.
        sealed: Groups by query that stand for those that a search would find; None = search.

    Raises:
        ConfigError: A group that was found is too large.
        DataError: A file breaks a rule.
        AlignmentError: The file of groups names no judged query.
    """
    declared = dict(records)
    if spec.group_file is not None:
        file = paths.existing(spec.group_file, "groups")
        declared = assign_groups(records, read_groups(file, qrels))
    if sealed is not None:
        return declared, assign_groups(declared, sealed)
    known = {run.name: run for run in read}

    def load_all() -> list[Run]:
        missing = [name for name in spec.runs if name not in known]
        requests = request_lists(spec, paths, missing, (), refined=False)[0] if missing else []
        tables = cast("list[Run]", load_tables(requests, cache)[0])
        others = {run.name: run for run in tables}
        return [(known | others)[name] for name in spec.runs]

    where = paths.source.where(("groups",))
    return declared, join_groups(spec.grouping, declared, read, qrels, where, load_all)


def _list_fields(
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
            judges, ``judges/NAME``, are read by :func:`load_judge`.
        documents: JSON Lines with the texts of the documents; None = not named.
        later_repeats: The same with the second, third, … file of each list that has so many; this
            dataset holds the first. Empty = every list has one file.
        refined: The same with the lists of the refined queries; None = not read, or there are none.
        has_file: Whether a ``dataset.yaml`` says all this.
        folder: Folder of the ``dataset.yaml`` to which the judgments belong; None = of none.
        held_out: The queries that open campaigns hold out; nothing else here has them.
        parent_names: Rule → the field of documents and the column of lists that name parents, of
            each rule by which a system collapses chunks.
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
    later_repeats: tuple[Dataset, ...] = field(default=(), repr=False)
    refined: Dataset | None = None
    has_file: bool = True
    folder: Path | None = None
    held_out: HeldOut = field(default_factory=HeldOut)
    parent_names: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)

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
        return replace(
            aligned,
            binary_relevance=relevance,
            spaces=self.spaces,
            qrels=self.qrels,
            find_parents=self.find_parents,
        )

    def align_repeats(self, runs: Sequence[str], *, ties: Ties = "trec") -> AlignedRuns:
        """Align every repeat of the lists.

        Raises:
            AlignmentError: Those of some repeat cannot be aligned.
        """
        first = self.aligned(runs, ties=ties)
        later = []
        for number, repeat in enumerate(self.later_repeats, 2):
            try:
                later.append(repeat.aligned(runs, ties=ties))
            except AlignmentError as error:
                raise AlignmentError(f"{self.name}, trial {number}: {error}") from None
        return replace(first, later=tuple(later), repeat_counts=self.repeat_counts)

    def with_roles(self, given: Mapping[str, str | Collection[str]] | None = None) -> Dataset:
        """Return the dataset with the roles that a call, or the name of a run, gives its runs.

        Args:
            given: Role or roles by the name of a run; see :func:`assign_roles`, also for errors.
        """
        runs = assign_roles(self.runs, given)
        changed = {name: run for name, run in runs.items() if run is not self.runs[name]}
        if not changed:
            return self
        specs = {
            name: self.spec.runs[name].model_copy(update={"roles": tuple(sorted(run.roles))})
            for name, run in changed.items()
        }
        return replace(
            self,
            runs=runs,
            spec=self.spec.model_copy(update={"runs": {**self.spec.runs, **specs}}),
            later_repeats=tuple(repeat.with_roles(given) for repeat in self.later_repeats),
        )

    def with_every_query(self) -> Dataset:
        """The dataset with every query of its queries file and its lists, judged or not."""
        lists = (*self.runs.values(), *self.rerankers.values())
        answered = {query for run in lists for query in run.queries}
        qrels, runs = self.qrels.add_queries(answered | {*self.queries}), [*self.runs.values()]
        queries = join_groups(self.spec.grouping, self.declared, runs, qrels, self.name)
        return replace(self, qrels=qrels, queries=queries)

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

    @cached_property
    def find_parents(self) -> ParentFinder:
        """Finds the parents of ids in its documents and in the files of its runs, once each."""
        files = [file for key, file in self.files.items() if key.startswith("runs/")]
        return partial(find_parents, self.documents, files, ViewCache())

    def with_parents(self, names: Mapping[str, tuple[str | None, str | None]]) -> Dataset:
        """Return the dataset whose fingerprint has the parents of these rules, too."""
        if names.keys() <= self.parent_names.keys():
            return self
        return replace(self, parent_names={**self.parent_names, **names})

    @cached_property
    def _parent_digests(self) -> dict[str, str]:
        """SHA-256 of the listed chunks and their parents, by each rule that a system needs."""
        digests, datasets = {}, (*self.repeats, *([self.refined] if self.refined else []))
        lists = [run for each in datasets for run in each.runs.values()]
        known = {name for run in lists for name in run.vocabulary} if self.parent_names else set()
        for rule, names in self.parent_names.items():
            found = self.find_parents(*names)
            chunks = sorted(known & found.keys())
            digests[f"{PARENTS}{rule}"] = hash_values(chunks, [found[chunk] for chunk in chunks])
        return digests

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name

    @property
    def repeats(self) -> tuple[Dataset, ...]:
        """The dataset once a repeat; alone where every list has one file."""
        return (self, *self.later_repeats)

    @property
    def repeat_lists(self) -> frozenset[str]:
        """The lists with several files, as ``runs/NAME`` and ``rerank/NAME``."""
        return frozenset(self.repeat_counts)

    @property
    def repeat_counts(self) -> dict[str, int]:
        """How many files each of these lists has."""
        files = self.files.items()
        return {key: len(file.later_paths) + 1 for key, file in files if file.later_paths}

    def count_repeats(self, lists: Collection[str] | None = None) -> int:
        """How many repeats there are of what reads some lists: the fewest of several files.

        Args:
            lists: As ``runs/NAME`` and ``rerank/NAME``; None = every list.

        Returns:
            1 where each of them has one file.
        """
        counts = self.repeat_counts.items()
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
        metas = [repeat.provenance.get(reranker) for repeat in self.repeats]
        return tuple(
            sorted({query for meta in metas if meta is not None for query in meta.degraded})
        )

    def degradation(self, reranker: str) -> str | None:
        """Why nothing should be decided by a rerank list, in one line; None = nothing speaks."""
        if not self.degraded(reranker):
            return None
        metas = (repeat.provenance.get(reranker) for repeat in self.repeats)
        return next(m.describe_degradation(reranker) for m in metas if m is not None and m.degraded)

    def digests(self) -> dict[str, str]:
        """SHA-256 of each loaded part; of the queries every field that decides a value.

        Of groups those that were declared: found ones follow from the other parts.
        """
        known = Fingerprint.of_queries(self.qrels, self.declared)
        parts = {"qrels": self.qrels.digest(), **known.parts, **self._parent_digests}
        for name, run in (*self._lists().items(), *self._later_lists()):
            parts[name] = run.digest()
        return parts if self.refined is None else parts | self.refined.refined_digests()

    def _lists(self) -> dict[str, Run]:
        """``runs/NAME`` and ``rerank/NAME`` → the list."""
        lists = {f"runs/{name}": run for name, run in self.runs.items()}
        return lists | {f"rerank/{name}": run for name, run in self.rerankers.items()}

    def refined_digests(self) -> dict[str, str]:
        """SHA-256 of the lists of refined queries, where these were read in place of the others."""
        specs = {f"runs/{name}": spec.refined for name, spec in self.spec.runs.items()}
        specs |= {f"rerank/{name}": spec.refined for name, spec in self.spec.rerank.items()}
        return {f"{key} refined": run.digest() for key, run in self._lists().items() if specs[key]}

    def _later_lists(self) -> Iterator[tuple[str, Run]]:
        """The lists of later repeats, each named by its list and repeat: ``runs/NAME repeat 2``."""
        for number, repeat in enumerate(self.later_repeats, 2):
            for key, run in repeat._lists().items():
                if number <= self.repeat_counts.get(key, 1):
                    yield f"{key} trial {number}", run

    @cached_property
    def contents(self) -> Fingerprint:
        """Everything loaded that a value can depend on: contents, and how they are read."""
        whole = Fingerprint.of_table("qrels", self.qrels)
        whole |= Fingerprint.of_settings(
            {
                "judgments": self.spec.judgments,
                "binary_relevance": self.spec.binary_relevance,
                "engine": ENGINE,
            }
        )
        if self.spec.qrels is not None:
            stated = self.spec.qrels.model_dump(
                include={"grades", "on_duplicate", "ids"}, exclude_defaults=True
            )
            whole |= Fingerprint.of_settings({f"qrels.{key}": stated[key] for key in stated})
        whole |= Fingerprint.of_queries(self.qrels, self.queries, all_fields=True)
        for key, run in self._lists().items():
            settings = {"roles": sorted(run.roles), **run.read_options.settings}
            if key.startswith("rerank/"):
                settings["score_space"] = self.spec.rerank[run.name].score_space
            whole |= Fingerprint.of_table(key, run) | Fingerprint.of_settings({key: settings})
        for name, run in self._later_lists():
            whole |= Fingerprint.of_table(name, run)
        if self.refined is not None:
            whole |= Fingerprint(self.refined.refined_digests())
        return whole | Fingerprint(self._parent_digests)

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
    merged: ChunkRules | None = None,
) -> Dataset:
    """Read a dataset, without the queries that open campaigns hold out, and check it.

    Args:
        path: Its ``dataset.yaml``.
        runs: Names of the runs to read; all by default.
        rerankers: Names of the rerank lists to read; all by default.
        cache: Whether what was read before may be taken from the cache beside it; or a cache.
        refined: Read the lists of the refined queries in place of those that have some.
        every_query: Keep queries without judgments, and allow none at all; None = where none are.
        groups: Groups by query that stand for those that a search would find; None = search.
        merged: Rows of runs to merge, and parents that are part of the fingerprint; None = none.

    Raises:
        ConfigError: The ``dataset.yaml`` breaks a rule, or names no judgments.
        DataError: One of its files does.
        AlignmentError: Its queries are not those of its judgements.
    """
    spec, source = read_spec(path)
    rules = merged or ChunkRules({}, {})
    spec = spec.merge_rows(rules.rows, source)
    campaigns = find_open_campaigns([path, *spec.list_paths(path.parent)])
    store = cache if isinstance(cache, Cache) else None
    if cache is True:
        store = open_cache(path.parent, spec.list_paths(path.parent))
    is_whole = spec.qrels is None if every_query is None else every_query
    with read_everything():
        names = (runs, rerankers)
        dataset = _read_whole(spec, source, names, store, refined, is_whole, groups)
    dataset = dataset.with_parents(rules.parents)
    if not campaigns:
        return dataset
    tables = [table for table, _ in dataset.keys]
    answered = {query for table in tables for query in table.queries}
    held_out = HeldOut.match(campaigns, dataset.qrels, answered, dataset.queries)
    dropped = {id(table): held_out.drop_from(table) for table in tables}
    return _drop_held_out(dataset, held_out, dropped)


def _drop_held_out(
    dataset: Dataset, held_out: HeldOut, dropped: Mapping[int, Qrels | Run]
) -> Dataset:
    """The dataset without the queries that open campaigns hold out.

    Args:
        dataset: Everything that was read.
        held_out: The queries.
        dropped: ``id`` of a table → the table without them.
    """
    lists: dict[str, Any] = {
        "qrels": dropped[id(dataset.qrels)],
        "runs": {name: dropped[id(run)] for name, run in dataset.runs.items()},
        "rerankers": {name: dropped[id(run)] for name, run in dataset.rerankers.items()},
    }
    declared = dataset.declared_queries
    return replace(
        dataset,
        **lists,
        queries=held_out.drop_keys(dataset.queries),
        declared_queries=None if declared is None else held_out.drop_keys(declared),
        keys=[(dropped[id(table)], held_out.change_key(key)) for table, key in dataset.keys],
        provenance={n: meta.drop_queries(held_out) for n, meta in dataset.provenance.items()},
        later_repeats=tuple(
            _drop_held_out(each, held_out, dropped) for each in dataset.later_repeats
        ),
        held_out=held_out,
    )


def _read_whole(
    spec: DatasetSpec,
    source: Source,
    names: tuple[Collection[str] | None, Collection[str] | None],
    store: Cache | None,
    refined: bool,
    is_whole: bool,
    groups: Mapping[str, str] | None,
) -> Dataset:
    """The dataset with every query; arguments as of :func:`load_dataset`, resolved."""
    paths = DatasetPaths(source)
    documents = None if spec.documents is None else paths(spec.documents, "documents")
    qrels_files = _request_qrels(spec, paths, optional=is_whole)
    run_files, rerank_files = request_lists(spec, paths, *names, refined=refined)
    queries = None if spec.queries is None else paths.existing(spec.queries, "queries")
    first = [*run_files, *rerank_files]
    requests = [*first, *(later for file in first for later in file.split_repeats())]
    tables, keys = load_tables([*qrels_files, *requests], store)
    if not qrels_files:
        tables, keys = [Qrels.without_judgments(()), *tables], [EMPTY_KEY, *keys]
    qrels = cast("Qrels", tables[0])
    known = {} if queries is None else load_known_queries(queries, qrels)
    if is_whole:
        # Every query of the queries file and of the lists takes part, judged or not.
        qrels = qrels.add_queries(
            {*known, *(query for table in tables[1:] for query in table.queries)}
        )
        tables[0] = qrels
        if keys[0] is not None:
            keys[0] = hash_key("every query", keys[0], list(qrels.queries))
    read = [] if refined else cast("list[Run]", tables[1 : len(run_files) + 1])
    declared, known = _resolve_groups(spec, paths, known, qrels, read, store, groups)
    switches = _make_switches(spec, source, qrels, known)
    for n, file in enumerate(requests, start=1):
        if file.kind == "runs" and file.name in switches:
            tables[n], keys[n] = _switch_run(cast("Run", tables[n]), keys[n], switches[file.name])
    lists = [*zip(requests, cast("list[Run]", tables[1:]), strict=True)]
    judges = _request_judges(spec, paths)
    dataset = Dataset(
        spec=spec,
        qrels=qrels,
        queries=known,
        declared_queries=declared,
        documents=documents,
        folder=source.path.parent,
        cache=store,
        keys=tuple(zip(tables, keys, strict=True)),
        **_list_fields(lists[: len(first)], judges),
    )
    # A list that has fewer files stands in a later repeat with its first one.
    alone = {f.key: (replace(f, later_paths=()), run) for f, run in lists if f.repeat == 0}
    repeats = []
    for number in range(1, max((file.repeat for file, _ in lists), default=0) + 1):
        again = {file.key: (file, run) for file, run in lists if file.repeat == number}
        repeats.append(replace(dataset, **_list_fields((alone | again).values(), judges)))
    return replace(dataset, later_repeats=tuple(repeats))


def load_judge(dataset: Dataset, name: str) -> Qrels:
    """The grades of a judge that ``judges`` of the ``dataset.yaml`` names.

    Args:
        dataset: The dataset.
        name: The judge; ``qrels`` = the judgments themselves, unless a judge has that name.

    Raises:
        UnknownNameError: There is no such judge.
        DataError: The file breaks a rule, or holds a grade that ``map`` does not name.
    """
    spec = dataset.spec.judges.get(name)
    if spec is None:
        if name == "qrels":
            return dataset.qrels
        raise UnknownNameError(
            "judge", name, [*dataset.spec.judges, "qrels"], where=f"{dataset.name}: judges"
        )
    file = dataset.files[f"judges/{name}"]
    qrels = dataset.held_out.drop_from(file.read_qrels())
    if spec.map is None:
        return qrels
    mapped = np.empty_like(qrels.grades)
    for grade in np.unique(qrels.grades).tolist():
        if grade not in spec.map:
            known = ", ".join(map(str, sorted(spec.map)))
            raise DataError(
                f"{file.path}: grade {grade} is not in 'map' of this judge (it has {known}): add it"
            )
        mapped[qrels.grades == grade] = spec.map[grade]
    return replace(qrels, grades=mapped)
