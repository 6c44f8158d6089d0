"""Retrieval: texts in, the lists of a retriever cut and written as a run with its entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_files import Source, read_yaml
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import AlignmentError, ConfigError, DataError, UnknownNameError
from fusion_bench.io.dataset_config import DatasetPaths, DatasetSpec
from fusion_bench.io.dataset_edits import add_entries, format_entry
from fusion_bench.io.held_out import read_everything
from fusion_bench.io.json_objects import load_documents, load_queries
from fusion_bench.io.load_records import load_qrels
from fusion_bench.io.outputs import check_output, is_earlier_output, write_output
from fusion_bench.io.write_run import RunRows, encode_run, find_writer
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.endpoints import AnswerCounts
from fusion_bench.models.options import RetrieveOptions
from fusion_bench.util.files import remove_on_failure, require_folder, resolve_path, write_atomic
from fusion_bench.util.optional_imports import import_optional

#: Documents with their scores, best first.
Ranking: TypeAlias = list[tuple[str, float]]
#: Called with what is done now, the steps done, and all steps.
Progress: TypeAlias = Callable[[str, int, int], None]

#: Queries that are scored together; no result depends on it.
CHUNK = 128


import_extra = partial(import_optional, extra="retrieve")


def rank_documents(
    ids: Sequence[str],
    scores: FloatArray,
    *,
    depth: int,
    decimals: int = 6,
    above: float | None = None,
) -> Ranking:
    """The best documents of one query.

    Scores are rounded before they are ranked, so that a list written with that many decimals is
    in the order of its own scores. Equal scores stand in trec_eval's order: greater id first.

    Args:
        ids: Document ids, shape (D,).
        scores: Shape (D,): finite.
        depth: At most so many documents are returned.
        decimals: Decimal places that are kept.
        above: Only documents whose rounded score is greater are returned; None = all. BM25 and
            PageRank give 0 to what they did not find, which is not a result.

    Raises:
        DataError: Ids and scores differ in number, or a score is not finite.
    """
    if len(ids) != len(scores):
        raise DataError(f"{len(ids)} document ids for {len(scores)} scores: one each is needed")
    return _cut(ids, scores, _rank_ids(ids), depth=depth, decimals=decimals, above=above)


def _rank_ids(ids: Sequence[str]) -> FloatArray:
    """Place of each id among equal scores: greater ids first, compared as bytes; shape (D,)."""
    by_id = sorted(range(len(ids)), key=lambda d: ids[d].encode(), reverse=True)
    order = np.empty(len(ids))
    order[by_id] = np.arange(len(ids))
    return order


def _cut(
    ids: Sequence[str],
    scores: FloatArray,
    ties: FloatArray,
    *,
    depth: int,
    decimals: int = 6,
    above: float | None = None,
) -> Ranking:
    kept = np.asarray(np.round(scores, decimals), dtype=np.float64)
    if not np.isfinite(kept).all():
        raise DataError(f"score {kept[~np.isfinite(kept)][0]} is not a finite number")
    best = _rank_rows(kept, ties, depth=depth, above=above)
    # Adding 0.0 turns a rounded -0.0 into 0.0, which would otherwise be written with its sign.
    return [(ids[d], float(kept[d] + 0.0)) for d in best]


def rank_by_score(
    scores: FloatArray, *, depth: int, above: float | None = None
) -> NDArray[np.int64]:
    """Rows of the best scores, best first; of equal scores the later one is first.

    Args:
        scores: Shape (D,).
        depth: Most rows.
        above: Only rows whose score is greater; None = all.
    """
    return _rank_rows(scores, -np.arange(len(scores), dtype=np.float64), depth=depth, above=above)


def _rank_rows(
    scores: FloatArray, ties: FloatArray, *, depth: int, above: float | None
) -> NDArray[np.int64]:
    rows = np.arange(len(scores)) if above is None else np.flatnonzero(scores > above)
    if len(rows) > depth:  # sort only what can be in the list
        least = np.partition(scores[rows], len(rows) - depth)[len(rows) - depth]
        rows = rows[scores[rows] >= least]
    return rows[np.lexsort((ties[rows], -scores[rows]))[:depth]]


@dataclass(frozen=True)
class SearchTexts:
    """The texts of a collection.

    Attributes:
        documents: Document id → text.
        queries: Query id → text, of those that are searched for.
        queries_file: The file of the queries.
        inputs: Files that were read, and all others that the dataset names.
    """

    documents: Mapping[str, str]
    queries: Mapping[str, str]
    queries_file: Path
    inputs: tuple[Path, ...] = ()


@read_everything()
def read_texts(dataset: Path | None, options: RetrieveOptions | None = None) -> SearchTexts:
    """Read documents and queries.

    Args:
        dataset: The ``dataset.yaml``; None = the two files of the options alone.
        options: Files in place of the dataset's, and which queries; None = the dataset's.

    Raises:
        ConfigError: A file is not named anywhere, or there is no such split.
        DataError: A file breaks a rule, or a query has no text.
        AlignmentError: No query is judged.
    """
    options = options or RetrieveOptions()
    documents, queries, judged = options.documents, options.queries, None
    inputs: list[Path] = []
    if dataset is not None:
        spec, source = _read_planned_spec(dataset, {})
        paths = DatasetPaths(source)
        inputs = [dataset, *spec.file_paths(dataset.parent)]
        if documents is None and spec.documents is not None:
            documents = paths.existing(spec.documents, "documents")
        if queries is None and spec.queries is not None:
            queries = paths.existing(spec.queries, "queries")
        if not options.unjudged and spec.qrels is not None:
            qrels = load_qrels(
                paths.existing(spec.qrels.path, "qrels"),
                layout=spec.qrels.layout,
                options=spec.qrels.grade_options,
            )
            judged = set(qrels.queries)
    where = "" if dataset is None else f"{dataset}: "
    if documents is None or queries is None:
        lacking = "documents" if documents is None else "queries"
        raise ConfigError(
            f"{where}no {lacking!r}: name a JSON Lines file with their texts with --{lacking}, "
            'one {"id": …, "text": …} a line'
        )
    texts = {name: document.text for name, document in load_documents(documents).items()}
    known, split = load_queries(queries), options.split
    splits = {query.split for query in known.values() if query.split}
    if split is not None and split not in splits:
        raise UnknownNameError("split", split, splits, where=f"--split: {queries}")
    chosen = {
        name: query.text or ""
        for name, query in known.items()
        if (judged is None or name in judged) and (split is None or query.split == split)
    }
    if not chosen:
        raise AlignmentError(
            f"{queries}: none of {len(known)} queries is judged (for example "
            f"{next(iter(known))!r}): check that the qrels use the same query ids, or search for "
            "all with --unjudged"
        )
    blank = next((name for name, text in chosen.items() if not text.strip()), None)
    if blank is not None:
        raise DataError(f"{queries}: query {blank!r} has no 'text': give it one")
    return SearchTexts(texts, chosen, queries, (documents, queries, *inputs))


def _read_planned_spec(path: Path, entry: Mapping[str, object]) -> tuple[DatasetSpec, Source]:
    """A ``dataset.yaml`` as it will be with one more run; it may have none before.

    Args:
        path: The ``dataset.yaml``.
        entry: The run by name; empty = only read what is there.

    Raises:
        ConfigError: It breaks a rule.
    """
    source = read_yaml(path)
    runs = source.data.get("runs")
    planned = {**runs, **entry} if isinstance(runs, dict) else runs or {**entry}
    # A first run is still to be written: any name stands for it.
    data = {**source.data, "runs": planned or {"none": {"path": "none"}}}
    return parse_model(DatasetSpec, data, source.where), source


@dataclass
class SearchContext:
    """What a search is done with.

    Attributes:
        store: Keeps what models answered.
        on_progress: Called with what is done now, the steps done, and all steps.
        usage: What was asked of models, by what it was.
    """

    store: AnswerStore
    on_progress: Progress
    usage: dict[str, AnswerCounts] = field(default_factory=dict)

    def report_stage(self, stage: str) -> Callable[[int, int], None]:
        """A callback for the steps of one stage."""
        return lambda done, total: self.on_progress(stage, done, total)

    def report_queries(self, total: int) -> Callable[[int], None]:
        """A callback for the queries that are searched for."""
        return lambda done: self.on_progress("searching", done, total)

    def rank_queries(
        self,
        texts: SearchTexts,
        ids: Sequence[str],
        chunks: Iterable[FloatArray],
        depth: int,
        above: float | None = None,
    ) -> dict[str, Ranking]:
        """Rank the documents of each query, the best first.

        Args:
            ids: Document ids, shape (D,).
            texts: Queries and documents.
            chunks: Scores, shape (q, D) each.
            depth: Most documents per query.
            above: Only documents whose rounded score is greater; None = all.
        """
        done = self.report_queries(len(texts.queries))
        rankings: list[Ranking] = []
        ties = _rank_ids(ids)
        for chunk in chunks:
            rankings += [_cut(ids, row, ties, depth=depth, above=above) for row in chunk]
            done(len(rankings))
        return dict(zip(texts.queries, rankings, strict=True))


class Retriever(Protocol):
    """A way to retrieve.

    Attributes:
        name: What its run is called by default.
        roles: The roles of its run.
    """

    @property
    def name(self) -> str:
        """What its run is called by default."""
        ...

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of its run."""
        ...

    def describe(self) -> dict[str, Any]:
        """Its settings, as JSON has them."""
        ...

    def search(
        self, texts: SearchTexts, depth: int, context: SearchContext
    ) -> Mapping[str, Ranking]:
        """At most ``depth`` documents for each query.

        Raises:
            FusionBenchError: An input breaks a rule, or a model failed.
        """
        ...


