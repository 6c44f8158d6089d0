"""Compare judges: agreement of people and models, and what their grades say.

Examples:
    fusion-bench grades agreement people=people.csv llm=llm.csv --human-judge people
    fusion-bench grades estimate experiments/mine.yaml --human-judge people --machine-judge llm
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application import file_options
from fusion_bench.cli.application.console import echo, print_json, print_result
from fusion_bench.config.options import Argument, Count, Name, Names, Option, Seed

if TYPE_CHECKING:
    from fusion_bench.judging.agreement import JudgeGrades

MachineJudge: TypeAlias = Annotated[Name, Option("--machine-judge")]

command = base.command_group(__doc__)


class AgreementOptions(base.DatasetOptions, base.PageOptions):
    """Options of ``grades agreement``.

    Attributes:
        judges: A dataset whose dataset.yaml names judges, or files of grades and their names.
        people: Judge that the others are compared with; repeatable. Default: every judge of
            kind human. Without a human judge, every two judges are compared.
        binary_relevance: Grade from which a document is relevant. Default: the dataset's, else 1.
        weighting: Also κ with disagreements weighted by the distance of the grades.
    """

    judges: Annotated[Sequence[str], Argument("DATASET|NAME=FILE")]
    people: Annotated[Names, Option("--human-judge")] = ()
    binary_relevance: Count | None = None
    weighting: Literal["none", "linear", "quadratic"] = "none"
    qrels_columns: file_options.QrelsColumns = ()


@base.add_command(command, name="agreement")
def agreement_command(options: AgreementOptions) -> None:
    """Measure Cohen's kappa of each two judges, graded and binary, with intervals over queries.

    Measure it between people and a machine judge before the machine's grades count.

    Examples:
        fusion-bench grades agreement mine
        fusion-bench grades agreement people=people.csv llm=llm.csv --human-judge people
        fusion-bench grades agreement a.qrels b.qrels c.qrels --binary-relevance 2
    """
    from fusion_bench.judging.agreement import build_agreement_page, measure_agreement, read_judges

    judges = options.judges
    is_dataset = len(judges) == 1 and "=" not in judges[0] and not Path(judges[0]).is_file()
    is_dataset = is_dataset or Path(judges[0]).name == "dataset.yaml"
    if not is_dataset and Path(judges[0]).suffix == ".yaml":
        raise typer.BadParameter(
            f"{judges[0]}: expected a dataset or files of grades: give the name of a dataset, "
            "whose dataset.yaml names the judges",
            param_hint="DATASET|NAME=FILE",
        )
    if is_dataset:
        base.refuse(options, "does not go with a dataset", "qrels_columns")
        grades, relevance = read_judges(options.find(judges[0]))
    else:
        base.refuse(options, "does not go with files of grades", "datasets")
        grades, relevance = _read_files(options), 1
    report = measure_agreement(
        grades,
        binary_relevance=options.binary_relevance or relevance,
        weighting=options.weighting,
        references=options.people,
    )
    print_result(report, build_agreement_page(report), options)


def _read_files(options: AgreementOptions) -> dict[str, JudgeGrades]:
    """Grades by name, of files."""
    from fusion_bench.io.load_records import load_qrels
    from fusion_bench.io.outputs import refuse_inputs
    from fusion_bench.judging.agreement import JudgeGrades

    files = file_options.parse_named_files(options.judges, "NAME=FILE")
    refuse_inputs(files.values())
    layout = file_options.parse_qrels_columns(options.qrels_columns)
    return {name: JudgeGrades(load_qrels(path, layout=layout)) for name, path in files.items()}


class GradeOptions(base.NamedExperimentOptions, base.PageOptions):
    """Options of what evaluates an experiment under the grades of judges.

    Attributes:
        people: The judge of kind human, who graded a random sample of the queries.
        machine: The judge of kind machine, who graded all queries; qrels = the judgments.
        systems: System, beside the baseline; repeatable. Default: all.
        measure: Measure; repeatable, and the first decides. Default: the experiment's.
        dataset: One of several datasets of the experiment.
    """

    systems: base.Systems = ()
    measure: Names = ()
    dataset: Name | None = None


class EstimateOptions(GradeOptions):
    """Options of ``grades estimate``."""

    people: Annotated[Name, Option("--human-judge")]
    machine: MachineJudge


@base.add_command(command, name="estimate")
def estimate_command(options: EstimateOptions) -> None:
    """Estimate differences under people's grades, from few of theirs and many of a machine's.

    Prediction-powered inference: the intervals hold whatever the machine's bias. People's queries
    have to be a random sample ('sample: random' beside their judge in the dataset.yaml).

    Examples:
        fusion-bench grades estimate experiments/mine.yaml --human-judge people --machine-judge llm
        fusion-bench grades estimate experiments/mine.yaml --human-judge people
            --machine-judge qrels --system rrf --json
    """
    from fusion_bench.judging.estimate import estimate_experiment
    from fusion_bench.judging.judge_values import replace_measures
    from fusion_bench.judging.pages import build_estimate_page

    estimate = options.run(estimate_experiment, more=replace_measures(options.measure))
    print_result(estimate, build_estimate_page(estimate), options)


class SampleOptions(base.NamedExperimentOptions):
    """Options of ``grades sample``.

    Attributes:
        machine: The judge of kind machine, who graded all queries; qrels = the judgments.
        count: Queries to draw; a larger number adds to the sample of a smaller one.
        seed: Another one draws another sample.
        dataset: One of several datasets of the experiment.
    """

    machine: MachineJudge
    count: Annotated[int, Option("--n", min=1)]
    seed: Seed = 0
    dataset: Name | None = None


@base.add_command(command, name="sample")
def sample_command(options: SampleOptions) -> None:
    """Draw queries for people to judge: a random sample, one id a line.

    Examples:
        fusion-bench grades sample experiments/mine.yaml --machine-judge llm --n 30
    """
    from fusion_bench.judging.judge_values import draw_sample

    drawn = options.run(draw_sample)
    if options.json:
        print_json({"seed": options.seed, "queries": drawn})
        return
    for query in drawn:
        echo(query)
