"""Show every term of a document's score, and why it ranks above or below another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.config.models import MOST_RANK

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench explain q17 --experiment experiments/mine.yaml",
        "fusion-bench explain q17 doc42 --experiment experiments/mine.yaml --system rrf-v2",
        "fusion-bench explain q17 doc42 --experiment experiments/mine.yaml --against doc7 --json",
    ),
)
def explain(
    query: Annotated[str, typer.Argument(help="Id of a judged query.", metavar="QUERY")],
    document: Annotated[
        str | None,
        typer.Argument(help="Id of a document. Default: the top documents.", metavar="DOCUMENT"),
    ] = None,
    experiment: Annotated[
        Path, typer.Option(help="The experiment's YAML file.", metavar="FILE")
    ] = base.DEFAULT,
    system: Annotated[
        str | None,
        typer.Option(help="System to explain. Default: the gated system, or the baseline."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Dataset, if the experiment has several.", metavar="NAME")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Document to compare with. Default: the one ranked next above.", metavar="DOCUMENT"
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(help="Number of documents to list.", min=1, max=MOST_RANK)
    ] = 10,
    trial: Annotated[
        int, typer.Option(help="Which file of each list that has several.", min=1, metavar="N")
    ] = 1,
    datasets: base.DatasetFolders = None,
    overrides: base.SetOption = None,
    json: base.JsonFlag = False,
) -> None:
    """Show every term of a document's score, and why it ranks above or below another."""
    from fusion_bench.cli.application.next_steps import after_explain
    from fusion_bench.explain.explanation import explain_query, select_traces, trace_record
    from fusion_bench.io.excerpts import read_titles
    from fusion_bench.report.explanation_page import build_explanation_page

    if document is None and against is not None:
        raise typer.BadParameter("needs a DOCUMENT to compare with", param_hint="--against")

    if experiment == base.DEFAULT and not base.DEFAULT.exists():
        raise typer.BadParameter(
            f"there is no {base.DEFAULT}: name a file", param_hint="--experiment"
        )
    folders = base.folders_for(datasets, experiment)
    with base.open_experiment(experiment, overrides) as (parsed, source):
        explanation = explain_query(
            *(parsed, source, query),
            system=system,
            dataset=dataset,
            folders=folders,
            trial=trial,
        )
    traces = select_traces(explanation, document, against=against, top=top)
    titles = read_titles(explanation.documents, {trace.document for trace in traces})
    records = [
        {**trace_record(explanation, trace), "title": titles.get(trace.document, "")}
        for trace in traces
    ]
    page = build_explanation_page(
        explanation, traces, with_terms=document is not None, titles=titles
    )
    if document is None:
        steps = after_explain(explanation, experiment, dataset, datasets, overrides)
        page = replace(page, next_steps=tuple(steps))
    print_result(records, page, as_json=json)
