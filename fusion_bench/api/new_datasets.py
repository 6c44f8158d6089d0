"""Datasets of a published collection, of the user's own files, and queries from a log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from fusion_bench.data.records import ScoreSpace
from fusion_bench.datasets import add_dataset as collections
from fusion_bench.datasets.new_dataset import NewDataset, make_new_dataset
from fusion_bench.datasets.write_collection import AddedDataset
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.starter.comparison import RerankFile, StarterInput
from fusion_bench.experiment.defaults import DEFAULT_MEASURES
from fusion_bench.queries.query_log import read_query_log
from fusion_bench.queries.sample_log import QuerySample, sample_queries

PathLike = str | os.PathLike[str]


def add_dataset(
    collection: str,
    out: PathLike,
    *,
    splits: Sequence[str] = (),
    name: str | None = None,
    any_counts: bool = False,
    download: bool = False,
) -> AddedDataset:
    """Make a dataset of a published test collection: queries, judgments and documents.

    Args:
        collection: ``ir_datasets:ID``, ``beir:FOLDER`` or ``mteb:FOLDER``.
        out: The folder to write.
        splits: The splits to read; empty = all.
        name: The dataset's name; by default the collection's.
        any_counts: Accept counts that differ from those that the collection's makers state.
        download: Whether ir_datasets may download what its cache lacks.

    Raises:
        FusionBenchError: The collection is not there or breaks a rule, a count differs, or the
            folder holds a dataset already.
    """
    return collections.add_dataset(
        *(collection, Path(out)),
        splits=splits,
        name=name,
        any_counts=any_counts,
        download=download,
    )


def new_dataset(
    folder: PathLike,
    runs: Mapping[str, PathLike],
    *,
    qrels: PathLike,
    queries: PathLike | None = None,
    documents: PathLike | None = None,
    rerankers: Mapping[str, PathLike] | None = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    binary_relevance: int = 1,
    check: bool = True,
) -> NewDataset:
    """Make a checked dataset of your own files, and an experiment on it.

    Args:
        folder: The folder to write.
        runs: Files of two ranked lists or more, by name.
        qrels: File of judgments.
        queries: JSON Lines: id, text, type, group, split.
        documents: JSON Lines: id, title, text.
        rerankers: Files of rerankers' scores, by name.
        score_spaces: What the numbers of each rerank list mean; guessed from them by default.
        binary_relevance: Grade from which binary measures count.
        check: Whether to check what the files hold, beyond reading lists and judgments.

    Raises:
        UnknownNameError: A score space, or the list that it is given for, is unknown.
        FusionBenchError: A file breaks a rule, or the folder holds a dataset already.
    """
    lists, spaces = rerankers or {}, score_spaces or {}
    for name, space in spaces.items():
        if name not in lists:
            raise UnknownNameError("reranker", name, lists, where="score_spaces")
        if space not in get_args(ScoreSpace):
            raise UnknownNameError("score space", space, get_args(ScoreSpace), where="score_spaces")
    given = StarterInput(
        qrels=Path(qrels),
        runs={name: Path(path) for name, path in runs.items()},
        rerankers={n: RerankFile(Path(path), spaces.get(n)) for n, path in lists.items()},
        queries=None if queries is None else Path(queries),
        measures=DEFAULT_MEASURES,
        binary_relevance=binary_relevance,
        documents=None if documents is None else Path(documents),
    )
    return make_new_dataset(given, Path(folder), check=check)


def sample_log(
    log: PathLike,
    *,
    n: int = 200,
    column: str | None = None,
    drop_personal: bool = False,
    seed: int = 0,
) -> QuerySample:
    """Draw queries from a log: as many that many ask as that few ask.

    Args:
        log: One query a line, JSON Lines, CSV or TSV.
        n: Queries to draw.
        column: Column or key of the text; by default ``query``, ``text`` and other usual names.
        drop_personal: Replace queries with personal data, which are flagged otherwise.
        seed: Another one draws another sample.

    Raises:
        FusionBenchError: The log cannot be read or holds no query, or ``n`` is below 1.
    """
    read = read_query_log(Path(log), column)
    return sample_queries(read, n, seed=seed, drop_personal=drop_personal)
