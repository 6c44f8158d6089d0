"""Check the parameters of a configuration for surprises; needs no queries."""

from __future__ import annotations

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.config.options import Name


class LintOptions(base.ExperimentOptions, base.PageOptions):
    """Options of ``lint``.

    Attributes:
        systems: Only this system; repeatable. Default: all.
        dataset: Take roles, score spaces and query types from this dataset. Default: the
            experiment's.
        engine: Find what this search engine cannot express, such as opensearch.
    """

    systems: base.Systems = ()
    dataset: Name | None = None
    engine: Name | None = None


@base.single_command(ExitCode.REGRESSION)
def command(options: LintOptions) -> None:
    """Check the parameters of a configuration for surprises; needs no queries.

    Reads no list. Each finding has a witness: ranks and scores on which the real system shows it.

    Examples:
        fusion-bench lint experiments/default.yaml
        fusion-bench lint experiments/mine.yaml --system rrf-v2 --dataset attack
        fusion-bench lint experiments/mine.yaml --engine opensearch
        fusion-bench lint experiments/mine.yaml --json | jq -r '.findings[].message'
    """
    from fusion_bench.checks.lint import make_lint_report, read_fitting_facts
    from fusion_bench.experiment.dialect import find_engine
    from fusion_bench.report.data_warnings import build_lint_page

    with options.read() as (parsed, source):
        if options.engine is not None:
            find_engine(options.engine, where="--engine")  # even if there is nothing to lint
        facts = read_fitting_facts(parsed, source, options.folders, options.dataset)
        report = make_lint_report(
            parsed, source, facts, systems=options.systems or None, engine=options.engine
        )
    print_result(report, build_lint_page(report), options, about=options.experiment)
    if any(finding.severity == "warning" for finding in report.findings):
        raise typer.Exit(ExitCode.REGRESSION)
