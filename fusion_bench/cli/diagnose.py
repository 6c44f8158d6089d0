"""Count and list the failures of an experiment's systems."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.config.models import MOST_RANK

command = base.command_app()


class ListedKind(StrEnum):
    """A kind of failure; :data:`fusion_bench.explain.failures.KINDS` has the same."""

    DILUTION = "dilution"
    BURIAL = "burial"
    MISS = "miss"
    INVERSION = "inversion"


@command.command(
    epilog=base.format_examples(
        "fusion-bench diagnose experiments/default.yaml",
        'fusion-bench diagnose experiments/default.yaml --system "rrf replace" --list burial',
        "fusion-bench diagnose experiments/mine.yaml --dataset mine --list dilution --top 30",
        "fusion-bench diagnose experiments/mine.yaml --set baseline=reranked --json",
    ),
)
def diagnose(
    experiment: base.ExperimentFile = base.DEFAULT,
    system: Annotated[
        list[str] | None,
        typer.Option(
            help="System to diagnose, beside the baseline; repeatable. Default: all.",
            metavar="NAME",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="One of several datasets. Default: each of them.", metavar="NAME"),
    ] = None,
    listed: Annotated[
        ListedKind | None,
        typer.Option("--list", help="List the failures of this kind, the worst first."),
    ] = None,
    top: Annotated[
        int,
        typer.Option(
            help="Number of failures to list, for each system and kind.", min=1, max=MOST_RANK
        ),
    ] = 10,
    out: base.OutFolder = None,
    datasets: base.DatasetFolders = None,
    overrides: base.SetOption = None,
    json: base.JsonFlag = False,
) -> None:
    """Count the failures of each system: which relevant documents it loses, and where.

    Dilution: relevant and first in a list of role question, but below another document in the fused
    list. Burial: relevant and in the fused top 3, but the blend puts it below rank 10 or drops it.
    Miss: relevant, but no list that the system reads returned it. Inversion: relevant and in the
    final top 10, below a document that is judged not relevant.

    Prints what each system cures and causes against the baseline, with intervals, and writes
    diagnosis.json and diagnosis.md.
    """
    from fusion_bench.cli.application.next_steps import after_diagnose
    from fusion_bench.explain.diagnosis import diagnose_experiment
    from fusion_bench.explain.failures import KINDS
    from fusion_bench.report.diagnosis_page import build_diagnosis_page
    from fusion_bench.report.write import write_record

    kind = next((name for name in KINDS if name == listed), None)
    context = base.experiment_context(experiment, datasets, overrides)
    with context as (parsed, source, folders, progress):
        folder = base.out_folder(out, experiment)
        diagnosis = diagnose_experiment(
            parsed,
            source,
            folders=folders,
            systems=system or (),
            dataset=dataset,
            top=top,
            progress=progress,
        )
        written = write_record("diagnosis", diagnosis, build_diagnosis_page(diagnosis), folder)
    first = dataset or parsed.dataset_names[0]
    steps = after_diagnose(
        diagnosis,
        experiment,
        first if len(parsed.dataset_names) > 1 else None,
        listed=kind,
        datasets=datasets,
        overrides=overrides,
    )
    page = replace(build_diagnosis_page(diagnosis, kind), next_steps=tuple(steps))
    print_result(diagnosis, page, as_json=json, written=written)
