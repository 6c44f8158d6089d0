"""Score a system's candidates with a reranker, once, into a list that the bench replays."""

from __future__ import annotations

import asyncio
import json as encoder
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fusion_bench.cli._app import (
    DatasetFolders,
    JsonFlag,
    command_app,
    examples,
    folders_for,
    require_folder,
)
from fusion_bench.cli._say import say, say_table, say_written

if TYPE_CHECKING:
    from fusion_bench.evaluate import System
    from fusion_bench.load.provenance import ListMeta
    from fusion_bench.rerank.candidates import Work
    from fusion_bench.rerank.clients import Provider
    from fusion_bench.rerank.config import RerankConfig
    from fusion_bench.rerank.job import Result
    from fusion_bench.rerank.plan import Plan
    from fusion_bench.rerank.store import Store
    from fusion_bench.rerank.studies import Study

__all__ = ["command", "rerank"]

#: The list was written, but not all of its scores are the asked provider's.
DEGRADED = 3
STORE = Path("reports/rerank/scores.sqlite")

command = command_app()


@command.command(
    epilog=examples(
        "fusion-bench rerank --dataset mine --system rrf --provider cohere --dry-run",
        "fusion-bench rerank --dataset mine --system rrf --provider tei --depth 50",
        "fusion-bench rerank --dataset mine --system rrf --config rerank.yaml --max-cost 5",
        "fusion-bench rerank --dataset mine --system rrf --simulate --out reports/down",
    )
    + "\n\nExit codes: 0 done, 2 could not do it, 3 written but degraded, 130 interrupted.",
)
def rerank(
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
    from fusion_bench.load import find_dataset
    from fusion_bench.load.spec import read_spec
    from fusion_bench.rerank.candidates import find_system, prepare
    from fusion_bench.rerank.config import chosen, read_config

    path = find_dataset(dataset, folders_for(datasets, experiment))
    found = find_system(system, read_spec(path)[0], experiment)
    settings = read_config(config)
    if simulate:
        _refuse("--simulate", {"--provider": provider, "--fallback": fallback, "--split": split})
        names = {"reranker": reranker, "fallback": fallback_list}
        _simulate(path, found, settings, change or [], measure, names, out, json=json)
        return
    _refuse("a run", {"--reranker": reranker, "--fallback-list": fallback_list})
    providers = chosen(settings, provider, fallback or [], change or [])
    place = out or path.parent / "rerank" / f"{_safe(f'{found.name}-{providers[0].method}')}.jsonl"
    work = prepare(path, found, depth=depth, split=split)
    _score(work, providers, settings, place, path.parent, store, max_cost, dry_run, as_json=json)


def _refuse(what: str, given: dict[str, object]) -> None:
    """No option is passed over in silence."""
    for option, value in given.items():
        if value:
            raise typer.BadParameter(f"does not go with {what}", param_hint=option)


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip(".-") or "list"


def _score(
    work: Work,
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
    from fusion_bench.rerank.job import run_name
    from fusion_bench.rerank.ledger import summary
    from fusion_bench.rerank.plan import plan
    from fusion_bench.rerank.store import Store
    from fusion_bench.rerank.write import check_place, write_list

    check_place(place)
    unpriced = [p.identity.label for p in providers if p.price is None]
    if max_cost is not None and unpriced:
        raise ConfigError(
            f"--max-cost needs the price of {', '.join(unpriced)}: give it in --config, or with "
            "--set price.per_1000_searches=… or price.per_million_tokens=…"
        )
    kept = Store(store)
    try:
        before = plan(work, providers[0], kept)
        if dry_run:
            _print_plan(before, providers[0], as_json=as_json)
            return
        result = _run(work, providers, config, kept, max_cost)
        resolved = {
            "profile": config.profile,
            "split": work.split,
            "providers": [p.model_dump(mode="json") for p in providers],
            "settings": config.resolved_settings().model_dump(mode="json"),
        }
        ledger = summary(kept.events(run_name(work, providers[0])))
        meta = write_list(place, work, result, resolved, ledger)
    finally:
        kept.close()
    _print_result(place, folder, meta, as_json=as_json)
    if meta.degraded:
        raise typer.Exit(DEGRADED)


def _run(
    work: Work, providers: list[Provider], config: RerankConfig, store: Store, limit: float | None
) -> Result:
    from fusion_bench.cli._progress import progress_bar
    from fusion_bench.rerank.job import score

    priced = any(p.price is not None and p.price != type(p.price)() for p in providers)
    with progress_bar() as progress:

        def told(done: int, total: int, spent: float) -> None:
            price = f", price so far {spent:.4f}" if priced else ""
            progress(f"{work.dataset}: scoring{price}", done, total)

        settings = config.resolved_settings()
        # The ledger counts retries; without a handler each would print its event's bare name.
        logging.getLogger("stamina").addHandler(logging.NullHandler())
        return asyncio.run(score(work, providers, settings, store, max_cost=limit, told=told))


def _print_plan(plan: Plan, provider: Provider, *, as_json: bool) -> None:
    if as_json:
        typer.echo(encoder.dumps(plan.as_json()))
        return
    say(
        f"{plan.queries} queries, {plan.documents} pairs of query and document, "
        f"{plan.stored} of them scored already"
    )
    say(
        f"{plan.calls} calls of {provider.identity.label}: {plan.usage.searches:g} search units, "
        f"about {plan.usage.tokens} tokens, {plan.usage.output_tokens} tokens written"
    )
    unknown = "not known: say --set price.per_1000_searches=… or price.per_million_tokens=…"
    say(f"price: {unknown if plan.cost is None else f'about {plan.cost:.4f}'}")


def _print_result(place: Path, folder: Path, meta: ListMeta, *, as_json: bool) -> None:
    from fusion_bench.rerank.write import entry

    if as_json:
        typer.echo(encoder.dumps({"list": str(place), **meta.model_dump(mode="json")}))
        return
    ledger = meta.ledger
    for label, queries in meta.providers.items():
        say(f"{label}: {len(queries)} queries")
    say(
        f"{ledger['calls']} calls, {ledger['documents']} documents, {ledger['retries']} retries, "
        f"price {ledger['cost']:.4f}; a query took {_ms(ledger['query_ms'])}"
    )
    if ledger["by_candidates"]:  # empty where a run with another ledger had scored everything
        _print_rows("latency by number of candidates asked about", ledger["by_candidates"])
    if meta.degraded:
        query, why = next(iter(meta.degraded.items()))
        say(
            f"degraded: {len(meta.degraded)} queries do not have {meta.asked}'s scores (for "
            f"example {query}: {why}); run the same command again to score them"
        )
    say(f"Written: {place}; in dataset.yaml:")
    for line in entry(place, folder, meta).split("\n"):
        say(line)


def _ms(latency: dict[str, Any]) -> str:
    if latency["p50"] is None:
        return "no time: all of it was stored"
    return f"{latency['p50']:.0f} ms (median), {latency['p95']:.0f} ms (95th percentile)"


def _print_rows(title: str, rows: list[dict[str, Any]]) -> None:
    cells = [[_cell(value) for value in row.values()] for row in rows]
    say_table(list(rows[0]), cells, title=title)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else "none" if value is None else str(value)


def _simulate(
    path: Path,
    system: System,
    config: RerankConfig,
    changes: list[str],
    measure: str,
    names: dict[str, str | None],
    out: Path | None,
    *,
    json: bool,
) -> None:
    from fusion_bench.cli._progress import progress_bar
    from fusion_bench.cli._study import print_study
    from fusion_bench.config import validated
    from fusion_bench.rerank.config import overridden
    from fusion_bench.rerank.quality import quality_of
    from fusion_bench.rerank.settings import Settings
    from fusion_bench.rerank.simulate import study
    from fusion_bench.rerank.simulation import Simulation

    name = f"simulate-{_safe(f'{path.parent.name}-{system.name}')}"
    folder = require_folder(out or Path("reports/rerank") / name)
    given = overridden(config.simulation.model_dump(), changes)
    spec = validated(Simulation, given, lambda place: "--set " + ".".join(map(str, place)))
    # What is weighed is the production profile, unless a file says otherwise.
    settings = config.resolved_settings() if config.settings else Settings.of("production")
    quality = quality_of(path, system, measure=measure, **names)
    with progress_bar() as show:
        found = study(quality, spec, settings, lambda n, of: show("simulating", n, of))
    written = _write_study(found, folder, f"{system.name} on {path.parent.name}")
    if json:
        typer.echo(encoder.dumps(found.as_json()))
        return
    print_study(found)
    say_written(written)


def _write_study(found: Study, folder: Path, title: str) -> list[Path]:
    from fusion_bench.files import write_whole
    from fusion_bench.report.degradation import degradation
    from fusion_bench.report.plots import png

    picture = png(degradation(found.as_json(), f"Degradation of {title}"))
    data = f"{encoder.dumps(found.as_json(), indent=1)}\n".encode()
    return [
        write_whole(folder / "simulation.json", data),
        write_whole(folder / "simulation.png", picture),
    ]
