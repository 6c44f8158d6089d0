"""The commands of ``grades`` that measure systems under the grades of judges."""

from __future__ import annotations

from typing import Annotated

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli.output.console import echo, print_json, print_result

Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--system", help="System, beside the baseline; repeatable. Default: all.", metavar="NAME"
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option("--dataset", help="One of several datasets of the experiment.", metavar="NAME"),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        help="Measure; repeatable, and the first decides. Default: the experiment's.",
        metavar="NAME",
    ),
]


def estimate_command(
    experiment: base.ExperimentFile,
    people: Annotated[
        str,
        typer.Option(
            help="The judge of kind human, who graded a random sample of the queries.",
            metavar="NAME",
        ),
    ],
    machine: Annotated[
        str,
        typer.Option(
            help="The judge of kind machine, who graded all queries; qrels = the judgments.",
            metavar="NAME",
        ),
    ],
    system: Systems = None,
    measure: Measures = None,
    dataset: Dataset = None,
    datasets: base.DatasetFolders = None,
    overrides: base.SetOption = None,
    markdown: base.MarkdownFile = None,
    json: base.JsonFlag = False,
) -> None:
    """Estimate differences under people's grades, from few of theirs and many of a machine's.

    Prediction-powered inference: the intervals hold whatever the machine's bias. People's queries
    have to be a random sample ('sample: random' beside their judge in the dataset.yaml).
    """
    from fusion_bench.grades.estimate.estimate_experiment import estimate_experiment
    from fusion_bench.grades.estimate.estimate_page import build_estimate_page
    from fusion_bench.grades.replaced_measures import replace_measures

    base.refuse_two_outputs(markdown, as_json=json)
    replaced = [*(overrides or ()), *replace_measures(measure or ())]
    context = base.experiment_context(experiment, datasets, replaced)
    with context as (parsed, source, folders, progress):
        estimate = estimate_experiment(
            parsed,
            source,
            people=people,
            machine=machine,
            folders=folders,
            systems=system or (),
            dataset=dataset,
            progress=progress,
        )
    print_result(estimate, build_estimate_page(estimate), as_json=json, markdown=markdown)


def sample_command(
    experiment: base.ExperimentFile,
    machine: Annotated[
        str,
        typer.Option(
            help="The judge of kind machine, who graded all queries; qrels = the judgments.",
            metavar="NAME",
        ),
    ],
    n: Annotated[
        int,
        typer.Option(
            "--n",
            help="Queries to draw; a larger number adds to the sample of a smaller one.",
            min=1,
        ),
    ],
    seed: Annotated[int, typer.Option(help="Another one draws another sample.", min=0)] = 0,
    dataset: Dataset = None,
    datasets: base.DatasetFolders = None,
    overrides: base.SetOption = None,
    json: base.JsonFlag = False,
) -> None:
    """Draw queries for people to judge: a random sample, one id a line."""
    from fusion_bench.grades.estimate.draw_sample import draw_sample

    context = base.experiment_context(experiment, datasets, overrides)
    with context as (parsed, source, folders, progress):
        drawn = draw_sample(
            parsed,
            source,
            machine=machine,
            count=n,
            seed=seed,
            folders=folders,
            dataset=dataset,
            progress=progress,
        )
    if json:
        print_json({"seed": seed, "queries": drawn})
        return
    for query in drawn:
        echo(query)


def sensitivity_command(
    experiment: base.ExperimentFile,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="Judge, the reference first; repeatable. Default: the judgments (qrels), then all "
            "judges of the dataset.yaml.",
            metavar="NAME",
        ),
    ] = None,
    system: Systems = None,
    measure: Measures = None,
    dataset: Dataset = None,
    datasets: base.DatasetFolders = None,
    overrides: base.SetOption = None,
    markdown: base.MarkdownFile = None,
    json: base.JsonFlag = False,
) -> None:
    """Evaluate the same systems under each judge: which verdicts and orders depend on the judge.

    Over the queries that all of these judges graded.
    """
    from fusion_bench.grades.replaced_measures import replace_measures
    from fusion_bench.grades.sensitivity.judge_experiment import judge_experiment
    from fusion_bench.grades.sensitivity.sensitivity_page import build_sensitivity_page

    base.refuse_two_outputs(markdown, as_json=json)
    replaced = [*(overrides or ()), *replace_measures(measure or ())]
    context = base.experiment_context(experiment, datasets, replaced)
    with context as (parsed, source, folders, progress):
        sensitivity = judge_experiment(
            parsed,
            source,
            folders=folders,
            judges=judge or (),
            systems=system or (),
            dataset=dataset,
            progress=progress,
        )
    print_result(sensitivity, build_sensitivity_page(sensitivity), as_json=json, markdown=markdown)