#: Folder and suffix of a run in a dataset's folder.
FOLDER: Final = "runs"
SUFFIX: Final = ".trec.gz"
#: What a name may hold besides letters and digits.
NAME_CHARACTERS: Final = frozenset("._+-")


@dataclass(frozen=True)
class RunTarget:
    """Where a run goes.

    Attributes:
        dataset: The ``dataset.yaml``; None = the run is a file of its own.
        name: The run's name.
        roles: Its roles.
        out: The file; None = ``runs/NAME.trec.gz`` beside the ``dataset.yaml``.
        replace: Whether a run of that name may be replaced.
    """

    dataset: Path | None
    name: str
    roles: tuple[str, ...]
    out: Path | None = None
    replace: bool = False

    @property
    def path(self) -> Path:
        """The file.

        Raises:
            ConfigError: Neither a dataset nor a file is named.
        """
        if self.out is not None:
            return self.out
        if self.dataset is None:
            raise ConfigError("no place for the run: name a file with --out, or a --dataset")
        return self.dataset.parent / FOLDER / f"{self.name}{SUFFIX}"

    @property
    def entry(self) -> dict[str, Any]:
        """The run as a ``dataset.yaml`` names it."""
        place = self.path.name
        if self.is_inside and self.dataset is not None:
            root = resolve_path(self.dataset.parent)
            place = resolve_path(self.path).relative_to(root).as_posix()
        return {"path": place, "roles": list(self.roles)}

    @property
    def is_inside(self) -> bool:
        """Whether the file is in the dataset's folder, so that the dataset can name it."""
        if self.dataset is None:
            return False
        return resolve_path(self.path).is_relative_to(resolve_path(self.dataset.parent))

    @property
    def line(self) -> str:
        """The line of a ``dataset.yaml`` below ``runs``."""
        return format_entry(self.name, self.entry)


