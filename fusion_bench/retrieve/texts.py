"""The texts that are searched, and those that are searched for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source, read_yaml
from fusion_bench.config.models import parse_model
from fusion_bench.data.records import Query
from fusion_bench.errors import AlignmentError, ConfigError, DataError, UnknownNameError
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.io.dataset_paths import DatasetPaths
from fusion_bench.io.json_objects import load_documents, load_queries
from fusion_bench.io.load_records import load_qrels


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
