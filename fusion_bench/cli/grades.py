"""Compare judges: agreement of people and models, and what their grades say."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli.options.columns import QrelsColumns, parse_qrels_columns
from fusion_bench.cli.options.named_files import parse_named_files
from fusion_bench.cli.output.console import print_result
from fusion_bench.cli.subcommands.grades_systems import (
    estimate_command,
    sample_command,
    sensitivity_command,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusion_bench.grades.agreement.measure_agreement import JudgeGrades

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
    from fusion_bench.grades.agreement.agreement_page import build_agreement_page
    from fusion_bench.grades.agreement.measure_agreement import measure_agreement

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
    from fusion_bench.grades.agreement.read_judges import read_judges
    from fusion_bench.io.dataset_search import find_dataset

    return read_judges(find_dataset(name, base.folders_for(folders)))


def _read_files(judges: Sequence[str], columns: list[str] | None) -> dict[str, JudgeGrades]:
    """Grades by name, of files."""
    from fusion_bench.grades.agreement.measure_agreement import JudgeGrades
    from fusion_bench.io.load_records import load_qrels
    from fusion_bench.io.outputs import refuse_inputs

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