def check_target(target: RunTarget, texts: SearchTexts) -> None:
    """Refuse, before the work begins, what could not be written after it.

    Raises:
        ConfigError: The run is there already, or its entry does not fit the ``dataset.yaml``.
        DataError: The format of the file cannot hold an id.
        UnknownNameError: No format has that suffix.
    """
    path = target.path
    if not set(target.name) <= NAME_CHARACTERS | {c for c in target.name if c.isalnum()}:
        raise ConfigError(f"--name {target.name!r}: letters, digits and . _ + - are allowed")
    encode = find_writer(path)
    require_folder(path.parent)
    # Encode every id once: the format may not hold one of them.
    queries, documents = [*texts.queries], [*texts.documents]
    one_document, one_query = documents[:1] * len(queries), queries[:1] * len(documents)
    for pair in ((queries, one_document), (one_query, documents)):
        encode(RunRows(target.name, *pair, [1] * len(pair[0]), [0.0] * len(pair[0]), {}))
    if path.is_dir():
        raise ConfigError(f"--out {path}: a folder: name a file")
    inputs = {resolve_path(file) for file in texts.inputs}
    if target.dataset is not None:  # the run of that name, as it is now, may be replaced
        known = _read_planned_spec(target.dataset, {})[0].runs.get(target.name)
        if known is not None:
            inputs.discard(resolve_path(target.dataset.parent / known.path))
    if resolve_path(path) in inputs:
        raise ConfigError(f"{path}: the dataset's own, or an input: name another file with --out")
    if path.exists() and not target.replace:
        raise ConfigError(f"{path}: there is a run already: --replace it, or choose another --name")
    check_output(path, is_owned=is_earlier_output(path))
    if target.dataset is not None and target.is_inside:
        _edit_entries(target.dataset, target)


