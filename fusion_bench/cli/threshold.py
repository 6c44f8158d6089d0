"""Find which signal of a system can carry a threshold, below which it says nothing."""

from __future__ import annotations

from typing import Annotated

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, make_console, print_result
from fusion_bench.config.options import File, Folder, Name, Option


class ThresholdOptions(base.ExperimentOptions, base.BriefOptions):
    """Options of ``threshold``.

    Attributes:
        systems: System to look at; repeatable. Default: all.
        dataset: One of several datasets. Default: each of them.
        signal: Calibrate this signal alone, on all queries: "rerank top".
        false_answers: Share of the unanswerable queries that may be answered. Default: the share in
            "abstain" of the system, or 0.1.
        min_kept: Say "cannot carry a threshold" of a signal that keeps less of the answerable ones.
        mask: Take the relevant documents of half of the queries away, if you know no query without
            an answer.
        save: Write the experiment with the threshold as "abstain" of its system.
    """

    systems: base.Systems = ()
    dataset: Name | None = None
    signal: Annotated[str, Option("--signal", metavar="NAME")] | None = None
    false_answers: Annotated[float, Option(metavar="SHARE")] | None = None
    min_kept: Annotated[float, Option(metavar="SHARE")] = 0.5
    mask: bool = False
    save: File | None = None
    out: Folder | None = None


@base.single_command()
def command(options: ThresholdOptions) -> None:
    """Find which signal can tell queries with an answer from queries without one.

    A query without an answer has "answerable": false in queries.jsonl. For each score of each
    system, prints the threshold that answers at most 10 % of such queries, and what share of the
    other queries it still answers. Writes threshold.json, threshold.md and a picture.

    Examples:
        fusion-bench threshold experiments/mine.yaml
        fusion-bench threshold experiments/mine.yaml --mask --system reranked
        fusion-bench threshold experiments/mine.yaml --system reranked --signal "rerank top"
        fusion-bench threshold experiments/mine.yaml --false-answers 0.05 --json
        fusion-bench threshold experiments/mine.yaml --save experiments/careful.yaml
    """
    from fusion_bench.cli.application.next_steps import format_command
    from fusion_bench.evaluation.thresholds import (
        ThresholdSettings,
        format_threshold_experiment,
        measure_thresholds,
    )
    from fusion_bench.io.outputs import check_output, write_output
    from fusion_bench.report.page import NextStep
    from fusion_bench.report.terminal import print_next_steps
    from fusion_bench.report.threshold_page import build_threshold_page
    from fusion_bench.report.write import draw_figures, write_record

    with options.open() as (parsed, source, folders, progress):
        folder = base.out_folder(options.out, options.experiment)
        if options.save is not None:
            check_output(options.save, option="--save")
        settings = ThresholdSettings(
            false_answers=options.false_answers,
            min_kept=options.min_kept,
            mask=options.mask,
            signal=options.signal,
            seed=parsed.seed,
        )
        report = measure_thresholds(
            parsed,
            source,
            settings,
            folders=folders,
            systems=options.systems,
            dataset=options.dataset,
            progress=progress,
        )
        if options.save is not None:
            text = format_threshold_experiment(
                report, parsed, source, file=options.save, folders=folders
            )
        page = build_threshold_page(report, None if options.json else "png")
        written = write_record("threshold", report, page, folder, draw_figures(page))
        if options.save is not None:
            write_output(options.save, text.encode(), option="--save")
    print_result(report, page, options, written)
    if options.save is not None and not (options.json or options.quiet):
        split, terminal = source.overrides.get(("split",)), make_console()
        terminal.print()
        echo(f"Written: {options.save}{'' if split is None else f', without --set {split}'}")
        step = format_command("eval", options.save, datasets=options.datasets)
        print_next_steps([NextStep(step, "the shares of answered queries")], terminal)
