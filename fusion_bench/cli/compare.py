"""Compare run files, or systems of finished reports."""

from __future__ import annotations

import json as encoder
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fusion_bench.cli._base import JsonFlag, command_app, format_examples, make_console
from fusion_bench.cli._console import echo, echo_table
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from fusion_bench.evaluation.compare_systems import CollectionComparison
    from fusion_bench.stats.comparison import Comparison

__all__ = ["command", "compare"]

MEASURES = ["nDCG@10", "RR@10", "R@100"]


command = command_app()


@command.command(
    epilog=format_examples(
        "fusion-bench compare --qrels qrels.txt bm25.trec hybrid.trec",
        "fusion-bench compare reports/default/report.json --baseline rrf --candidate rrf-v2",
        "fusion-bench compare before/report.json after/report.json --candidate rrf",
    ),
)
def compare(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Run files (with --qrels; the first is the baseline), or one or two report.json.",
            metavar="FILE",
        ),
    ],
    qrels: Annotated[
        Path | None, typer.Option(help="Judgements; makes the files run files.", metavar="FILE")
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Measure of run files, the primary one first. Default: {', '.join(MEASURES)}.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    binary_relevance: Annotated[
        int | None,
        typer.Option(
            help="Grade of run files from which binary measures count. Default: 1.",
            min=1,
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="System of the first report to compare with.")
    ] = None,
    candidate: Annotated[
        list[str] | None,
        typer.Option(help="System to compare; may be given again.", metavar="NAME"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Compare run files with the first of them, or systems of finished reports."""
    if qrels is not None:
        _refuse("run files", {"--baseline": baseline, "--candidate": candidate})
        _files(qrels, files, measure or MEASURES, binary_relevance or 1, json=json)
        return
    _refuse("reports", {"--measure": measure, "--binary-relevance": binary_relevance})
    from fusion_bench.errors import DataError
    from fusion_bench.evaluation.compare_systems import compare_reports
    from fusion_bench.evaluation.report_records import read_report

    if len(files) > 2:
        raise typer.BadParameter("one or two reports; run files need --qrels", param_hint="FILE")
    try:
        reports = [read_report(path) for path in files]
    except DataError as error:
        others = [path for path in files if path.suffix != ".json" and path.exists()]
        if not others:
            raise
        raise DataError(f"{others[0]}: not a JSON report; run files need --qrels FILE") from error
    contrasts = compare_reports(
        reports[0],
        reports[1] if len(reports) == 2 else None,
        baseline=baseline,
        candidates=candidate or [],
    )
    if json:
        typer.echo(encoder.dumps([_plain(contrast) for contrast in contrasts]))
        return
    for contrast in contrasts:
        _print(contrast)


def _refuse(what: str, given: dict[str, object]) -> None:
    """No option is passed over in silence."""
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(f"does not go with {what}", param_hint=option)


def _files(
    qrels: Path, runs: list[Path], measures: list[str], binary_relevance: int, *, json: bool
) -> None:
    from fusion_bench.evaluation.compare_systems import compare_files
    from fusion_bench.report.evaluation import build_page
    from fusion_bench.report.terminal import print_page

    if len(runs) < 2:
        raise typer.BadParameter("two run files are needed at least", param_hint="FILE")
    report = compare_files(qrels, runs, measures=measures, binary_relevance=binary_relevance)
    if json:
        typer.echo(report.model_dump_json())
        return
    print_page(build_page(report), make_console())


def _plain(contrast: CollectionComparison) -> dict[str, object]:
    return {
        "collection": contrast.collection,
        "queries": contrast.queries,
        "comparisons": [
            {
                key: None if isinstance(value, float) and isnan(value) else value
                for key, value in asdict(comparison).items()
            }
            for comparison in contrast.comparisons
        ],
    }


def _print(contrast: CollectionComparison) -> None:
    baseline = contrast.comparisons[0].baseline
    echo(f"{contrast.collection}: {pluralize(contrast.queries, 'query')}, against {baseline}")
    interval = f"{100 * (1 - contrast.alpha):g} % interval"
    headings = ("measure", "system", "mean", "difference", interval, "p", "W/T/L")
    family = sum(c.p_holm is not None for c in contrast.comparisons)
    echo_table(headings, [_row(comparison, family) for comparison in contrast.comparisons])


def _row(c: Comparison, family: int) -> list[str]:
    adjusted = c.p_holm is not None
    return [
        c.measure,
        c.candidate,
        f"{c.candidate_mean:.4f}",
        f"{c.difference:+.4f}",
        f"[{c.low:+.4f}, {c.high:+.4f}]",
        f"{c.p_holm:.4f} (Holm over {family})" if adjusted else f"{c.p:.4f} (unadjusted)",
        f"{c.wins}/{c.ties}/{c.losses}",
    ]
