"""The options of rerank: of the command, and of what it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fusion_bench.config.options import (
    Amount,
    Changes,
    Depth,
    File,
    Name,
    Names,
    Option,
    Options,
)


class RerankOptions(Options):
    """What is reranked, and how.

    Attributes:
        dataset: A dataset's name, folder or dataset.yaml.
        system: Whose candidates: a system of --experiment, a run, or a fusion method.
        provider: A provider of --config, or a method such as cohere, tei, chat, onnx.
        fallbacks: Provider to ask when the first fails; repeatable.
        config: YAML with providers, chain, settings.
        overrides: Set a key of the provider, or of the simulation with --simulate, such as
            model=rerank-2, base_url=http://…, price.per_1000_searches=2; repeatable.
        experiment: Experiment that defines --system.
        depth: Candidates per query and trial.
        split: Only queries of this split.
        out: The list (.jsonl), or with --simulate a folder. Default: rerank/SYSTEM-PROVIDER.jsonl
            beside the dataset.yaml; reports/rerank/simulate-…
        store: SQLite file that keeps the scores.
        dry_run: Print the price and call no provider.
        max_cost: Stop before the price exceeds this.
        simulate: Replay a stored list under failures and deadlines.
        reranker: With --simulate: the stored list.
        fallback_list: With --simulate: a second provider's stored list.
        measure: With --simulate: the measure.
    """

    dataset: str
    system: str
    provider: str | None = None
    fallbacks: Annotated[Names, Option("--fallback")] = ()
    config: File | None = None
    overrides: Changes = ()
    experiment: File | None = None
    depth: Depth = 50
    split: str | None = None
    out: Path | None = None
    store: File = Path("reports/rerank/scores.sqlite")
    dry_run: bool = False
    max_cost: Amount | None = None
    simulate: bool = False
    reranker: Name | None = None
    fallback_list: Name | None = None
    measure: Name = "nDCG@10"
