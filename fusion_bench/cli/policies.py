"""Judge the per-query policies of an experiment."""

from __future__ import annotations

from typing import Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.config.models import MOST_FOLDS, MOST_RESAMPLES, MOST_TRIALS

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench policies experiments/policies.yaml",
        'fusion-bench policies experiments/policies.yaml --system "margin silencing" --trials 100',
        "fusion-bench policies experiments/policies.yaml --json",
    ),
)
def policies_command(
    experiment: base.ExperimentFile,
    system: Annotated[
        list[str] | None,
        typer.Option(
            help="System whose policy is judged; repeatable. Default: all that have one.",
            metavar="NAME",
        ),
    ] = None,
    trials: Annotated[
        int,
        typer.Option(
            help="Parameter sets of a policy, and fixed variants, at most.", min=2, max=MOST_TRIALS
        ),
    ] = 50,
    folds: Annotated[int, typer.Option(help="Number of folds.", min=2, max=MOST_FOLDS)] = 5,
    shufflings: Annotated[
        int,
        typer.Option(
            help="Number of times that the features are shuffled.", min=39, max=MOST_RESAMPLES
        ),
    ] = 200,
    out: base.OutFolder = None,
    datasets: base.DatasetFolders = None,
    overrides: base.SetOption = None,
    json: base.JsonFlag = False,
) -> None:
    """Judge each policy against fixed numbers tuned on the same queries with the same budget.

    A policy pays if it is better out of fold (95 % interval above 0), and better than itself with
    its features shuffled across queries (p at most .025). The best variant of each query is the
    ceiling.

    Writes policies.json and policies.md.
    """
    from fusion_bench.report.policy_page import build_policy_page
    from fusion_bench.report.write import write_record
    from fusion_bench.tune.policy_study import StudyBudget, study_experiment

    context = base.experiment_context(experiment, datasets, overrides)
    with context as (parsed, source, folders, progress):
        folder = base.out_folder(out, experiment)
        study = study_experiment(
            parsed,
            source,
            folders=folders,
            systems=system or (),
            budget=StudyBudget(trials, folds, shufflings, parsed.seed),
            progress=progress,
        )
        page = build_policy_page(study)
        written = write_record("policies", study, page, folder)
    print_result(study, page, as_json=json, written=written)
