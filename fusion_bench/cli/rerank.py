"""Score a system's candidates with a reranker, once, into a list that the bench replays."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fusion_bench.cli._base import (
    DatasetFolders,
    JsonFlag,
    command_app,
    folders_for,
    format_examples,
)
from fusion_bench.cli._rerank_output import print_plan, print_result
from fusion_bench.cli._rerank_simulation import safe, simulated

if TYPE_CHECKING:
    from fusion_bench.rerank.candidates import ScoringRequest
    from fusion_bench.rerank.clients import Provider
    from fusion_bench.rerank.config import RerankConfig
    from fusion_bench.rerank.scoring_run import ScoringResult
    from fusion_bench.rerank.store import ScoreStore

__all__ = ["command", "rerank_command"]

#: The list was written, but not all of its scores are the asked provider's.
DEGRADED = 3
STORE = Path("reports/rerank/scores.sqlite")

command = command_app()


@command.command(
    epilog=format_examples(
        "fusion-bench rerank --dataset mine --system rrf --provider cohere --dry-run",
        "fusion-bench rerank --dataset mine --system rrf --provider tei --depth 50",
        "fusion-bench rerank --dataset mine --system rrf --config rerank.yaml --max-cost 5",
        "fusion-bench rerank --dataset mine --system rrf --simulate --out reports/down",
    )
    + "\n\nExit codes: 0 done, 2 could not do it, 3 written but degraded, 130 interrupted.",
)
def rerank_command(
    dataset: Annotated[str, typer.Option(help="A dataset's name, folder or dataset.yaml.")],
    system: Annotated[
        str, typer.Option(help="Whose fused list: a system of --experiment, a run, or a fusion.")
    ],
    provider: Annotated[
        str | None,
        typer.Option(help="A name in --config, or a method such as cohere, tei, chat, onnx."),
    ] = None,
    fallback: Annotated[
        list[str] | None,
        typer.Option(help="Asked when the first cannot be; may be given again.", metavar="NAME"),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML with providers, chain, settings.", metavar="FILE")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set a key of the provider (of the simulation with --simulate), such as "
            "model=rerank-2, base_url=http://…, price.per_1000_searches=2.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    experiment: Annotated[
        Path | None, typer.Option(help="Where --system is looked up.", metavar="FILE")
    ] = None,
    depth: Annotated[int, typer.Option(help="Candidates a query.", min=1)] = 50,
    split: Annotated[str | None, typer.Option(help="Only queries of this split.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The list (.jsonl), or the folder with --simulate. Default: "
            "rerank/SYSTEM-PROVIDER.jsonl beside the dataset.yaml; reports/rerank/simulate-…",
            show_default=False,
        ),
    ] = None,
    store: Annotated[Path, typer.Option(help="Where scores are kept.", metavar="FILE")] = STORE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the price only.")] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="Stop before the price goes beyond this.", min=0)
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Replay a list under failures instead of asking.")
    ] = False,
    reranker: Annotated[
        str | None, typer.Option(help="With --simulate: the stored list.", metavar="NAME")
    ] = None,
    fallback_list: Annotated[
        str | None, typer.Option(help="With --simulate: the second provider's.", metavar="NAME")
    ] = None,
    measure: Annotated[str, typer.Option(help="With --simulate.", metavar="NAME")] = "nDCG@10",
    datasets: DatasetFolders = None,
    json: JsonFlag = False,
) -> None:
    """Score a system's candidates with a reranker, once, into a list that the bench replays.

    Keys come from the environment only. A run that was stopped goes on where it was when the same
    command runs again, and pays for nothing twice.
    """
    from fusion_bench.io import find_dataset
    from fusion_bench.io.dataset_config import read_spec
    from fusion_bench.rerank.candidates import find_system, prepare_request
    from fusion_bench.rerank.config import read_rerank_config, select_providers

    path = find_dataset(dataset, folders_for(datasets, experiment))
    found = find_system(system, read_spec(path)[0], experiment)
    settings = read_rerank_config(config)
    if simulate:
        _refuse("--simulate", {"--provider": provider, "--fallback": fallback, "--split": split})
        names = {"reranker": reranker, "fallback": fallback_list}
        simulated(path, found, settings, change or [], measure, names, out, json=json)
        return
    _refuse("a run", {"--reranker": reranker, "--fallback-list": fallback_list})
    providers = select_providers(settings, provider, fallback or [], change or [])
    place = out or path.parent / "rerank" / f"{safe(f'{found.name}-{providers[0].method}')}.jsonl"
    work = prepare_request(path, found, depth=depth, split=split)
    _score(work, providers, settings, place, path.parent, store, max_cost, dry_run, as_json=json)


def _refuse(what: str, given: dict[str, object]) -> None:
    """No option is passed over in silence."""
    for option, value in given.items():
        if value:
            raise typer.BadParameter(f"does not go with {what}", param_hint=option)


def _score(
    work: ScoringRequest,
    providers: list[Provider],
    config: RerankConfig,
    place: Path,
    folder: Path,
    store: Path,
    max_cost: float | None,
    dry_run: bool,
    *,
    as_json: bool,
) -> None:
    from fusion_bench.errors import ConfigError
    from fusion_bench.rerank.ledger import summarize_events
    from fusion_bench.rerank.plan import estimate_cost
    from fusion_bench.rerank.scoring_run import run_key
    from fusion_bench.rerank.store import ScoreStore
    from fusion_bench.rerank.write import check_list_path, write_list

    check_list_path(place)
    unpriced = [p.model_identity.label for p in providers if p.price is None]
    if max_cost is not None and unpriced:
        raise ConfigError(
            f"--max-cost needs the price of {', '.join(unpriced)}: give it in --config, or with "
            "--set price.per_1000_searches=… or price.per_million_tokens=…"
        )
    kept = ScoreStore(store)
    try:
        before = estimate_cost(work, providers[0], kept)
        if dry_run:
            print_plan(before, providers[0], as_json=as_json)
            return
        result = _run(work, providers, config, kept, max_cost)
        resolved = {
            "profile": config.profile,
            "split": work.split,
            "providers": [p.model_dump(mode="json") for p in providers],
            "settings": config.resolved_settings().model_dump(mode="json"),
        }
        ledger = summarize_events(kept.read_events(run_key(work, providers[0])))
        meta = write_list(place, work, result, resolved, ledger)
    finally:
        kept.close()
    print_result(place, folder, meta, as_json=as_json)
    if meta.degraded:
        raise typer.Exit(DEGRADED)


def _run(
    work: ScoringRequest,
    providers: list[Provider],
    config: RerankConfig,
    store: ScoreStore,
    limit: float | None,
) -> ScoringResult:
    from fusion_bench.cli._progress import progress_bar
    from fusion_bench.rerank.scoring_run import score_queries

    priced = any(p.price is not None and p.price != type(p.price)() for p in providers)
    with progress_bar() as progress:

        def show_progress(done: int, total: int, spent: float) -> None:
            price = f", price so far {spent:.4f}" if priced else ""
            progress(f"{work.dataset}: scoring{price}", done, total)

        settings = config.resolved_settings()
        # The ledger counts retries; without a handler each would print its event's bare name.
        logging.getLogger("stamina").addHandler(logging.NullHandler())
        return asyncio.run(
            score_queries(
                work, providers, settings, store, max_cost=limit, on_progress=show_progress
            )
        )
