"""Compare fusion variants and rerank blends on judged queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import print_result

if TYPE_CHECKING:
    from fusion_bench.evaluation.details.collector import DetailsCollector, ReportDetails
    from fusion_bench.evaluation.report_file import Report
    from fusion_bench.util.formatting import Progress


def read_conditions(given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Field → values of the options ``--where FIELD=VALUE``.

    Raises:
        BadParameter: One of them is of another form.
    """
    conditions: dict[str, tuple[str, ...]] = {}
    for text in given:
        field, equals, value = text.partition("=")
        if not (field and equals and value):
            raise typer.BadParameter(
                f"{text!r}: FIELD=VALUE is needed, such as language=ja", param_hint="--where"
            )
        conditions[field] = (*conditions.get(field, ()), value)
    return conditions


command = base.command_app()


@command.command(
    "eval",
    epilog=base.format_examples(
        "fusion-bench eval experiments/default.yaml",
        "fusion-bench eval experiments/mine.yaml --split dev --out look",
        "fusion-bench eval experiments/mine.yaml --markdown - --plot-format svg",
        "fusion-bench eval experiments/mine.yaml --set systems.rrf.fusion.k=20",
        "fusion-bench eval --split dev --no-plots --json",
        "fusion-bench eval experiments/mine.yaml --tables latex --tables csv",
        "fusion-bench eval experiments/mine.yaml --details-json --detail hybrid",
    ),
)
def eval_command(
    experiment: base.ExperimentFile = base.DEFAULT,
    out: base.OutFolder = None,
    datasets: base.DatasetFolders = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Evaluate this split, or 'all'. Default: 'test' if the dataset has one.",
            metavar="NAME",
        ),
    ] = None,
    query_type: Annotated[
        str | None, typer.Option(help="Evaluate only queries of this type.", metavar="NAME")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Evaluate only queries with this value in this field, such as language=ja. "
            "Repeat it for other values or fields.",
            metavar="FIELD=VALUE",
        ),
    ] = None,
    overrides: base.SetOption = None,
    plots: base.PlotsFlag = True,
    plot_format: base.PlotFormatOption = base.PlotFormat.PNG,
    tables: base.TableFormats = None,
    html: base.HtmlFlag = True,
    detail: Annotated[
        list[str] | None,
        typer.Option(
            help="Also list the top documents of this system and the terms of their scores, as of "
            "the baseline, the best, the guarded and the tuned system; repeatable.",
            metavar="SYSTEM",
        ),
    ] = None,
    details_json: Annotated[
        bool,
        typer.Option(
            "--details-json",
            help="Also write details.json: ranks of the relevant documents, top documents, terms "
            "of scores, and what each source contributes.",
        ),
    ] = False,
    cache: Annotated[bool, typer.Option(help="Cache the parsed files beside the dataset.")] = True,
    markdown: base.MarkdownFile = None,
    json: base.JsonFlag = False,
) -> None:
    """Compare fusion variants and rerank blends on judged queries.

    Prints one table per dataset and writes report.json, report.md, report.html and plots.
    """
    from fusion_bench.checks.lint import lint_datasets
    from fusion_bench.cli.application.next_steps import after_eval
    from fusion_bench.evaluation.run_experiment import run_experiment
    from fusion_bench.report.evaluation_page import build_page
    from fusion_bench.report.write import write_report

    base.refuse_two_outputs(markdown, as_json=json)
    collector = _make_collector(detail, is_needed=html or details_json)
    context = base.experiment_context(experiment, datasets, overrides)
    with context as (parsed, source, folders, progress):
        folder = base.out_folder(out, experiment)
        report = run_experiment(
            parsed,
            source,
            folders=folders,
            split=split,
            query_type=query_type,
            where=read_conditions(where or []),
            cache=cache,
            progress=progress,
            details=collector,
        )
        report = report.model_copy(update={"lint": lint_datasets(parsed, source, folders)})
        details = _make_details(collector, report, progress)
        progress("writing the report", 1, 1)
        written = write_report(
            report,
            folder,
            plots=plots,
            plot_format=plot_format.value,
            tables=tables or (),
            html=html,
            details=details,
            details_json=details_json,
        )
    steps = tuple(after_eval(report, experiment, parsed, datasets))
    page = replace(build_page(report), next_steps=steps)
    print_result(report, page, as_json=json, written=written, markdown=markdown)


def _make_collector(names: list[str] | None, *, is_needed: bool) -> DetailsCollector | None:
    """What collects the details; None where neither the page nor a file shows them.

    Raises:
        typer.BadParameter: Systems are named, and nothing shows their details.
    """
    from fusion_bench.evaluation.details.collector import DetailsCollector

    if is_needed:
        return DetailsCollector(tuple(names or ()))
    base.refuse_options("--no-html, unless --details-json writes them", {"--detail": names})
    return None


def _make_details(
    collector: DetailsCollector | None, report: Report, progress: Progress
) -> ReportDetails | None:
    if collector is None:
        return None
    progress("details", 0, 1)
    return collector.make_details(report)
