"""Rerank a system's top candidates and save the scores for offline evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli.application.exit_codes import ExitCode, describe_exit_codes
from fusion_bench.config.limits import MOST_RANK

if TYPE_CHECKING:
    from fusion_bench.rerank.run import RerankOptions

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench rerank --dataset mine --system rrf --provider cohere --dry-run",
        "fusion-bench rerank --dataset mine --system rrf --provider tei --depth 50",
        "fusion-bench rerank --dataset mine --system rrf --config rerank.yaml --max-cost 5",
        "fusion-bench rerank --dataset mine --system rrf --simulate --out reports/down",
    )
    + "\n\n"
    + describe_exit_codes(ExitCode.DEGRADED),
)
def rerank_command(
    dataset: Annotated[str, typer.Option(help="A dataset's name, folder or dataset.yaml.")],
    system: Annotated[
        str,
        typer.Option(help="Whose candidates: a system of --experiment, a run, or a fusion method."),
    ],
    provider: Annotated[
        str | None,
        typer.Option(help="A provider of --config, or a method such as cohere, tei, chat, onnx."),
    ] = None,
    fallback: Annotated[
        list[str] | None,
        typer.Option(help="Provider to ask when the first fails; repeatable.", metavar="NAME"),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML with providers, chain, settings.", metavar="FILE")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set a key of the provider, or of the simulation with --simulate, such as "
            "model=rerank-2, base_url=http://…, price.per_1000_searches=2; repeatable.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    experiment: Annotated[
        Path | None, typer.Option(help="Experiment that defines --system.", metavar="FILE")
    ] = None,
    depth: Annotated[
        int, typer.Option(help="Candidates per query and trial.", min=1, max=MOST_RANK)
    ] = 50,
    split: Annotated[str | None, typer.Option(help="Only queries of this split.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The list (.jsonl), or with --simulate a folder. Default: "
            "rerank/SYSTEM-PROVIDER.jsonl beside the dataset.yaml; reports/rerank/simulate-…",
        ),
    ] = None,
    store: Annotated[
        Path, typer.Option(help="SQLite file that keeps the scores.", metavar="FILE")
    ] = Path("reports/rerank/scores.sqlite"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the price and call no provider.")
    ] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="Stop before the price exceeds this.", min=0)
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Replay a stored list under failures and deadlines.")
    ] = False,
    reranker: Annotated[
        str | None, typer.Option(help="With --simulate: the stored list.", metavar="NAME")
    ] = None,
    fallback_list: Annotated[
        str | None,
        typer.Option(help="With --simulate: a second provider's stored list.", metavar="NAME"),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="With --simulate: the measure.", metavar="NAME")
    ] = "nDCG@10",
    datasets: base.DatasetFolders = None,
    json: base.JsonFlag = False,
) -> None:
    """Rerank a system's top candidates and save the scores for offline evaluation.

    API keys come from environment variables. Run the same command again to resume a run that was
    interrupted or reached --max-cost; stored scores are not paid for twice.
    """
    from fusion_bench.cli.output.rerank_result import print_estimate, print_list
    from fusion_bench.cli.progress.bar import progress_bar
    from fusion_bench.io.dataset_search import find_dataset
    from fusion_bench.rerank.run import RerankOptions, estimate_list, score_list

    options = RerankOptions(
        dataset=find_dataset(dataset, base.folders_for(datasets, experiment)),
        system=system,
        experiment=experiment,
        config=config,
        overrides=change or (),
        provider=provider,
        fallbacks=fallback or (),
        depth=depth,
        split=split,
        out=out,
        store=store,
        max_cost=max_cost,
        measure=measure,
        reranker=reranker,
        fallback_list=fallback_list,
    )
    if simulate:
        given = {"--provider": provider, "--fallback": fallback, "--split": split}
        base.refuse_options("--simulate", given)
        _simulate(options, as_json=json)
        return
    base.refuse_options("a run", {"--reranker": reranker, "--fallback-list": fallback_list})
    if dry_run:
        print_estimate(estimate_list(options), as_json=json)
        return
    with progress_bar() as show:

        def show_progress(done: int, total: int, spent: float) -> None:
            show(f"scoring, price so far {spent:.4f}" if spent else "scoring", done, total)

        written = score_list(options, show_progress)
    print_list(written, as_json=json)
    if written.meta.degraded:
        raise typer.Exit(ExitCode.DEGRADED)


def _simulate(options: RerankOptions, *, as_json: bool) -> None:
    from fusion_bench.cli.output.rerank_result import print_simulation
    from fusion_bench.cli.progress.bar import progress_bar
    from fusion_bench.measures.aliases import list_renamed
    from fusion_bench.rerank.run import safe_file_name, simulate_list
    from fusion_bench.rerank.simulation.simulation_result import write_simulation
    from fusion_bench.util.files.atomic_files import require_folder

    dataset = options.dataset.parent.name
    name = f"simulate-{safe_file_name(f'{dataset}-{options.system}')}"
    folder = require_folder(options.out or Path("reports/rerank") / name)
    with progress_bar() as show:
        result = simulate_list(options, lambda done, total: show("simulating", done, total))
    written = write_simulation(result, folder, f"{options.system} on {dataset}")
    print_simulation(result, written, as_json=as_json)
    base.echo_notes(list_renamed([options.measure]))
