"""Compare judges: agreement of people and models, and what their grades say."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import echo, print_json, print_result
from fusion_bench.cli.application.file_options import (
    QrelsColumns,
    parse_named_files,
    parse_qrels_columns,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusion_bench.judging.agreement import JudgeGrades


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
    from fusion_bench.judging.estimate import estimate_experiment
    from fusion_bench.judging.estimate_page import build_estimate_page
    from fusion_bench.judging.judge_values import replace_measures

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
    from fusion_bench.judging.judge_values import draw_sample

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
    from fusion_bench.judging.judge_values import replace_measures
    from fusion_bench.judging.sensitivity import judge_experiment
    from fusion_bench.judging.sensitivity_page import build_sensitivity_page

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


command = base.command_app(
    help="Compare judges: agreement of people and models, and what their grades say.",
    no_args_is_help=True,
    epilog=base.format_examples(
        "fusion-bench grades agreement people=people.csv llm=llm.csv --people people",
        "fusion-bench grades estimate experiments/mine.yaml --people people --machine llm",
        "fusion-bench grades sensitivity experiments/mine.yaml",
    ),
)


class WeightingChoice(StrEnum):
    """How disagreements are weighted."""

    NONE = "none"
    LINEAR = "linear"
    QUADRATIC = "quadratic"


@command.callback()
def main() -> None:
    """Turn the application into a group."""


@command.command(
    "agreement",
    epilog=base.format_examples(
        "fusion-bench grades agreement mine",
        "fusion-bench grades agreement people=people.csv llm=llm.csv --people people",
        "fusion-bench grades agreement a.qrels b.qrels c.qrels --binary-relevance 2",
    ),
)
def agreement_command(
    judges: Annotated[
        list[str],
        typer.Argument(
            help="A dataset whose dataset.yaml names judges, or files of grades and their names.",
            metavar="DATASET|NAME=FILE",
        ),
    ],
    people: Annotated[
        list[str] | None,
        typer.Option(
            help="Judge that the others are compared with; repeatable. Default: those of kind "
            "human; where there are none, every two judges are compared.",
            metavar="NAME",
        ),
    ] = None,
    binary_relevance: Annotated[
        int | None,
        typer.Option(
            help="Grade from which a document is relevant. Default: the dataset's, else 1.", min=1
        ),
    ] = None,
    weighting: Annotated[
        WeightingChoice,
        typer.Option(help="Also κ with disagreements weighted by the distance of the grades."),
    ] = WeightingChoice.NONE,
    qrels_columns: QrelsColumns = None,
    datasets: base.DatasetFolders = None,
    markdown: base.MarkdownFile = None,
    json: base.JsonFlag = False,
) -> None:
    """Measure Cohen's kappa of each two judges, graded and binary, with intervals over queries.

    Measure it between people and a machine judge before the machine's grades count.
    """
    from fusion_bench.judging.agreement import build_agreement_page, measure_agreement

    base.refuse_two_outputs(markdown, as_json=json)
    is_dataset = len(judges) == 1 and "=" not in judges[0] and not Path(judges[0]).is_file()
    is_dataset = is_dataset or Path(judges[0]).name == "dataset.yaml"
    if not is_dataset and Path(judges[0]).suffix == ".yaml":
        raise typer.BadParameter(
            f"{judges[0]}: expected a dataset or files of grades: give the name of a dataset, "
            "whose dataset.yaml names the judges",
            param_hint="DATASET|NAME=FILE",
        )
    if is_dataset:
        base.refuse_options("a dataset", {"--qrels-columns": qrels_columns})
        grades, relevance = _read_dataset(judges[0], datasets)
    else:
        base.refuse_options("files of grades", {"--datasets": datasets})
        grades, relevance = _read_files(judges, qrels_columns), 1
    report = measure_agreement(
        grades,
        binary_relevance=binary_relevance or relevance,
        weighting=weighting.value,
        references=people or (),
    )
    print_result(report, build_agreement_page(report), as_json=json, markdown=markdown)


def _read_dataset(name: str, folders: list[Path] | None) -> tuple[dict[str, JudgeGrades], int]:
    """The judges of a dataset, its judgments first, and its grade of relevance."""
    from fusion_bench.io.dataset_paths import find_dataset
    from fusion_bench.judging.agreement import read_judges

    return read_judges(find_dataset(name, base.folders_for(folders)))


def _read_files(judges: Sequence[str], columns: list[str] | None) -> dict[str, JudgeGrades]:
    """Grades by name, of files."""
    from fusion_bench.io.load_records import load_qrels
    from fusion_bench.io.outputs import refuse_inputs
    from fusion_bench.judging.agreement import JudgeGrades

    files = parse_named_files(judges, "NAME=FILE")
    refuse_inputs(files.values())
    layout = parse_qrels_columns(columns)
    return {name: JudgeGrades(load_qrels(path, layout=layout)) for name, path in files.items()}


command.command(
    "estimate",
    epilog=base.format_examples(
        "fusion-bench grades estimate experiments/mine.yaml --people people --machine llm",
        "fusion-bench grades estimate experiments/mine.yaml --people people --machine qrels "
        "--system rrf --json",
    ),
)(estimate_command)


command.command(
    "sample",
    epilog=base.format_examples(
        "fusion-bench grades sample experiments/mine.yaml --machine llm --n 30",
    ),
)(sample_command)


command.command(
    "sensitivity",
    epilog=base.format_examples(
        "fusion-bench grades sensitivity experiments/mine.yaml",
        "fusion-bench grades sensitivity experiments/mine.yaml --judge people --judge llm --json",
    ),
)(sensitivity_command)
