"""Compare fusion variants and rerank blends on judged queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import check_paper_options, paper_files, print_result
from fusion_bench.config.options import (
    CheckOptions,
    Folder,
    Name,
    Option,
    PaperOptions,
    PictureOptions,
)


class EvalOptions(
    base.ExperimentOptions, CheckOptions, PaperOptions, PictureOptions, base.PageOptions
):
    """Options of ``eval``.

    Attributes:
        split: Evaluate this split, or 'all'. Default: 'test' if the dataset has one.
        query_type: Evaluate only queries of this type.
        where: Evaluate only queries with this value in this field, such as language=ja. Repeat it
            for other values or fields.
        detail: Also list the top documents of this system and the terms of their scores, as of the
            baseline, the best, the guarded and the tuned system; repeatable.
        details_json: Also write details.json: ranks of the relevant documents, top documents,
            terms of scores, and what each source contributes.
        cache: Cache the parsed files beside the dataset.
    """

    out: Folder | None = None
    split: Name | None = None
    query_type: Name | None = None
    where: Annotated[Sequence[str], Option(metavar="FIELD=VALUE")] = ()
    detail: Annotated[Sequence[str], Option(metavar="SYSTEM")] = ()
    details_json: bool = False
    cache: bool = True


@base.single_command()
def command(options: EvalOptions) -> None:
    """Compare fusion variants and rerank blends on judged queries.

    Prints one table per dataset and writes report.json, report.md, report.html and plots.

    Examples:
        fusion-bench eval experiments/default.yaml
        fusion-bench eval experiments/mine.yaml --split dev --out look
        fusion-bench eval experiments/mine.yaml --markdown - --plot-format svg
        fusion-bench eval experiments/mine.yaml --set systems.rrf.fusion.k=20
        fusion-bench eval --split dev --no-plots --json
        fusion-bench eval experiments/mine.yaml --latex --columns nDCG@10 --columns AP
        fusion-bench eval experiments/mine.yaml --csv per-query
        fusion-bench eval experiments/mine.yaml --details-json --detail hybrid
    """
    from fusion_bench.checks.lint import lint_datasets
    from fusion_bench.cli.application.next_steps import after_eval
    from fusion_bench.evaluation.details.collector import DetailsCollector
    from fusion_bench.evaluation.run_experiment import run_experiment
    from fusion_bench.report.evaluation_page import build_page
    from fusion_bench.report.write import write_report

    collector = None
    if options.html or options.details_json:
        collector = DetailsCollector(tuple(options.detail))
    else:
        unshown = "does not go with --no-html, unless --details-json writes them"
        base.refuse(options, unshown, "detail")
    with options.open() as (parsed, source, folders, progress):
        measures = [measure.name for measure in parsed.parse_measures(1, source)]
        check_paper_options(options, measures)
        folder = base.out_folder(options.out, options.experiment)
        report = options.call(
            run_experiment,
            *(parsed, source),
            folders=folders,
            where=read_conditions(options.where),
            progress=progress,
            details=collector,
            allowed=options.allowed,
        )
        report = report.model_copy(update={"lint": lint_datasets(parsed, source, folders)})
        details = None
        if collector is not None:
            progress("details", 0, 1)
            details = collector.make_details(report)
        progress("writing the report", 1, 1)
        steps = tuple(after_eval(report, parsed, options))
        tables = paper_files(options, "report", report)
        written = options.call(
            write_report,
            *(report, folder, options),
            details=details,
            next_steps=steps,
            tables=tables,
        )
    print_result(report, replace(build_page(report), next_steps=steps), options, written)


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
