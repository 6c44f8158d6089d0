"""Pull lists from a live engine into a dataset, as the command does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from fusion_bench.api.event_loop import outside_event_loop
from fusion_bench.config.files.yaml_source import read_yaml
from fusion_bench.experiment.method_options import merge_mappings
from fusion_bench.pull.engine_config import build_connector
from fusion_bench.pull.run import PulledDataset, PullOptions, pull_dataset

PathLike = str | os.PathLike[str]


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
        texts: Whether the texts of the documents are pulled too.
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
    options = PullOptions(
        connector=build_connector(engine, merge_mappings(given, settings or {})),
        queries=dict(queries) if isinstance(queries, Mapping) else Path(queries),
        out=Path(out),
        name=name,
        depth=depth,
        texts=texts,
        vectors=None if vectors is None else Path(vectors),
        skip_failed=skip_failed,
        start_over=start_over,
    )
    return outside_event_loop(lambda: pull_dataset(options))
