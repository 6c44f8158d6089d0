"""Score a system's top candidates with a reranker, as the command does."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from fusion_bench.api.event_loop import outside_event_loop
from fusion_bench.api.inputs.datasets import locate_dataset
from fusion_bench.rerank.run import RerankOptions, score_list
from fusion_bench.rerank.written_list import WrittenList

PathLike = str | os.PathLike[str]


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
        dataset=locate_dataset(dataset, folders),
        system=system,
        experiment=None if experiment is None else Path(experiment),
        config=None if config is None else Path(config),
        overrides=[f"{key}={_format_yaml(value)}" for key, value in (settings or {}).items()],
        provider=provider,
        fallbacks=fallbacks,
        depth=depth,
        split=split,
        out=None if out is None else Path(out),
        store=Path(store),
        max_cost=max_cost,
        measure="nDCG@10",
        reranker=None,
        fallback_list=None,
    )
    return outside_event_loop(lambda: score_list(options, lambda _done, _total, _spent: None))


def _format_yaml(value: object) -> str:
    """A value as YAML that reads back as the same: text in quotes, None as null."""
    return json.dumps(value, ensure_ascii=False, default=str)
