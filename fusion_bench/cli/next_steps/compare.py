"""The commands that follow a comparison of run files, or of reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fusion_bench.cli.next_steps.command_words import format_command, format_explain, list_words
from fusion_bench.cli.next_steps.experiment import list_losses
from fusion_bench.report.page import NextStep

if TYPE_CHECKING:
    from fusion_bench.evaluation.compare_systems import CollectionComparison
    from fusion_bench.evaluation.report_records.report import Report


def after_compare(
    qrels: Path, lists: Mapping[str, Path], options: Mapping[str, Sequence[object] | None]
) -> Iterator[NextStep]:
    """Fuse the lists that were compared.

    Args:
        qrels: File of judgments.
        lists: The files by their names.
        options: Measures and names of columns, as given; ``try`` takes the same.
    """
    if len(lists) > 1:
        named = (f"{name}={path}" for name, path in lists.items())
        command = format_command("try", "--qrels", qrels, *named, *list_words(options))
        yield NextStep(command, "fuse these lists, and see whether that pays")


def after_compare_reports(
    files: Sequence[Path],
    reports: Sequence[Report],
    comparison: CollectionComparison,
    *,
    has_summary: bool = False,
) -> Iterator[NextStep]:
    """Explain the query on which the best candidate loses most, and write a summary.

    Args:
        files: The one or two reports.
        reports: What they contain.
        comparison: Of their first collection.
        has_summary: Whether a summary was written.
    """
    primary = comparison.comparisons[0].measure
    rows = [row for row in comparison.comparisons if row.measure == primary]
    best = max(rows, key=lambda row: row.candidate_mean)
    candidate = best.candidate.removesuffix(" (second)") if len(files) > 1 else best.candidate
    sides = (reports[0], best.baseline), (reports[-1], candidate)
    before, after = (
        next(c for c in report.collections if c.name == comparison.collection)
        .system(name)
        .measures[primary]
        .values
        for report, name in sides
    )
    queries = next(c for c in reports[0].collections if c.name == comparison.collection).queries
    losses = list_losses(queries, before, after)
    experiment = _find_experiment(reports[-1])
    if losses and experiment is not None:
        command = format_explain(
            min(losses)[1],
            experiment=experiment,
            datasets=None,
            overrides=reports[-1].provenance.overrides,
            system=candidate,
            dataset=comparison.collection if len(reports[-1].collections) > 1 else None,
        )
        yield NextStep(command, f"the query on which {candidate} loses most")
    if not has_summary:
        names = ("--baseline", best.baseline, "--candidate", candidate)
        command = format_command("compare", *files, *names, "--markdown", "comparison.md")
        yield NextStep(command, "this comparison as a summary of at most 40 lines")


def _find_experiment(report: Report) -> Path | None:
    """The file of a report's experiment, where it lies at a usual place."""
    name, path = report.provenance.source, Path(report.provenance.experiment_file)
    places = (path, Path("experiments", name), Path(report.name, name))
    return next((path for path in places if path.is_file()), None)
