"""What all retrievers have: texts, a context, the cut of scores to a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_files import Source, read_yaml
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import Query
from fusion_bench.errors import AlignmentError, ConfigError, DataError, UnknownNameError
from fusion_bench.io.dataset_config import DatasetPaths, DatasetSpec
from fusion_bench.io.json_objects import load_documents, load_queries
from fusion_bench.io.load_records import load_qrels
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.stored_answers import AnswerCounts
from fusion_bench.util.optional_imports import import_optional

#: Documents with their scores, best first.
Ranking: TypeAlias = list[tuple[str, float]]
#: Called with what is done now, the steps done, and all steps.
Progress: TypeAlias = Callable[[str, int, int], None]

#: Queries that are scored together; no result depends on it.
CHUNK = 128


import_extra = partial(import_optional, extra="retrieve")


class Index(Protocol):
    """Scores every document of a collection for a query.

    Attributes:
        ids: Document ids, shape (D,).
    """

    ids: tuple[str, ...]

    def scores(self, queries: Sequence[str]) -> FloatArray:
        """Shape (Q, D); columns follow ``ids``."""
        ...


def score_chunks(index: Index, queries: Sequence[str]) -> Iterator[FloatArray]:
    """Scores of an index for its queries, some at a time; shape (q, D) each."""
    for start in range(0, len(queries), CHUNK):
        yield index.scores(queries[start : start + CHUNK])


def rank_chunks(
    ids: Sequence[str],
    chunks: Iterable[FloatArray],
    *,
    depth: int,
    above: float | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> list[Ranking]:
    """The best documents of each query; arguments as for :func:`rank_documents`.

    Args:
        ids: Document ids, shape (D,).
        chunks: Scores, shape (q, D) each.
        depth: Most documents per query.
        above: Only documents whose rounded score is greater; None = all.
        on_progress: Called with the number of queries done.
    """
    rankings: list[Ranking] = []
    ties = _rank_ids(ids)
    for chunk in chunks:
        rankings += [_cut(ids, row, ties, depth=depth, above=above) for row in chunk]
        on_progress(len(rankings))
    return rankings


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
class TextFiles:
    """Where the texts are.

    Attributes:
        dataset: The ``dataset.yaml``; None = the two files alone.
        documents: JSON Lines in place of the dataset's documents; None = the dataset's.
        queries: The same for its queries.
        split: Only queries of this split; None = of all.
        unjudged: Whether queries without judgments are searched for too.
    """

    dataset: Path | None = None
    documents: Path | None = None
    queries: Path | None = None
    split: str | None = None
    unjudged: bool = False


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


def read_texts(files: TextFiles) -> SearchTexts:
    """Read documents and queries.

    Raises:
        ConfigError: A file is not named anywhere, or there is no such split.
        DataError: A file breaks a rule, or a query has no text.
        AlignmentError: No query is judged.
    """
    documents, queries, judged = files.documents, files.queries, None
    inputs: list[Path] = []
    if files.dataset is not None:
        spec, source = read_planned_spec(files.dataset, {})
        paths = DatasetPaths(source)
        inputs = [files.dataset, *spec.file_paths(files.dataset.parent)]
        if documents is None and spec.documents is not None:
            documents = paths.existing(spec.documents, "documents")
        if queries is None and spec.queries is not None:
            queries = paths.existing(spec.queries, "queries")
        if not files.unjudged and spec.qrels is not None:
            qrels = load_qrels(paths.existing(spec.qrels.path, "qrels"), layout=spec.qrels.layout)
            judged = set(qrels.queries)
    where = "" if files.dataset is None else f"{files.dataset}: "
    if documents is None or queries is None:
        lacking = "documents" if documents is None else "queries"
        raise ConfigError(
            f"{where}no {lacking!r}: name a JSON Lines file with their texts with --{lacking}, "
            'one {"id": …, "text": …} a line'
        )
    texts = {name: document.text for name, document in load_documents(documents).items()}
    chosen = _choose_queries(load_queries(queries), queries, judged, files.split)
    return SearchTexts(texts, chosen, queries, (documents, queries, *inputs))


def _choose_queries(
    known: Mapping[str, Query], path: Path, judged: set[str] | None, split: str | None
) -> dict[str, str]:
    splits = {query.split for query in known.values() if query.split}
    if split is not None and split not in splits:
        raise UnknownNameError("split", split, splits, where=f"--split: {path}")
    chosen = {
        name: query.text or ""
        for name, query in known.items()
        if (judged is None or name in judged) and (split is None or query.split == split)
    }
    if not chosen:
        raise AlignmentError(
            f"{path}: none of {len(known)} queries is judged (for example {next(iter(known))!r}): "
            "check that the qrels use the same query ids, or search for all with --unjudged"
        )
    blank = next((name for name, text in chosen.items() if not text.strip()), None)
    if blank is not None:
        raise DataError(f"{path}: query {blank!r} has no 'text': give it one")
    return chosen


def read_planned_spec(path: Path, entry: Mapping[str, object]) -> tuple[DatasetSpec, Source]:
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
