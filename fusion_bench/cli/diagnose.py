"""Count and list the failures of an experiment's systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.config.options import Depth, Folder, Name, Option


class DiagnoseOptions(base.ExperimentOptions, base.BriefOptions):
    """Options of ``diagnose``.

    Attributes:
        systems: System to diagnose, beside the baseline; repeatable. Default: all.
        dataset: One of several datasets. Default: each of them.
        listed: List the failures of this kind, the worst first.
        top: Number of failures to list, for each system and kind.
    """

    systems: base.Systems = ()
    dataset: Name | None = None
    listed: (
        Annotated[
            Literal["dilution", "burial", "miss", "inversion"], Option("--kind", metavar="KIND")
        ]
        | None
    ) = None
    top: Depth = 10
    out: Folder | None = None


@base.single_command()
def command(options: DiagnoseOptions) -> None:
    """Count the failures of each system: which relevant documents it loses, and where.

    Dilution: relevant and first in a list of role question, but below another document in the fused
    list. Burial: relevant and in the fused top 3, but the blend puts it below rank 10 or drops it.
    Miss: relevant, but no list that the system reads returned it. Inversion: relevant and in the
    final top 10, below a document that is judged not relevant.

    Prints what each system cures and causes against the baseline, with intervals, and writes
    diagnosis.json and diagnosis.md.

    Examples:
        fusion-bench diagnose experiments/default.yaml
        fusion-bench diagnose experiments/default.yaml --system "rrf replace" --kind burial
        fusion-bench diagnose experiments/mine.yaml --dataset mine --kind dilution --top 30
        fusion-bench diagnose experiments/mine.yaml --set baseline=reranked --json
    """
    from fusion_bench.cli.application.next_steps import after_diagnose
    from fusion_bench.evaluation.diagnosis import diagnose_experiment
    from fusion_bench.report.diagnosis_page import build_diagnosis_page
    from fusion_bench.report.write import write_record

    with options.open() as (parsed, source, folders, progress):
        folder = base.out_folder(options.out, options.experiment)
        diagnosis = options.call(
            diagnose_experiment, parsed, source, folders=folders, progress=progress
        )
        written = write_record("diagnosis", diagnosis, build_diagnosis_page(diagnosis), folder)
    first = options.dataset or parsed.dataset_names[0]
    steps = after_diagnose(
        diagnosis, options, first if len(parsed.dataset_names) > 1 else None, options.listed
    )
    page = replace(build_diagnosis_page(diagnosis, options.listed), next_steps=tuple(steps))
    print_result(diagnosis, page, options, written)