def write_rankings(target: RunTarget, rankings: Mapping[str, Ranking]) -> bool:
    """Write a run, then its entry; a new run without an entry is removed again.

    Returns:
        Whether the ``dataset.yaml`` names the run now.

    Raises:
        FusionBenchError: A file cannot be written.
    """
    with remove_on_failure() as new:
        if not target.path.exists():
            new.append(target.path)
        table = RunRows.from_rankings(target.name, rankings)
        write_output(target.path, encode_run(target.path, table), is_owned=True)
        if target.dataset is None or not target.is_inside:
            return False
        text = _edit_entries(target.dataset, target)
        if text is not None:
            write_atomic(target.dataset, text.encode())
    return True


def _edit_entries(path: Path, target: RunTarget) -> str | None:
    """The ``dataset.yaml`` with the run's entry; None = it is there already.

    Only one line is added; comments and the order of keys stay.

    Raises:
        ConfigError: Another file has the run's name, or the line has no place.
    """
    _, source = _read_planned_spec(path, {target.name: target.entry})
    runs = source.data.get("runs") or {}
    known = runs.get(target.name)
    if known is not None:
        file = known.get("path") if isinstance(known, dict) else known
        if file != target.entry["path"]:
            raise ConfigError(
                f"{source.where(('runs', target.name))}: another file, {file!r}, has this name: "
                "choose another --name"
            )
        return None
    edited = add_entries(path, {"runs": {target.name: target.entry}})
    if edited is None:
        raise ConfigError(
            f"{source.where(('runs',))}: no place for one more line: write one run a line below "
            f"'runs:', or add it yourself and give its file with --out: {target.line}"
        )
    return edited


@dataclass(frozen=True)
class WrittenRun:
    """A run on disk.

    Attributes:
        path: The run.
        name: Its name.
        settings: The method and its settings.
        documents: Documents that were searched.
        queries: Queries that were searched for.
        rows: Documents that were found, over all queries.
        empty: Queries that found nothing.
        usage: What was asked of models, by what it was.
        dataset: The ``dataset.yaml`` that names the run now; None = none does.
        line: The line of a ``dataset.yaml`` that names it.
    """

    path: Path
    name: str
    settings: dict[str, Any]
    documents: int
    queries: int
    rows: int
    empty: tuple[str, ...]
    usage: dict[str, AnswerCounts]
    dataset: Path | None
    line: str


def retrieve_run(
    retriever: Retriever,
    dataset: Path | None,
    options: RetrieveOptions,
    *,
    store: Path | None = None,
    on_progress: Progress = lambda *_: None,
) -> WrittenRun:
    """Search for every query, and write the run.

    Args:
        retriever: How.
        dataset: The ``dataset.yaml``; None = texts and run are files of their own.
        options: What is searched, and where the run goes.
        store: The answer store; None = in memory.
        on_progress: Called with what is done now, the steps done, and all steps.

    Raises:
        FusionBenchError: An input or an option breaks a rule, a model failed, or a file cannot be
            written. What models answered stays in the store.
    """
    name = options.name or retriever.name
    target = RunTarget(dataset, name, retriever.roles, options.out, replace=options.replace)
    path = target.path  # refused before anything is read
    on_progress("reading", 0, 1)
    texts = read_texts(dataset, options)
    check_target(target, texts)
    with closing(AnswerStore(store)) as answers:
        context = SearchContext(answers, on_progress)
        rankings = retriever.search(texts, options.depth, context)
    on_progress("writing", 0, 1)
    is_named = write_rankings(target, rankings)
    return WrittenRun(
        path=path,
        name=name,
        settings=retriever.describe(),
        documents=len(texts.documents),
        queries=len(texts.queries),
        rows=sum(map(len, rankings.values())),
        empty=tuple(query for query, ranking in rankings.items() if not ranking),
        usage=context.usage,
        dataset=dataset if is_named else None,
        line=target.line,
    )
