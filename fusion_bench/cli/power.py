"""Plan how many queries a difference needs, and see what the queries at hand can show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.cli.application.file_options import report_file
from fusion_bench.config.options import File, Name, Option

if TYPE_CHECKING:
    from fusion_bench.report.power_page import PowerPlan
Number = Annotated[int, Option(metavar="N")]


class PowerOptions(base.PageOptions):
    """Options of ``power``.

    Attributes:
        report: Take the differences of this report.json.
        system: Compared system of the report. Default: the one with the highest mean.
        collection: Collection of the report. Default: the first.
        sd: Assume this standard deviation of the differences over queries.
        queries: Queries at hand, with --sd.
        groups: Groups among these queries, with --sd.
        design_effect: Variance of the mean by group ÷ by query, with --sd. Default: queries ÷
            groups.
        differences: True difference; repeatable. Default: .005, .01, .02, .05.
        systems: Systems that are compared with the baseline. Default: the report's, or 1.
        checks: Checks of the gate.
        power: Probability of showing the difference.
        alpha: Level of all tests together. Default: the report's, or .05.
        plot: Draw power by number of queries (.png or .svg).
    """

    report: Annotated[Path, Option("--from", metavar="REPORT")] | None = None
    system: Name | None = None
    collection: Name | None = None
    sd: float | None = None
    queries: Annotated[Number, Option("--query-count")] | None = None
    groups: Annotated[Number, Option("--group-count")] | None = None
    design_effect: Annotated[float, Option(metavar="X")] | None = None
    differences: Annotated[Sequence[float], Option("--difference", metavar="D")] = ()
    systems: Annotated[int, Option(metavar="K")] | None = None
    checks: Annotated[int, Option(metavar="C")] = 1
    power: Annotated[float, Option(metavar="P")] = 0.8
    alpha: float | None = None
    plot: File | None = None


@base.single_command()
def command(options: PowerOptions) -> None:
    """Plan how many queries a difference needs, and see what the queries at hand can show.

    Uses the rules of eval, tune and gate. Reads a finished report, or assumes a spread.

    Examples:
        fusion-bench power --from reports/default/report.json
        fusion-bench power --from reports/default/report.json --system rrf-v2 --difference .01
        fusion-bench power --sd .2 --difference .02 --systems 5 --checks 4
        fusion-bench power --sd .2 --query-count 400 --group-count 100 --plot power.png
    """
    from fusion_bench.api.power import DIFFERENCES, power
    from fusion_bench.io.outputs import refuse_inputs
    from fusion_bench.report.power_page import build_power_page

    if options.plot is not None and options.plot.suffix not in (".png", ".svg"):
        raise typer.BadParameter("must end in .png or .svg", param_hint="--plot")
    refuse_inputs(() if options.report is None else (report_file(options.report),))
    plan = options.call(power, differences=options.differences or DIFFERENCES)
    written = [] if options.plot is None else [_write_plot(plan, options.plot)]
    print_result(plan, build_power_page(plan), options, written)


def _write_plot(plan: PowerPlan, path: Path) -> Path:
    from fusion_bench.io.outputs import write_output
    from fusion_bench.report.plots._base import render_png, render_svg
    from fusion_bench.report.plots.studies import draw_sample_size

    render = render_svg if path.suffix == ".svg" else render_png
    return write_output(path, render(draw_sample_size(plan)), option="--plot")
