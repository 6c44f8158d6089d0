"""Plan how many queries a difference needs, and see what the queries at hand can show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.cli.application.file_options import report_file

if TYPE_CHECKING:
    from fusion_bench.stats.power import PowerPlan

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench power --from reports/default/report.json",
        "fusion-bench power --from reports/default/report.json --system rrf-v2 --difference .01",
        "fusion-bench power --sd .2 --difference .02 --systems 5 --checks 4",
        "fusion-bench power --sd .2 --queries 400 --groups 100 --plot power.png",
    ),
)
def power_command(
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Take the differences of this report.json.", metavar="REPORT"),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            help="Compared system of the report. Default: the one with the highest mean.",
            metavar="NAME",
        ),
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option(help="Collection of the report. Default: the first.", metavar="NAME"),
    ] = None,
    sd: Annotated[
        float | None,
        typer.Option(help="Assume this standard deviation of the differences over queries."),
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="Queries at hand, with --sd.", metavar="N")
    ] = None,
    groups: Annotated[
        int | None, typer.Option(help="Groups among these queries, with --sd.", metavar="N")
    ] = None,
    design_effect: Annotated[
        float | None,
        typer.Option(
            help="Variance of the mean by group ÷ by query, with --sd. Default: queries ÷ groups.",
            metavar="X",
        ),
    ] = None,
    difference: Annotated[
        list[float] | None,
        typer.Option(
            help="True difference; repeatable. Default: .005, .01, .02, .05.", metavar="D"
        ),
    ] = None,
    systems: Annotated[
        int | None,
        typer.Option(
            help="Systems that are compared with the baseline. Default: the report's, or 1.",
            metavar="K",
        ),
    ] = None,
    checks: Annotated[int, typer.Option(help="Checks of the gate.", metavar="C")] = 1,
    power: Annotated[
        float, typer.Option(help="Probability of showing the difference.", metavar="P")
    ] = 0.8,
    alpha: Annotated[
        float | None,
        typer.Option(help="Level of all tests together. Default: the report's, or .05."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw power by number of queries (.png or .svg).", metavar="FILE"),
    ] = None,
    markdown: base.MarkdownFile = None,
    json: base.JsonFlag = False,
) -> None:
    """Plan how many queries a difference needs, and see what the queries at hand can show.

    The rules are those of eval, tune and gate. Reads a finished report, or assumes a spread.
    """
    from fusion_bench.api.power import DIFFERENCES
    from fusion_bench.api.power import power as plan_power
    from fusion_bench.io.outputs import refuse_inputs
    from fusion_bench.report.power_page import build_power_page

    base.refuse_two_outputs(markdown, as_json=json)
    if plot is not None and plot.suffix not in (".png", ".svg"):
        raise typer.BadParameter("must end in .png or .svg", param_hint="--plot")
    refuse_inputs(() if source is None else (report_file(source),))
    plan = plan_power(
        source,
        system=system,
        collection=collection,
        sd=sd,
        queries=queries,
        groups=groups,
        design_effect=design_effect,
        differences=difference or DIFFERENCES,
        systems=systems,
        checks=checks,
        power=power,
        alpha=alpha,
    )
    written = [] if plot is None else [_write_plot(plan, plot)]
    print_result(plan, build_power_page(plan), as_json=json, written=written, markdown=markdown)


def _write_plot(plan: PowerPlan, path: Path) -> Path:
    from fusion_bench.io.outputs import write_output
    from fusion_bench.report.plots._base import render_png, render_svg
    from fusion_bench.report.plots.studies import draw_sample_size

    render = render_svg if path.suffix == ".svg" else render_png
    return write_output(path, render(draw_sample_size(plan)), option="--plot")
