"""New data: datasets, queries from a log, lists pulled from an engine, scores of a reranker."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from fusion_bench.api.inputs import Roles, check_space_names, locate_dataset
from fusion_bench.config.yaml_files import read_yaml
from fusion_bench.data.records import ScoreSpace
from fusion_bench.engines.connectors._base import build_connector
from fusion_bench.engines.options import PullOptions
from fusion_bench.engines.pull import PulledDataset, pull_dataset
from fusion_bench.evaluation.starter import RerankFile, StarterInput
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.experiment.overrides import merge_mappings
from fusion_bench.importers.new_dataset import NewDataset, make_new_dataset
from fusion_bench.io.dataset_config import FileSettings
from fusion_bench.judging.query_log import QuerySample, read_query_log, sample_queries
from fusion_bench.models.options import RerankOptions
from fusion_bench.models.rerank_run import WrittenList, score_list

T = TypeVar("T")


def outside_event_loop(work: Callable[[], T]) -> T:
    """The result of work that runs an event loop of its own, also from within another."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # no loop runs here
        return work()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


PathLike = str | os.PathLike[str]


def new_dataset(
    folder: PathLike,
    runs: Mapping[str, PathLike],
    *,
    qrels: PathLike,
    queries: PathLike | None = None,
    documents: PathLike | None = None,
    rerankers: Mapping[str, PathLike] | None = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    roles: Roles | None = None,
    binary_relevance: int = 1,
    check: bool = True,
    **options: Any,  # noqa: ANN401 - the models check them
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
        roles: Role or roles of a run by its name, as for ``compare``.
        binary_relevance: Grade from which binary measures count.
        check: Whether to check what the files hold, beyond reading lists and judgments.
        options: How the files are read, as for ``compare``.

    Raises:
        UnknownNameError: A score space, or the list that it is given for, is unknown.
        FusionBenchError: A file breaks a rule, or the folder holds a dataset already.
    """
    lists, spaces = rerankers or {}, score_spaces or {}
    check_space_names(spaces, lists)
    given = StarterInput(
        settings=FileSettings.from_options(options, [*runs, *lists]),
        qrels=Path(qrels),
        runs={name: Path(path) for name, path in runs.items()},
        rerankers={n: RerankFile(Path(path), spaces.get(n)) for n, path in lists.items()},
        queries=None if queries is None else Path(queries),
        measures=DEFAULT_MEASURES,
        roles=roles or {},
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
    keep_similar: bool = False,
    seed: int = 0,
) -> QuerySample:
    """Draw queries from a log: as many that many ask as that few ask.

    Args:
        log: One query a line, JSON Lines, CSV or TSV.
        n: Queries to draw.
        column: Column or key of the text; by default ``query``, ``text`` and other usual names.
        drop_personal: Replace queries with personal data, which are flagged otherwise.
        keep_similar: Draw queries that resemble another one, too.
        seed: Another one draws another sample.

    Raises:
        FusionBenchError: The log cannot be read or holds no query, or ``n`` is below 1.
    """
    read = read_query_log(Path(log), column)
    return sample_queries(
        read, n, seed=seed, drop_personal=drop_personal, keep_similar=keep_similar
    )


def pull(
    engine: str,
    queries: PathLike | Mapping[str, str],
    out: PathLike,
    *,
    settings: Mapping[str, object] | None = None,
    config: PathLike | None = None,
    name: str | None = None,
    depth: int = 100,
    texts: bool = False,
    all_texts: bool = False,
    vectors: PathLike | None = None,
    skip_failed: bool = False,
    start_over: bool = False,
) -> PulledDataset:
    """Pull each leg of a hybrid search alone, and the engine's own fused answer, as a dataset.

    What an interrupted pull has asked is not asked again. Works inside a running event loop too.

    Args:
        engine: Name of the engine, such as ``elasticsearch``, ``pgvector``, ``http`` or ``python``.
        queries: JSON Lines with the id and the text of each query, or ``{id: text}``.
        out: The dataset's folder.
        settings: Keys of the engine: its place, ``legs``, ``fused``.
        config: YAML file with the same keys, over which ``settings`` are put.
        name: The dataset's name; by default the folder's.
        depth: Most documents per query and list.
        texts: Whether the texts of the documents that are returned are pulled too.
        all_texts: Whether those of all documents of the index are, where the engine lists them.
        vectors: File with the vectors of the queries, for legs that name none.
        skip_failed: Leave out a query of which a list fails for good.
        start_over: Forget the answers of an unfinished pull, and replace a dataset that an earlier
            pull wrote.

    Returns:
        The folder, the record of the pull, and the files.

    Raises:
        FusionBenchError: An input or an option breaks a rule, or the engine failed.
    """
    given = {} if config is None else dict(read_yaml(Path(config)).data)
    connector = build_connector(engine, merge_mappings(given, settings or {}))
    known = dict(queries) if isinstance(queries, Mapping) else Path(queries)
    options = PullOptions(
        out=Path(out),
        name=name,
        depth=depth,
        texts=texts,
        all_texts=all_texts,
        vectors=None if vectors is None else Path(vectors),
        skip_failed=skip_failed,
        start_over=start_over,
    )
    return outside_event_loop(lambda: pull_dataset(connector, known, options))


def rerank(
    dataset: PathLike,
    system: str,
    provider: str | None = None,
    *,
    settings: Mapping[str, object] | None = None,
    fallbacks: Sequence[str] = (),
    config: PathLike | None = None,
    experiment: PathLike | None = None,
    depth: int = 50,
    split: str | None = None,
    out: PathLike | None = None,
    store: PathLike = "reports/rerank/scores.sqlite",
    max_cost: float | None = None,
    folders: Collection[PathLike] | None = None,
) -> WrittenList:
    """Rerank a system's top candidates and save the scores for offline evaluation.

    Scores that the store has are not paid for twice. Works inside a running event loop too.

    Args:
        dataset: A dataset's name, folder or ``dataset.yaml``; it names the texts.
        system: Whose candidates: a system of the experiment, a run, or a fusion method.
        provider: A provider of ``config``, or a method such as ``cohere``, ``tei``, ``onnx``.
        settings: Keys of the provider, such as ``{"model": "rerank-2"}``.
        fallbacks: Providers to ask when the first fails.
        config: YAML file with providers, chain and settings.
        experiment: Experiment that defines the system.
        depth: Candidates per query and trial.
        split: Only queries of this split.
        out: The list (``.jsonl``); by default ``rerank/SYSTEM-PROVIDER.jsonl`` beside the
            ``dataset.yaml``.
        store: SQLite file that keeps the scores.
        max_cost: Stop before the price exceeds this.
        folders: Where named datasets live.

    Returns:
        The list's path, its provenance, and the lines that make it part of the dataset.

    Raises:
        FusionBenchError: An input or an option breaks a rule, or nothing could be scored.
    """
    options = RerankOptions(
        dataset=str(dataset),
        system=system,
        provider=provider,
        fallbacks=fallbacks,
        config=None if config is None else Path(config),
        overrides=[
            f"{key}={json.dumps(value, ensure_ascii=False, default=str)}"
            for key, value in (settings or {}).items()
        ],
        experiment=None if experiment is None else Path(experiment),
        depth=depth,
        split=split,
        out=None if out is None else Path(out),
        store=Path(store),
        max_cost=max_cost,
    )
    path = locate_dataset(dataset, folders)
    return outside_event_loop(lambda: score_list(path, options, lambda *_: None))
